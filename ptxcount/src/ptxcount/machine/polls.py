"""Wait loops: they end when a thread reads a value that another thread has written, so iterations depend on scheduling.

Accesses are strong or weak by the PTX ISA, "Memory Consistency Model".
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import NamedTuple

from ..ptx.flow import End, Flow, find_reachable, list_predecessors
from ..ptx.program import Instruction

#: Modifiers of strong loads and stores.
_STRONG = frozenset({"volatile", "relaxed", "acquire"})
_STRONG_STORES = frozenset({"volatile", "relaxed", "release"})
_SWAPS = frozenset({"cas", "exch"})
_ACQUIRING = frozenset({"acquire", "acq_rel"})
#: Opcodes that no pure wait loop contains.
_WORK = frozenset({
    "st", "stmatrix", "sust", "wmma", "atom", "red", "bar", "barrier", "call", "cp", "trap", "brkpt", "ldmatrix", "tex",
    "tld4", "suld",
})  # fmt: skip
#: Opcodes of address arithmetic; their result depends only on the operands.
_PURE = frozenset({"mov", "cvt", "cvta", "add", "sub", "mul", "mad", "shl", "and"})


class Poll(NamedTuple):
    """The loop in which a load may poll, or an atomic may try again."""

    #: `id` of the load or atomic; if a compiler has copied the load before the loop, the `id` of the load in the loop.
    load: int
    #: Basic blocks of the innermost loop; for an atomic, basic blocks on the way to its next try.
    loop: frozenset[int]


def is_strong(instruction: Instruction) -> bool:
    """Tell if an instruction is a strong load: ``volatile``, ``relaxed`` or ``acquire``."""
    return instruction.opcode == "ld" and not _STRONG.isdisjoint(instruction.modifiers)


def is_acquire(instruction: Instruction) -> bool:
    """Tell if the race check takes an instruction for an acquire: a strong load, or ``atom`` with acquire semantics."""
    return is_strong(instruction) or (instruction.opcode == "atom" and not _ACQUIRING.isdisjoint(instruction.modifiers))


def is_strong_store(instruction: Instruction) -> bool:
    """Tell if an instruction is a strong store: ``volatile``, ``relaxed`` or ``release``."""
    return instruction.opcode == "st" and not _STRONG_STORES.isdisjoint(instruction.modifiers)


def find_polls(code: Sequence[Instruction], flow: Flow) -> dict[int, Poll]:
    """Return the loads of pure wait loops, and the atomics that take a lock, by `id` of the instruction.

    A pure wait loop has no store, atomic, barrier, call, copy, trap or weak load, except for loads of parameters. A
    strong load decides whether the loop ends. A compiler may move the first iteration before the loop: the same load
    there belongs to the loop. An atomic that takes a lock is tried again with the same operands; the loop may also
    contain the critical section. A load belongs only to its innermost loop, an atomic to the innermost one that tries
    it again.
    """
    polls: dict[int, Poll] = {}
    if not any(is_strong(instruction) or instruction.opcode == "atom" for instruction in code):
        return polls
    loops = sorted(_iter_loops(flow), key=lambda head_loop: len(head_loop[1]), reverse=True)  # innermost loops last
    writers = Counter(name for instruction in code for name in instruction.writes)
    rewritten = {name for name, count in writers.items() if count > 1}
    for head, loop in loops:
        cycle, atomics = _find_retries(code, flow, head, loop, rewritten)
        polls |= {id(atomic): Poll(id(atomic), cycle) for atomic in atomics}  # replaces those of outer loops
        loop_code, deciding = _list_code(code, flow, loop), _find_deciding_registers(code, flow, loop)
        is_pure_wait = not any(map(_is_work, loop_code))
        entries = {index for index, block in enumerate(flow.blocks) if not loop.isdisjoint(block.successors)}
        for load in filter(is_strong, loop_code):
            polls.pop(id(load), None)  # of an outer loop
            if is_pure_wait and not load.writes.isdisjoint(deciding):
                polls[id(load)] = Poll(id(load), loop)
                for copy in filter(is_strong, _list_code(code, flow, entries)):
                    if (copy.modifiers, copy.operands[1:]) == (load.modifiers, load.operands[1:]):
                        polls.setdefault(id(copy), Poll(id(load), loop))
    return polls


def find_retried_swaps(code: Sequence[Instruction], flow: Flow) -> set[int]:
    """Return the `id` of each ``cas`` or ``exch`` whose result decides whether a loop ends."""
    swaps = {
        id(instruction)
        for instruction in code
        if instruction.opcode == "atom" and not _SWAPS.isdisjoint(instruction.modifiers)
    }
    retried = set[int]()
    for _, loop in _iter_loops(flow) if swaps else ():
        deciding = _find_deciding_registers(code, flow, loop)
        retried |= {
            id(instruction)
            for instruction in _list_code(code, flow, loop)
            if not deciding.isdisjoint(instruction.writes)
        }
    return retried & swaps


def _find_retries(
    code: Sequence[Instruction], flow: Flow, head: int, loop: frozenset[int], rewritten: Set[str]
) -> tuple[frozenset[int], list[Instruction]]:
    """Return the basic blocks on paths from a loop's head back to it that only try atomics again, and these atomics.

    The list of atomics is empty if none of their results decides whether the loop ends. ``rewritten`` are the registers
    that several instructions of the kernel write.
    """
    loop_code = _list_code(code, flow, loop)
    varying = _find_varying_registers(loop_code, rewritten)
    retries = set[int]()
    for atomic in loop_code:
        operands = atomic.reads - ({atomic.guard.name} if atomic.guard else set())
        if atomic.opcode == "atom" and varying.isdisjoint(operands):
            retries.add(id(atomic))
    working = {*range(len(flow.blocks))} - loop
    for index in loop:
        block_code = _list_code(code, flow, [index])
        if any(_is_work(instruction) for instruction in block_code if id(instruction) not in retries):
            working.add(index)
    before = list_predecessors(flow.blocks)
    returning = find_reachable(before.__getitem__, before[head], working)
    cycle = frozenset(_find_reachable(flow, [head], working) & returning)
    atomics = [instruction for instruction in _list_code(code, flow, cycle) if id(instruction) in retries]
    deciding = _find_deciding_registers(code, flow, cycle)
    is_decisive = any(not deciding.isdisjoint(atomic.writes) for atomic in atomics)
    return cycle, atomics if is_decisive else []


def _find_varying_registers(loop_code: Sequence[Instruction], rewritten: Set[str]) -> set[str]:
    """Return the registers whose values may change from one iteration of a loop to the next.

    A branch may choose one of several writers, so registers in ``rewritten`` vary if the loop writes them.
    """
    earlier, varying = set[str](), set[str]().union(*(instruction.writes for instruction in loop_code))
    while varying != earlier:
        earlier = varying
        changing = [
            i for i in loop_code
            if i.opcode not in _PURE or not earlier.isdisjoint(i.reads) or not rewritten.isdisjoint(i.writes)
        ]  # fmt: skip
        varying = set[str]().union(*(instruction.writes for instruction in changing))
    return varying


def is_strong_write(instruction: Instruction) -> bool:
    """Tell if an instruction is a strong store, an ``atom`` or a ``red``."""
    return is_strong_store(instruction) or instruction.opcode in ("atom", "red")


def find_scans(code: Sequence[Instruction], flow: Flow) -> frozenset[int]:
    """Return the `id` of each weak load that decides whether a loop ends; none if the code has no strong writes."""
    scans = set[int]()
    for _, loop in _iter_loops(flow) if any(map(is_strong_write, code)) else ():
        deciding = _find_deciding_registers(code, flow, loop)
        loads = filter(_is_weak_load, _list_code(code, flow, loop))
        scans |= {id(load) for load in loads if not deciding.isdisjoint(load.writes)}
    return frozenset(scans)


def find_early_exits(code: Sequence[Instruction], flow: Flow) -> set[int]:
    """Return the basic blocks behind early exits of polling loops (`_iter_early_exits`).

    On a GPU, threads that exit early do not wait for the loop. So a search ends soon after the first thread stores its
    result and returns.
    """
    loops = defaultdict[int, frozenset[int]](frozenset)
    for head, loop in _iter_loops(flow) if any(map(is_strong, code)) else ():
        loops[head] |= loop
    return {index for head, loop in loops.items() for index in _iter_early_exits(code, flow, head, loop)}


def _iter_early_exits(code: Sequence[Instruction], flow: Flow, head: int, loop: frozenset[int]) -> Iterator[int]:
    """Yield the basic blocks that early exits of a polling loop reach, but its ordinary exit does not.

    Blocks that all threads pass, and blocks from which they may return to the loop or reach a barrier, are left out.
    """
    if not any(map(is_strong, _list_code(code, flow, loop))):
        return
    exits = [
        (index, following) for index in loop for following in flow.blocks[index].successors if following not in loop
    ]
    # The ordinary exit is where the loop repeats: at its end, or else at its head.
    ordinary = [following for index, following in exits if head in flow.blocks[index].successors]
    ordinary = ordinary or [following for index, following in exits if index == head]
    after_exits = _find_reachable(flow, [following for _, following in exits], loop)
    for index in after_exits - _find_reachable(flow, ordinary, loop):
        behind = _find_reachable(flow, [index])
        is_apart = loop.isdisjoint(behind) and any(
            flow.blocks[last].end is End.EXIT for last in _find_reachable(flow, [head], {index})
        )
        if is_apart and not any(
            instruction.opcode in ("bar", "barrier") or "sync" in instruction.modifiers
            for instruction in _list_code(code, flow, behind)
        ):
            yield index


def _find_reachable(flow: Flow, starts: Iterable[int], avoided: Set[int] = frozenset()) -> set[int]:
    return find_reachable(lambda index: flow.blocks[index].successors, starts, avoided)


def _is_work(instruction: Instruction) -> bool:
    """Tell if no pure wait loop contains the instruction."""
    return instruction.opcode in _WORK or _is_weak_load(instruction)


def _is_weak_load(instruction: Instruction) -> bool:
    return instruction.opcode == "ld" and not is_strong(instruction) and "param" not in instruction.modifiers


def _list_code(code: Sequence[Instruction], flow: Flow, indices: Iterable[int]) -> list[Instruction]:
    blocks = [flow.blocks[index] for index in sorted(indices)]
    return [instruction for block in blocks for instruction in code[block.start : block.stop]]


def _iter_loops(flow: Flow) -> Iterator[tuple[int, frozenset[int]]]:
    """Yield the head and the natural loop of each back edge."""
    predecessors = list_predecessors(flow.blocks)
    for index, block in enumerate(flow.blocks):
        for head in block.successors:
            if flow.rank[head] <= flow.rank[index] < len(flow.blocks):  # unreachable blocks have the highest rank
                yield head, frozenset({head, *find_reachable(predecessors.__getitem__, [index], {head})})


def _find_deciding_registers(code: Sequence[Instruction], flow: Flow, loop: frozenset[int]) -> set[str]:
    """Find the registers of a loop that decide whether it ends: the guards of its exits, and what they depend on."""
    guards = [
        code[flow.blocks[index].stop - 1].guard
        for index in loop
        if flow.blocks[index].end in (End.BRANCH, End.EXIT) and not loop.issuperset(flow.blocks[index].successors)
    ]
    loop_code = _list_code(code, flow, loop)
    deciding, size = {guard.name for guard in guards if guard is not None}, -1
    while size < len(deciding):
        size = len(deciding)
        for instruction in reversed(loop_code):
            if not deciding.isdisjoint(instruction.writes):
                deciding |= instruction.reads
    return deciding
