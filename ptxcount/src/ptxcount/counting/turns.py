"""Turns of atomics in shared memory, as the chip takes them."""

from __future__ import annotations

from typing import NamedTuple

from ..ptx.program import Type


class Turns(NamedTuple):
    """How the chip counts an atomic: measured on an H200 for one warp, 160 kernels (driver 580, 2026-11)."""

    #: Which number of `transactions.shared_atomics` its turns in shared memory are.
    rule: int
    #: Wavefronts for each turn in shared memory.
    each: int = 1
    #: Wavefronts where no lane meets another.
    free: int = 1
    #: The chip tries until no other warp has been there meanwhile.
    loops: bool = False
    #: Lanes on an address that the compiler sees to be one are summed before.
    aggregates: bool = False


_BANKS, _WIDE, _WORDS_OF_LOAD = 1, 2, 3


def turns(name: str, kind: Type, *, returns: bool, ones: bool) -> Turns:
    """How the chip counts an operation on a type, whose result is used or not, and which adds the literal 1 or not.

    PTX does not say which instruction ptxas takes: this is what it took for the kernels measured.
    """
    if kind.size == 8:
        return Turns(_WIDE, free=4, loops=True)
    if kind.name not in ("u32", "s32", "b32"):
        return Turns(_BANKS, 2, 2, loops=True)
    aggregates = name == "add" or (name in ("min", "max") and not returns)
    if name == "add" and ones and not returns:
        return Turns(_WORDS_OF_LOAD, aggregates=True)
    tries = 2 if name == "cas" else 1
    return Turns(_BANKS, tries, tries, aggregates=aggregates)
