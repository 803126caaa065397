"""Instructions between the lanes of a warp: shuffles, votes, warp barriers (PTX ISA, ``shfl.sync``, ``vote``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .chunk import Chunk
from .errors import TrapError
from .operands import Binder, Reader, Step, expect_count, items, reader, split_name, step_of, unsupported
from .program import TYPES, Instruction
from .warps import LANES, by_thread, by_warp, lanes_by_warp, occupancy, spread, warp_count

Array = npt.NDArray[Any]
_U32, _B32, _PRED = TYPES["u32"], TYPES["b32"], TYPES["pred"]
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


def _heard(chunk: Chunk, instruction: Instruction, lane: Array, active: Array) -> Array:
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
        chunk.context.find("inactive-lane", instruction.source, message, int(deaf.sum()))
    return heard


def _participants(chunk: Chunk, values: Array) -> tuple[Array, Array]:
    """What lanes hold, and which are active, both as (blocks, warps, 32)."""
    active = lanes_by_warp(spread(chunk.active, chunk.shape), chunk.shape[1])
    return lanes_of(chunk, spread(values, chunk.shape)), active


def _pack(on: Array) -> Array:
    return np.asarray((on * (1 << _LANE)).sum(axis=2, keepdims=True)).astype(np.uint32)


def threads_of(chunk: Chunk, values: Array) -> Array:
    """(rows, warps, 1 or 32) as what a register holds."""
    return by_thread(spread(values, (values.shape[0], warp_count(chunk.shape[1]), LANES)), chunk.shape[1])


def _grouped(chunk: Chunk, given: Array, masks: Array, compute: Callable[[Array, Array], list[Array]]) -> list[Array]:
    """What lanes of one ``membermask`` compute together, for each mask that the lanes of a warp give.

    ``compute`` takes what lanes hold and which of them take part, (blocks, warps, 32).
    """
    values, active = _participants(chunk, given)
    if masks.size == 1:
        return [threads_of(chunk, each) for each in compute(values, active)]
    rows, found = lanes_of(chunk, spread(masks, chunk.shape)), None
    for mask in np.unique(rows[active]):
        mine = active & (rows == mask)
        part = compute(values, mine)
        found = part if found is None else [np.where(mine, new, old) for new, old in zip(part, found, strict=True)]
    return [threads_of(chunk, each) for each in found or compute(values, active)]


def _bind_shuffle(instruction: Instruction) -> Step:
    """``shfl.sync.mode.b32 d{|p}, a, b, c, membermask``: formulas of the PTX ISA's pseudo-code."""
    names, types = split_name(instruction)
    mode = _MODES.get(names[-1]) if names[:-1] == ["sync"] else None
    expect_count(instruction, 5)
    places, (source, *rest) = items(instruction.operands[0]), instruction.operands[1:]
    if mode is None or types != [_B32] or len(places) > 2:
        raise unsupported(instruction)

    def shuffle(chunk: Chunk, *operands: Array) -> list[Array]:
        a, b, c = (lanes_of(chunk, each) if each.size > 1 else each[:, :, None] for each in operands[:3])
        b, bound, segment = (x.astype(np.int64) for x in (b & 31, c & 31, (c >> 8) & 31))
        low, high = _LANE & segment, (_LANE & segment) | (bound & ~segment)
        lane, inside = mode(b & ~segment if mode is _MODES["idx"] else b, low, high)
        lane = np.where(inside, lane, _LANE) & 31
        active = occupancy(chunk.active, chunk.shape).lanes
        if a.shape[2] == 1:
            result = a
        elif lane.size == LANES:
            result = a[:, :, lane.ravel()]
        else:
            shape = np.broadcast_shapes(a.shape, lane.shape)
            result = np.take_along_axis(spread(a, shape), spread(lane, shape), axis=2)
        if active is not None:
            shape = np.broadcast_shapes(result.shape, lane.shape, active.shape)
            result = np.where(_heard(chunk, instruction, spread(lane, shape), spread(active, shape)), result, 0)
        return [threads_of(chunk, each) for each, _ in zip((result, inside), places, strict=False)]

    writes = list(zip(places, (_B32, _PRED), strict=False))
    return step_of(instruction, writes, [(source, _B32), *((each, _U32) for each in rest)], shuffle)


#: The modes of ``vote``: from the predicate where it is true, and the active lanes.
_VOTES: dict[str, Callable[[Array, Array], Array]] = {
    "all": lambda on, active: np.asarray((on | ~active).all(axis=2, keepdims=True)),
    "any": lambda on, active: np.asarray(on.any(axis=2, keepdims=True)),
    "uni": lambda on, active: (on == active).all(axis=2, keepdims=True) | ~on.any(axis=2, keepdims=True),
    "ballot": lambda on, active: _pack(on),
}


