"""Control flow of a kernel: basic blocks, their order of execution, and the registers that are live across blocks.

Diverged threads reconverge by thread frontiers (Diamos et al., SIMD re-convergence at thread frontiers, MICRO 2011):
of all basic blocks with waiting threads, the first in a topological order runs next. Threads at one block reconverge.
The order is a weak topological one (Bourdoncle, Efficient chaotic iteration strategies, 1993): loops are contiguous. So
threads that leave a loop wait until all threads have left it.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from itertools import pairwise
from typing import NamedTuple, TypeVar

from ..util.errors import UnsupportedInstructionError
from .program import Entry, Instruction, Symbol

#: Maximum visits of basic blocks while ordering them, which take some seconds: one per block and enclosing loop.
MAX_VISITS = 1_000_000
_Node = TypeVar("_Node")


class End(Enum):
    """End of a basic block: its threads fall through, branch, exit, or wait at a barrier."""

    FALL_THROUGH = "go on"
    BRANCH = "branch"
    EXIT = "exit"
    BARRIER = "barrier"


@dataclass
class BasicBlock:
    """Straight-line instructions from index ``start`` to ``stop - 1``. The last may branch, exit or wait.

    ``successors`` are indices of basic blocks.
    """

    start: int
    stop: int
    end: End
    successors: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Flow:
    """The control flow of a kernel."""

    #: Basic blocks in code order.
    blocks: list[BasicBlock]
    #: The position of each basic block in the order of execution.
    rank: list[int]
    #: Registers that are live at the beginning of any basic block.
    live_across_blocks: frozenset[str]
    #: Function from the indices of basic blocks to the registers that are live at the beginning of any of them.
    find_live: Callable[[frozenset[int]], frozenset[str]]


class _Uses(NamedTuple):
    """Registers that a basic block may read before writing them, and registers that it certainly writes."""

    reads: set[str]
    writes: set[str]


class _Component(NamedTuple):
    """A strongly connected component of basic blocks: a loop, or one block. The search entered it at ``head``."""

    head: int
    blocks: frozenset[int]


def _find_target(entry: Entry, instruction: Instruction) -> int | None:
    label = instruction.operands[0] if len(instruction.operands) == 1 else None
    return entry.labels.get(label.name) if isinstance(label, Symbol) else None


def is_elect_wait(instruction: Instruction) -> bool:
    """Tell if an instruction is the wait that `lowering` puts before an ``elect.sync``."""
    return instruction.opcode == "elect" and instruction.modifiers == ("wait",)


def find_end(entry: Entry, instruction: Instruction) -> End:
    """Return the end of a basic block with this last instruction.

    Threads fall through a barrier with a guard, and an arrival at a cluster barrier. They also fall through an
    unsupported jump (``brx.idx`` without a table, or an undefined label), whose step raises an error.
    """
    if instruction.problem:
        return End.FALL_THROUGH
    if instruction.opcode == "bra" and _find_target(entry, instruction) is not None:
        return End.BRANCH
    if instruction.opcode in ("ret", "exit"):
        return End.EXIT
    is_cluster_arrival = {"cluster", "arrive"} <= {*instruction.modifiers}  # it does not wait
    is_barrier = instruction.opcode in ("bar", "barrier") and not is_cluster_arrival
    waits = is_barrier or is_elect_wait(instruction)
    return End.BARRIER if waits and not instruction.guard else End.FALL_THROUGH


def analyse(entry: Entry) -> Flow:
    """Analyse the control flow of a kernel. The last basic block is empty: the exit.

    `isa.dispatch` must have set the registers that each instruction reads and writes. Raises
    `UnsupportedInstructionError` if loops are nested so deep that ordering takes over `MAX_VISITS` visits.
    """
    blocks = _split_blocks(entry)
    order = _order_blocks(entry, [block.successors for block in blocks])
    rank = [len(blocks)] * len(blocks)  # of unreachable blocks
    for place, index in enumerate(order):
        rank[index] = place
    uses = [_find_uses(entry.instructions[block.start : block.stop]) for block in blocks]
    live = _find_live_registers(blocks, order, uses)
    live_across_blocks = frozenset[str]().union(*(use.reads for use in uses))
    find_live = cache(lambda indices: frozenset[str]().union(*(live[index] for index in indices)))
    return Flow(blocks, rank, live_across_blocks, find_live)


def _split_blocks(entry: Entry) -> list[BasicBlock]:
    code = entry.instructions
    ends = [find_end(entry, instruction) for instruction in code]
    targets = {index: _find_target(entry, code[index]) for index, end in enumerate(ends) if end is End.BRANCH}
    starts = {0, len(code), *(target for target in targets.values() if target is not None)}
    for index, end in enumerate(ends):
        if end is not End.FALL_THROUGH or code[index].opcode == "trap":
            starts.add(index + 1)
    ordered = sorted(starts)
    blocks = [BasicBlock(start, stop, ends[stop - 1]) for start, stop in pairwise(ordered)]
    blocks.append(BasicBlock(len(code), len(code), End.EXIT))
    block_index = {block.start: index for index, block in enumerate(blocks)}
    for index, block in enumerate(blocks[:-1]):
        last = code[block.stop - 1]
        leaves_always = not last.guard and (block.end in (End.BRANCH, End.EXIT) or last.opcode == "trap")
        if not leaves_always:
            block.successors.append(index + 1)
        target = targets.get(block.stop - 1)
        if target is not None:
            block.successors.append(block_index[target])
    return blocks


def find_reachable(
    successors: Callable[[_Node], Iterable[_Node]], starts: Iterable[_Node], avoided: Container[object] = ()
) -> set[_Node]:
    """Return the nodes reachable from ``starts``, on paths without ``avoided`` nodes; ``starts`` are included."""
    reached, work = set[_Node](), [*starts]
    while work:
        node = work.pop()
        if node not in reached and node not in avoided:
            reached.add(node)
            work += successors(node)
    return reached


def list_predecessors(blocks: Sequence[BasicBlock]) -> list[list[int]]:
    """Return the indices of the predecessors of each basic block."""
    predecessors: list[list[int]] = [[] for _ in blocks]
    for index, block in enumerate(blocks):
        for following in block.successors:
            predecessors[following].append(index)
    return predecessors


def _find_live_registers(blocks: list[BasicBlock], order: list[int], uses: list[_Uses]) -> list[frozenset[str]]:
    """Return the registers that are live at the beginning of each basic block (a backward dataflow analysis)."""
    live = [frozenset(use.reads) for use in uses]
    predecessors = list_predecessors(blocks)
    work = dict.fromkeys(order)
    while work:
        index, _ = work.popitem()
        live_at_end = frozenset[str]().union(*(live[successor] for successor in blocks[index].successors))
        live_at_start = live_at_end - uses[index].writes | uses[index].reads
        if live_at_start != live[index]:
            live[index] = live_at_start
            work |= dict.fromkeys(predecessors[index])
    return live


def _order_blocks(entry: Entry, successors: list[list[int]]) -> list[int]:
    """Return the blocks reachable from block 0 in a weak topological order: each loop is contiguous, its head first."""
    order: list[int] = []
    components = [_Component(0, frozenset(range(len(successors))))]
    visits = 0
    while components:
        head, inside = components.pop()
        order.append(head)
        visits += len(inside)
        if visits > MAX_VISITS:
            why = (
                f"the loops of its {len(successors)} basic blocks are nested too deeply for ptxcount; split the kernel"
            )
            raise UnsupportedInstructionError(entry.source, f".entry {entry.name}", why)
        remaining = inside - {head}
        search = _ComponentSearch(successors, remaining)
        for root in filter(remaining.__contains__, successors[head]):
            search.visit_from(root)
        components += search.components
    return order


class _ComponentSearch:
    """The depth-first search of Tarjan (Depth-first search and linear graph algorithms, 1972), without recursion.

    It finds the strongly connected components of ``inside`` that the roots reach, in reverse topological order.
    ``_number`` and ``_low`` are the names of the paper.
    """

    def __init__(self, successors: list[list[int]], inside: frozenset[int]) -> None:
        self._successors, self._inside = successors, inside
        self.components: list[_Component] = []
        self._number: dict[int, int] = {}
        self._low: dict[int, int] = {}
        #: Nodes that are in no component yet, in the order of their numbers, and the index of each.
        self._path: list[int] = []
        self._path_index: dict[int, int] = {}
        #: Nodes from the root to the current one, each with the successors that are still to be visited.
        self._visits: list[tuple[int, Iterator[int]]] = []

    def visit_from(self, root: int) -> None:
        if root not in self._number:
            self._enter(root)
        while self._visits:
            node, remaining = self._visits[-1]
            following = next(remaining, None)
            if following is None:
                self._leave(node)
            elif following not in self._number:
                self._enter(following)
            elif following in self._path_index:
                self._low[node] = min(self._low[node], self._low[following])

    def _enter(self, node: int) -> None:
        self._number[node] = self._low[node] = len(self._number)
        self._path_index[node] = len(self._path)
        self._path.append(node)
        self._visits.append((node, filter(self._inside.__contains__, self._successors[node])))

    def _leave(self, node: int) -> None:
        if self._low[node] == self._number[node]:
            members = self._path[self._path_index[node] :]
            self.components.append(_Component(node, frozenset(members)))
            del self._path[-len(members) :]
            for member in members:
                del self._path_index[member]
        self._visits.pop()
        if self._visits:
            parent = self._visits[-1][0]
            self._low[parent] = min(self._low[parent], self._low[node])


def _find_uses(code: list[Instruction]) -> _Uses:
    uses = _Uses(set(), set())
    for instruction in code:
        uses.reads.update(instruction.reads - uses.writes)
        if instruction.guard is None:
            uses.writes.update(instruction.writes)
    return uses
