"""The parsed form of PTX: types, operands, instructions, entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ..util.errors import Source

DType = np.dtype[Any]


@dataclass(frozen=True)
class Type:
    """A fundamental type (PTX ISA, "Fundamental Types").

    ``kind`` is the letter ``s``, ``u``, ``b`` or ``f`` of the name, or else ``pred``, ``f16x2``, ``bf16`` (of bf16 and
    bf16x2) or ``int16x2`` (of u16x2 and s16x2). ``size`` is in bytes.
    """

    name: str
    kind: str
    size: int
    dtype: DType

    @property
    def bits(self) -> int:
        """The size in bits."""
        return self.size * 8

    @property
    def is_float(self) -> bool:
        """True for floats, and for pairs of floats."""
        return self.kind in ("f", "f16x2", "bf16")


_NUMPY_KINDS = {"s": "i", "u": "u", "b": "u", "f": "f"}
_WIDTHS = {"s": (1, 2, 4, 8), "u": (1, 2, 4, 8), "b": (1, 2, 4, 8), "f": (2, 4, 8)}
TYPES: dict[str, Type] = {
    f"{kind}{size * 8}": Type(f"{kind}{size * 8}", kind, size, np.dtype(f"{_NUMPY_KINDS[kind]}{size}"))
    for kind, sizes in _WIDTHS.items()
    for size in sizes
}
TYPES["f16x2"] = Type("f16x2", "f16x2", 4, np.dtype("u4"))
TYPES |= {name: Type(name, "bf16", size, np.dtype(f"u{size}")) for name, size in (("bf16", 2), ("bf16x2", 4))}
TYPES |= {name: Type(name, "int16x2", 4, np.dtype("u4")) for name in ("u16x2", "s16x2")}
TYPES["b128"] = Type("b128", "b", 16, np.dtype("V16"))
TYPES["pred"] = Type("pred", "pred", 1, np.dtype(np.bool_))


@dataclass(frozen=True)
class Register:
    """A virtual register. ``negated`` is only for predicates: the operand is ``!p``."""

    name: str
    type: Type
    negated: bool = False


@dataclass(frozen=True)
class Special:
    """A special register such as ``%tid.x`` (PTX ISA, "Special Registers"), or an undeclared register."""

    name: str


@dataclass(frozen=True)
class Immediate:
    """A literal: an integer or a float."""

    value: int | float


@dataclass(frozen=True)
class Symbol:
    """The name of a variable, a parameter, a label or a function; or `SINK`."""

    name: str


@dataclass(frozen=True)
class Address:
    """``[base + offset]``, the operand of a memory instruction; ``base`` is None for an absolute address."""

    base: Register | Special | Symbol | None
    offset: int


@dataclass(frozen=True)
class Group:
    """Several operands as one: a vector ``{a, b}``, a pair ``p|q``, or the argument list ``(a, b)`` of a call.

    An address with coordinates is also a group, and so are the targets of a jump table.
    """

    items: tuple[Operand, ...]


Operand = Register | Special | Immediate | Symbol | Address | Group
#: The operand of a result that nothing reads.
SINK = Symbol("_")


def format_operand(operand: Operand) -> str:
    """Format an operand in PTX syntax, such as ``[%rd1+8]``. Groups are in braces; literals are as in Python."""
    if isinstance(operand, Address):
        base = format_operand(operand.base) if operand.base else ""
        return f"[{base}{operand.offset:+d}]" if operand.offset or not base else f"[{base}]"
    if isinstance(operand, Group):
        return f"{{{', '.join(map(format_operand, operand.items))}}}"
    if isinstance(operand, Immediate):
        return str(operand.value)
    return f"!{operand.name}" if isinstance(operand, Register) and operand.negated else operand.name


#: State space of the parameters of calls, a name of ptxcount's own: local memory that machine code does not access.
CALL_SPACE = "local::param"


class LoadPart(NamedTuple):
    """A part of a vector load: its offset and its width in bytes."""

    offset: int
    width: int


@dataclass(frozen=True)
class Instruction:
    """One instruction, ``@guard opcode.modifiers operands;``, and its source location.

    ``problem`` is the reason why the instruction could not be parsed. `isa.dispatch` sets ``reads`` and ``writes``.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Register | None
    source: Source
    problem: str = ""
    #: True if ``.pragma "used_bytes_mask N"`` stands before it: a load of which some bytes are not used.
    is_masked: bool = False
    #: Registers read by an atomic that ptxas can prove uniform in a warp.
    uniform: frozenset[str] = frozenset()
    #: True for a swap whose result decides whether a loop tries again.
    is_retried: bool = False
    #: True for a load that ptxas removes (`removed_loads`): it is executed, but not counted.
    is_removed: bool = False
    #: Number of instructions of the PTX for which it stands: 0 for a test that unrolling adds (`unrolled_loops`).
    weight: int = 1
    #: The loads that ptxas makes of a vector load (`narrowed_loads`); none if it stays whole.
    parts: tuple[LoadPart, ...] = ()
    #: Cache eviction policy, the last operand of an instruction with ``L2::cache_hint``.
    policy: Operand | None = None
    #: Names of the registers that the instruction reads, including its guard, and of those that it writes.
    reads: set[str] = field(default_factory=set, init=False, compare=False, repr=False)
    writes: set[str] = field(default_factory=set, init=False, compare=False, repr=False)
    #: Widths in bytes of the instruction's accesses that may be to shared memory.
    units: set[int] = field(default_factory=set, init=False, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The opcode and the modifiers, such as ``ld.global.f32``."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True)
class Variable:
    """A variable of a state space (PTX ISA, "State Spaces"), or a parameter of a kernel."""

    #: Name, and state space, for example ``shared``.
    name: str
    space: str
    #: Alignment in bytes.
    align: int
    #: Size in bytes; None for an array of unknown length.
    size: int | None
    #: Initial bytes; zeros follow.
    initial: bytes = b""
    #: Reason why the variable cannot be used; empty if it can.
    problem: str = ""
    #: Addresses in the initial value: byte offset in the variable, symbol, and the number added to its address.
    addresses: tuple[tuple[int, str, int], ...] = ()
    #: Type of an element.
    element: Type = TYPES["b8"]
    #: True for a ``.hidden`` parameter, which the compiler added.
    hidden: bool = False


#: Beginning of the labels for ``.pragma "nounroll"``. No label of PTX begins so.
NO_UNROLL = ".nounroll"


@dataclass
class Entry:
    """A kernel."""

    #: Mangled name.
    name: str
    #: Source of the kernel's beginning.
    source: Source
    #: Parameters, in order.
    parameters: list[Variable] = field(default_factory=list)
    #: Instructions, in order.
    instructions: list[Instruction] = field(default_factory=list)
    #: Index of the instruction after each label, and after each ``.pragma "nounroll"`` by `NO_UNROLL` and a number.
    labels: dict[str, int] = field(default_factory=dict)
    #: Variables that the kernel declares, by name.
    variables: dict[str, Variable] = field(default_factory=dict)
    #: Reason why the kernel cannot be launched; empty if it can.
    problem: str = ""
    #: Cluster size in blocks, if the source sets it.
    cluster: tuple[int, int, int] | None = None
    #: True if a launch gives the grid in clusters instead of blocks.
    has_grid_of_clusters: bool = False
    #: Maximum threads per block (``.maxntid``), and required threads along each axis (``.reqntid``); else 0 and None.
    max_threads: int = 0
    exact_block: tuple[int, int, int] | None = None
    #: Number of the source language (``.language``); 0 without one.
    language: int = 0
    #: Function that parses the text between the braces into an entry; None after `parse_body`.
    body: Callable[[Entry], None] | None = None

    def parse_body(self) -> Entry:
        """Return a copy of the kernel with its instructions, labels and variables.

        A kernel whose body was parsed is returned itself. Raises `PtxSyntaxError` if the body is no PTX.
        """
        if self.body is None:
            return self
        entry = replace(self, instructions=[], labels={}, variables={}, body=None)
        self.body(entry)
        return entry


@dataclass(frozen=True)
class Function:
    """A function that a kernel may call."""

    #: Names of the results and the parameters.
    results: tuple[str, ...]
    parameters: tuple[str, ...]
    #: Function that parses the body, as an entry without parameters.
    body: Callable[[], Entry]

    def accepts(self, results: int, arguments: int) -> bool:
        """Tell if a call with so many results and arguments matches the function."""
        return (results, arguments) == (len(self.results), len(self.parameters))


@dataclass
class Program:
    """A PTX module: its entries and functions by name, its variables, and the names of its source files."""

    entries: dict[str, Entry] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    files: dict[int, str] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)


def iter_leaves(operand: Operand | None) -> Iterator[Operand]:
    """Yield the registers, symbols and literals of an operand, also in groups; of an address, only the base."""
    if isinstance(operand, Address):
        yield from iter_leaves(operand.base)
    elif isinstance(operand, Group):
        for item in operand.items:
            yield from iter_leaves(item)
    elif operand is not None:
        yield operand
