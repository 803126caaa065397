"""Atomic operations (PTX ISA, ``atom`` and ``red``), as if threads came one after the other by their index."""

from __future__ import annotations

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
#: Turns that take as long as the queue of one address.
_QUEUE = 4


class Atomic(NamedTuple):
    """What is written: from the old value and the operands; ``ufunc`` does the same for many threads in order.

    ``queue`` gives for threads in order on one address, whose value is given as an array of one, what each of them
    finds there, and what the last of them leaves.
    """

    update: Callable[..., Any]
    types: frozenset[str]
    operands: int = 1
    ufunc: np.ufunc | None = None
    queue: Callable[..., tuple[Array, Any]] | None = None


def _running(ufunc: np.ufunc, update: Callable[..., Any], types: frozenset[str]) -> Atomic:
    """An operation that NumPy makes for many threads in order."""

    def queue(start: Array, values: Array) -> tuple[Array, Any]:
        found = ufunc.accumulate(np.concatenate([start, values]), dtype=start.dtype)
        return found[:-1], found[-1]

    return Atomic(update, types, ufunc=ufunc, queue=queue)


def _compared(start: Array, compare: Array, new: Array) -> tuple[Array, Any]:
    """One by one, as numbers of Python: who compares with what is there puts something else there."""
    found, value = [], start[0].item()
    for wanted, put in zip(compare.tolist(), new.tolist(), strict=True):
        found.append(value)
        value = put if value == wanted else value
    return np.array(found, new.dtype), value


_BITS_OF_SUM = bfloat.wrap_for_bits(OPERATIONS["add"].odd)
ATOMICS: dict[str, Atomic] = {
    "add": _running(np.add, np.add, _INTEGERS | {"f32", "f64"}),
    "add.noftz": Atomic(np.add, frozenset({"f16"})),
    "add.noftz.f16x2": Atomic(floating.wrap_for_halves(np.add), frozenset({"f16x2"})),
    "add.noftz.bf16": Atomic(_BITS_OF_SUM, frozenset({"bf16", "bf16x2"})),
    "min": _running(np.minimum, floating.minimum, _INTEGERS),
    "max": _running(np.maximum, floating.maximum, _INTEGERS),
    "and": _running(np.bitwise_and, np.bitwise_and, _WORDS),
    "or": _running(np.bitwise_or, np.bitwise_or, _WORDS),
    "xor": _running(np.bitwise_xor, np.bitwise_xor, _WORDS),
    "exch": Atomic(
        lambda old, new: new, _SWAPPED, queue=lambda start, new: (np.concatenate([start, new[:-1]]), new[-1])
    ),
    "cas": Atomic(lambda old, compare, new: np.where(old == compare, new, old), _SWAPPED | {"b16"}, 2, queue=_compared),
    "inc": Atomic(lambda old, limit: np.where(old >= limit, 0, old + 1), frozenset({"u32"})),
    "dec": Atomic(lambda old, limit: np.where((old == 0) | (old > limit), limit, old - 1), frozenset({"u32"})),
}


def find(names: list[str], kind: Type) -> Atomic | None:
    """The operation of an atomic's modifiers and type; None if there is none such."""
    key = ".".join(names)
    found = ATOMICS.get(f"{key}.{kind.name.removesuffix('x2') if kind.kind == 'e' else kind.name}", ATOMICS.get(key))
    return found if found is not None and kind.name in found.types else None


def apply(operation: Atomic, units: Array, index: Array, values: list[Array], *, returns: bool) -> Array:
    """Update ``units[index]`` thread by thread; the old values, or zeros if they are not wanted.

    Threads with different addresses do not meet, so that the first thread of every address goes at once, then the
    second, and so on. Where few addresses have more threads than that, each of these goes through its queue.
    """
    if operation.ufunc is not None and not returns:
        operation.ufunc.at(units, index, values[0])
        return np.zeros(len(index), units.dtype)
    order = np.argsort(index, kind="stable")
    ranked = index[order]
    opens = np.ones(len(ranked), bool)
    opens[1:] = ranked[1:] != ranked[:-1]
    first = np.flatnonzero(opens)
    length = np.diff(np.append(first, len(ranked)))
    old = np.zeros(len(index), units.dtype)
    queue = operation.queue
    together = int(length.max(initial=0))
    if queue is not None and together > _QUEUE:
        together = _turns_together(length)
    for turn in range(together):
        now = order[first[length > turn] + turn]
        old[now] = units[index[now]]
        units[index[now]] = operation.update(old[now], *(value[now] for value in values))
    if queue is not None:
        for group in np.flatnonzero(length > together):
            mine = order[first[group] + together : first[group] + length[group]]
            place = index[mine[0]]
            old[mine], units[place] = queue(units[place : place + 1], *(value[mine] for value in values))
    return old


def _turns_together(length: Array) -> int:
    """How many turns addresses with so many threads take at once, so that these and the queues left cost least."""
    at_once = np.concatenate([[0], np.sort(length)])
    return int(at_once[np.argmin(at_once + _QUEUE * np.arange(len(length), -1, -1))])
