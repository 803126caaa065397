"""What only Hopper and later chips have: bulk copies, tensor maps, barriers in memory, ``wgmma``, and clusters.

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
def _mapped(kind: str, chunk: Chunk, place: Array, rank: Array) -> list[Array]:
    whole = TYPES[kind]
    within = place & whole.dtype.type(~(0xFF << RANK_BITS) & (2**whole.bits - 1))
    return [within | ((rank.astype(whole.dtype) + whole.dtype.type(1)) << whole.dtype.type(RANK_BITS))]


@op("getctarank(?:.shared::cluster)?.(u32|u64)", "u32 = $1")
def _rank_of(kind: str, chunk: Chunk, place: Array) -> list[Array]:
    found = (place >> place.dtype.type(RANK_BITS)).astype(np.uint32) & 0xFF
    own = chunk.special("%cluster_ctarank")
    return [np.where(found == 0, 0 if own is None else own, found - 1)]
