"""Control flow of a kernel: basic blocks, the order they run in, and which registers outlive a block.

Diverged threads reconverge by thread frontiers (Diamos et al., SIMD re-convergence at thread frontiers, MICRO 2011):
of all places where threads wait, the first in a topological order runs next. Threads that meet continue together.
The order is a weak topological one (Bourdoncle, Efficient chaotic iteration strategies, 1993): loops stay in one
piece, so that threads that leave a loop wait until the others leave it too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import cache

from ..util.errors import UnsupportedInstructionError
from .program import Entry, Instruction, Symbol

#: Basic blocks that may be looked at to order them, each once for every loop around it: some seconds.
MAX_VISITS = 1_000_000


class End(Enum):
    """End of a basic block: its threads go on, branch, leave the kernel, or wait for the others of their block."""

    GO_ON = "go on"
    BRANCH = "branch"
    LEAVE = "leave"
    BARRIER = "barrier"


@dataclass
class BasicBlock:
    """Instructions ``start`` to ``stop`` that run one after the other; the last may branch, end or wait."""

    start: int
    stop: int
    end: End
    successors: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Flow:
    """The control flow of a kernel."""

    #: In the order of the code.
    blocks: list[BasicBlock]
    #: The place of each block in the order of execution.
    rank: list[int]
    #: The registers that some block reads without having written them.
    outliving: frozenset[str]
    #: From some blocks to the registers whose values threads need that are to run them.
    needed: Callable[[frozenset[int]], frozenset[str]]


def _target(entry: Entry, instruction: Instruction) -> int | None:
    label = instruction.operands[0] if len(instruction.operands) == 1 else None
    return entry.labels.get(label.name) if isinstance(label, Symbol) else None


def find_end(entry: Entry, instruction: Instruction) -> End:
    """Return the end of a block with this last instruction: it goes on unless at a jump or a block barrier.

    A jump that is not supported (``brx.idx``, or a branch to nowhere) goes on as well: its step refuses every thread
    that reaches it.
    """
    if instruction.problem:
        return End.GO_ON
    if instruction.opcode == "bra" and _target(entry, instruction) is not None:
        return End.BRANCH
    if instruction.opcode in ("ret", "exit"):
        return End.LEAVE
    waits = instruction.opcode in ("bar", "barrier") and not {"cluster", "arrive"} <= {*instruction.modifiers}
    return End.BARRIER if waits and not instruction.guard else End.GO_ON


def analyse(entry: Entry) -> Flow:
    """Analyse the control flow of a kernel whose instructions are bound. Its last block is empty: there threads leave.

    Raises `UnsupportedInstructionError` if its loops are nested so deep that this would take minutes.
    """
    code = entry.instructions
    ends = [find_end(entry, instruction) for instruction in code]
    targets = {index: _target(entry, code[index]) for index, end in enumerate(ends) if end is End.BRANCH}
    starts = {0, len(code), *(place for place in targets.values() if place is not None)}
    starts |= {index + 1 for index, end in enumerate(ends) if end is not End.GO_ON or code[index].opcode == "trap"}
    ordered = sorted(starts)
    blocks = [BasicBlock(start, stop, ends[stop - 1] if stop > start else End.LEAVE)
              for start, stop in zip(ordered, [*ordered[1:], len(code)], strict=True)]  # fmt: skip
    block_index = {block.start: index for index, block in enumerate(blocks)}
    for index, block in enumerate(blocks[:-1]):
        last = code[block.stop - 1]
        if last.guard or not (block.end in (End.BRANCH, End.LEAVE) or last.opcode == "trap"):
            block.successors.append(index + 1)
        target = targets.get(block.stop - 1)
        if target is not None:
            block.successors.append(block_index[target])
    order = _weak_topological(entry, [block.successors for block in blocks])
    rank = [len(blocks)] * len(blocks)
    for place, index in enumerate(order):
        rank[index] = place
    uses = [_uses(code[block.start : block.stop]) for block in blocks]
    live = _live(blocks, order, uses)
    outliving = frozenset[str]().union(*(read for read, _ in uses))
    needed = cache(lambda some: frozenset[str]().union(*(live[each] for each in some)))
    return Flow(blocks, rank, outliving, needed)


def _live(blocks: list[BasicBlock], order: list[int], uses: list[tuple[set[str], set[str]]]) -> list[frozenset[str]]:
    """Find the registers whose values may be needed when each block begins."""
    live = [frozenset(read) for read, _ in uses]
    predecessors: list[list[int]] = [[] for _ in blocks]
    for index, block in enumerate(blocks):
        for following in block.successors:
            predecessors[following].append(index)
    work = dict.fromkeys(order)
    while work:
        index, _ = work.popitem()
        read, written = uses[index]
        behind = frozenset[str]().union(*(live[successor] for successor in blocks[index].successors))
        now = behind - written | read
        if now != live[index]:
            live[index] = now
            work |= dict.fromkeys(predecessors[index])
    return live


def _weak_topological(entry: Entry, successors: list[list[int]]) -> list[int]:
    """Order the nodes reachable from node 0, each loop in one piece that opens with its head."""
    order: list[int] = []
    pieces: list[tuple[int, frozenset[int]]] = [(0, frozenset(range(len(successors))))]
    visits = 0
    while pieces:
        head, inside = pieces.pop()
        order.append(head)
        visits += len(inside)
        if visits > MAX_VISITS:
            why = (
                f"its {len(successors)} basic blocks lie in loops within loops: over {MAX_VISITS} visits to order them"
            )
            raise UnsupportedInstructionError(entry.source, f".entry {entry.name}", why)
        remaining = inside - {head}
        roots = [node for node in successors[head] if node in remaining]
        pieces += _components(successors, roots, remaining)
    return order


def _components(
    successors: list[list[int]], roots: list[int], inside: frozenset[int]
) -> list[tuple[int, frozenset[int]]]:
    """Find the strongly connected components reachable from ``roots``, with the heads where the search entered them.

    The last in topological order comes first (Tarjan, Depth-first search and linear graph algorithms, 1972).
    """
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []
    place_in: dict[int, int] = {}
    found: list[tuple[int, frozenset[int]]] = []
    for root in roots:
        work = [(root, 0)] if root not in number else []
        while work:
            node, branch = work.pop()
            if branch == 0:
                number[node] = low[node] = len(number)
                place_in[node] = len(path)
                path.append(node)
            following = [n for n in successors[node] if n in inside]
            for place in range(branch, len(following)):
                if following[place] not in number:
                    work += [(node, place + 1), (following[place], 0)]
                    break
                if following[place] in place_in:
                    low[node] = min(low[node], low[following[place]])
            else:
                if low[node] == number[node]:
                    piece = frozenset(path[place_in[node] :])
                    found.append((node, piece))
                    del path[-len(piece) :]
                    for gone in piece:
                        del place_in[gone]
                for parent, _ in work[-1:]:
                    low[parent] = min(low[parent], low[node])
    return found


def _uses(code: list[Instruction]) -> tuple[set[str], set[str]]:
    """Find the registers that a block reads before it surely wrote them, and those that it surely writes."""
    read: set[str] = set()
    written: set[str] = set()
    for instruction in code:
        read |= instruction.reads - written
        if instruction.guard is None:
            written |= instruction.writes
    return read, written
