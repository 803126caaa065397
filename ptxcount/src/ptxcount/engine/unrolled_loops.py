"""Loops that ptxas unrolls (machine code of nvcc 13.0.88 for sm_80, sm_90 and sm_100).

ptxas unrolls a small loop of one basic block that counts in constant steps to a bound. It executes four iterations at a
time while more than three remain, then two if more than one remains, then one. Threads that leave such a loop one by
one make more requests. Loads of neighbouring words of shared memory by successive iterations may merge. ptxcount
unrolls only loops whose counts may change: those that threads of a warp may leave one by one, and those that walk
through shared memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from ..ptx.flow import BasicBlock, End, Flow
from ..ptx.program import (
    NO_UNROLL,
    TYPES,
    Address,
    Entry,
    Group,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
    iter_leaves,
)
from .uniformity import find_divergent

#: Maximum cost of an iteration, and cost of an access to memory. Other instructions cost 1.
_MAX_COST, _ACCESS_COST = 50, 2
_ACCESSES = frozenset(("ld", "st", "atom", "red"))
#: Opcodes without an instruction of machine code, and opcodes that keep a loop as it is.
_FREE, _KEPT = frozenset(("mov", "cvta")), frozenset(("membar", "fence", "call", "trap", "brkpt", "exit", "ret"))
#: Operations of floats and of 64-bit integers that machine code calls as functions.
_CALLED, _CALLED_INTEGERS = frozenset(("div", "rcp", "sqrt")), frozenset(("div", "rem"))
#: Comparisons that go on with a loop, by the sign of the step.
_COMPARISONS = {1: ("lt", "le", "ne"), -1: ("gt", "ge", "ne")}
#: Maximum step of an address whose neighbouring words may merge.
_MAX_WALK = 8


@dataclass(frozen=True)
class _CountedLoop:
    """A loop of one basic block that counts in constant steps."""

    block: BasicBlock
    body: Sequence[Instruction]
    #: Predicate that goes on with the loop, and the comparison that sets it.
    guard: Register
    comparison: Instruction
    #: Constant steps of registers that each iteration changes once, by name.
    steps: Mapping[str, int]

    @property
    def step(self) -> int:
        """Step of the counter."""
        return self.steps[getattr(self.comparison.operands[1], "name", "")]


def unroll_loops(kernel: Entry, flow: Flow) -> Entry | None:
    """Return a copy of the kernel with its loops unrolled as by ptxas; None if this changes no count.

    `isa.dispatch` must have set the registers that each instruction reads and writes.
    """
    code = kernel.instructions
    kept = {place for name, place in kernel.labels.items() if name.startswith(NO_UNROLL)}
    blocks = [block for index, block in enumerate(flow.blocks) if index in block.successors and block.start not in kept]
    loops = [loop for block in blocks if (loop := _parse_loop(code, block)) is not None]
    if not loops:
        return None
    divergent = find_divergent(code, flow)
    loops = [loop for loop in loops if loop.guard.name in divergent or _walks_shared_memory(loop)]
    return _rewrite(kernel, {loop.block.start: loop for loop in loops}) if loops else None


def _parse_loop(code: Sequence[Instruction], block: BasicBlock) -> _CountedLoop | None:
    """Return the counted loop that a basic block is, if ptxas unrolls it."""
    *body, branch = code[block.start : block.stop]
    guard = branch.guard
    if block.end is not End.BRANCH or guard is None or guard.negated:
        return None
    has_accesses = any(instruction.opcode in _ACCESSES for instruction in body)
    if not has_accesses or sum(map(_estimate_cost, body)) + 1 > _MAX_COST or any(map(_is_kept, body)):
        return None
    setters = [instruction for instruction in body if guard.name in instruction.writes]
    if len(setters) != 1 or any(guard.name in instruction.reads for instruction in body):
        return None
    steps = _find_steps(body)
    changed = {name for instruction in body for name in instruction.writes}
    loop = _CountedLoop(block, body, guard, setters[0], steps)
    return loop if _is_counted(loop, changed) else None


def _is_counted(loop: _CountedLoop, changed: Set[str]) -> bool:
    """Tell if the loop compares its counter, after the step, with a bound that stays the same."""
    test = loop.comparison
    if test.opcode != "setp" or test.guard is not None or len(test.operands) != 3 or len(test.modifiers) != 2:
        return False
    target, counter, bound = test.operands
    kind = TYPES.get(test.modifiers[1])
    if not isinstance(target, Register) or kind is None or kind.kind not in ("s", "u") or kind.size < 4:
        return False
    if not isinstance(counter, Register) or not loop.steps.get(counter.name):
        return False
    add = next(place for place, instruction in enumerate(loop.body) if counter.name in instruction.writes)
    if loop.body.index(test) < add or test.modifiers[0] not in _COMPARISONS[1 if loop.step > 0 else -1]:
        return False
    if test.modifiers[0] == "ne":
        return bound == Immediate(0) and loop.step < 0
    return isinstance(bound, Immediate) or (isinstance(bound, Register) and bound.name not in changed)


def _find_steps(body: Sequence[Instruction]) -> dict[str, int]:
    """Return the constant by which each iteration changes a register once, by name."""
    writes = Counter(name for instruction in body for name in instruction.writes)
    steps = {}
    for instruction in body:
        if instruction.opcode in ("add", "sub") and instruction.guard is None and len(instruction.operands) == 3:
            target, source, step = instruction.operands
            kind = TYPES.get(instruction.modifiers[-1])
            is_whole = kind is not None and kind.size >= 4 and kind.kind in ("s", "u") and len(instruction.modifiers) == 1
            if is_whole and target == source and isinstance(target, Register) and isinstance(step, Immediate):
                if writes[target.name] == 1 and isinstance(step.value, int):
                    steps[target.name] = step.value if instruction.opcode == "add" else -step.value
    return steps


def _estimate_cost(instruction: Instruction) -> int:
    """Estimate the instructions of machine code, as ptxas does before it unrolls."""
    if instruction.opcode in _ACCESSES:
        return _ACCESS_COST
    return 0 if instruction.opcode in _FREE or instruction.name == "mul.wide.s32" else 1


def _is_kept(instruction: Instruction) -> bool:
    """Tell if ptxas does not unroll a loop with this instruction."""
    opcode, modifiers = instruction.opcode, {*instruction.modifiers}
    if opcode in _CALLED and modifiers & {"rn", "rz", "rm", "rp"}:
        return True
    return opcode in _KEPT or bool(instruction.problem) or (opcode in _CALLED_INTEGERS and modifiers & {"s64", "u64"} != set())


def _walks_shared_memory(loop: _CountedLoop) -> bool:
    """Tell if successive iterations access neighbouring words of shared memory."""
    bases = [
        operand.base.name
        for instruction in loop.body
        if instruction.opcode in ("ld", "st") and "shared" in instruction.modifiers
        for operand in instruction.operands
        if isinstance(operand, Address) and isinstance(operand.base, Register)
    ]
    return any(0 < abs(loop.steps.get(name, 0)) <= _MAX_WALK for name in bases)


def _rewrite(kernel: Entry, loops: Mapping[int, _CountedLoop]) -> Entry:
    """Return a copy of the kernel with these loops unrolled, by the place where each starts."""
    result, places = replace(kernel, instructions=[], labels={}), list[int]()
    code, place = result.instructions, 0
    while place <= len(kernel.instructions):
        places.append(len(code))
        loop = loops.get(place)
        if loop is None:
            code += kernel.instructions[place : place + 1]
            place += 1
        else:
            read_outside = _find_reads_outside(kernel.instructions, loop.block)
            _LoopWriter(loop, result, read_outside).write()
            places += [len(code)] * (loop.block.stop - place - 1)
            place = loop.block.stop
    result.labels |= {name: places[index] for name, index in kernel.labels.items()}
    return result


def _find_reads_outside(code: Sequence[Instruction], block: BasicBlock) -> set[str]:
    others = [*code[: block.start], *code[block.stop :]]
    return {name for instruction in others for name in instruction.reads}


class _LoopWriter:
    """Appends an unrolled loop to a kernel."""

    def __init__(self, loop: _CountedLoop, into: Entry, read_outside: Set[str]) -> None:
        self._loop, self._into, self._read_outside = loop, into, read_outside
        self._prefix = f".unrolled{loop.block.start}"
        self._source = loop.comparison.source
        #: Registers with a step that are not only addresses.
        self._copied = {name for instruction in loop.body for name in self._iter_values(instruction)}

    def write(self) -> None:
        """Append the loop."""
        loop, guard = self._loop, self._loop.guard
        self._append("mov", ("pred",), guard, Immediate(1))
        for count in (4, 2):
            self._put_label(f"{count}")
            more = self._append_comparison(count - 1)
            self._append("bra", (), Symbol(f"{self._prefix}{count // 2}"), guard=replace(more, negated=True))
            self._append_copies(count)
            if count == 4:
                self._append("bra", (), Symbol(f"{self._prefix}4"))
        self._put_label("1")
        self._append("bra", (), Symbol(f"{self._prefix}end"), guard=replace(guard, negated=True))
        self._append_copies(1)
        if loop.comparison.modifiers[0] == "ne":
            self._append("bra", (), Symbol(f"{self._prefix}1"))
        self._put_label("end")

    def _iter_values(self, instruction: Instruction) -> Iterator[str]:
        """Yield the registers with a step that an instruction reads, except to compare, to step, or as an address."""
        if instruction is not self._loop.comparison:
            leaves = [leaf for item in instruction.operands if not isinstance(item, Address) for leaf in iter_leaves(item)]
            names = {leaf.name for leaf in leaves if isinstance(leaf, Register)} - instruction.writes
            yield from names & self._loop.steps.keys()

    def _append(self, opcode: str, modifiers: tuple[str, ...], *operands: Operand, guard: Register | None = None) -> None:
        self._into.instructions.append(Instruction(opcode, modifiers, operands, guard, self._source))

    def _put_label(self, name: str) -> None:
        self._into.labels[f"{self._prefix}{name}"] = len(self._into.instructions)

    def _append_comparison(self, steps: int) -> Register:
        """Append a test for more than so many remaining iterations; return its predicate."""
        name, kind = self._loop.comparison.modifiers
        _, counter, bound = self._loop.comparison.operands
        name, wide = ("gt" if name == "ne" else name), Register(f"{self._prefix}wide", TYPES["s64"])
        if TYPES[kind].size == wide.type.size:
            self._append("add", (kind,), wide, counter, Immediate(steps * self._loop.step))
        else:  # 64 bits do not overflow
            self._append("cvt", ("s64", kind), wide, counter)
            self._append("add", ("s64",), wide, wide, Immediate(steps * self._loop.step))
            if isinstance(bound, Register):
                self._append("cvt", ("s64", kind), Register(f"{self._prefix}bound", TYPES["s64"]), bound)
                bound = Register(f"{self._prefix}bound", TYPES["s64"])
            kind = "s64"
        more = replace(self._loop.guard, name=f"{self._prefix}more")
        self._append("setp", (name, "and", kind), more, wide, bound, self._loop.guard)
        return more

    def _append_copies(self, count: int) -> None:
        steps = self._loop.steps
        for copy in range(count):
            done = dict.fromkeys(steps, copy)
            for instruction in self._loop.body:
                is_last = copy == count - 1
                if instruction is self._loop.comparison and not is_last:
                    continue
                written = next((name for name in steps if name in instruction.writes), None)
                if written is None:
                    self._into.instructions.append(self._shift(instruction, done, count))
                    continue
                done[written] += 1
                if not is_last and written not in self._copied:
                    continue
                is_unused = count == 1 and written not in self._read_outside and not self._is_needed(written)
                if not is_unused:
                    target, source, _ = instruction.operands
                    name = written if is_last else f"{written}{self._prefix}.{copy + 1}"
                    operands = (replace(target, name=name), source, Immediate((copy + 1) * steps[written]))
                    self._into.instructions.append(replace(instruction, opcode="add", operands=operands))

    def _is_needed(self, name: str) -> bool:
        """Tell if the last iteration needs the register's new value: to compare it, or to repeat."""
        test = self._loop.comparison
        return name in test.reads or test.modifiers[0] == "ne" or name in self._copied

    def _shift(self, instruction: Instruction, done: Mapping[str, int], count: int) -> Instruction:
        """Return a copy of an instruction that reads registers after so many steps."""
        shifted = {name: steps for name, steps in done.items() if name in instruction.reads and 0 < steps < count}
        operands = tuple(self._shift_operand(operand, shifted) for operand in instruction.operands)
        return replace(instruction, operands=operands)

    def _shift_operand(self, operand: Operand, shifted: Mapping[str, int]) -> Operand:
        if isinstance(operand, Address) and isinstance(operand.base, Register) and operand.base.name in shifted:
            name = operand.base.name
            return replace(operand, offset=operand.offset + shifted[name] * self._loop.steps[name])
        if isinstance(operand, Register) and operand.name in shifted:
            return replace(operand, name=f"{operand.name}{self._prefix}.{shifted[operand.name]}")
        if isinstance(operand, Group):
            return replace(operand, items=tuple(self._shift_operand(item, shifted) for item in operand.items))
        return operand
