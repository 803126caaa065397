"""Loops into which ptxas puts a ``YIELD``: there, threads let others run that wait for them (nvcc 13.0.88 for sm_90).

ptxas does so where an atomic or a strong load decides whether a loop ends, by its result or by a branch on that result.
It does not if the loop also counts and has another exit behind such a decision, as a search that others may end.
"""

from collections.abc import Collection, Set

from ..machine.polls import is_strong
from ..ptx.flow import find_reachable
from ..ptx.program import Instruction
from .paths import Paths


def find_yielding_loops(paths: Paths) -> dict[int, set[int]]:
    """Return the basic blocks of each yielding loop, by its header."""
    awaited = {index for index, instructions in enumerate(paths.blocks) if any(map(_is_awaited, instructions))}
    loops = {head: loop for head, loop in paths.dominators.loops.items() if not awaited.isdisjoint(loop)}
    return {head: loop for head, loop in loops.items() if _Loop(paths, head, loop).is_yielding()}


def _is_awaited(instruction: Instruction) -> bool:
    return instruction.opcode == "atom" or is_strong(instruction)


class _Loop:
    def __init__(self, paths: Paths, head: int, loop: set[int]) -> None:
        self._paths, self._head, self._loop = paths, head, loop
        self._outside = {*range(len(paths.blocks))} - loop
        self._code = [(index, instruction) for index in loop for instruction in paths.blocks[index]]
        #: Guards of the branches inside of the loop that may skip a basic block.
        self._guards: dict[int, set[str]] = {index: set() for index in loop}
        for index in loop:
            guard, successors = paths.blocks[index][-1].guard, paths.successors[index]
            if guard is not None and len(successors) > 1 and loop.issuperset(successors):
                for skipped in self._find_reachable(successors, {paths.meetings.get(index, -1)}):
                    self._guards[skipped].add(guard.name)

    def is_yielding(self) -> bool:
        exits = self._find_exits()
        awaiting = [index for index, guard in exits.items() if self._awaits(guard)]
        latches = {index for index in exits if self._head in self._paths.successors[index]}
        if not awaiting or not latches or not all(self._counts(exits[index]) for index in latches):
            return bool(awaiting)
        behind = (self._find_reachable(self._paths.successors[index], {self._head}) for index in awaiting)
        return not any(blocks & exits.keys() - latches for blocks in behind)

    def _find_exits(self) -> dict[int, str]:
        """Return the guard of each exit, by its basic block.

        Threads that only end are predicated off; that is no exit, unless it is the only one or closes the loop.
        """
        exits, ending = dict[int, str](), dict[int, str]()
        for index in self._loop:
            guard, successors = self._paths.blocks[index][-1].guard, {*self._paths.successors[index]}
            if guard is not None and not successors <= self._loop:
                only_ends = successors - self._loop <= self._paths.ends and self._head not in successors
                (ending if only_ends else exits)[index] = guard.name
        return exits or ending

    def _find_reachable(self, starts: Collection[int], avoided: Set[int]) -> set[int]:
        return find_reachable(self._paths.successors.__getitem__, starts, self._outside | avoided)

    def _awaits(self, guard: str) -> bool:
        """Tell if the result of an atomic or of a strong load decides about a guard."""
        deciding, size = {guard}, 0
        while size < len(deciding):
            size = len(deciding)
            for index, instruction in self._code:
                if not deciding.isdisjoint(instruction.writes):
                    if _is_awaited(instruction):
                        return True
                    deciding |= instruction.reads | self._guards[index]
        return False

    def _counts(self, guard: str) -> bool:
        """Tell if a guard compares a number that the loop increases with one that it leaves."""
        code = [instruction for _, instruction in self._code]
        written = set[str]().union(*(instruction.writes for instruction in code))
        steps = [instruction for instruction in code if instruction.opcode in ("add", "sub")]
        counters = {name for step in steps for name in step.writes if len(step.reads & written) == 1}
        tests = [instruction for instruction in code if guard in instruction.writes]
        return all(test.reads & counters and len(test.reads & written) == 1 for test in tests)
