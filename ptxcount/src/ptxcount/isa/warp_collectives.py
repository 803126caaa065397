"""Warp collectives: shuffles, votes, matches, reductions, warp barriers (PTX ISA, ``shfl.sync``, ``vote``)."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..lanes.warps import LANES, Array, by_thread, by_warp, find_active_lanes, lanes_by_warp, spread, warp_count
from ..machine.chunk import Chunk
from ..machine.warp_clocks import FULL
from .opcode_registry import op

_LANE = np.arange(LANES)
#: ``shfl`` modes: functions of ``b``, ``minLane`` and ``maxLane`` of the PTX ISA. They return the source lane ``j`` and
#: the predicate ``p``, true for a lane in the segment.
_MODES: dict[str, Callable[[Array, Array, Array], tuple[Array, Array]]] = {
    "up": lambda b, low, high: (_LANE - b, _LANE - b >= high),
    "down": lambda b, low, high: (_LANE + b, _LANE + b <= high),
    "bfly": lambda b, low, high: (_LANE ^ b, (_LANE ^ b) <= high),
    "idx": lambda b, low, high: (low | b, (low | b) <= high),
}


def reshape_to_lanes(chunk: Chunk, values: Array) -> Array:
    """Reshape a register's values, (rows, 1 or threads), to (rows, warps, 32)."""
    return by_warp(spread(values, (values.shape[0], chunk.shape[1])), chunk.shape[1])


def reshape_to_threads(chunk: Chunk, values: Array) -> Array:
    """Reshape values of lanes, (rows, 1 or warps, 1 or 32), to those of a register, (rows, threads)."""
    return by_thread(spread(values, (values.shape[0], warp_count(chunk.shape[1]), LANES)), chunk.shape[1])


