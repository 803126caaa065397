"""Atomic operations (PTX ISA, ``atom`` and ``red``), in the order of the thread index."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..lanes.warps import Array
from ..ptx.program import Type
from .arithmetic import bfloat, floating
from .arithmetic.directed import OPERATIONS

_INTEGERS = frozenset({"u32", "s32", "u64", "s64"})
_WORDS = frozenset({"b32", "b64"})
_SWAPPED = _WORDS | {"b128"}
#: Number of parallel rounds that cost as much as the sequential queue of one address.
_QUEUE = 4


class AtomicOperation(NamedTuple):
    """Atomic operation: ``update`` maps the old value and the operands to the new value.

    ``ufunc`` does so for many threads in order. ``queue`` takes the value of one address, as an array of one, and the
    operands of its threads in order. It returns the old value of each thread, and the final value.
    """

    update: Callable[..., Any]
    types: frozenset[str]
    operands: int = 1
    ufunc: np.ufunc | None = None
    queue: Callable[..., tuple[Array, Any]] | None = None


def _wrap_accumulated(ufunc: np.ufunc, update: Callable[..., Any], types: frozenset[str]) -> AtomicOperation:
    """Wrap a NumPy ufunc that accumulates over many threads in order."""

    def queue(start: Array, values: Array) -> tuple[Array, Any]:
        totals = ufunc.accumulate(np.concatenate([start, values]), dtype=start.dtype)
        return totals[:-1], totals[-1]

    return AtomicOperation(update, types, ufunc=ufunc, queue=queue)


def _queue_swaps(start: Array, compare: Array, new: Array) -> tuple[Array, Any]:
    """Compare and swap one by one, with Python numbers."""
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
    **{
        key: AtomicOperation(compute, frozenset(types))
        for name, choose in (("min", floating.minimum), ("max", floating.maximum))
        for key, compute, types in (
            (f"{name}.noftz", choose, {"f16"}),
            (f"{name}.noftz.f16x2", floating.wrap_for_halves(choose), {"f16x2"}),
            (f"{name}.noftz.bf16", bfloat.wrap_for_bits(choose), {"bf16", "bf16x2"}),
        )
    },
    "min": _wrap_accumulated(np.minimum, floating.minimum, _INTEGERS),
    "max": _wrap_accumulated(np.maximum, floating.maximum, _INTEGERS),
    "and": _wrap_accumulated(np.bitwise_and, np.bitwise_and, _WORDS),
    "or": _wrap_accumulated(np.bitwise_or, np.bitwise_or, _WORDS),
    "xor": _wrap_accumulated(np.bitwise_xor, np.bitwise_xor, _WORDS),
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
    """Add one by one, and flush each subnormal."""
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


def ftz_sums(operation: AtomicOperation, *numbers: Array) -> AtomicOperation:
    """Return the float32 sum that global memory executes, ``RED.F32.FTZ``: subnormals become zeros.

    If no number is small, ``operation`` itself gives the same result, and is faster.
    """
    is_small = any(bool(((np.abs(number) < _LEAST_SUMMAND) & (number != 0)).any()) for number in numbers)
    return _FLUSHED_SUM if is_small else operation


def find_operation(names: list[str], kind: Type) -> AtomicOperation | None:
    """Find the operation for an atomic's modifiers and type; None if there is none."""
    key = ".".join(names)
    operation = ATOMICS.get(
        f"{key}.{kind.name.removesuffix('x2') if kind.kind == 'e' else kind.name}", ATOMICS.get(key)
    )
    return operation if operation is not None and kind.name in operation.types else None


def apply_operation(
    operation: AtomicOperation, units: Array, index: Array, values: list[Array], *, returns: bool
) -> Array:
    """Update ``units[index]`` thread by thread; return the old values, or zeros if they are unused.

    Threads with different addresses are independent. So the first threads of all addresses are executed at once, then
    the second ones, and so on. If few addresses have more threads, each of them continues with its own queue.
    """
    if operation.ufunc is not None and not returns:
        operation.ufunc.at(units, index, values[0])
        return np.zeros(len(index), units.dtype)
    order = np.argsort(index, kind="stable")
    ranked = index[order]
    is_first = np.ones(len(ranked), bool)
    is_first[1:] = ranked[1:] != ranked[:-1]
    first = np.flatnonzero(is_first)
    length = np.diff(np.append(first, len(ranked)))
    old = np.zeros(len(index), units.dtype)
    queue = operation.queue
    turn_count = int(length.max(initial=0))
    if queue is not None and turn_count > _QUEUE:
        turn_count = _count_parallel_turns(length)
    for turn in range(turn_count):
        now = order[first[length > turn] + turn]
        old[now] = units[index[now]]
        units[index[now]] = operation.update(old[now], *(value[now] for value in values))
    if queue is not None:
        for group in np.flatnonzero(length > turn_count):
            members = order[first[group] + turn_count : first[group] + length[group]]
            place = index[members[0]]
            old[members], units[place] = queue(units[place : place + 1], *(value[members] for value in values))
    return old


def _count_parallel_turns(length: Array) -> int:
    """Return the number of parallel rounds that minimizes the cost of rounds and remaining queues."""
    at_once = np.concatenate([[0], np.sort(length)])
    return int(at_once[np.argmin(at_once + _QUEUE * np.arange(len(length), -1, -1))])
