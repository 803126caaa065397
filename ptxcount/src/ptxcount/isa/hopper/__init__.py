"""Instructions of Hopper and later GPUs, such as bulk copies, ``mbarrier`` and ``wgmma``.

This module itself has ``mapa`` and ``getctarank``: addresses in distributed shared memory (PTX ISA).
"""

import numpy as np

from ...lanes.warps import Array
from ...machine.chunk import Chunk
from ...machine.cluster_addresses import find_rank, make_ranked
from ...ptx.program import TYPES
from ...util.errors import LaunchError
from ..opcode_registry import op

#: The bits of a generic address that identify its state space.
_WINDOW = 0xFFFFFFFF << 32


@op("mapa(?:.shared::cluster)?.(u32|u64)", "$1 = $1 u32")
def _map_address(kind: str, chunk: Chunk, place: Array, rank: Array) -> list[Array]:
    """Return the address in the shared memory of the block ``rank`` of the cluster that corresponds to ``place``."""
    ranked = make_ranked(place.astype(np.int64), rank.astype(np.int64))
    if not chunk.shared.has_cluster:  # without clusters, each block has rank 0
        ranked = np.where(rank == 0, place, ranked)
    return [ranked.astype(TYPES[kind].dtype) | place & TYPES[kind].dtype.type(_WINDOW if kind == "u64" else 0)]


@op("getctarank(?:.shared::cluster)?.(u32|u64)", "u32 = $1")
def _find_block_rank(kind: str, chunk: Chunk, place: Array) -> list[Array]:
    """Return the rank of the block whose shared memory has an address; an address without a rank is the block's own."""
    ranks, own_rank = find_rank(place.astype(np.int64)), chunk.read_special("%cluster_ctarank")
    return [np.where(ranks < 0, 0 if own_rank is None else own_rank, ranks)]


def require_clusters(chunk: Chunk, access: str) -> None:
    """Raise `LaunchError` in a launch without clusters: the access faults on an H200 (`docs/evidence/memory.md`)."""
    if not chunk.context.has_clusters:
        text = f"{access} needs a launch with clusters; set cluster=1 (--cluster 1) or __cluster_dims__"
        raise LaunchError(f"{chunk.instruction.source}: {text}")
