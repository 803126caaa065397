"""Instructions between the lanes of a warp: shuffles, votes, warp barriers (PTX ISA, ``shfl.sync``, ``vote``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..lanes.warps import LANES, Array, by_thread, by_warp, find_occupancy, lanes_by_warp, spread, warp_count
from ..machine.chunk import Chunk
from ..machine.warp_clocks import FULL, find_missing_lanes
from .registry import op

_LANE = np.arange(LANES)

#: The lane that each mode of ``shfl`` reads from, and whether it lies within the segment.
_MODES: dict[str, Callable[[Array, Array, Array], tuple[Array, Array]]] = {
    "up": lambda b, low, high: (_LANE - b, _LANE - b >= high),
    "down": lambda b, low, high: (_LANE + b, _LANE + b <= high),
    "bfly": lambda b, low, high: (_LANE ^ b, (_LANE ^ b) <= high),
    "idx": lambda b, low, high: (low | b, (low | b) <= high),
}


def lanes_of(chunk: Chunk, values: Array) -> Array:
    """What a register holds, as (rows, warps, 32)."""
    return by_warp(spread(values, (values.shape[0], chunk.shape[1])), chunk.shape[1])


def threads_of(chunk: Chunk, values: Array) -> Array:
    """(rows, warps, 1 or 32) as what a register holds."""
    return by_thread(spread(values, (values.shape[0], warp_count(chunk.shape[1]), LANES)), chunk.shape[1])


def _heard(chunk: Chunk, lane: Array, active: Array) -> Array:
    """Whether the lanes that others read from take part; CUDA calls the value of one that does not undefined.

    On an H200 it is 0, whether the lane has left, waits elsewhere or is none of the block's (2026-11, driver 580).
    """
    heard = np.take_along_axis(active, lane, axis=2)
    deaf = active & ~heard
    if deaf.any():
        _, warp, reading = (int(axis[0]) for axis in np.nonzero(deaf))
        message = (
            f"lane {reading} of warp {warp} reads from lane {int(lane[deaf][0])}, which does not take part: 0 on the "
            "chip, undefined in CUDA"
        )
        chunk.add_finding("inactive-lane", message, int(deaf.sum()) * (chunk.shape[0] // len(deaf)))
    return heard


def _participants(chunk: Chunk, values: Array) -> tuple[Array, Array]:
    """What lanes hold, and which are active, both as (blocks, warps, 32)."""
    active = lanes_by_warp(spread(chunk.active, chunk.shape), chunk.shape[1])
    return lanes_of(chunk, spread(values, chunk.shape)), active


def _expect_lane(chunk: Chunk, masks: Array) -> None:
    """Note threads that are not in the mask that they give: undefined in CUDA."""
    if masks.size == 1 and int(masks.flat[0]) == FULL:
        return
    missing = find_missing_lanes(masks, chunk.active, chunk.shape[1])
    if missing.any():
        row, thread = (int(axis[0]) for axis in np.nonzero(missing))
        mask = int(spread(masks, (len(masks), chunk.shape[1]))[row % len(masks), thread])
        text = f"lane {thread % LANES} of warp {thread // LANES} is not in its mask {mask:#010x}: undefined in CUDA"
        chunk.add_finding("mask-without-lane", text, int(missing.sum()) * (chunk.shape[0] // len(missing)))


def _pack(on: Array) -> Array:
    return np.asarray((on * (1 << _LANE)).sum(axis=2, keepdims=True)).astype(np.uint32)


def _grouped(chunk: Chunk, given: Array, masks: Array, compute: Callable[[Array, Array], list[Array]]) -> list[Array]:
    """What lanes of one ``membermask`` compute together, for each mask that the lanes of a warp give.

    ``compute`` takes what lanes hold and which of them take part, (blocks, warps, 32).
    """
    _expect_lane(chunk, masks)
    values, active = _participants(chunk, given)
    if masks.size == 1:
        return [threads_of(chunk, each) for each in compute(values, active)]
    rows, found = lanes_of(chunk, spread(masks, chunk.shape)), None
    for mask in np.unique(rows[active]):
        mine = active & (rows == mask)
        part = compute(values, mine)
        found = part if found is None else [np.where(mine, new, old) for new, old in zip(part, found, strict=True)]
    return [threads_of(chunk, each) for each in found or compute(values, active)]


@op("shfl.sync.(up|down|bfly|idx).b32", "b32|pred? = b32 u32 u32 u32")
def _shuffled(mode: str, chunk: Chunk, *operands: Array) -> Iterable[Array]:
    """Formulas of the PTX ISA's pseudo-code."""
    _expect_lane(chunk, operands[3])
    a, b, c = (lanes_of(chunk, each) if each.size > 1 else each[:, :, None] for each in operands[:3])
    b, bound, segment = (x.astype(np.int64) for x in (b & 31, c & 31, (c >> 8) & 31))
    low, high = _LANE & segment, (_LANE & segment) | (bound & ~segment)
    lane, inside = _MODES[mode](b & ~segment if mode == "idx" else b, low, high)
    lane = np.where(inside, lane, _LANE) & 31
    active = find_occupancy(chunk.active, chunk.shape).lanes
    if a.shape[2] == 1:
        result = a
    elif lane.size == LANES:
        result = a[:, :, lane.ravel()]
    else:
        shape = np.broadcast_shapes(a.shape, lane.shape)
        result = np.take_along_axis(spread(a, shape), spread(lane, shape), axis=2)
    if active is not None:
        shape = np.broadcast_shapes(result.shape, lane.shape, active.shape)
        result = np.where(_heard(chunk, spread(lane, shape), spread(active, shape)), result, 0)
    return (threads_of(chunk, each) for each in (result, inside))


