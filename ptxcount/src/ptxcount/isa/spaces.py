"""State spaces: which one an instruction names, and in which one a generic address lies (PTX ISA, "State Spaces")."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..lanes.symbolic_values import Value, dense
from ..lanes.warps import Array, spread
from ..machine.chunk import Chunk
from ..ptx.program import GIVEN, Instruction, Type
from .operands import Reader, split_name, unsupported

SPACES = {
    "global": "global", "const": "constant", "shared": "shared", "shared::cta": "shared", "shared::cluster": "shared",
    "local": "local", "param": "parameter", GIVEN: "local",
}  # fmt: skip
#: The windows of the state spaces in generic addresses, by the bits from here on; global memory is the first.
WINDOW_BITS = 56
WINDOWS = ("global", "shared", "local", "constant", "parameter")
#: Modifiers that say how to cache or order an access, which changes neither its result nor its transactions here.
HINTS = {
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "volatile", "weak", "relaxed", "acquire", "release", "acq_rel",
    "sc", "cta", "cluster", "gpu", "sys", "mmio",
    "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate",
    "L2::evict_normal", "L2::evict_first", "L2::evict_last", "L2::64B", "L2::128B", "L2::256B",
}  # fmt: skip
#: The sectors that a load fetches where it misses the L2 cache, by its hint, whatever the limit of the context says:
#: measured on an H100 and an H200 (driver 580.159.04, 2026-11).
#: ``L2::256B`` brings 7.76 of 8 sectors there: it is no promise of more than 4.
FETCHED = {"L2::128B": 4, "L2::256B": 4}
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}


def window(space: str) -> int:
    """What a generic address has more than one in a state space, by its name in PTX."""
    return WINDOWS.index(SPACES[space]) << WINDOW_BITS


def space_of(instruction: Instruction) -> str | None:
    """The state space that an instruction names; None for generic addresses."""
    return next((SPACES[name] for name in instruction.modifiers if name in SPACES), None)


def decode(instruction: Instruction, *more: str, named: bool = False) -> tuple[str | None, int, Type, list[str]]:
    """State space, elements, type, and what else the modifiers say: nothing but ``more``, unless that is ``named``."""
    names, types = split_name(instruction)
    spaces = [SPACES[name] for name in names if name in SPACES]
    vectors = [_VECTORS[name] for name in names if name in _VECTORS]
    rest = [name for name in names if not (name in HINTS or name in SPACES or name in _VECTORS or name in more)]
    wrong = len(types) != 1 or len(spaces) > 1 or len(vectors) > 1 or types[0].kind in "p?"
    if wrong or (rest and not named):
        raise unsupported(instruction)
    count = vectors[0] if vectors else 1
    if count * types[0].size > 32:
        raise unsupported(instruction, "more than 32 bytes a thread")
    space = spaces[0] if spaces else None
    if space in (None, "shared"):
        instruction.units.add(min(types[0].size, 8))
    return space, count, types[0], rest


def fetch_options(instruction: Instruction) -> dict[str, int]:
    """Return what a load says of its fetches from DRAM, as `ArrayMemory.load` takes it."""
    sectors = [FETCHED[name] for name in instruction.modifiers if name in FETCHED]
    return {"fetch": sectors[0]} if sectors else {}


def resolver(space: str | None, read: Reader) -> Callable[[Chunk], tuple[str, Value]]:
    """A function that gives the state space and the address within it, if the active threads are in one."""
    if space is not None:
        return lambda chunk: (space, read(chunk))

    def generic(chunk: Chunk) -> tuple[str, Value]:
        where, place, mine = next(_windows(chunk, read(chunk)))
        if (mine != chunk.active).any():
            raise unsupported(chunk.instruction, "addresses in more than one state space at once")
        return where, place

    return generic


def in_shared(instruction: Instruction, read: Reader) -> Reader:
    """A function that gives an address within shared memory; `UnsupportedInstructionError` for any other."""
    resolve = resolver(space_of(instruction), read)

    def place(chunk: Chunk) -> Value:
        where, found = resolve(chunk)
        if where != "shared":
            raise unsupported(instruction, f"in {where} memory")
        return found

    return place


def _windows(chunk: Chunk, value: Value) -> Iterator[tuple[str, Value, Array]]:
    """The state spaces of generic addresses, the addresses there, and the active threads that have one."""
    whole, on = spread(dense(value).view(np.int64), chunk.shape), spread(chunk.active, chunk.shape)
    windows = whole >> WINDOW_BITS
    known = np.where((windows >= 0) & (windows < len(WINDOWS)), windows, 0)
    first = int(known[on][0])
    for window in [first] if (known[on] == first).all() else np.unique(known[on]).tolist():
        mine = chunk.active if (known[on] == window).all() else on & (known == window)
        yield WINDOWS[window], whole - (window << WINDOW_BITS) if window else value, mine


def in_each_space(
    space: str | None, read: Reader, access: Callable[[Chunk, str, Value], list[Array]]
) -> Callable[[Chunk], list[Array]]:
    """An access to a state space, or to each that the active threads have generic addresses of."""
    if space is not None:
        return lambda chunk: access(chunk, space, read(chunk))

    def generic(chunk: Chunk) -> list[Array]:
        active, results = chunk.active, None
        for where, place, mine in [*_windows(chunk, read(chunk))]:
            chunk.active = mine
            found = access(chunk, where, place)
            results = [np.where(mine, new, old) for new, old in zip(found, results, strict=True)] if results else found
        chunk.active = active
        return results or []

    return generic
