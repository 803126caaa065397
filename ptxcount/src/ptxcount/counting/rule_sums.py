"""Apply the counting rules to all requests of a group of blocks; equal patterns of blocks are evaluated once."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..lanes.symbolic_values import Value, dense, split_sum
from ..lanes.warps import ALL_THREADS, LANES, ActiveLanes, Array, by_warp, find_active_lanes, lanes_by_warp, spread
from .transactions import BANKS, WORD

#: Maximum number of addresses in a cached call of the rules.
_MAX_CACHED = 1 << 11
#: Bytes by which all addresses can move without changing the counts.
_PERIOD = BANKS * WORD
#: A counting rule of `transactions`: from addresses, active lanes and bytes per lane to an array for each count.
Rules = Callable[[Array, "Array | None", int], Sequence[Array]]


def sum_rules(rules: Rules, address: Value, active: Array, shape: tuple[int, int], width: int) -> list[int]:
    """Apply the rules to all requests of blocks of ``shape`` (blocks, threads); return the sum of each count.

    ``active`` is a mask that is broadcastable to the shape. A thread touches ``width`` bytes. ``rules`` must give
    equal counts if all addresses move by a multiple of 128 bytes. If blocks differ only by such a move, the rules are
    applied to one of them, and its counts are multiplied.
    """
    if isinstance(address, np.ndarray) and address.size <= _MAX_CACHED and active.size == 1:
        return _sum_cached(rules, address.tobytes(), address.dtype, address.shape, shape, width)
    return _sum_split(rules, address, find_active_lanes(active, shape), width)


@lru_cache(maxsize=1 << 10)
def _sum_cached(
    rules: Rules, addresses: bytes, dtype: np.dtype[Any], extent: tuple[int, ...], shape: tuple[int, int], width: int
) -> list[int]:
    """Apply the rules to an array of addresses of shape ``extent``, with all threads active."""
    address = np.frombuffer(addresses, dtype).reshape(extent)
    return _sum_split(rules, address, find_active_lanes(ALL_THREADS, shape), width)


def _sum_split(rules: Rules, address: Value, occupancy: ActiveLanes, width: int) -> list[int]:
    blocks, threads = occupancy.shape
    split = split_sum(address, address.itemsize) if isinstance(address, np.ndarray) else address
    if split is None:  # the blocks have no common pattern
        return _sum_each_request(rules, dense(address), occupancy, width)
    residues, residue_index, block_counts = _group_residues(split.block.ravel() % _PERIOD)
    columns = by_warp(split.thread, threads)[0]
    offsets = columns - columns.min() // _PERIOD * _PERIOD
    if occupancy.lanes is None or occupancy.active.size == 1:  # all threads are active
        tables = _tabulate_residues(rules, residues, offsets, threads, width)
        return [count * (blocks // split.block.size) for count in (tables.sum(axis=2) @ block_counts).tolist()]
    return _sum_by_warp(rules, residues, spread(residue_index, (blocks,)), offsets, occupancy, width)


def _sum_each_request(rules: Rules, address: Array, occupancy: ActiveLanes, width: int) -> list[int]:
    rows = by_warp(spread(address.view(f"i{address.itemsize}"), occupancy.shape), occupancy.shape[1])
    lanes = occupancy.lanes
    if lanes is not None:
        is_active, lanes = spread(occupancy.warps, rows.shape[:2]), spread(lanes, rows.shape)
        if not is_active.all():
            rows, lanes = rows[is_active], lanes[is_active]
        lanes = np.ascontiguousarray(lanes).reshape(-1, LANES)
    return [int(counts.sum()) for counts in rules(rows.reshape(-1, LANES), lanes, width)]


def _sum_by_warp(
    rules: Rules, residues: Array, residue_index: Array, offsets: Array, occupancy: ActiveLanes, width: int
) -> list[int]:
    """Evaluate warps with inactive threads one by one; add the tabulated counts of full warps."""
    blocks, threads = occupancy.shape
    exists = lanes_by_warp(ALL_THREADS, threads) if threads % LANES else None  # the last warp has fewer threads
    lanes = spread(np.asarray(occupancy.lanes), (blocks, *offsets.shape))
    is_full = (lanes if exists is None else lanes | ~exists).all(axis=2)
    block, warp = np.nonzero(occupancy.warps & ~is_full)
    sums = []
    if len(block):
        rows = residues[residue_index[block]][:, None] + offsets[warp]
        sums.append(_apply_rules(rules, rows, lanes[block, warp], width).sum(axis=1).tolist())
    if not sums or is_full.any():
        tables = _tabulate_residues(rules, residues, offsets, threads, width)
        sums.append([int(table[residue_index][is_full].sum()) for table in tables])
    return [sum(column) for column in zip(*sums, strict=True)]


def _tabulate_residues(rules: Rules, residues: Array, offsets: Array, threads: int, width: int) -> Array:
    """Apply the rules to one block per residue, with all threads active; return an array (counts, residues, warps)."""
    rows, exists = residues[:, None, None] + offsets, None
    if threads % LANES:
        exists = spread(lanes_by_warp(ALL_THREADS, threads), rows.shape)
    return _apply_rules(rules, rows, exists, width).reshape(-1, len(residues), len(offsets))


def _apply_rules(rules: Rules, addresses: Array, lanes: Array | None, width: int) -> Array:
    addresses = addresses.astype(np.int64, copy=False)
    if addresses.size <= _MAX_CACHED:
        return _apply_cached(rules, width, addresses.tobytes(), None if lanes is None else lanes.tobytes())
    return np.stack(rules(addresses.reshape(-1, LANES), None if lanes is None else lanes.reshape(-1, LANES), width))


@lru_cache(maxsize=1 << 10)
def _apply_cached(rules: Rules, width: int, addresses: bytes, lanes: bytes | None) -> Array:
    rows = np.frombuffer(addresses, np.int64).reshape(-1, LANES)
    return np.stack(rules(rows, None if lanes is None else np.frombuffer(lanes, bool).reshape(-1, LANES), width))


def _group_residues(residues: Array) -> tuple[Array, Array, Array]:
    """Return the distinct residues, the index of each block's residue, and the number of blocks per residue."""
    if residues.size == 1 or (residues == residues[0]).all():
        return residues[:1], np.zeros(residues.size, np.intp), np.array([residues.size])
    distinct, residue_index, block_counts = np.unique(residues, return_inverse=True, return_counts=True)
    return distinct, residue_index.ravel(), block_counts
