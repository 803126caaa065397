"""Turns of atomics in shared memory, as the chip takes them."""

from __future__ import annotations

from typing import NamedTuple

from ..ptx.program import Type


class AtomicTurns(NamedTuple):
    """Turns that the chip takes for an atomic: measured on an H200 for one warp, 160 kernels (driver 580, 2026-11)."""

    #: Index of its turns in shared memory among the results of `transactions.count_shared_atomics`.
    rule: int
    #: Wavefronts for each turn in shared memory.
    per_turn: int = 1
    #: Wavefronts of a request in which no two lanes conflict.
    free: int = 1
    #: The chip tries until no other warp has been there meanwhile.
    loops: bool = False
    #: Lanes on an address that the compiler sees to be one are summed before.
    aggregates: bool = False


_BANKS, _WIDE, _WORDS_OF_LOAD = 1, 2, 3


def find_turns(name: str, kind: Type, *, returns: bool, adds_one: bool) -> AtomicTurns:
    """Find the turns of an operation on a type; ``adds_one``: it adds the literal 1.

    PTX does not say which instruction ptxas takes: this is what it took for the kernels measured.
    """
    if kind.size == 8:
        return AtomicTurns(_WIDE, free=4, loops=True)
    if kind.name not in ("u32", "s32", "b32"):
        return AtomicTurns(_BANKS, 2, 2, loops=True)
    aggregates = name == "add" or (name in ("min", "max") and not returns)
    if name == "add" and adds_one and not returns:
        return AtomicTurns(_WORDS_OF_LOAD, aggregates=True)
    tries = 2 if name == "cas" else 1
    return AtomicTurns(_BANKS, tries, tries, aggregates=aggregates)
