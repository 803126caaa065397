"""The addresses of some warps: what shows the pattern of an access, where its counts show only the cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..lanes.symbolic_values import Sum, Value
from ..lanes.warps import LANES, Array, by_warp, lanes_by_warp, spread

#: Executions of an instruction that are kept.
EXECUTIONS = 4


class Sample(NamedTuple):
    """One execution of an instruction: byte addresses and active lanes, (blocks, warps, 32) of those that are kept.

    The first two of ``blocks``, which are numbers within a chunk ``of`` so many, and of warps are neighbours.
    """

    addresses: Array
    lanes: Array
    blocks: list[int]
    of: int


def sampled(address: Value, active: Array, shape: tuple[int, int], before: list[Sample]) -> list[Sample]:
    """Some warps of a chunk, the same as ``before``, if any of these is active; parameters as of `Access.record`."""
    blocks, threads = shape
    if before and before[0].of != blocks:
        return []
    busy = 0 if active.shape[0] == 1 else int(active.sum(axis=1).argmax())
    busy = min(busy, max(blocks - 2, 0))
    some = (
        before[0].blocks if before else list(dict.fromkeys([busy, (busy + 1) % blocks, (busy + blocks // 2) % blocks]))
    )
    whole = -(-threads // LANES)
    warps = sorted({0, min(1, whole - 1), whole // 2, whole - 1}) if whole > 1 else slice(None)

    def picked(values: Array) -> Array:
        return values if values.shape[0] == 1 else values[some]

    lanes = lanes_by_warp(picked(active), threads)[:, warps]
    if not lanes.any():
        return []
    parts = (address.block, address.thread) if isinstance(address, Sum) else (address,)
    sums = [by_warp(picked(part).astype(np.int64), threads)[:, warps] for part in parts]
    extent = (len(some), *lanes.shape[1:])
    addresses: Array = sum(sums[1:], sums[0])
    return [Sample(spread(addresses, extent), spread(lanes, extent), some, blocks)]
