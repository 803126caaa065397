"""Special registers of PTX, from the position of threads in the launch (PTX ISA, "Special Registers")."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..lanes.warps import LANES, Array, warp_count
from ..util.errors import Index3

if TYPE_CHECKING:  # otherwise the import is circular
    from .chunk import Chunk

#: Registers with the address of a cooperative launch's workspace, upper and lower half.
GRID_REGISTERS = ("%envreg1", "%envreg2")
GRID_WORKSPACE = "workspace of a cooperative launch"
#: Register and size of the shared memory reserved for cooperative groups, before the kernel's own.
RESERVED_REGISTER, RESERVED = "%reserved_smem_offset_1", 1024


def split_index(index: int | Array, extent: Index3) -> tuple[Any, Any, Any]:
    """Split a linear index into (x, y, z), x fastest."""
    return index % extent[0], index // extent[0] % extent[1], index // (extent[0] * extent[1])


def _lane_index(chunk: Chunk) -> Array:
    return np.arange(chunk.shape[1])[None, :] % LANES


def _cluster_rank(chunk: Chunk) -> Any:
    x, y, z = (chunk.find_indices("cluster_ctaid", axis) for axis in range(3))
    return x + chunk.context.cluster[0] * (y + chunk.context.cluster[1] * z)


def _per_axis(name: str, read_axis: Callable[[int, Chunk], Any]) -> dict[str, Callable[[Chunk], Any]]:
    return {f"%{name}.{letter}": partial(read_axis, axis) for axis, letter in enumerate("xyz")}


#: Function that computes each special register from a chunk. `Chunk.read_special` adds the clocks.
SPECIALS: dict[str, Callable[[Chunk], Any]] = {
    **_per_axis("tid", lambda axis, chunk: chunk.find_indices("tid", axis)),
    **_per_axis("ctaid", lambda axis, chunk: chunk.find_indices("ctaid", axis)),
    **_per_axis("clusterid", lambda axis, chunk: chunk.find_indices("clusterid", axis)),
    **_per_axis("cluster_ctaid", lambda axis, chunk: chunk.find_indices("cluster_ctaid", axis)),
    **_per_axis("ntid", lambda axis, chunk: chunk.context.block[axis]),
    **_per_axis("nctaid", lambda axis, chunk: chunk.context.grid[axis]),
    **_per_axis("cluster_nctaid", lambda axis, chunk: chunk.context.cluster[axis]),
    **_per_axis("nclusterid", lambda axis, chunk: chunk.context.grid[axis] // chunk.context.cluster[axis]),
    "%cluster_ctarank": _cluster_rank,
    "%cluster_nctarank": lambda chunk: prod(chunk.context.cluster),
    "%is_explicit_cluster": lambda chunk: chunk.context.has_clusters,
    GRID_REGISTERS[0]: lambda chunk: chunk.context.symbols.get(GRID_WORKSPACE, 0) >> 32,
    GRID_REGISTERS[1]: lambda chunk: chunk.context.symbols.get(GRID_WORKSPACE, 0) & 0xFFFFFFFF,
    "%laneid": _lane_index,
    "%warpid": lambda chunk: np.arange(chunk.shape[1])[None, :] // LANES,
    "%nwarpid": lambda chunk: warp_count(chunk.shape[1]),
    "WARP_SZ": lambda chunk: LANES,
    "%lanemask_eq": lambda chunk: 1 << _lane_index(chunk),
    "%lanemask_lt": lambda chunk: (1 << _lane_index(chunk)) - 1,
    "%lanemask_le": lambda chunk: (2 << _lane_index(chunk)) - 1,
    "%lanemask_gt": lambda chunk: 2**32 - (2 << _lane_index(chunk)),
    "%lanemask_ge": lambda chunk: 2**32 - (1 << _lane_index(chunk)),
    **dict.fromkeys((RESERVED_REGISTER, "%smid", "%gridid", *(f"%pm{k}" for k in range(8))), lambda chunk: 0),
    **dict.fromkeys((f"%envreg{k}" for k in (0, *range(3, 32))), lambda chunk: 0),
    **dict.fromkeys(("%aggr_smem_size", "%total_smem_size"), lambda chunk: chunk.context.shared_size),
    **dict.fromkeys(("%current_graph_exec", "%clock_hi", "%globaltimer_hi"), lambda chunk: 0),
    "%dynamic_smem_size": lambda chunk: chunk.context.dynamic_size,
    "%nsmid": lambda chunk: 1,
}
