"""Vector loads that ptxas makes narrower, because nothing reads some of their elements.

Machine code of nvcc 13.0.88 for sm_80, sm_90 and sm_100: weak loads of up to 16 bytes, from global, local or generic
addresses; `merging` has those from shared memory. Elements of a byte stay together. Elements of two bytes stay together
unless one load of up to four bytes has all that is read. Other elements are loaded by aligned pairs, and alone; but
from global memory three of four are loaded together with the fourth. A load has the elements that are read of loads
that repeat it (`removed_loads`).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ..isa.spaces import SPACES
from ..machine.polls import is_strong
from ..ptx.program import TYPES, Group, Instruction, LoadPart, Register

_HALFWORD, _MAX_BYTES = 2, 16
#: Number of read elements, of four, that are loaded from global memory with the fourth.
_KEPT_IN_GLOBAL = 3


def find_narrowed_loads(code: Sequence[Instruction], removed: Mapping[int, int]) -> dict[int, tuple[LoadPart, ...]]:
    """Return the parts of each narrowed load, by its place in the code; ``removed`` are those of `removed_loads`."""
    read = {name for instruction in code for name in instruction.reads}
    all_used = defaultdict[int, set[int]](set)
    for place, load in enumerate(code):
        if load.opcode == "ld" and len(load.operands) == 2 and isinstance(load.operands[0], Group):
            items = enumerate(load.operands[0].items)
            used = {index for index, item in items if isinstance(item, Register) and item.name in read}
            all_used[removed.get(place, place)] |= used
    all_parts = {place: _find_parts(code[place], used) for place, used in all_used.items()}
    return {place: parts for place, parts in all_parts.items() if parts}


def _find_parts(load: Instruction, used: set[int]) -> tuple[LoadPart, ...]:
    """Return the parts of a load with these used elements; none if it stays whole."""
    target, names = load.operands[0], SPACES.keys() & {*load.modifiers}
    items = target.items if isinstance(target, Group) else ()
    size = TYPES[load.modifiers[-1]].size if load.modifiers and load.modifiers[-1] in TYPES else 0
    if not 0 < len(used) < len(items) or is_strong(load) or names not in (set(), {"global"}, {"local"}):
        return ()
    is_kept = size > _HALFWORD and len(used) == _KEPT_IN_GLOBAL and "global" in names
    if size <= 1 or size * len(items) > _MAX_BYTES or is_kept:
        return ()
    pairs = [(first, first + 1) for first in range(0, len(items), 2)]
    groups = [[pair] if used.issuperset(pair) else [(place,) for place in pair if place in used] for pair in pairs]
    parts = [LoadPart(places[0] * size, len(places) * size) for group in groups for places in group]
    return tuple(parts) if size > _HALFWORD or len(parts) == 1 else ()