def _bind_vote(instruction: Instruction) -> Step:
    """``vote.sync.{all,any,uni}.pred p, a, membermask`` and ``vote.sync.ballot.b32 d, a, membermask``."""
    names, types = split_name(instruction)
    mode = next((name for name in names if name in _VOTES), "")
    vote = _VOTES[mode] if sorted(names) == sorted([mode, "sync"]) else None
    if vote is None or types != [_B32 if mode == "ballot" else _PRED]:
        raise unsupported(instruction)
    expect_count(instruction, 3)
    target, value, mask = instruction.operands

    def voted(chunk: Chunk, predicate: Array, masks: Array) -> list[Array]:
        return _grouped(chunk, predicate, masks, lambda on, active: [vote(on & active, active)])

    return step_of(instruction, [(target, types[0])], [(value, _PRED), (mask, _U32)], voted)


#: How the lanes of a warp become one, and what idle lanes stand for.
_REDUCTIONS: dict[str, tuple[np.ufunc, Callable[[Any], int], tuple[str, ...]]] = {
    "add": (np.add, lambda limits: 0, ("u32", "s32")),
    "min": (np.minimum, lambda limits: int(limits.max), ("u32", "s32")),
    "max": (np.maximum, lambda limits: int(limits.min), ("u32", "s32")),
    "and": (np.bitwise_and, lambda limits: int(limits.max), ("b32",)),
    "or": (np.bitwise_or, lambda limits: 0, ("b32",)),
    "xor": (np.bitwise_xor, lambda limits: 0, ("b32",)),
}


def _bind_reduction(instruction: Instruction) -> Step:
    """``redux.sync.op.type d, a, membermask``."""
    names, types = split_name(instruction)
    row = _REDUCTIONS.get(names[-1]) if names[:-1] == ["sync"] else None
    if row is None or len(types) != 1 or types[0].name not in row[2]:
        raise unsupported(instruction)
    expect_count(instruction, 3)
    (reduce, neutral, _), kind = row, types[0]
    idle = kind.dtype.type(neutral(np.iinfo(kind.dtype)))
    target, value, mask = instruction.operands

    def reduced(chunk: Chunk, given: Array, masks: Array) -> list[Array]:
        def one(values: Array, active: Array) -> list[Array]:
            return [reduce.reduce(np.where(active, values, idle), axis=2, keepdims=True).astype(kind.dtype)]

        return _grouped(chunk, given, masks, one)

    return step_of(instruction, [(target, kind)], [(value, kind), (mask, _U32)], reduced)


def _bind_match(instruction: Instruction) -> Step:
    """``match.any.sync.type d, a, membermask``, and ``match.all.sync.type d{|p}, a, membermask``."""
    names, types = split_name(instruction)
    every = names == ["all", "sync"]
    if not (every or names == ["any", "sync"]) or len(types) != 1 or types[0].name not in ("b32", "b64"):
        raise unsupported(instruction)
    expect_count(instruction, 3)
    first, value, mask = instruction.operands
    places = items(first)[: 1 + every]

    def one(values: Array, active: Array) -> list[Array]:
        alike = (values[..., :, None] == values[..., None, :]) & active[..., None, :]
        agreed = (alike | ~active[..., None, :]).all(axis=3)
        result = np.where(agreed, _pack(active), 0) if every else (alike * (1 << _LANE)).sum(axis=3)
        return [result.astype(np.uint32), agreed][: len(places)]

    def matched(chunk: Chunk, given: Array, masks: Array) -> list[Array]:
        return _grouped(chunk, given, masks, one)

    writes = list(zip(places, (_B32, _PRED), strict=False))
    return step_of(instruction, writes, [(value, types[0]), (mask, _U32)], matched)


def _bind_elect(instruction: Instruction) -> Step:
    """``elect.sync d|p, membermask``: the lowest of the lanes that take part, as on the chip."""
    expect_count(instruction, 2)
    places = items(instruction.operands[0])
    if instruction.modifiers != ("sync",) or len(places) != 2:
        raise unsupported(instruction)

    def one(values: Array, active: Array) -> list[Array]:
        first = active.argmax(axis=2)[..., None].astype(np.uint32)
        return [first, first == _LANE]

    def elected(chunk: Chunk, masks: Array) -> list[Array]:
        return _grouped(chunk, np.zeros((1, 1), np.uint32), masks, one)

    return step_of(
        instruction, list(zip(places, (_B32, _PRED), strict=True)), [(instruction.operands[1], _U32)], elected
    )


