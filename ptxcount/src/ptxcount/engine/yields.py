"""Loops into which ptxas puts a ``YIELD``: there, threads let others run that wait for them (nvcc 13.0.88 for sm_90).

ptxas does so where an atomic or a strong load decides whether a loop ends, by its result or by a branch on that result.
It does not if the loop also counts and has another exit behind such a decision, as a search that others may end. With
three exits or more, ptxas' rule is unknown: 775 of 800 random kernels agree with its machine code.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from ..machine.polls import is_strong
from ..ptx.flow import find_reachable
from ..ptx.program import Instruction
from .dominators import find_meeting_blocks
from .paths import Paths


def find_yielding_loops(paths: Paths) -> dict[int, set[int]]:
    """Return the basic blocks of each yielding loop, by its header."""
    awaited = {index for index, instructions in enumerate(paths.blocks) if any(map(_is_awaited, instructions))}
    yielding = dict[int, set[int]]()
    for head, loop in paths.dominators.loops.items():
        for candidate in _iter_loops_of_head(paths, head, loop):
            if not awaited.isdisjoint(candidate) and _Loop(paths, head, candidate).is_yielding():
                yielding[head] = candidate
                break
    return yielding


def _iter_loops_of_head(paths: Paths, head: int, loop: set[int]) -> Iterator[set[int]]:
    """Yield a loop, then the loops inside of it that begin with the same basic block."""
    yield loop
    latches = [index for index in loop if head in paths.successors[index]]
    for latch in latches if len(latches) > 1 else ():
        yield {head, latch, *(paths.dominators.find_between(head, latch) if latch != head else ())}


def _is_awaited(instruction: Instruction) -> bool:
    return instruction.opcode == "atom" or is_strong(instruction)


class _Loop:
    def __init__(self, paths: Paths, head: int, loop: set[int]) -> None:
        self._paths, self._head = paths, head
        self._code = [instruction for index in loop for instruction in paths.blocks[index]]
        #: Successors of each basic block inside of the loop.
        self._successors = {index: loop.intersection(paths.successors[index]) for index in loop}
        self._exits = self._find_exits()

    def is_yielding(self) -> bool:
        exits, decided = self._exits, self._find_decided_registers()
        awaiting = [index for index, guard in exits.items() if guard in decided]
        latches = {index for index in exits if self._head in self._successors[index]}
        if not awaiting or not latches or not self._have_counters({exits[index] for index in latches}):
            return bool(awaiting)
        behind = self._find_reachable((place for index in awaiting for place in self._successors[index]), self._head)
        return behind.isdisjoint(exits.keys() - latches)

    def _find_exits(self) -> dict[int, str]:
        """Return the guard of each exit, by its basic block.

        Threads that only end are predicated off; that is no exit, unless it is the only one or closes the loop.
        """
        exits, ending = dict[int, str](), dict[int, str]()
        for index, following in self._successors.items():
            guard, outside = self._paths.blocks[index][-1].guard, {*self._paths.successors[index]} - following
            if guard is not None and (outside or not following):
                only_ends = outside <= self._paths.ends and self._head not in following
                (ending if only_ends else exits)[index] = guard.name
        return exits or ending

    def _find_reachable(self, starts: Iterable[int], avoided: int) -> set[int]:
        return find_reachable(self._successors.__getitem__, starts, {avoided})

    def _find_meetings(self) -> dict[int, int]:
        """Return where the paths in the loop from each of its basic blocks meet; -1 is behind the loop."""
        blocks = [*self._successors, -1]
        place = {index: place for place, index in enumerate(blocks)}
        successors = [
            [place[following] for following in [*self._successors[index], *([-1] if index in self._exits else ())]]
            for index in blocks[:-1]
        ]
        return {blocks[index]: blocks[meeting] for index, meeting in find_meeting_blocks([*successors, []]).items()}

    def _find_decided_registers(self) -> set[str]:
        """Find the registers whose values depend on an atomic or a strong load, also by a branch in the loop."""
        readers = defaultdict[str, list[Instruction]](list)
        for instruction in self._code:
            for name in instruction.reads:
                readers[name].append(instruction)
        branches = defaultdict[str, list[int]](list)
        for index, following in self._successors.items():
            guard = self._paths.blocks[index][-1].guard
            if guard is not None and len(following) > 1:
                branches[guard.name].append(index)
        meetings, decided, skipped = self._find_meetings(), set[str](), set[int]()
        work = [name for instruction in self._code if _is_awaited(instruction) for name in instruction.writes]
        while work:
            name = work.pop()
            if name in decided:
                continue
            decided.add(name)
            deciding = [*readers[name]]
            for index in branches[name]:
                blocks = self._find_reachable(self._successors[index], meetings.get(index, -1)) - skipped
                skipped |= blocks
                deciding += [instruction for block in blocks for instruction in self._paths.blocks[block]]
            work += [written for instruction in deciding for written in instruction.writes]
        return decided

    def _have_counters(self, guards: set[str]) -> bool:
        """Tell if guards compare a number that the loop adds to, or subtracts from, with one that it leaves as is."""
        written = set[str]().union(*(instruction.writes for instruction in self._code))
        steps = [instruction for instruction in self._code if instruction.opcode in ("add", "sub")]
        counters = {name for step in steps for name in step.writes if len(step.reads & written) == 1}
        tests = [instruction for instruction in self._code if not guards.isdisjoint(instruction.writes)]
        return all(test.reads & counters and len(test.reads & written) == 1 for test in tests)
