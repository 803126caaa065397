"""Unrolling of loops by ptxas (machine code of nvcc 13.0.88 for sm_80, sm_90 and sm_100).

ptxas executes four iterations of a counted loop (`counted_loops`) at a time while more than three remain, then two if
more than one remains, then one. An unsigned counter that begins beyond the bound gets an iteration first, in which it
may wrap. So threads that leave a loop one by one make more requests. Loads of neighbouring words of shared memory in
successive iterations merge (`merging`). Other counts stay the same; so do loops without these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from ..ptx.flow import BasicBlock, Flow
from ..ptx.program import TYPES, Address, Entry, Group, Immediate, Instruction, Operand, Register, Symbol, iter_leaves
from .counted_loops import CountedLoop, iter_counted_loops
from .uniformity import find_divergent

#: Iterations that run at a time, one kind after the other.
_COPIES = (4, 2, 1)
#: Maximum step of an address whose neighbouring words merge, in bytes.
_MAX_WALK = 8


def unroll_loops(kernel: Entry, flow: Flow) -> Entry | None:
    """Return a copy of the kernel with its loops unrolled as by ptxas; None if no count may change.

    `isa.dispatch` must have set the registers that each instruction reads and writes.
    """
    loops = [*iter_counted_loops(kernel, flow)]
    divergent = find_divergent(kernel.instructions, flow) if loops else set[str]()
    chosen = {loop.block.start: loop for loop in loops if _changes_counts(loop, divergent)}
    return _rewrite(kernel, chosen) if chosen else None


def _changes_counts(loop: CountedLoop, divergent: Set[str]) -> bool:
    """Tell if counts change because ptxas unrolls a loop; ``divergent`` are registers that differ in a warp."""
    is_divergent = loop.guard.name in divergent
    return loop.is_unrolled_if_divergent if is_divergent else _walks_shared_memory(loop)


def _walks_shared_memory(loop: CountedLoop) -> bool:
    """Tell if successive iterations access neighbouring words of shared memory."""
    accesses = [access for access in loop.body if access.opcode in ("ld", "st") and "shared" in access.modifiers]
    addresses = [operand for access in accesses for operand in access.operands if isinstance(operand, Address)]
    return any(0 < abs(loop.steps.get(getattr(address.base, "name", ""), 0)) <= _MAX_WALK for address in addresses)


def _rewrite(kernel: Entry, loops: Mapping[int, CountedLoop]) -> Entry:
    """Return a copy of the kernel with these loops unrolled, by the place where each starts."""
    result = replace(kernel, instructions=[], labels={})
    places = list[int]()  # of each instruction in the copy, and of the end
    while len(places) < len(kernel.instructions):
        start = len(places)
        loop = loops.get(start)
        places.append(len(result.instructions))
        if loop is None:
            result.instructions.append(kernel.instructions[start])
        else:
            _LoopWriter(loop, result, _find_other_reads(kernel.instructions, loop.block)).append_loop()
            places += [len(result.instructions)] * (loop.block.stop - start - 1)
    places.append(len(result.instructions))
    result.labels |= {name: places[index] for name, index in kernel.labels.items()}
    return result


def _find_other_reads(code: Sequence[Instruction], block: BasicBlock) -> set[str]:
    """Return the registers that instructions outside of a basic block read."""
    return {name for other in (*code[: block.start], *code[block.stop :]) for name in other.reads}


class _LoopWriter:
    """Appends an unrolled loop to a kernel; ``read_behind`` are registers that other code may read."""

    def __init__(self, loop: CountedLoop, into: Entry, read_behind: Set[str]) -> None:
        self._loop, self._into, self._prefix = loop, into, f".unrolled{loop.block.start}"
        #: Registers with a step that an iteration reads, except as an address.
        self._values = {name for instruction in loop.body for name in self._iter_values(instruction)}
        name, kind = loop.comparison.modifiers
        #: Comparison of the counter with the bound that holds while more iterations remain.
        self._order = name if name != "ne" else "lt" if loop.step > 0 else "gt"
        #: True if more than one iteration may remain at last: 64-bit sums wrap, and a bound may be no multiple.
        self._repeats_last = name == "ne" or TYPES[kind].size == TYPES["s64"].size
        needed = {*loop.comparison.reads, *self._values, *read_behind}
        self._unused = loop.steps.keys() - needed if not self._repeats_last else set[str]()

    def _iter_values(self, instruction: Instruction) -> Iterator[str]:
        if instruction is not self._loop.comparison:
            operands = [operand for operand in instruction.operands if not isinstance(operand, Address)]
            names = {getattr(leaf, "name", "") for operand in operands for leaf in iter_leaves(operand)}
            yield from (names - instruction.writes) & self._loop.steps.keys()

    def append_loop(self) -> None:
        """Append the loop."""
        guard = self._loop.guard
        self._append("mov", ("pred",), guard, Immediate(1))
        if self._loop.comparison.modifiers[-1].startswith("u"):
            self._append_wrapped()
        for count, following in zip(_COPIES, (*_COPIES[1:], 0), strict=True):
            self._into.labels[f"{self._prefix}.{count}"] = len(self._into.instructions)
            more = self._append_comparison(count - 1) if count > 1 else guard
            self._append("bra", (), Symbol(f"{self._prefix}.{following}"), guard=replace(more, negated=True))
            start = len(self._into.instructions)
            for copy in range(count):
                self._append_copy(copy, count, self._unused if count == 1 else set())
            if count == _COPIES[0] or (count == 1 and self._repeats_last):
                self._append("bra", (), Symbol(f"{self._prefix}.{count}"))
            self._weigh_copies(start, count)
        self._into.labels[f"{self._prefix}.0"] = len(self._into.instructions)

    def _append_wrapped(self) -> None:
        """Append an iteration for an unsigned counter that begins beyond the bound, such as -4; it may wrap then."""
        (_, kind), (_, *compared) = self._loop.comparison.modifiers, self._loop.comparison.operands
        within = replace(self._loop.guard, name=f"{self._prefix}.within")
        self._append("setp", (self._order, kind), within, *compared)
        self._append("bra", (), Symbol(f"{self._prefix}.{_COPIES[0]}"), guard=within)
        start = len(self._into.instructions)
        self._append_copy(0, 1, set())
        self._weigh_copies(start, 1)

    def _weigh_copies(self, start: int, count: int) -> None:
        """Let the instructions from ``start`` stand for so many iterations."""
        *others, last = self._into.instructions[start:]
        iteration = len(self._loop.body) + 1
        weight = count * iteration - sum(instruction.weight for instruction in others)
        self._into.instructions[-1] = replace(last, weight=weight)

    def _append(
        self, opcode: str, modifiers: tuple[str, ...], *operands: Operand, guard: Register | None = None
    ) -> None:
        source = self._loop.comparison.source
        self._into.instructions.append(Instruction(opcode, modifiers, operands, guard, source, weight=0))

    def _append_comparison(self, steps: int) -> Register:
        """Append a test for more than so many remaining iterations, in 64 bits; return its predicate."""
        (_, kind), (_, counter, bound) = self._loop.comparison.modifiers, self._loop.comparison.operands
        total, limit = (Register(f"{self._prefix}.{part}", TYPES["s64"]) for part in ("total", "limit"))
        for wide, operand in ((total, counter), (limit, _wrap(bound, kind))):
            is_narrow = isinstance(operand, Register) and TYPES[kind].size < wide.type.size
            self._append(*(("cvt", ("s64", kind)) if is_narrow else ("mov", ("b64",))), wide, operand)
        self._append("add", ("s64",), total, total, Immediate(steps * self._loop.step))
        more = replace(self._loop.guard, name=f"{self._prefix}.more")
        self._append("setp", (self._order, "and", "s64"), more, total, limit, self._loop.guard)
        return more

    def _append_copy(self, copy: int, count: int, unused: Set[str]) -> None:
        """Append an iteration. Only the last one changes the registers with a step, each by all steps at once."""
        is_last, steps_done = copy == count - 1, dict.fromkeys(self._loop.steps, copy)
        for instruction in self._loop.body:
            stepped = next((name for name in instruction.writes if name in self._loop.steps), None)
            if stepped is None:
                if is_last or instruction is not self._loop.comparison:
                    self._into.instructions.append(self._shift_reads(instruction, steps_done, count))
                continue
            steps_done[stepped] += 1
            if stepped not in unused and (is_last or stepped in self._values):
                target, source, _ = instruction.operands
                name = stepped if is_last else self._name_value(stepped, copy + 1)
                step = Immediate((copy + 1) * self._loop.steps[stepped])
                operands = (Register(name, getattr(target, "type", TYPES["b32"])), source, step)
                self._into.instructions.append(replace(instruction, opcode="add", operands=operands))

    def _name_value(self, name: str, steps: int) -> str:
        return f"{name}{self._prefix}.{steps}"

    def _shift_reads(self, instruction: Instruction, steps_done: Mapping[str, int], count: int) -> Instruction:
        """Return a copy of an instruction that reads the registers as they are after so many steps."""
        shifted = {name: steps for name, steps in steps_done.items() if 0 < steps < count}
        return replace(instruction, operands=tuple(self._shift(operand, shifted) for operand in instruction.operands))

    def _shift(self, operand: Operand, shifted: Mapping[str, int]) -> Operand:
        if isinstance(operand, Group):
            return Group(tuple(self._shift(item, shifted) for item in operand.items))
        name = getattr(operand.base if isinstance(operand, Address) else operand, "name", "")
        if name not in shifted:
            return operand
        if isinstance(operand, Address):
            return replace(operand, offset=operand.offset + shifted[name] * self._loop.steps[name])
        return (
            replace(operand, name=self._name_value(name, shifted[name])) if isinstance(operand, Register) else operand
        )


def _wrap(bound: Operand, kind: str) -> Operand:
    """Return a constant as a number of this type; unsigned ones of 64 bits wrap to signed ones."""
    if not isinstance(bound, Immediate) or not isinstance(bound.value, int):
        return bound
    bits = TYPES[kind].bits
    smallest = 0 if kind == "u32" else -(1 << bits - 1)
    return Immediate((bound.value - smallest) % (1 << bits) + smallest)