def _find_readable(chunk: Chunk, lane: Array, active: Array) -> Array:
    """Return the mask of lanes whose source ``lane`` is active, (rows, warps, 32); add a finding for active others.

    CUDA does not define the value of an inactive lane. It is 0 on an H200, where a lane is inactive because it has
    exited, waits elsewhere, or is beyond the block.
    """
    is_readable = np.take_along_axis(active, lane, axis=2)
    reads_inactive = active & ~is_readable
    if reads_inactive.any():
        _, warp, reader_lane = (int(indices[0]) for indices in np.nonzero(reads_inactive))
        source_lane = int(lane[reads_inactive][0])
        message = (
            f"lane {reader_lane} of warp {warp} reads from lane {source_lane}, which is inactive: 0 here, undefined"
        )
        message += f" in CUDA; let lane {source_lane} execute this instruction, too"
        chunk.add_finding("inactive-lane", message, int(reads_inactive.sum()) * (chunk.shape[0] // len(reads_inactive)))
    return is_readable


def _check_own_lane(chunk: Chunk, masks: Array) -> None:
    """Add a finding for active threads whose ``membermask`` lacks their own lane, which CUDA does not define."""
    if masks.size == 1 and int(masks.flat[0]) == FULL:
        return
    lane = (np.arange(chunk.shape[1])[None, :] % LANES).astype(np.uint32)
    missing = np.asarray(chunk.active & (masks >> lane & 1 == 0))
    if missing.any():
        row, thread = (int(indices[0]) for indices in np.nonzero(missing))
        mask = int(spread(masks, (len(masks), chunk.shape[1]))[row % len(masks), thread])
        name = f"lane {thread % LANES} of warp {thread // LANES}"
        text = f"{name} is not in its mask {mask:#010x}: undefined in CUDA; set bit {thread % LANES} of the mask"
        chunk.add_finding("mask-without-lane", text, int(missing.sum()) * (chunk.shape[0] // len(missing)))


def _pack_ballot(votes: Array) -> Array:
    """Pack the votes of 32 lanes in a word per warp, (rows, warps, 1)."""
    return np.asarray((votes * (1 << _LANE)).sum(axis=2, keepdims=True)).astype(np.uint32)


def compute_by_mask(
    chunk: Chunk, operand: Array, masks: Array, compute: Callable[[Array, Array], list[Array]]
) -> list[Array]:
    """Call ``compute`` for the lanes of each ``membermask``; return the results as a register's values.

    ``compute`` takes the values of lanes, and the mask of participating lanes, both (blocks, warps, 32). It returns
    arrays of (blocks, warps, 1 or 32).
    """
    _check_own_lane(chunk, masks)
    values = reshape_to_lanes(chunk, spread(operand, chunk.shape))
    active = lanes_by_warp(spread(chunk.active, chunk.shape), chunk.shape[1])
    if masks.size == 1:
        return [reshape_to_threads(chunk, result) for result in compute(values, active)]
    lane_masks, results = reshape_to_lanes(chunk, spread(masks, chunk.shape)), None
    for mask in np.unique(lane_masks[active]):
        members = active & (lane_masks == mask)
        computed = compute(values, members)
        if results is not None:
            computed = [np.where(members, new, old) for new, old in zip(computed, results, strict=True)]
        results = computed
    return [reshape_to_threads(chunk, result) for result in results or compute(values, active)]


@op("shfl.sync.(up|down|bfly|idx).b32", "b32|pred? = b32 u32 u32 u32")
def _shuffle(mode: str, chunk: Chunk, *operands: Array) -> Iterable[Array]:
    """Follow the pseudo-code of the PTX ISA; the operands are ``a``, ``b``, ``c`` and the mask."""
    *sources, masks = operands
    _check_own_lane(chunk, masks)
    a, b, c = (reshape_to_lanes(chunk, source) if source.size > 1 else source[:, :, None] for source in sources)
    b, bound, segment = (bits.astype(np.int64) for bits in (b & 31, c & 31, (c >> 8) & 31))
    low, high = _LANE & segment, (_LANE & segment) | (bound & ~segment)
    lane, inside = _MODES[mode](b & ~segment if mode == "idx" else b, low, high)
    lane = np.where(inside, lane, _LANE) & 31
    active = find_active_lanes(chunk.active, chunk.shape).lanes
    if a.shape[2] == 1:  # all lanes of a warp have the same value
        result = a
    elif lane.size == LANES:  # all warps read from the same lanes
        result = a[:, :, lane.ravel()]
    else:
        shape = np.broadcast_shapes(a.shape, lane.shape)
        result = np.take_along_axis(spread(a, shape), spread(lane, shape), axis=2)
    if active is not None:
        shape = np.broadcast_shapes(result.shape, lane.shape, active.shape)
        result = np.where(_find_readable(chunk, spread(lane, shape), spread(active, shape)), result, 0)
    return (reshape_to_threads(chunk, lanes) for lanes in (result, inside))


#: ``vote`` modes: functions of the votes (false for inactive lanes) and the mask of active lanes, both (rows, warps,
#: 32), that return a result per warp.
_VOTES: dict[str, Callable[[Array, Array], Array]] = {
    "all": lambda votes, active: np.asarray((votes | ~active).all(axis=2, keepdims=True)),
    "any": lambda votes, active: np.asarray(votes.any(axis=2, keepdims=True)),
    "uni": lambda votes, active: (votes == active).all(axis=2, keepdims=True) | ~votes.any(axis=2, keepdims=True),
    "ballot": lambda votes, active: _pack_ballot(votes),
}


@op("vote.(?:sync.)?(all|any|uni)(?:.sync)?.pred", "pred = pred u32")
@op("vote.(?:sync.)?(ballot)(?:.sync)?.b32", "b32 = pred u32")
def _vote(mode: str, chunk: Chunk, predicate: Array, masks: Array) -> list[Array]:
    return compute_by_mask(chunk, predicate, masks, lambda votes, active: [_VOTES[mode](votes & active, active)])


#: Reductions over the lanes of a warp, and their neutral values by the limits of the type, for inactive lanes.
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
def _reduce(name: str, kind: str, chunk: Chunk, operand: Array, masks: Array) -> list[Array]:
    reduce, neutral = _REDUCTIONS[name]
    neutral_value = operand.dtype.type(neutral(np.iinfo(operand.dtype)))

    def reduce_lanes(values: Array, active: Array) -> list[Array]:
        return [reduce.reduce(np.where(active, values, neutral_value), axis=2, keepdims=True).astype(operand.dtype)]

    return compute_by_mask(chunk, operand, masks, reduce_lanes)


@op("match.(any).sync.(b32|b64)", "b32 = $2 u32")
@op("match.(all).sync.(b32|b64)", "b32|pred? = $2 u32")
def _match(mode: str, kind: str, chunk: Chunk, operand: Array, masks: Array) -> list[Array]:
    def match_lanes(values: Array, active: Array) -> list[Array]:
        """Return the ballot of the lanes with an equal value (``all``: 0 if any differs), and if all are equal."""
        is_equal = (values[..., :, None] == values[..., None, :]) & active[..., None, :]
        all_equal = (is_equal | ~active[..., None, :]).all(axis=3)
        if mode == "all":
            result = np.where(all_equal, _pack_ballot(active), 0)
        else:
            result = (is_equal * (1 << _LANE)).sum(axis=3)
        return [result.astype(np.uint32), all_equal]

    return compute_by_mask(chunk, operand, masks, match_lanes)


@op("elect.sync", "b32|pred = u32")
def _elect(chunk: Chunk, masks: Array) -> list[Array]:
    """Elect the lowest participating lane, as the GPU does."""

    def elect_lane(values: Array, active: Array) -> list[Array]:
        first = active.argmax(axis=2)[..., None].astype(np.uint32)
        return [first, first == _LANE]

    return compute_by_mask(chunk, np.zeros((1, 1), np.uint32), masks, elect_lane)


@op("elect.wait", "= u32")
def _wait(chunk: Chunk, masks: Array) -> list[Array]:
    """Do nothing; the scheduler makes threads wait for the lanes of their masks."""
    return []


@op("activemask.b32", "b32 =")
def _active_mask(chunk: Chunk) -> list[Array]:
    active = lanes_by_warp(spread(chunk.active, chunk.shape), chunk.shape[1])
    return [reshape_to_threads(chunk, _pack_ballot(active))]


@op("bar.warp.sync", "= u32")
def _check_barrier(chunk: Chunk, masks: Array) -> list[Array]:
    """Check only the mask; the scheduler makes threads wait."""
    _check_own_lane(chunk, masks)
    return []
