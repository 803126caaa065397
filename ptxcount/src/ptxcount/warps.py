"""Threads as warps of 32 lanes, in the order of their linear index (CUDA C++ programming guide, 4.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
LANES = 32


def spread(values: Array, shape: tuple[int, ...]) -> Array:
    """`numpy.broadcast_to`, without its cost where there is nothing to do."""
    return values if values.shape == shape else np.broadcast_to(values, shape)


def warp_count(threads: int) -> int:
    """The number of warps of a block."""
    return -(-threads // LANES)


def by_warp(values: Array, threads: int) -> Array:
    """(rows, 1 or threads) as (rows, warps, 32); lanes beyond the last thread repeat it."""
    full = spread(values, (values.shape[0], threads))
    missing = -threads % LANES
    if missing:
        full = np.concatenate([full, np.repeat(full[:, -1:], missing, axis=1)], axis=1)
    return np.ascontiguousarray(full).reshape(values.shape[0], -1, LANES)


def lanes_by_warp(active: Array, threads: int) -> Array:
    """A mask (rows, 1 or threads) as (rows, warps, 32); lanes beyond the last thread are off."""
    lanes = by_warp(active, threads)
    if threads % LANES:
        lanes[:, -1, threads % LANES :] = False
    return lanes


def by_thread(values: Array, threads: int) -> Array:
    """(rows, warps, 32) back to (rows, threads)."""
    return values.reshape(values.shape[0], -1)[:, :threads]
