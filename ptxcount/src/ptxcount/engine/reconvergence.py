"""Order of basic blocks in which threads that diverged run (machine code of nvcc 13.0.88 for sm_90, and an H200).

Threads that leave a loop by ``break`` run at once up to the code that all threads reach. So the code behind a ``break``
is executed again in each iteration in which threads leave. The threads wait for each other, however, if the kernel ends
behind that code, or if ptxas unrolls the loop. They also wait where branches outside of loops lead to the same block.

ptxas nests the loops of several branches back to one block: the one with the fewest branches is the innermost.

Threads that leave a loop with a ``YIELD`` wait until others let them run (`yielded_warps`).
"""

from collections.abc import Iterator
from typing import NamedTuple

from ..machine.polls import find_early_exits, is_strong
from ..ptx.flow import Flow, find_reachable
from ..ptx.program import NO_UNROLL, Entry, Immediate, Instruction
from .counted_loops import WARP_OPCODES
from .paths import Paths, find_paths
from .yielded_warps import YieldingLoop
from .yields import find_yielding_loops

#: Opcodes around which ptxas makes no inner loop.
_KEPT = WARP_OPCODES | {"atom", "red"}


class Order(NamedTuple):
    """Order in which threads of a warp run basic blocks."""

    #: Rank of each block: of the blocks that are ready, the lowest runs first, and of equal ones the oldest. Then the
    #: rank of each block for threads that wait for no others.
    rank: list[int]
    #: Loops with a ``YIELD``.
    yielding_loops: list[YieldingLoop]


def order_blocks(kernel: Entry, flow: Flow) -> Order:
    """Order basic blocks as threads of a warp run them."""
    paths = find_paths(kernel.instructions, flow)
    kept = {index for name, index in kernel.labels.items() if name.startswith(NO_UNROLL)}
    kept_blocks = {index for index, block in enumerate(flow.blocks) if block.start in kept}
    apart = find_early_exits(kernel.instructions, flow).union(_iter_breaks(paths, kept_blocks))
    for index in paths.dominators.order:
        if paths.dominators.immediate[index] in apart:
            apart.add(index)
    loops = [*_iter_yielding_loops(paths)]
    yielding_blocks = {loop.yielding_block for loop in loops}
    size = len(flow.blocks)
    ranks = [rank - size if index in apart else rank for index, rank in enumerate(_nest_loops(paths))]
    waiting = [size if index in yielding_blocks else rank for index, rank in enumerate(ranks)]
    return Order([*waiting, *(rank - size for rank in ranks)], loops)


def _nest_loops(paths: Paths) -> list[int]:
    """Return the rank of each block. Of several loops with one header, the one with fewer branches comes first.

    The order stays if threads may leave at the header, and in a loop with strong loads.
    """
    ranks = [*paths.rank]
    for head, loop in paths.dominators.loops.items():
        latches = {index for index in loop if head in paths.successors[index]} - {head}
        code = [instruction for index in loop for instruction in paths.blocks[index]]
        if len(latches) < 2 or not loop.issuperset(paths.successors[head]) or any(map(is_strong, code)):
            continue
        depths = {head: 0}
        bodies = [{head, latch, *paths.dominators.find_between(head, latch)} for latch in latches]
        bodies.sort(key=lambda body: sum(len(paths.successors[index]) > 1 for index in body))
        for depth, body in enumerate(bodies, start=1):
            if any(instruction.opcode in _KEPT for index in body for instruction in paths.blocks[index]):
                break
            depths |= dict.fromkeys(body - depths.keys(), depth)
        ordered = sorted(loop, key=lambda index: (depths.get(index, len(loop)), ranks[index]))
        for index, rank in zip(ordered, sorted(ranks[index] for index in loop), strict=True):
            ranks[index] = rank
    return ranks


def _iter_yielding_loops(paths: Paths) -> Iterator[YieldingLoop]:
    loops = find_yielding_loops(paths)
    avoided = paths.ends.union(*loops.values())
    for head, loop in loops.items():
        exits = {following for index in loop for following in paths.successors[index]} - loop
        behind = find_reachable(paths.successors.__getitem__, exits, avoided)
        branches = {index for place in exits if (index := paths.dominators.immediate[place]) is not None} - loop
        blocks = map(frozenset[int], (exits, branches, behind))
        yield YieldingLoop(head, frozenset(loop), _find_yield(paths, head), *blocks)


def _find_yield(paths: Paths, head: int) -> int:
    """Return where a loop yields: at its header, or behind it if ptxas copies the header before the loop."""
    loop, successors = paths.dominators.loops[head], paths.successors
    inside = [following for following in successors[head] if following in loop]
    is_endless = all(len(successors[index]) == 1 for index in loop if head in successors[index])
    return inside[0] if is_endless and len(inside) == 1 < len(successors[head]) else head


def _iter_breaks(paths: Paths, kept: set[int]) -> Iterator[int]:
    """Yield the blocks to which threads leave a loop and where they do not wait; ``kept`` loops are not unrolled.

    If all paths meet in more code, threads wait there. If not, they wait where the first exit leads.
    """
    for head, loop in paths.dominators.loops.items():
        if head not in kept and _may_be_unrolled([code for index in loop for code in paths.blocks[index]]):
            continue
        inside = sorted(loop, key=paths.rank.__getitem__)
        exits = [
            (index, following) for index in inside for following in paths.successors[index] if following not in loop
        ]
        for index, following in exits:
            meeting = paths.meetings.get(index, -1)
            waiting = exits[0][1] if meeting in paths.ends | {-1} else meeting
            if following != waiting and following not in paths.ends:
                yield following


def _may_be_unrolled(loop: list[Instruction]) -> bool:
    """Tell if a loop changes a number by a constant, and compares it with one: then ptxas may know when it ends."""
    steps = [instruction for instruction in loop if instruction.opcode in ("add", "sub") and instruction.writes]
    counters = {name for step in steps if isinstance(step.operands[-1], Immediate) for name in step.writes}
    comparisons = [instruction for instruction in loop if instruction.opcode == "setp" and instruction.writes]
    return any(isinstance(test.operands[-1], Immediate) and test.reads & counters for test in comparisons)