def _bind_active_mask(instruction: Instruction) -> Step:
    """``activemask.b32 d``."""
    if instruction.modifiers != ("b32",):
        raise unsupported(instruction)
    expect_count(instruction, 1)

    def mask(chunk: Chunk) -> list[Array]:
        return [threads_of(chunk, _pack(_participants(chunk, np.ones((1, 1), bool))[1]))]

    return step_of(instruction, [(instruction.operands[0], _B32)], [], mask)


def _bind_barrier(instruction: Instruction) -> Step:
    """``bar.warp.sync membermask`` orders the accesses of a warp; at others the waiting is the scheduler's."""
    if "warp" not in instruction.modifiers:
        if not {"cluster", "arrive"} <= {*instruction.modifiers}:
            barrier_of(instruction)
        return lambda chunk: None
    if instruction.name != "bar.warp.sync":
        raise unsupported(instruction)
    expect_count(instruction, 1)
    reader(instruction, instruction.operands[0], _U32)

    def step(chunk: Chunk) -> None:
        lanes = lanes_by_warp(chunk.active, chunk.shape[1])
        chunk.shared.warp_barrier(np.asarray(lanes.any(axis=2)))
        chunk.order(chunk.active)

    return step


class Barrier(NamedTuple):
    """A barrier: its number (None: the cluster's), its threads (None: all), whether they wait, and from one place."""

    number: Reader | None
    threads: Reader | None
    waits: bool
    aligned: bool = False


def barrier_of(instruction: Instruction) -> Barrier:
    """What ``bar{rier}{.cta}.sync{.aligned} a{, b}`` waits for, or ``.arrive``, or ``barrier.cluster.wait``.

    Raises `UnsupportedInstructionError` if the instruction has another form.
    """
    if instruction.modifiers[:2] == ("cluster", "wait") and {*instruction.modifiers[2:]} <= {"acquire", "aligned"}:
        expect_count(instruction, 0)
        return Barrier(None, None, True)
    waits = "sync" in instruction.modifiers
    known = {"sync" if waits else "arrive"}
    if not known <= {*instruction.modifiers} <= known | {"aligned", "cta"}:
        raise unsupported(instruction)
    expect_count(instruction, *((1, 2) if waits else (2,)))
    number, *threads = (reader(instruction, operand, _U32) for operand in instruction.operands)
    aligned = instruction.opcode == "bar" or "aligned" in instruction.modifiers
    return Barrier(number, threads[0] if threads else None, waits, aligned)


#: ``bar.red`` behind its barrier: from the predicate of the threads that came, false for others.
_OF_BLOCK: dict[str, Callable[[Array, Array], Array]] = {
    "popc": lambda on, came: np.count_nonzero(on, axis=1, keepdims=True).astype(np.uint32),
    "and": lambda on, came: np.asarray((on | ~came).all(axis=1, keepdims=True)),
    "or": lambda on, came: np.asarray(on.any(axis=1, keepdims=True)),
}


def _bind_reduced(instruction: Instruction) -> Step:
    """The second half of ``bar.red.{popc.u32,and.pred,or.pred} d, a{, b}, {!}c`` (`lowering`)."""
    names, types = split_name(instruction)
    (operation,) = [name for name in names if name in _OF_BLOCK] or [""]
    if types != [_U32 if operation == "popc" else _PRED] or not {*names} <= {operation, "red", "cta", "aligned"}:
        raise unsupported(instruction)
    target, value = instruction.operands

    def reduced(chunk: Chunk, predicate: Array) -> list[Array]:
        came = spread(chunk.active, chunk.shape)
        return [_OF_BLOCK[operation](came & predicate, came)]

    return step_of(instruction, [(target, types[0])], [(value, _PRED)], reduced)


def _bind_trap(instruction: Instruction) -> Step:
    """``trap``, and ``brkpt``, which ends a kernel that no debugger watches."""

    def step(chunk: Chunk) -> None:
        raise chunk.fault(TrapError, instruction.source, chunk.first_active(), "the kernel stopped itself")

    return step


WARP_BINDERS: dict[str, Binder] = {
    "shfl": _bind_shuffle,
    "vote": _bind_vote,
    "redux": _bind_reduction,
    "match": _bind_match,
    "elect": _bind_elect,
    "activemask": _bind_active_mask,
    "bar": _bind_barrier,
    "barrier": _bind_barrier,
    "reduced": _bind_reduced,
    "trap": _bind_trap,
    "brkpt": _bind_trap,
}