#: The modes of ``vote``: from the predicate where it is true, and the active lanes.
_VOTES: dict[str, Callable[[Array, Array], Array]] = {
    "all": lambda on, active: np.asarray((on | ~active).all(axis=2, keepdims=True)),
    "any": lambda on, active: np.asarray(on.any(axis=2, keepdims=True)),
    "uni": lambda on, active: (on == active).all(axis=2, keepdims=True) | ~on.any(axis=2, keepdims=True),
    "ballot": lambda on, active: _pack(on),
}


@op("vote.(?:sync.)?(all|any|uni)(?:.sync)?.pred", "pred = pred u32")
@op("vote.(?:sync.)?(ballot)(?:.sync)?.b32", "b32 = pred u32")
def _voted(mode: str, chunk: Chunk, predicate: Array, masks: Array) -> list[Array]:
    return _grouped(chunk, predicate, masks, lambda on, active: [_VOTES[mode](on & active, active)])


#: How the lanes of a warp become one, and what idle lanes stand for.
_REDUCTIONS: dict[str, tuple[np.ufunc, Callable[[Any], int]]] = {
    "add": (np.add, lambda limits: 0),
    "min": (np.minimum, lambda limits: int(limits.max)),
    "max": (np.maximum, lambda limits: int(limits.min)),
    "and": (np.bitwise_and, lambda limits: int(limits.max)),
    "or": (np.bitwise_or, lambda limits: 0),
    "xor": (np.bitwise_xor, lambda limits: 0),
}


@op("redux.sync.(add|min|max).(u32|s32)", "$2 = $2 u32")
@op("redux.sync.(and|or|xor).(b32)", "$2 = $2 u32")
def _reduced(name: str, kind: str, chunk: Chunk, given: Array, masks: Array) -> list[Array]:
    reduce, neutral = _REDUCTIONS[name]
    idle = given.dtype.type(neutral(np.iinfo(given.dtype)))

    def one(values: Array, active: Array) -> list[Array]:
        return [reduce.reduce(np.where(active, values, idle), axis=2, keepdims=True).astype(given.dtype)]

    return _grouped(chunk, given, masks, one)


@op("match.(any).sync.(b32|b64)", "b32 = $2 u32")
@op("match.(all).sync.(b32|b64)", "b32|pred? = $2 u32")
def _matched(mode: str, kind: str, chunk: Chunk, given: Array, masks: Array) -> list[Array]:
    def one(values: Array, active: Array) -> list[Array]:
        alike = (values[..., :, None] == values[..., None, :]) & active[..., None, :]
        agreed = (alike | ~active[..., None, :]).all(axis=3)
        result = np.where(agreed, _pack(active), 0) if mode == "all" else (alike * (1 << _LANE)).sum(axis=3)
        return [result.astype(np.uint32), agreed]

    return _grouped(chunk, given, masks, one)


@op("elect.sync", "b32|pred = u32")
def _elected(chunk: Chunk, masks: Array) -> list[Array]:
    """The lowest of the lanes that take part, as on the chip."""

    def one(values: Array, active: Array) -> list[Array]:
        first = active.argmax(axis=2)[..., None].astype(np.uint32)
        return [first, first == _LANE]

    return _grouped(chunk, np.zeros((1, 1), np.uint32), masks, one)


@op("activemask.b32", "b32 =")
def _active_mask(chunk: Chunk) -> list[Array]:
    return [threads_of(chunk, _pack(_participants(chunk, np.ones((1, 1), bool))[1]))]


@op("bar.warp.sync", "= u32")
def _check_barrier(chunk: Chunk, masks: Array) -> list[Array]:
    """Check the mask; the waiting is the scheduler's."""
    _expect_lane(chunk, masks)
    return []
