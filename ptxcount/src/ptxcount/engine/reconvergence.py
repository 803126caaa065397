"""Order of basic blocks in which threads that diverged run (machine code of nvcc 13.0.88 for sm_90, and an H200).

Threads that leave a loop by ``break`` run at once up to the code that all threads reach. So the code behind a ``break``
is executed again in each iteration in which threads leave. The threads wait for each other, however, if the kernel ends
behind that code, or if ptxas unrolls the loop. They also wait where branches outside of loops lead to the same block.
"""

from collections.abc import Iterable, Iterator

from ..machine.polls import find_early_exits
from ..ptx.flow import Flow
from ..ptx.program import NO_UNROLL, Entry, Immediate, Instruction
from .dominators import Dominators, find_meeting_blocks


def rank_blocks(kernel: Entry, flow: Flow) -> list[int]:
    """Rank basic blocks; the lowest rank runs first. Blocks behind a ``break``, where no thread waits, come first."""
    dominators = Dominators([block.successors for block in flow.blocks])
    apart = find_early_exits(kernel.instructions, flow).union(_iter_breaks(kernel, flow, dominators))
    for index in dominators.order:
        if dominators.immediate[index] in apart:
            apart.add(index)
    return [rank - len(flow.blocks) if index in apart else rank for index, rank in enumerate(flow.rank)]


def _iter_breaks(kernel: Entry, flow: Flow, dominators: Dominators) -> Iterator[int]:
    """Yield the blocks to which threads leave a loop that stays, before all their paths meet in more code."""
    code, blocks = kernel.instructions, flow.blocks
    kept = {index for name, index in kernel.labels.items() if name.startswith(NO_UNROLL)}
    loops = {head: _list_code(code, flow, members) for head, members in dominators.loops.items()}
    staying = [head for head in loops if blocks[head].start in kept or not _may_be_unrolled(loops[head])]
    meetings = find_meeting_blocks([block.successors for block in blocks]) if staying else {}
    ends = {index for index, block in enumerate(blocks) if all(map(_is_end, code[block.start : block.stop]))} | {-1}
    for head in staying:
        for index in dominators.loops[head]:
            meeting = meetings.get(index, -1)
            for following in blocks[index].successors if meeting not in ends else ():
                if following not in dominators.loops[head] and following != meeting:
                    yield following


def _is_end(instruction: Instruction) -> bool:
    return instruction.opcode in ("ret", "exit")


def _list_code(code: list[Instruction], flow: Flow, blocks: Iterable[int]) -> list[Instruction]:
    return [instruction for index in blocks for instruction in code[flow.blocks[index].start : flow.blocks[index].stop]]


def _may_be_unrolled(loop: list[Instruction]) -> bool:
    """Tell if a loop compares a number that it increases with a constant: then ptxas may know when it ends."""
    steps = [instruction for instruction in loop if instruction.opcode in ("add", "sub") and instruction.writes]
    counters = {name for step in steps if isinstance(step.operands[-1], Immediate) for name in step.writes}
    comparisons = [instruction for instruction in loop if instruction.opcode == "setp" and instruction.writes]
    return any(isinstance(test.operands[-1], Immediate) and test.reads & counters for test in comparisons)
