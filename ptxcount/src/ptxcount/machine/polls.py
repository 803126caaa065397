"""Loads that read a location again until another thread writes it: how often they do so is the simulator's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..ptx.flow import BasicBlock, End, Flow
from ..ptx.program import Instruction

#: Loads that see what others write meanwhile (PTX ISA, memory consistency model).
_STRONG = frozenset({"volatile", "relaxed", "acquire"})
#: Instructions that a loop that does nothing but wait has none of.
_WORK = frozenset({"st", "atom", "red", "bar", "barrier", "reduced", "call", "cp", "trap"})


class Poll(NamedTuple):
    """A load that may poll."""

    #: The identity of the load, of which one before the loop is the first turn.
    load: int
    #: The basic blocks of the innermost loop.
    loop: frozenset[int]


def is_strong(instruction: Instruction) -> bool:
    """Whether it is a load of what others may write meanwhile."""
    return instruction.opcode == "ld" and not _STRONG.isdisjoint(instruction.modifiers)


def find_polls(code: Sequence[Instruction], flow: Flow) -> dict[int, Poll]:
    """The loads that may poll, by their identity, and the basic blocks of the innermost loop around each.

    The loop does nothing but load, and what was loaded decides whether it ends. A compiler may put its first turn
    before it: the same load there is one of the loop's.
    """
    polls: dict[int, Poll] = {}
    if not any(map(is_strong, code)):
        return polls
    for loop in sorted(_loops(flow), key=len, reverse=True):  # the innermost comes last
        inside = [one for index in sorted(loop) for one in _instructions(code, flow.blocks[index])]
        waits = not any(one.opcode in _WORK or (one.opcode == "ld" and not is_strong(one) and "param" not in
                                                one.modifiers) for one in inside)  # fmt: skip
        for one in filter(is_strong, inside):
            polls.pop(id(one), None)
            if waits and _decides(one, inside, code, flow, loop):
                polls[id(one)] = Poll(id(one), loop)
                before = (block for block in flow.blocks if not loop.isdisjoint(block.successors))
                for other in (other for block in before for other in _instructions(code, block)):
                    if is_strong(other) and (other.modifiers, other.operands[1:]) == (one.modifiers, one.operands[1:]):
                        polls.setdefault(id(other), Poll(id(one), loop))
    return polls


def _instructions(code: Sequence[Instruction], block: BasicBlock) -> Sequence[Instruction]:
    return code[block.start : block.stop]


def _loops(flow: Flow) -> Iterator[frozenset[int]]:
    """The natural loop of each edge back to a block that comes before or is the same."""
    before: list[list[int]] = [[] for _ in flow.blocks]
    for index, block in enumerate(flow.blocks):
        for following in block.successors:
            before[following].append(index)
    for index, block in enumerate(flow.blocks):
        for head in block.successors:
            if flow.rank[head] <= flow.rank[index] < len(flow.blocks):
                loop, work = {head}, [index]
                while work:
                    node = work.pop()
                    if node not in loop:
                        loop.add(node)
                        work += before[node]
                yield frozenset(loop)


def _decides(
    load: Instruction, inside: Sequence[Instruction], code: Sequence[Instruction], flow: Flow, loop: frozenset[int]
) -> bool:
    """Whether a branch out of a loop depends on what a load in it gives."""
    made, size = {*load.writes}, 0
    while size < len(made):
        size = len(made)
        for one in inside:
            if not made.isdisjoint(one.reads):
                made |= one.writes
    exits = [
        code[flow.blocks[index].stop - 1]
        for index in loop
        if flow.blocks[index].end in (End.BRANCH, End.LEAVE) and not loop.issuperset(flow.blocks[index].successors)
    ]
    return any(one.guard is not None and one.guard.name in made for one in exits)
