"""Instructions of Hopper and later chips: bulk copies, tensor maps, barriers in memory, ``wgmma``, and clusters.

Here are addresses in the shared memory of another block of the cluster (PTX ISA, ``mapa``, ``getctarank``).
"""

from __future__ import annotations

import numpy as np

from ...lanes.warps import Array
from ...machine.block_memory import RANK_BITS
from ...machine.chunk import Chunk
from ...ptx.program import TYPES
from ..registry import op


@op("mapa(?:.shared::cluster)?.(u32|u64)", "$1 = $1 u32")
def _map_address(kind: str, chunk: Chunk, place: Array, rank: Array) -> list[Array]:
    kind_type = TYPES[kind]
    within = place & kind_type.dtype.type(~(0xFF << RANK_BITS) & (2**kind_type.bits - 1))
    return [within | ((rank.astype(kind_type.dtype) + kind_type.dtype.type(1)) << kind_type.dtype.type(RANK_BITS))]


@op("getctarank(?:.shared::cluster)?.(u32|u64)", "u32 = $1")
def _rank_of(kind: str, chunk: Chunk, place: Array) -> list[Array]:
    rank_bits = (place >> place.dtype.type(RANK_BITS)).astype(np.uint32) & 0xFF
    own_rank = chunk.read_special("%cluster_ctarank")
    return [np.where(rank_bits == 0, 0 if own_rank is None else own_rank, rank_bits - 1)]
