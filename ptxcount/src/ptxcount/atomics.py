"""Atomic operations (PTX ISA, ``atom`` and ``red``), as if threads came one after the other by their index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import bfloat, floating
from .directed import OPERATIONS
from .program import Type
from .transactions import Pattern, lane_sectors, lanes_of_bank, wavefronts, wide_turns

Array = npt.NDArray[Any]
_INTEGERS = frozenset({"u32", "s32", "u64", "s64"})
_WORDS = frozenset({"b32", "b64"})


class Atomic(NamedTuple):
    """What is written: from the old value and the operands; ``ufunc`` does the same for many threads in order."""

    update: Callable[..., Any]
    types: frozenset[str]
    operands: int = 1
    ufunc: np.ufunc | None = None


def _wrapping_increment(old: Array, limit: Array) -> Array:
    return np.where(old >= limit, 0, old + 1).astype(old.dtype)


def _wrapping_decrement(old: Array, limit: Array) -> Array:
    return np.where((old == 0) | (old > limit), limit, old - 1).astype(old.dtype)


_BITS_OF_SUM = bfloat.on_bits(OPERATIONS["add"].odd)
ATOMICS: dict[str, Atomic] = {
    "add": Atomic(np.add, _INTEGERS | {"f32", "f64"}, ufunc=np.add),
    "add.noftz": Atomic(np.add, frozenset({"f16"})),
    "add.noftz.f16x2": Atomic(floating.on_halves(np.add), frozenset({"f16x2"})),
    "add.noftz.bf16": Atomic(_BITS_OF_SUM, frozenset({"bf16", "bf16x2"})),
    "min": Atomic(floating.minimum, _INTEGERS, ufunc=np.minimum),
    "max": Atomic(floating.maximum, _INTEGERS, ufunc=np.maximum),
    "and": Atomic(np.bitwise_and, _WORDS, ufunc=np.bitwise_and),
    "or": Atomic(np.bitwise_or, _WORDS, ufunc=np.bitwise_or),
    "xor": Atomic(np.bitwise_xor, _WORDS, ufunc=np.bitwise_xor),
    "exch": Atomic(lambda old, new: new, _WORDS),
    "cas": Atomic(lambda old, compare, new: np.where(old == compare, new, old), _WORDS | {"b16"}, 2),
    "inc": Atomic(_wrapping_increment, frozenset({"u32"})),
    "dec": Atomic(_wrapping_decrement, frozenset({"u32"})),
}


def find(names: list[str], kind: Type) -> Atomic | None:
    """The operation of an atomic's modifiers and type; None if there is none such."""
    key = ".".join(names)
    found = ATOMICS.get(f"{key}.{kind.name.removesuffix('x2') if kind.kind == 'e' else kind.name}", ATOMICS.get(key))
    return found if found is not None and kind.name in found.types else None


def apply(operation: Atomic, units: Array, index: Array, values: list[Array], *, returns: bool) -> Array:
    """Update ``units[index]`` thread by thread; the old values, or zeros if they are not wanted.

    Threads with different addresses do not meet, so that the first thread of every address goes at once, then the
    second, and so on.
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
    for turn in range(int(length.max(initial=0))):
        now = order[first[length > turn] + turn]
        old[now] = units[index[now]]
        units[index[now]] = operation.update(old[now], *(value[now] for value in values))
    return old


class Turns(NamedTuple):
    """How the chip counts an atomic: measured on an H200 for one warp, 160 kernels (driver 580, 2026-11).

    Attributes
    ----------
    sectors, wavefronts : callable
        Patterns of `transactions`, for global and for shared memory.
    each : int
        Wavefronts for each turn in shared memory.
    free : int
        Wavefronts where no lane meets another.
    loops : bool
        The chip tries until no other warp has been there meanwhile.
    aggregates : bool
        Lanes on an address that the compiler sees to be one are summed before.
    """

    sectors: Pattern
    wavefronts: Pattern
    each: int = 1
    free: int = 1
    loops: bool = False
    aggregates: bool = False


def turns(name: str, kind: Type, *, returns: bool, ones: bool) -> Turns:
    """How the chip counts an operation on a type, whose result is used or not, and which adds the literal 1 or not.

    PTX does not say which instruction ptxas takes: this is what it took for the kernels measured.
    """
    if kind.size == 8:
        return Turns(lane_sectors, wide_turns, free=4, loops=True)
    if kind.name not in ("u32", "s32", "b32"):
        return Turns(lane_sectors, lanes_of_bank, 2, 2, loops=True)
    aggregates = name == "add" or (name in ("min", "max") and not returns)
    if name == "add" and ones and not returns:
        return Turns(lane_sectors, wavefronts, aggregates=True)
    tries = 2 if name == "cas" else 1
    return Turns(lane_sectors, lanes_of_bank, tries, tries, aggregates=aggregates)
