"""Sampled addresses of a few warps, used to describe the access pattern."""

from typing import NamedTuple

import numpy as np

from ..lanes.symbolic_values import Sum, Value
from ..lanes.warps import Array, by_warp, lanes_by_warp, spread, warp_count

#: Maximum executions sampled per instruction.
EXECUTIONS = 4


class Sample(NamedTuple):
    """One execution of an instruction by a group of ``block_count`` blocks.

    Byte addresses and active lanes of the sampled warps have the shape (blocks, warps, 32). ``blocks`` are the sampled
    blocks' indices in the group. The first two blocks, and the first two warps, are adjacent.
    """

    addresses: Array
    lanes: Array
    blocks: list[int]
    block_count: int


def _choose_blocks(active: Array, blocks: int) -> list[int]:
    """Choose up to three blocks: two adjacent ones, of which one has the most active threads, and a distant one."""
    busy = 0 if active.shape[0] == 1 else int(active.sum(axis=1).argmax())
    busy = min(busy, max(blocks - 2, 0))  # the last block has no next one
    return list(dict.fromkeys([busy, (busy + 1) % blocks, (busy + blocks // 2) % blocks]))


def sample_warps(address: Value, active: Array, shape: tuple[int, int], earlier: list[Sample]) -> list[Sample]:
    """Sample up to four warps of up to three blocks; return a list with one `Sample`, or without an active lane, none.

    ``shape`` is (blocks, threads). The sampled blocks are those of ``earlier`` samples: these must be of as many
    blocks, otherwise there is no new sample.
    """
    blocks, threads = shape
    if earlier and earlier[0].block_count != blocks:
        return []
    sampled_blocks = earlier[0].blocks if earlier else _choose_blocks(active, blocks)
    last = warp_count(threads) - 1
    warps = sorted({0, 1, (last + 1) // 2, last}) if last > 0 else slice(None)

    def pick_blocks(values: Array) -> Array:
        return values if values.shape[0] == 1 else values[sampled_blocks]

    lanes = lanes_by_warp(pick_blocks(active), threads)[:, warps]
    if not lanes.any():
        return []
    parts = (address.block, address.thread) if isinstance(address, Sum) else (address,)
    sums = [by_warp(pick_blocks(part).astype(np.int64), threads)[:, warps] for part in parts]
    extent = (len(sampled_blocks), *lanes.shape[1:])
    addresses: Array = sum(sums[1:], sums[0])
    return [Sample(spread(addresses, extent), spread(lanes, extent), sampled_blocks, blocks)]
