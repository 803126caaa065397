"""Merging of shared memory accesses by ptxas (machine code of nvcc 13.0.88).

Loads whose addresses differ only by a constant offset (`address_sums`) become one load of up to four elements and 16
bytes; so do stores. Addresses without registers may be those of neighbouring variables. ptxas must be able to prove
that the merged access is aligned to its size (`find_residues`). No instruction between the accesses may order them
(`shared_accesses`), and no loop may end there. A vector counts as its elements, except elements that nothing reads. A
load of four elements may replace loads of three. Accesses to bytes, and with sign extension, are not merged. Loads for
a kernel's last store may count for its threads alone (`sunk_loads`).

In global memory, ptxas merges single elements beside a vector with the same base; ptxcount counts them as written.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..counting.transactions import WORD
from ..ptx.alignment import Residue, find_residues
from ..ptx.flow import BasicBlock
from ..ptx.program import Instruction, Operand
from .counted_loops import is_dissolved, parse_loop
from .dominators import Dominators
from .shared_accesses import AccessKey, Base, SharedAccess, breaks_loads, breaks_stores, find_accesses
from .sunk_loads import find_sunk_loads

#: Maximum elements and bytes of a merged access.
_MAX_ELEMENTS, _MAX_BYTES = 4, 16
#: Groups of loads that later loads may still join, by `SharedAccess.key`.
_OpenGroups = dict[AccessKey, "MergeableGroup"]


@dataclass
class MergeableGroup:
    """Accesses to shared memory that may be merged."""

    #: ``load`` or ``store``, and the element size in bytes.
    kind: str
    size: int
    #: Residue of the address without its offset, and the basic block of the first instruction.
    base: Residue
    block: int
    #: The ``id`` of each instruction, and its access, in the order of execution (`Dominators.order`).
    instructions: list[int] = field(default_factory=list)
    accesses: list[SharedAccess] = field(default_factory=list)
    #: The ``id`` of the store whose threads alone load (`sunk_loads`); None if all threads load.
    store: int | None = None

    def add_access(self, identity: int, access: SharedAccess) -> None:
        """Add the access of the instruction with this ``id``. A vector access shows how the address is aligned."""
        self.instructions.append(identity)
        self.accesses.append(access)
        if access.width > WORD:
            self.base = self.base.align(access.width, access.offset)

    def split_by_store(self, sunk: Mapping[int, int]) -> list[MergeableGroup]:
        """Split the group by the store of its sunk loads. Loads that merge sink together or not at all."""
        if sunk.keys().isdisjoint(self.instructions):
            return [self]
        stores = {identity: sunk.get(identity) for identity in self.instructions}
        for _, _, places in self.list_replacements():
            merged = [self.instructions[place] for place in places]
            if len({stores[identity] for identity in merged}) > 1:
                stores |= dict.fromkeys(merged)
        return self._divide(stores)

    def split_by_path(self, can_replace: Callable[[int, int], bool]) -> list[MergeableGroup]:
        """Split the group so that each merged access is on all paths to the accesses that it replaces.

        ``can_replace`` tells this of two instructions, by their ``id``.
        """
        apart = set[int]()
        for _, _, places in self.list_replacements():
            first, *others = (self.instructions[place] for place in places)
            apart |= {other for other in others if not can_replace(first, other)}
        if not apart:
            return [self]
        parts = self._divide({identity: -1 if identity in apart else None for identity in self.instructions})
        return [group for part in parts for group in replace(part, store=None).split_by_path(can_replace)]

    def _divide(self, stores: Mapping[int, int | None]) -> list[MergeableGroup]:
        """Return a group for each store of the instructions, by the ``id``."""
        parts: dict[int | None, MergeableGroup] = {}
        for identity, access in zip(self.instructions, self.accesses, strict=True):
            store = stores[identity]
            part = parts.setdefault(store, MergeableGroup(self.kind, self.size, self.base, self.block, store=store))
            part.instructions.append(identity)
            part.accesses.append(access)
        return [*parts.values()]

    def is_ended_by(self, instruction: Instruction) -> bool:
        """Tell if an instruction writes a register of the group's address."""
        return any(getattr(operand, "name", "") in instruction.writes for operand, _ in self.accesses[0].base)

    @property
    def max_width(self) -> int:
        """Maximum bytes of a merged access of this group."""
        return min(_MAX_ELEMENTS * self.size, _MAX_BYTES, self.base.modulus)

    def accepts_store(self, access: SharedAccess) -> bool:
        """Tell if a store can join: `max_width` aligned bytes hold it and the first store, and it overwrites none."""
        first = self.accesses[0]
        stored = {offset for earlier in self.accesses for offset in earlier.needed}
        places = {(offset + self.base.remainder) // self.max_width for offset in (first.offset, access.offset)}
        return access.key == first.key and len(places) == 1 and stored.isdisjoint(access.needed)

    def list_accesses(self) -> list[tuple[int, int]]:
        """List the merged accesses, as (offset, bytes).

        The search is greedy: first for accesses of four elements, then of two; other accesses stay as written. Stores
        are not merged if one is narrower than the first.
        """
        if self.kind == "store" and any(access.width < self.accesses[0].width for access in self.accesses):
            return [(access.offset, access.width) for access in self.accesses]
        remaining = {offset for access in self.accesses for offset in access.needed}
        merged = self._take_merged(remaining, 4, min_needed=3 if self.kind == "load" else 4)
        merged += self._take_merged(remaining, 2, min_needed=2)
        for access in self.accesses:
            if access.elements > 1 and remaining.issuperset(access.needed) and len(access.needed) == access.elements:
                merged.append((access.offset, access.width))
                remaining -= {*access.needed}
        return merged + [(offset, self.size) for offset in sorted(remaining)]

    def list_replacements(self) -> list[tuple[int, int, list[int]]]:
        """List the merged accesses, as (offset, bytes), each with the places of those that it replaces."""
        places = defaultdict[int, list[int]](list)
        for place, access in enumerate(self.accesses):
            for offset in access.needed:
                places[offset].append(place)
        return [
            (
                start,
                width,
                sorted({place for offset in range(start, start + width) for place in places.get(offset, ())}),
            )
            for start, width in self.list_accesses()
        ]

    def _take_merged(self, remaining: set[int], elements: int, *, min_needed: int) -> list[tuple[int, int]]:
        """Merge into accesses of ``elements`` elements, wherever ``remaining`` has at least ``min_needed`` of them.

        Pairs (`SharedAccess.is_pair`) merge only if all elements are there. Remove the offsets from ``remaining``;
        return the accesses as (offset, bytes).
        """
        width, remainder, merged = elements * self.size, self.base.remainder, []
        in_pairs = {offset for access in self.accesses if access.is_pair for offset in access.needed}
        if width > self.max_width:
            return []
        for start in sorted({(offset + remainder) // width * width - remainder for offset in remaining}):
            covered = {offset for offset in remaining if start <= offset < start + width}
            if len(covered) == elements or (len(covered) >= min_needed and in_pairs.isdisjoint(covered)):
                merged.append((start, width))
                remaining -= covered
        return merged


def find_mergeable(
    code: Sequence[Instruction], blocks: Sequence[BasicBlock], addresses: Mapping[str, int]
) -> list[MergeableGroup]:
    """Find groups of mergeable accesses to shared memory, and single ones of more than 4 bytes or of sunk loads.

    ``addresses`` has the byte address of each variable in shared memory by name.
    """
    accesses = find_accesses(code, addresses)
    if not accesses:
        return []
    finder = _MergeFinder(code, blocks, accesses, find_residues(code, addresses))
    loads = [part for group in finder.find_load_groups() for part in group.split_by_path(finder.can_replace)]
    groups = [*finder.find_store_groups(), *loads]
    sunk = find_sunk_loads(code, blocks)
    groups = [part for group in groups for part in group.split_by_store(sunk)]
    return [group for group in groups if len(group.instructions) > 1 or group.accesses[0].width > WORD or group.store]


class _MergeFinder:
    def __init__(
        self,
        code: Sequence[Instruction],
        blocks: Sequence[BasicBlock],
        accesses: Mapping[int, SharedAccess],
        residue_of: Callable[[Operand | None], Residue],
    ) -> None:
        self._code, self._blocks, self._accesses, self._residue_of = code, blocks, accesses, residue_of
        self._block_code = [code[block.start : block.stop] for block in blocks]
        self._block_of = {id(load): index for index, block in enumerate(self._block_code) for load in block}
        self._flow = Dominators([block.successors for block in blocks])
        self._vectors = self._find_vectors(code)

    def _find_vectors(self, code: Sequence[Instruction]) -> Mapping[tuple[int, Base], list[tuple[int, int]]]:
        """Return width and offset of vector accesses, by chain and base; no register of a base is written twice."""
        writes = Counter(name for instruction in code for name in instruction.writes)
        vectors: defaultdict[tuple[int, Base], list[tuple[int, int]]] = defaultdict(list)
        for chain, block_code in zip(self._flow.chain_of_block, self._block_code, strict=True):
            for instruction in block_code:
                access = self._accesses.get(id(instruction))
                if access is None or access.width <= WORD:
                    continue
                if all(writes[getattr(operand, "name", "")] <= 1 for operand, _ in access.base):
                    vectors[chain, access.base].append((access.width, access.offset))
        return vectors

    def _start_group(self, block: int, access: SharedAccess) -> MergeableGroup:
        """Return an empty group for an access in basic block ``block``; the caller adds the access.

        Vector accesses with the same base, in basic blocks of the same chain, show how the address is aligned.
        """
        base = self._residue_of(access.root).subtract(access.root_offset)
        for width, offset in self._vectors.get((self._flow.chain_of_block[block], access.base), ()):
            base = base.align(width, offset)
        return MergeableGroup(access.kind, access.size, base, block)

    def find_store_groups(self) -> list[MergeableGroup]:
        """Return groups of stores within one aligned access, if no instruction between them keeps them in order."""
        all_groups: list[MergeableGroup] = []
        group: MergeableGroup | None = None
        for index, block_code in enumerate(self._block_code):
            if not self._flow.continues_previous[index]:
                group = None
            for instruction in block_code:
                access = self._accesses.get(id(instruction))
                if access is not None and access.kind == "store":
                    if group is None or not group.accepts_store(access):
                        group = self._start_group(index, access)
                        all_groups.append(group)
                    group.add_access(id(instruction), access)
                elif group is not None and (breaks_stores(instruction) or group.is_ended_by(instruction)):
                    group = None
        return all_groups

    def find_load_groups(self) -> list[MergeableGroup]:
        """Return groups of loads with one base, if no instruction on any path between them keeps them in order."""
        all_groups: list[MergeableGroup] = []
        at_end: dict[int, _OpenGroups] = {}
        for index in self._flow.order:
            groups = at_end[index] = self._inherit_groups(index, at_end)
            for instruction in self._block_code[index]:
                access = self._accesses.get(id(instruction))
                if access is not None and access.kind == "load":
                    if access.key not in groups:
                        groups[access.key] = self._start_group(index, access)
                        all_groups.append(groups[access.key])
                    groups[access.key].add_access(id(instruction), access)
                _close_groups(groups, instruction)
        return all_groups

    def _inherit_groups(self, block: int, at_end: Mapping[int, _OpenGroups]) -> _OpenGroups:
        """Return the groups that a load in basic block ``block`` can join, from those of the immediate dominator."""
        dominator = self._flow.immediate[block]
        if dominator is None or self._ends_loop(dominator, block):
            return {}
        groups = {
            key: group for key, group in at_end[dominator].items() if self._flow.is_in_loops_of(block, group.block)
        }
        for block_between in self._flow.find_between(dominator, block) if groups else ():
            if self._ends_loop(block_between, block):
                return {}
            for instruction in self._block_code[block_between]:
                _close_groups(groups, instruction)
        return groups

    def can_replace(self, first: int, other: int) -> bool:
        """Tell if one load is executed on all paths to another one; both are given by their ``id``."""
        return self._flow.dominates(self._block_of[first], self._block_of[other])

    def _ends_loop(self, first: int, last: int) -> bool:
        """Tell if a loop ends between two basic blocks, so that ptxas moves no access from one to the other."""
        if self._flow.is_in_loops_of(last, first):
            return False
        loop = parse_loop(self._code, self._blocks[first]) if first in self._blocks[first].successors else None
        return loop is None or not is_dissolved(self._code, loop)


def _close_groups(groups: _OpenGroups, instruction: Instruction) -> None:
    """Close the groups that no load after an instruction can join."""
    if groups and breaks_loads(instruction):
        groups.clear()
    for key in [key for key, group in groups.items() if group.is_ended_by(instruction)]:
        del groups[key]
