"""The parsed form of PTX: types, operands, instructions, entries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .errors import Source

DType = np.dtype[Any]


@dataclass(frozen=True)
class Type:
    """A fundamental type (PTX ISA, "Fundamental Types").

    Its name, its kind (``s``, ``u``, ``b``, ``f``; ``p`` for pred, ``h`` for f16x2) and its size in bytes.
    """

    name: str
    kind: str
    size: int
    dtype: DType

    @property
    def bits(self) -> int:
        """The size in bits."""
        return self.size * 8


_KINDS = {"s": "i", "u": "u", "b": "u", "f": "f"}
_WIDTHS = {"s": (1, 2, 4, 8), "u": (1, 2, 4, 8), "b": (1, 2, 4, 8), "f": (2, 4, 8)}

TYPES: dict[str, Type] = {
    f"{kind}{size * 8}": Type(f"{kind}{size * 8}", kind, size, np.dtype(f"{_KINDS[kind]}{size}"))
    for kind, sizes in _WIDTHS.items()
    for size in sizes
}
TYPES["f16x2"] = Type("f16x2", "h", 4, np.dtype("u4"))
TYPES["pred"] = Type("pred", "p", 1, np.dtype(np.bool_))


@dataclass(frozen=True)
class Register:
    """A virtual register; ``negated`` only for a predicate that is read as ``!p``."""

    name: str
    type: Type
    negated: bool = False


@dataclass(frozen=True)
class Special:
    """A special register such as ``%tid.x`` (PTX ISA, "Special Registers")."""

    name: str


@dataclass(frozen=True)
class Immediate:
    """A literal: an integer, or a float with the width it was written in (0 when decimal)."""

    value: int | float


@dataclass(frozen=True)
class Symbol:
    """The name of a variable, a parameter or a label."""

    name: str


@dataclass(frozen=True)
class Address:
    """``[base + offset]``: what a memory instruction is given; no base for an absolute address."""

    base: Register | Symbol | None
    offset: int


@dataclass(frozen=True)
class Group:
    """Several operands in one place: a vector ``{a, b}`` or a pair of predicates ``p|q``."""

    items: tuple[Operand, ...]


Operand = Register | Special | Immediate | Symbol | Address | Group
SINK = Symbol("_")


@dataclass(frozen=True)
class Instruction:
    """One instruction, ``@guard opcode.modifiers operands;``."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Register | None
    source: Source

    @property
    def name(self) -> str:
        """The instruction as written, without its operands."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True)
class Variable:
    """A variable of a state space (PTX ISA, "State Spaces"); ``size`` in bytes, None for a dynamic ``extern`` array."""

    name: str
    space: str
    align: int
    size: int | None
    initial: bytes = b""


@dataclass(frozen=True)
class Parameter:
    """A kernel parameter; ``type`` is None for a structure passed by value."""

    name: str
    type: Type | None
    size: int


@dataclass
class Entry:
    """A kernel: its parameters, variables, instructions, and labels as indices into the instructions."""

    name: str
    parameters: list[Parameter]
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)


@dataclass
class Program:
    """A PTX module: its entries by name, and its variables."""

    entries: dict[str, Entry] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
