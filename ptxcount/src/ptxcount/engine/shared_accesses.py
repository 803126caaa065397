"""Shared memory accesses that ptxas may merge, and instructions that keep accesses apart (nvcc 13.0.88)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from ..counting.transactions import WORD
from ..ptx.program import CALL_SPACE, TYPES, Address, Group, Instruction, Operand, Register, Symbol
from .address_sums import TracedSums, trace_sums

_ACCESS_KINDS = {"ld": "load", "st": "store"}
_VECTORS = {"v2": 2, "v4": 4}
#: Number of needed elements, of four, that ptxas never merges with others behind a ``used_bytes_mask``.
_NEVER_MERGED = 3
#: Instructions across which ptxas moves no access, and instructions across which it moves no store.
_BREAKS = frozenset(("bar", "barrier", "membar", "fence", "call", "nanosleep", "griddepcontrol"))
_BREAKS_STORES = frozenset(("cp", "ldmatrix", "pmevent", "brkpt", "wgmma"))
#: Instructions that to ptxas write to their state space, and instructions that write only to shared memory.
_WRITES = frozenset(("st", "atom", "red", "multimem", "discard", "prefetch", "prefetchu", "applypriority"))
_WRITES_SHARED = frozenset(("mbarrier", "stmatrix"))
#: Modifiers of ``cp`` and ``wgmma`` across which ptxas moves loads.
_PASSED = frozenset(("commit_group", "mma_async"))
#: State space of loads -> other state spaces. An instruction without a space may access any.
_OTHER_SPACES = {
    "shared": frozenset(("global", "local", "const", "param", CALL_SPACE)),
    "global": frozenset(("shared", "shared::cta", "local", "const", "param", CALL_SPACE)),
}
_RELEASES = frozenset(("release", "acq_rel"))
#: Operations that are guarded instructions in machine code.
_GUARDED_INSIDE = frozenset(("div.s32", "rem.s32"))
#: Operations that machine code calls as functions, and modifiers of those that it does not call.
_CALLED = frozenset(("div", "rcp", "sqrt", "rem"))
_INLINE = frozenset(("approx", "full", "s32", "u32"))
#: Instructions that need a zero-extended 16-bit value. A 16-bit load extends it; a merged 32-bit load does not.
_OPCODES_OF_WORDS = frozenset(("add", "sub", "or", "xor", "shl"))
_NAMES_OF_WORDS = frozenset(("cvt.u32.u16", "cvt.f32.bf16", "mul.lo.u16", "mul.wide.u16", "shr.u16"))
#: The operands of an address without its offset, each with a factor.
Base = frozenset[tuple[Operand, int]]
#: Kind, element size and base, which mergeable accesses share.
AccessKey = tuple[str, int, Base]


class SharedAccess(NamedTuple):
    """A load or a store that ptxas may merge with others."""

    #: ``load`` or ``store``, the bytes of an element, and the address without its offset.
    kind: str
    size: int
    base: Base
    #: Register or variable from which ptxas computes the address, if any, and the offset that it includes.
    root: Operand | None
    root_offset: int
    #: Byte offset of the first element, number of elements in the PTX, and byte offsets of the needed elements.
    offset: int
    elements: int
    needed: tuple[int, ...]
    #: True if the needed elements are a pair that a ``used_bytes_mask`` makes one access before others are merged.
    is_pair: bool = False

    @property
    def key(self) -> AccessKey:
        """The properties that mergeable accesses share."""
        return self.kind, self.size, self.base

    @property
    def width(self) -> int:
        """Bytes per thread in the PTX, before merging."""
        return self.size * self.elements


def find_accesses(code: Sequence[Instruction], addresses: Mapping[str, int]) -> dict[int, SharedAccess]:
    """Return the accesses to shared memory that ptxas may merge, by the instruction's ``id``.

    ``addresses`` has the byte address of each variable in shared memory by name.
    """
    candidates = [instruction for instruction in code if instruction.opcode in _ACCESS_KINDS]
    shared = [candidate for candidate in candidates if "shared" in candidate.modifiers and not candidate.is_removed]
    if not shared:
        return {}
    readers: defaultdict[str, list[Instruction]] = defaultdict(list)
    for instruction in code:
        for name in instruction.reads:
            readers[name].append(instruction)
    operands = (operand for instruction in shared for operand in instruction.operands)
    bases = [operand.base for operand in operands if isinstance(operand, Address)]
    sums = trace_sums(code, [base.name for base in bases if isinstance(base, Register)])
    accesses = {id(instruction): _parse_access(instruction, readers, sums, addresses) for instruction in shared}
    return {identity: access for identity, access in accesses.items() if access is not None}


def _parse_access(
    instruction: Instruction,
    readers: Mapping[str, Sequence[Instruction]],
    sums: TracedSums,
    addresses: Mapping[str, int],
) -> SharedAccess | None:
    """Return the access of a ``ld`` or ``st``; None if ptxas never merges it."""
    kind, is_load = _ACCESS_KINDS[instruction.opcode], instruction.opcode == "ld"
    space, *names = instruction.modifiers
    if space != "shared" or not names or instruction.guard is not None or len(instruction.operands) != 2:
        return None
    value, place = instruction.operands if is_load else instruction.operands[::-1]
    count, element = _VECTORS.get(names[0], 1), TYPES.get(names[-1])
    has_other_modifiers = len(names) != (1 if count == 1 else 2)
    if has_other_modifiers or element is None or not isinstance(place, Address):
        return None
    is_halfword = element.size < WORD
    if is_halfword and (element.kind == "s" or (is_load and _is_widened_halfword(value, readers))):
        return None
    needed = _list_read_elements(value, count, readers) if is_load else [*range(count)]
    is_partly_used = instruction.is_masked and len(needed) < count
    if element.size == 1 or (is_partly_used and len(needed) == _NEVER_MERGED):
        return None
    base, shift = sums.find_sum(place.base)
    root, root_offset = sums.find_root(place.base)
    offset = place.offset + shift
    if isinstance(root, Symbol) and root.name in addresses and len(base) == 1:  # neighbouring variables may merge
        offset += addresses[root.name]
        base, root = frozenset(), None
    return SharedAccess(
        kind, element.size, base, root, root_offset, offset, count,
        needed=tuple(offset + element.size * index for index in needed),
        is_pair=is_partly_used and needed in ([0, 1], [2, 3]),
    )  # fmt: skip


def _list_read_elements(target: Operand, count: int, readers: Container[str]) -> list[int]:
    """Return the indices of the loaded elements, of ``count``, whose registers are read; of none, all indices."""
    items = target.items if isinstance(target, Group) else ()
    read = [index for index, item in enumerate(items) if isinstance(item, Register) and item.name in readers]
    return read if read and len(items) == count else [*range(count)]


def _is_widened_halfword(target: Operand, readers: Mapping[str, Sequence[Instruction]]) -> bool:
    """Tell if a 16-bit value is loaded into a 32-bit register, or an instruction needs it zero-extended."""
    if not isinstance(target, Register):
        return False
    return target.type.size == WORD or any(map(_needs_zero_extension, readers.get(target.name, ())))


def _needs_zero_extension(reader: Instruction) -> bool:
    if reader.opcode == "setp":
        return "u16" in reader.modifiers
    is_integer = not any(name.startswith(("f", "bf")) for name in reader.modifiers)
    return reader.name in _NAMES_OF_WORDS or (reader.opcode in _OPCODES_OF_WORDS and is_integer)


def breaks_loads(instruction: Instruction, space: str = "shared") -> bool:
    """Tell if ptxas keeps loads of a space before and after an instruction apart."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if is_called(instruction):
        return True
    if opcode in _WRITES:
        return _OTHER_SPACES[space].isdisjoint(modifiers)
    if opcode in ("cp", "wgmma"):
        return _PASSED.isdisjoint(modifiers)
    return opcode in _BREAKS or (opcode in _WRITES_SHARED and space == "shared")


def is_called(instruction: Instruction) -> bool:
    """Tell if machine code calls a function for an operation, as for exact and for 64-bit divisions."""
    is_exact = instruction.opcode in _CALLED and _INLINE.isdisjoint(instruction.modifiers)
    return is_exact or instruction.name == "rsqrt.approx.f64"


def breaks_stores(instruction: Instruction) -> bool:
    """Tell if shared stores before and after an instruction cannot merge."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode == "ld" and _OTHER_SPACES["shared"].isdisjoint(modifiers):
        return True
    if opcode in ("st", "atom", "red") and not _RELEASES.isdisjoint(modifiers):
        return True
    is_guarded = instruction.guard is not None or instruction.name in _GUARDED_INSIDE
    return is_guarded or opcode in _BREAKS_STORES or breaks_loads(instruction)
