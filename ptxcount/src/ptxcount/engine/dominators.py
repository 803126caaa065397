"""Dominators of basic blocks, and the loops that contain them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce
from itertools import accumulate

from ..ptx.flow import find_reachable


class Dominators:
    """Dominators of basic blocks, by their indices in code order; block 0 is the entry.

    The algorithm is that of Cooper, Harvey and Kennedy (A simple, fast dominance algorithm, 2001).

    Attributes
    ----------
    order : list of int
        The reachable blocks in reverse postorder.
    immediate : list of int or None
        The immediate dominator of each block; None for the entry and for unreachable blocks.
    """

    def __init__(self, successors: Sequence[Sequence[int]]) -> None:
        self._successors = successors
        self.order = self._list_reverse_postorder()
        self._place = {block: place for place, block in enumerate(self.order)}
        self._before: list[list[int]] = [[] for _ in successors]
        for block in self.order:
            for following in successors[block]:
                self._before[following].append(block)
        self.immediate: list[int | None] = [None] * len(successors)
        changed = True
        while changed:
            changed = False
            for block in self.order[1:]:
                processed = [node for node in self._before[block] if node == 0 or self.immediate[node] is not None]
                common = reduce(self._find_common_dominator, processed)
                changed = changed or self.immediate[block] != common
                self.immediate[block] = common

    def _list_reverse_postorder(self) -> list[int]:
        order: list[int] = []
        seen, work = {0}, [(0, iter(self._successors[0]))]
        while work:
            block, rest = work[-1]
            following = next((successor for successor in rest if successor not in seen), None)
            if following is None:
                order.append(block)
                work.pop()
            else:
                seen.add(following)
                work.append((following, iter(self._successors[following])))
        return order[::-1]

    def _find_common_dominator(self, a: int, b: int) -> int:
        while a != b:
            if self._place[a] < self._place[b]:
                a, b = b, a
            a = self.immediate[a] or 0
        return a

    def find_between(self, first: int, last: int) -> set[int]:
        """Return the blocks on any path from the end of ``first``, a dominator of ``last``, to ``last``.

        ``last`` itself is included if a loop leads back to it without passing ``first``.
        """
        return find_reachable(self._before.__getitem__, self._before[last], {first})

    @cached_property
    def loops(self) -> dict[int, set[int]]:
        """The blocks of each natural loop, by its header."""
        loops: dict[int, set[int]] = {}
        for block in self.order:
            for head in self._successors[block]:
                if self._place[head] <= self._place[block] and self.dominates(head, block):
                    members = loops.setdefault(head, {head})
                    members |= {block, *(self.find_between(head, block) if head != block else ())}
        return loops

    def dominates(self, first: int, last: int) -> bool:
        """Tell if all paths to ``last`` pass ``first``; a block dominates itself."""
        block: int | None = last
        while block is not None and block != first:
            block = self.immediate[block]
        return block == first

    def is_in_loops_of(self, block: int, other: int) -> bool:
        """Tell if all loops that contain ``other`` also contain ``block``."""
        return self._headers[other] <= self._headers[block]

    @cached_property
    def _headers(self) -> list[set[int]]:
        """For each block: the headers of the loops that contain it."""
        headers: list[set[int]] = [set() for _ in self._successors]
        for head, members in self.loops.items():
            for member in members:
                headers[member].add(head)
        return headers

    @cached_property
    def continues_previous(self) -> list[bool]:
        """For each block: True if the previous block is the only predecessor, and has no other successor."""
        flags = [False]
        for block in range(1, len(self._before)):
            flags.append({*self._before[block]} == {block - 1} and {*self._successors[block - 1]} == {block})
        return flags

    @cached_property
    def chain_of_block(self) -> list[int]:
        """For each block: the number of its chain, from 1 on. Blocks of a chain always run one after the other."""
        return list(accumulate(0 if continues else 1 for continues in self.continues_previous))


def find_meeting_blocks(successors: Sequence[Sequence[int]]) -> dict[int, int]:
    """Find the immediate postdominator of each block, where all its paths meet; -1 is the end of the kernel.

    Predicated exits are no paths. Blocks from which no path leads to the end are missing.
    """
    reverse: list[list[int]] = [[] for _ in range(len(successors) + 1)]  # node 0 is the end
    for block, following in enumerate(successors):
        for successor in following or [-1]:
            reverse[successor + 1].append(block + 1)
    immediate = Dominators(reverse).immediate
    return {node - 1: meeting - 1 for node, meeting in enumerate(immediate) if meeting is not None}
