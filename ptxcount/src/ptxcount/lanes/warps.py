"""Threads as warps of 32 lanes, in the order of their linear index (CUDA C++ programming guide, 4.1)."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
LANES = 32
#: Mask that is broadcastable to (blocks, threads).
ALL_THREADS = np.ones((1, 1), bool)
#: Maximum elements for which `numpy.where` is fast enough.
_SMALL_SIZE = 1 << 12


def spread(values: Array, shape: tuple[int, ...]) -> Array:
    """Broadcast an array as `numpy.broadcast_to` does, but faster if the array is contiguous and keeps its axes."""
    if values.shape == shape:
        return values
    if values.ndim != len(shape) or not values.flags.c_contiguous:
        return np.broadcast_to(values, shape)
    strides = [0 if n == 1 else stride for n, stride in zip(values.shape, values.strides, strict=True)]
    return np.ndarray(shape, values.dtype, values.data, 0, strides)


def unsigned(size: int) -> np.dtype[Any]:
    """Return the dtype of ``size`` bytes: an unsigned integer up to 8 bytes, else raw bytes (``V``)."""
    return np.dtype(f"u{size}" if size <= 8 else f"V{size}")


def choose(mask: Array, chosen: Array, alternative: Array) -> Array:
    """Select elements of two arrays of one dtype. Large ones are blended bitwise, in the same time for each mask."""
    if mask.size < _SMALL_SIZE or chosen.itemsize > 8:
        return np.where(mask, chosen, alternative)
    dtype, bits = chosen.dtype, f"u{chosen.itemsize}"
    chosen, alternative = chosen.view(bits), alternative.view(bits)
    bit_mask = np.negative(mask.view(np.int8)).astype(f"i{dtype.itemsize}").view(bits)  # all ones where chosen
    return np.asarray(((chosen ^ alternative) & bit_mask) ^ alternative).view(dtype)


def warp_count(threads: int) -> int:
    """Return the number of warps of a block."""
    return -(-threads // LANES)


def by_warp(values: Array, threads: int) -> Array:
    """Reshape (rows, 1 or threads) to (rows, warps, 32); lanes beyond the last thread repeat that thread's value."""
    full = spread(values, (values.shape[0], threads))
    missing = -threads % LANES
    if missing:
        full = np.concatenate([full, np.repeat(full[:, -1:], missing, axis=1)], axis=1)
    return full.reshape(values.shape[0], -1, LANES)


def lanes_by_warp(active: Array, threads: int) -> Array:
    """Reshape a mask (rows, 1 or threads) to (rows, warps, 32); lanes beyond the last thread are False."""
    lanes = by_warp(active, threads)
    if threads % LANES:
        lanes[:, -1, threads % LANES :] = False
    return lanes


def find_lane_stride(values: Array) -> int | None:
    """Return the difference between the values of adjacent lanes; None if it varies, or the last warp is incomplete."""
    if values.size % LANES:
        return None
    lanes = values.reshape(-1, LANES)
    strides = lanes[:, 1:] - lanes[:, :-1]
    return int(strides[0, 0]) if (strides == strides[0, 0]).all() else None


def take_by_warp(elements: Array, leaders: Array, *, adjacent: bool) -> Array:
    """Gather an element for each thread, (blocks, threads), at its warp's index in ``leaders``, (blocks, warps).

    ``adjacent``: the lanes of a warp read 32 adjacent elements from the index on; otherwise, all read the same element.
    """
    if not adjacent:
        return elements.take(leaders).repeat(LANES, axis=1)
    # The 32 elements of a warp are read as one: a window of 32 elements begins at each index.
    window_type = np.dtype(f"V{LANES * elements.itemsize}")
    windows = np.ndarray(elements.size - LANES + 1, window_type, elements.data, strides=elements.itemsize)
    return np.asarray(windows[leaders].view(elements.dtype))


class ActiveLanes:
    """Active threads of a chunk by warp, from a mask that nobody modifies later.

    ``lanes`` is the mask of active lanes, (1 or blocks, warps, 32); None, all lanes, for a mask (1, 1) of whole warps.
    ``warps`` is the mask of warps with an active lane, (1 or blocks, warps). ``requests`` is the number of such
    warps in the chunk, ``threads`` the number of active threads.
    """

    def __init__(self, active: Array, shape: tuple[int, ...]) -> None:
        blocks, threads = shape
        self.active, self.shape, self.lanes = active, shape, None
        if active.size > 1 or threads % LANES:
            self.lanes = lanes_by_warp(active, threads)
            words = np.ascontiguousarray(self.lanes).view(np.uint64)  # eight bool lanes are tested as one word
            self.warps = np.asarray((words[..., 0] | words[..., 1] | words[..., 2] | words[..., 3]) != 0)
        else:
            self.warps = np.ones((1, threads // LANES), bool)
        self.requests = int(np.count_nonzero(self.warps)) * (blocks // len(self.warps))
        self.threads = int(np.count_nonzero(active)) * (blocks * threads // active.size)

    @property
    def places(self) -> Array:
        """Indices of the active threads in the chunk, block by block."""
        return np.flatnonzero(spread(self.active, self.shape))


#: The last `ActiveLanes`, because consecutive instructions often have the same mask.
_last = [ActiveLanes(np.ones((1, 1), bool), (1, 1))]


def find_active_lanes(active: Array, shape: tuple[int, ...]) -> ActiveLanes:
    """Return the `ActiveLanes` of a mask."""
    (last,) = _last
    if last.active is not active or last.shape != shape:
        last = _last[0] = ActiveLanes(active, shape)
    return last


def find_first(mask: Array) -> tuple[int, ...]:
    """Return the index, one number per axis, of the first true element in row-major order."""
    return tuple(int(axis[0]) for axis in np.nonzero(mask))


def by_thread(values: Array, threads: int) -> Array:
    """Reshape (rows, warps, 32) to (rows, threads)."""
    return values.reshape(values.shape[0], -1)[:, :threads]
