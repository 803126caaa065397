"""Loops that ptxas unrolls (machine code of nvcc 13.0.88 for sm_80, sm_90 and sm_100).

Such a loop is one basic block of up to 50 machine instructions. It adds a constant to a counter, and then compares the
counter with a bound that stays the same. ptxas estimates the machine instructions before it unrolls; so does
`_estimate_cost`. The costs are those of single instructions in such loops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..ptx.flow import BasicBlock, End, Flow
from ..ptx.program import NO_UNROLL, Entry, Immediate, Instruction, Register
from .shared_accesses import is_called

_MAX_COST = 50
#: Maximum cost of all iterations of a loop that ptxas replaces by them.
_MAX_DISSOLVED = 1024
_ACCESSES = frozenset(("ld", "st"))
#: Costs other than 1: by opcode; of divisions; of approximations with subnormal numbers.
_COSTS = {"ld": 2, "st": 2, "mov": 0, "cvta": 0, "neg": 0, "abs": 0}
_SIGNED_DIVISION_COST, _DIVISION_COST, _FULL_DIVISION_COST = 24, 19, 12
_APPROXIMATION_COSTS = {"ex2": 6, "lg2": 6, "rsqrt": 6, "sqrt": 6, "rcp": 7, "div": 7}
#: Instructions that become part of an addition behind them if one factor is constant.
_FUSED = frozenset(("mul.wide.s32", "mul.wide.u32", "shl.b64"))
#: Opcodes that keep a loop as it is.
_KEPT = frozenset(("membar", "fence", "call", "trap", "brkpt", "exit", "ret", "atom", "red"))
#: Opcodes that threads of a warp execute together.
WARP_OPCODES = frozenset(("shfl", "vote", "match", "redux", "activemask", "elect", "bar", "barrier", "nanosleep"))
#: Spaces to which such a loop may store.
_STORED_SPACES = frozenset(("shared", "local"))
#: Comparisons that go on with a loop, by the sign of the step.
_COMPARISONS = {True: ("lt", "le", "ne"), False: ("gt", "ge", "ne")}
_INTEGERS = frozenset(("s32", "u32", "s64", "u64"))


@dataclass(frozen=True)
class CountedLoop:
    """A loop of one basic block that counts in constant steps."""

    block: BasicBlock
    #: The instructions before the branch.
    body: Sequence[Instruction]
    #: Predicate that goes on with the loop, and the comparison that sets it.
    guard: Register
    comparison: Instruction
    #: Constant steps of registers that each iteration changes once, by name.
    steps: Mapping[str, int]

    @property
    def step(self) -> int:
        """Step of the counter; 0 if the first compared operand is none."""
        operands = self.comparison.operands[1:2]
        return self.steps.get(getattr(operands[0], "name", ""), 0) if operands else 0

    @property
    def is_unrolled_if_divergent(self) -> bool:
        """True if ptxas unrolls the loop though threads of a warp may leave it one by one.

        It does not if they exchange values, or store to global memory. A store to one uniform address is unrolled,
        which ptxcount does not follow.
        """
        stores = (instruction for instruction in self.body if instruction.opcode == "st")
        has_exchange = any(instruction.opcode in WARP_OPCODES for instruction in self.body)
        return not has_exchange and not any(_STORED_SPACES.isdisjoint(store.modifiers) for store in stores)


def iter_counted_loops(kernel: Entry, flow: Flow) -> Iterator[CountedLoop]:
    """Yield the loops that ptxas unrolls; `isa.dispatch` must have set the registers that instructions use."""
    kept = {place for name, place in kernel.labels.items() if name.startswith(NO_UNROLL)}
    for index, block in enumerate(flow.blocks):
        if index in block.successors and block.start not in kept:
            loop = parse_loop(kernel.instructions, block)
            if loop is not None and _is_small(loop.body):
                yield loop


def parse_loop(code: Sequence[Instruction], block: BasicBlock) -> CountedLoop | None:
    """Return the counted loop that a basic block with a branch to itself is; None if it is none."""
    if block.end is not End.BRANCH:
        return None
    *body, branch = code[block.start : block.stop]
    guard = branch.guard
    if guard is None or guard.negated or any(guard.name in instruction.reads for instruction in body):
        return None
    comparisons = [instruction for instruction in body if guard.name in instruction.writes]
    if len(comparisons) != 1:
        return None
    loop = CountedLoop(block, body, guard, comparisons[0], _find_steps(body))
    return loop if _is_counted(loop) else None


def is_dissolved(code: Sequence[Instruction], loop: CountedLoop) -> bool:
    """Tell if ptxas replaces a loop by its iterations: it counts from a constant to a constant, and is short."""
    _, counter, bound = loop.comparison.operands
    changes = [instruction for instruction in code if getattr(counter, "name", "") in instruction.writes]
    starts = [change for change in changes if not any(change is instruction for instruction in loop.body)]
    if len(starts) != 1 or starts[0].opcode != "mov":
        return False
    values = [number.value for number in (starts[0].operands[-1], bound) if isinstance(number, Immediate)]
    if len(values) != 2:
        return False
    cost = sum(map(_estimate_cost, loop.body)) - 2  # without the counter's sum and comparison
    return cost * abs(values[1] - values[0]) <= _MAX_DISSOLVED * abs(loop.step)


def _find_steps(body: Sequence[Instruction]) -> dict[str, int]:
    """Return the constant by which each iteration changes a register once, by name."""
    writes = Counter(name for instruction in body for name in instruction.writes)
    steps = dict[str, int]()
    for add in body:
        if add.opcode not in ("add", "sub") or add.guard is not None or len(add.operands) != 3:
            continue
        target, source, step = add.operands
        if not isinstance(target, Register) or not isinstance(step, Immediate) or not isinstance(step.value, int):
            continue
        is_whole = len(add.modifiers) == 1 and add.modifiers[0] in _INTEGERS
        if is_whole and target == source and writes[target.name] == 1:
            steps[target.name] = step.value if add.opcode == "add" else -step.value
    return steps


def _is_counted(loop: CountedLoop) -> bool:
    """Tell if the loop compares its counter, after the step, with a bound that stays the same."""
    test = loop.comparison
    if test.opcode != "setp" or test.guard is not None or len(test.operands) != 3 or len(test.modifiers) != 2:
        return False
    (target, counter, bound), (name, kind) = test.operands, test.modifiers
    if kind not in _INTEGERS or not isinstance(target, Register) or not loop.step:
        return False
    step = next(place for place, add in enumerate(loop.body) if getattr(counter, "name", "") in add.writes)
    if any(test is instruction for instruction in loop.body[:step]) or name not in _COMPARISONS[loop.step > 0]:
        return False
    is_constant = isinstance(bound, Immediate) and isinstance(bound.value, int)
    changed = {name for instruction in loop.body for name in instruction.writes}
    return is_constant or (isinstance(bound, Register) and bound.name not in changed)


def _is_small(body: Sequence[Instruction]) -> bool:
    """Tell if a loop accesses memory, has no instruction that keeps it, and is not too long with its branch."""
    has_accesses = any(instruction.opcode in _ACCESSES for instruction in body)
    return has_accesses and not any(map(_is_kept, body)) and sum(map(_estimate_cost, body)) < _MAX_COST


def _estimate_cost(instruction: Instruction) -> int:
    opcode, modifiers = instruction.opcode, instruction.modifiers
    kind = modifiers[-1] if modifiers else ""
    if opcode in ("div", "rem") and kind in ("s32", "u32"):
        return _SIGNED_DIVISION_COST if kind == "s32" else _DIVISION_COST
    if modifiers[:1] == ("full",):
        return _FULL_DIVISION_COST
    if modifiers[:1] == ("approx",) and "ftz" not in modifiers:
        return _APPROXIMATION_COSTS.get(opcode, 1)
    if instruction.name in _FUSED and any(isinstance(operand, Immediate) for operand in instruction.operands):
        return 0
    return 1 if opcode == "st" and "shared" in modifiers else _COSTS.get(opcode, 1)


def _is_kept(instruction: Instruction) -> bool:
    return bool(instruction.problem) or instruction.opcode in _KEPT or is_called(instruction)
