"""Atomic operations (PTX ISA, ``atom`` and ``red``), in the order of the thread index."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..lanes.warps import Array
from ..ptx.program import Instruction, Type
from .arithmetic import bfloat, floating
from .arithmetic.directed import OPERATIONS
from .operands import join_modifiers, unsupported
from .table import WORDS

_INTEGERS = frozenset({"u32", "s32", "u64", "s64"})
_SWAPPED = WORDS | {"b128"}
#: Number of turns that cost as much as the queue of one address (see `apply_operation`).
_QUEUE_COST = 4


class AtomicOperation(NamedTuple):
    """An atomic operation: its functions for the threads of one address.

    ``queue`` executes it for all of them, one after another. It takes the old value as an array of one element, and the
    operands of the threads. It returns the old value of each thread, and the final value.
    """

    #: Function from the old value and the operands to the new value.
    update: Callable[..., Any]
    types: frozenset[str]
    #: Number of operands.
    operands: int = 1
    #: The same operation, for ``ufunc.at``.
    ufunc: np.ufunc | None = None
    queue: Callable[..., tuple[Array, Any]] | None = None


def _wrap_accumulated(ufunc: np.ufunc, update: Callable[..., Any], types: frozenset[str]) -> AtomicOperation:
    def queue(start: Array, values: Array) -> tuple[Array, Any]:
        totals = ufunc.accumulate(np.concatenate([start, values]), dtype=start.dtype)
        return totals[:-1], totals[-1]

    return AtomicOperation(update, types, ufunc=ufunc, queue=queue)


def _queue_swaps(start: Array, compare: Array, new: Array) -> tuple[Array, Any]:
    old_values, value = [], start[0].item()
    for expected, replacement in zip(compare.tolist(), new.tolist(), strict=True):
        old_values.append(value)
        value = replacement if value == expected else value
    return np.array(old_values, new.dtype), value


_BITS_OF_SUM = bfloat.wrap_for_bits(OPERATIONS["add"].odd)
ATOMICS: dict[str, AtomicOperation] = {
    "add": _wrap_accumulated(np.add, np.add, _INTEGERS | {"f32", "f64"}),
    "add.noftz": AtomicOperation(np.add, frozenset({"f16"})),
    "add.noftz.f16x2": AtomicOperation(floating.wrap_for_halves(np.add), frozenset({"f16x2"})),
    "add.noftz.bf16": AtomicOperation(_BITS_OF_SUM, frozenset({"bf16", "bf16x2"})),
    "min.noftz": AtomicOperation(floating.minimum, frozenset({"f16"})),
    "min.noftz.f16x2": AtomicOperation(floating.wrap_for_halves(floating.minimum), frozenset({"f16x2"})),
    "min.noftz.bf16": AtomicOperation(bfloat.wrap_for_bits(floating.minimum), frozenset({"bf16", "bf16x2"})),
    "max.noftz": AtomicOperation(floating.maximum, frozenset({"f16"})),
    "max.noftz.f16x2": AtomicOperation(floating.wrap_for_halves(floating.maximum), frozenset({"f16x2"})),
    "max.noftz.bf16": AtomicOperation(bfloat.wrap_for_bits(floating.maximum), frozenset({"bf16", "bf16x2"})),
    "min": _wrap_accumulated(np.minimum, floating.minimum, _INTEGERS),
    "max": _wrap_accumulated(np.maximum, floating.maximum, _INTEGERS),
    "and": _wrap_accumulated(np.bitwise_and, np.bitwise_and, WORDS),
    "or": _wrap_accumulated(np.bitwise_or, np.bitwise_or, WORDS),
    "xor": _wrap_accumulated(np.bitwise_xor, np.bitwise_xor, WORDS),
    "exch": AtomicOperation(
        lambda old, new: new, _SWAPPED, queue=lambda start, new: (np.concatenate([start, new[:-1]]), new[-1])
    ),
    "cas": AtomicOperation(
        lambda old, compare, new: np.where(old == compare, new, old), _SWAPPED | {"b16"}, 2, queue=_queue_swaps
    ),
    "inc": AtomicOperation(lambda old, limit: np.where(old >= limit, 0, old + 1), frozenset({"u32"})),
    "dec": AtomicOperation(lambda old, limit: np.where((old == 0) | (old > limit), limit, old - 1), frozenset({"u32"})),
}


def _queue_flushed_sums(start: Array, values: Array) -> tuple[Array, Any]:
    old_values, total = [], start[0]
    for value in values:
        old_values.append(total)
        total = _add_flushed(total, value)
    return np.array(old_values, start.dtype), total


def _add_flushed(old: Array, new: Array) -> Array:
    return floating.flush(floating.flush(old) + floating.flush(new))


_FLUSHED_SUM = AtomicOperation(_add_flushed, frozenset({"f32"}), queue=_queue_flushed_sums)
#: Sums of numbers of at least this magnitude are zero or normal.
_LEAST_SUMMAND = np.finfo(np.float32).tiny * 2.0**24


def choose_sum(operation: AtomicOperation, *numbers: Array) -> AtomicOperation:
    """Choose how to add float32 in global memory, where ``RED.F32.FTZ`` turns subnormals into zeros.

    If each of ``numbers``, the old values and operands, is 0 or at least `_LEAST_SUMMAND`, ``operation`` does the same.
    """
    is_small = any(bool(((np.abs(number) < _LEAST_SUMMAND) & (number != 0)).any()) for number in numbers)
    return _FLUSHED_SUM if is_small else operation


def find_operation(instruction: Instruction, names: list[str], kind: Type) -> AtomicOperation:
    """Find the operation for modifiers and a type, such as ``["add", "noftz"]`` and f16.

    Raises `UnsupportedInstructionError` if there is none.
    """
    key, type_name = ".".join(names), "bf16" if kind.kind == "bf16" else kind.name
    operations = {name: row for name, row in ATOMICS.items() if kind.name in row.types}
    if instruction.opcode != "atom":  # without a result
        operations = {name: row for name, row in operations.items() if name not in ("cas", "exch")}
    operation = operations.get(f"{key}.{type_name}") or operations.get(key)
    if operation is None:
        allowed = sorted({name.removesuffix(f".{type_name}") for name in operations})
        problem = f".{key} does not exist for .{kind.name}" if key else "the operation is missing"
        raise unsupported(instruction, f"{problem}; allowed are {join_modifiers(allowed)}")
    return operation


def apply_operation(
    operation: AtomicOperation, units: Array, index: Array, values: list[Array], *, returns: bool
) -> Array:
    """Update ``units[index]`` thread by thread; return the old values, which may be zeros unless ``returns``.

    ``index`` and each array of ``values``, the operands, have one element per thread. Addresses are independent, so the
    threads run in turns. The first turn is of the first thread of every address, the second turn of the second threads,
    and so on. Where few addresses have many threads, the operation's ``queue`` executes the last threads of each.
    """
    if operation.ufunc is not None and not returns:
        operation.ufunc.at(units, index, values[0])
        return np.zeros(len(index), units.dtype)
    order = np.argsort(index, kind="stable")  # the threads, address by address
    # For each address: the place in `order` of its first thread, and its number of threads.
    _, starts, lengths = np.unique(index[order], return_index=True, return_counts=True)
    old, queue, turn_count = np.zeros(len(index), units.dtype), operation.queue, int(lengths.max(initial=0))
    if queue is not None and turn_count > _QUEUE_COST:
        turn_count = _count_parallel_turns(lengths)
    for turn in range(turn_count):
        threads = order[starts[lengths > turn] + turn]
        old[threads] = units[index[threads]]
        units[index[threads]] = operation.update(old[threads], *(value[threads] for value in values))
    if queue is not None:
        has_queue = lengths > turn_count
        for start, length in zip(starts[has_queue], lengths[has_queue], strict=True):
            threads = order[start + turn_count : start + length]
            place = index[threads[0]]
            old[threads], units[place] = queue(units[place : place + 1], *(value[threads] for value in values))
    return old


def _count_parallel_turns(lengths: Array) -> int:
    """Return the best number of turns of `apply_operation`: a turn costs 1, and each queue after them `_QUEUE_COST`.

    ``lengths`` are the numbers of threads by address: [1, 1, 900] -> 1, because one queue costs less than 899 turns.
    """
    turns = np.concatenate([[0], np.sort(lengths)])
    remaining_queues = np.arange(len(lengths), -1, -1)  # where turns are equal, the last is right
    return int(turns[np.argmin(turns + _QUEUE_COST * remaining_queues)])
