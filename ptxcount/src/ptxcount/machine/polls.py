"""Spin-waits: loops that load values written by other threads. Their iteration count depends on scheduling."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import NamedTuple

from ..ptx.flow import BasicBlock, End, Flow
from ..ptx.program import Instruction

#: Modifiers of loads that observe concurrent writes (PTX ISA, memory consistency model).
_STRONG = frozenset({"volatile", "relaxed", "acquire"})
#: Instructions that a pure wait loop does not contain.
_WORK = frozenset({"st", "atom", "red", "bar", "barrier", "reduced", "call", "cp", "trap"})


class Poll(NamedTuple):
    """A load that may poll."""

    #: The identity of the load in the loop; a peeled copy before the loop has the same.
    load: int
    #: The basic blocks of the innermost loop.
    loop: frozenset[int]


def is_strong(instruction: Instruction) -> bool:
    """Tell if an instruction loads values that other threads may write concurrently."""
    return instruction.opcode == "ld" and not _STRONG.isdisjoint(instruction.modifiers)


def find_polls(code: Sequence[Instruction], flow: Flow) -> dict[int, Poll]:
    """Find loads in pure wait loops, by identity, with the basic blocks of the innermost loop around each.

    Such a loop only loads, and its exit condition depends on the loaded value. The compiler may peel the first
    iteration: the same load before the loop belongs to it.
    """
    polls: dict[int, Poll] = {}
    if not any(map(is_strong, code)):
        return polls
    for loop in sorted((loop for _, loop in _iter_loops(flow)), key=len, reverse=True):  # innermost loops last
        loop_code = [instruction for index in sorted(loop) for instruction in _slice_block(code, flow.blocks[index])]
        waits = not any(map(_is_work, loop_code))
        for load in filter(is_strong, loop_code):
            polls.pop(id(load), None)
            if waits and _decides_exit(load, loop_code, code, flow, loop):
                polls[id(load)] = Poll(id(load), loop)
                entries = (block for block in flow.blocks if not loop.isdisjoint(block.successors))
                for twin in (twin for block in entries for twin in _slice_block(code, block)):
                    if is_strong(twin) and (twin.modifiers, twin.operands[1:]) == (load.modifiers, load.operands[1:]):
                        polls.setdefault(id(twin), Poll(id(load), loop))
    return polls


def rank_blocks(code: Sequence[Instruction], flow: Flow) -> list[int]:
    """Order basic blocks for execution, with early exits of polling loops first.

    Threads at an early exit never reconverge with the loop, so the GPU does not let them wait: a search ends soon after
    the first thread stores its result and returns. Blocks that all exits of the loop reach stay after it.
    """
    loops = defaultdict[int, frozenset[int]](frozenset)
    for head, loop in _iter_loops(flow) if any(map(is_strong, code)) else ():
        loops[head] |= loop
    early = {index for head, loop in loops.items() for index in _iter_early_exits(code, flow, head, loop)}
    return [rank - len(flow.blocks) * (index in early) for index, rank in enumerate(flow.rank)]


def _iter_early_exits(code: Sequence[Instruction], flow: Flow, head: int, loop: frozenset[int]) -> Iterator[int]:
    """Yield the basic blocks after early exits of a loop, if no thread returns to the loop or waits for others."""
    if not any(is_strong(instruction) for index in loop for instruction in _slice_block(code, flow.blocks[index])):
        return
    exits = [
        (index, following) for index in loop for following in flow.blocks[index].successors if following not in loop
    ]
    ordinary = [following for index, following in exits if head in flow.blocks[index].successors]
    ordinary = ordinary or [following for index, following in exits if index == head]
    for index in _reach(flow, [following for _, following in exits], loop) - _reach(flow, ordinary, loop):
        behind = _reach(flow, [index])
        is_apart = loop.isdisjoint(behind) and any(
            flow.blocks[last].end is End.LEAVE for last in _reach(flow, [head], {index})
        )
        if is_apart and not any(
            instruction.opcode in ("bar", "barrier") or "sync" in instruction.modifiers
            for place in behind
            for instruction in _slice_block(code, flow.blocks[place])
        ):
            yield index


def _reach(flow: Flow, starts: Iterable[int], without: Set[int] = frozenset()) -> set[int]:
    """Return the basic blocks reachable from ``starts``, including these, on paths that avoid ``without``."""
    reached, work = set[int](), [*starts]
    while work:
        index = work.pop()
        if index not in reached and index not in without:
            reached.add(index)
            work += flow.blocks[index].successors
    return reached


def _is_work(instruction: Instruction) -> bool:
    """Tell if an instruction cannot be part of a pure wait loop."""
    is_weak_load = instruction.opcode == "ld" and not is_strong(instruction) and "param" not in instruction.modifiers
    return instruction.opcode in _WORK or is_weak_load


def _slice_block(code: Sequence[Instruction], block: BasicBlock) -> Sequence[Instruction]:
    return code[block.start : block.stop]


def _iter_loops(flow: Flow) -> Iterator[tuple[int, frozenset[int]]]:
    """Yield the head and the natural loop of each back edge."""
    predecessors: list[list[int]] = [[] for _ in flow.blocks]
    for index, block in enumerate(flow.blocks):
        for following in block.successors:
            predecessors[following].append(index)
    for index, block in enumerate(flow.blocks):
        for head in block.successors:
            if flow.rank[head] <= flow.rank[index] < len(flow.blocks):
                loop, work = {head}, [index]
                while work:
                    node = work.pop()
                    if node not in loop:
                        loop.add(node)
                        work += predecessors[node]
                yield head, frozenset(loop)


def _decides_exit(
    load: Instruction, loop_code: Sequence[Instruction], code: Sequence[Instruction], flow: Flow, loop: frozenset[int]
) -> bool:
    """Tell if an exit branch of a loop depends on the result of a load in it."""
    dependents, size = {*load.writes}, 0
    while size < len(dependents):
        size = len(dependents)
        for instruction in loop_code:
            if not dependents.isdisjoint(instruction.reads):
                dependents |= instruction.writes
    exits = [
        code[flow.blocks[index].stop - 1]
        for index in loop
        if flow.blocks[index].end in (End.BRANCH, End.LEAVE) and not loop.issuperset(flow.blocks[index].successors)
    ]
    return any(exit_.guard is not None and exit_.guard.name in dependents for exit_ in exits)
