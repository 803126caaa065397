"""Addresses of shared memory in a cluster: the rank of a block, and an offset in its memory."""

import numpy as np

from ..lanes.symbolic_values import Value, dense
from ..lanes.warps import Array
from ..util.errors import OutOfBoundsError
from .address_map import Report

#: A shared::cluster address holds the block rank from bit 24 on. Bit 30 is set if a rank is present; otherwise, the
#: address is in the own block. CUTLASS clears the lowest rank bit to address the leader CTA.
_RANK_SHIFT, _FLAG_BIT = 24, 30
OFFSET_MASK, _RANK_MASK = (1 << _RANK_SHIFT) - 1, (1 << (_FLAG_BIT - _RANK_SHIFT)) - 1


def find_rank(addresses: Array) -> Array:
    """Return the block ranks in int64 shared addresses; -1 for an address without a rank (own block)."""
    return np.where(addresses >> _FLAG_BIT & 1, addresses >> _RANK_SHIFT & _RANK_MASK, -1)


def make_ranked(offsets: Array, ranks: Array) -> Array:
    """Return shared::cluster addresses from offsets and block ranks."""
    return np.asarray(offsets & OFFSET_MASK | ranks << _RANK_SHIFT | 1 << _FLAG_BIT)


class ClusterAddresses:
    """Owners of shared addresses in a chunk of ``shape`` (blocks, threads), with ``cluster`` blocks per cluster."""

    def __init__(self, shape: tuple[int, int], cluster: int) -> None:
        self._shape, self._cluster = shape, cluster

    @property
    def has_cluster(self) -> bool:
        """True if a cluster has more than one block."""
        return self._cluster > 1

    def find_remote(self, address: Value) -> Array:
        """Return the mask of addresses with another rank than the block's own; broadcastable to (blocks, threads)."""
        rank = find_rank(dense(address).astype(np.int64))
        own = np.arange(self._shape[0])[:, None] % self._cluster
        return np.asarray((rank >= 0) & (rank != own))

    def strip_rank(self, address: Value) -> Array:
        """Return the offsets of addresses within shared memory; one row if all blocks have the same."""
        offsets = dense(address).astype(np.int64) & OFFSET_MASK
        return offsets[:1] if (offsets == offsets[:1]).all() else offsets

    def find_first_block(self, row: int) -> int:
        """Return the chunk index of the block with rank 0 in the cluster of the block ``row``."""
        return row // self._cluster * self._cluster

    def find_owner(self, row: int, address: int, report: Report) -> tuple[int, int]:
        """Return the block that owns a shared address of a block, and the offset in the owner's shared memory."""
        rank = int(find_rank(np.array(address)))
        return row if rank < 0 else self.find_block(row, rank, report), address & OFFSET_MASK

    def find_block(self, row: int, rank: int, report: Report) -> int:
        """Return the chunk index of the block with this rank in the cluster of the block ``row``.

        Report a rank that the cluster lacks.
        """
        if rank >= self._cluster:
            report(OutOfBoundsError, (row, 0), f"shared memory{self.describe_missing(rank)}", rank)
        return self.find_first_block(row) + rank

    def list_blocks(self, row: int, ranks: int, report: Report) -> list[int]:
        """List the chunk indices of the blocks whose ranks are the 1 bits of ``ranks``, as in `find_block`."""
        return [self.find_block(row, rank, report) for rank in range(16) if ranks >> rank & 1]

    def describe_missing(self, rank: int) -> str:
        """Describe a block that the cluster lacks, at the end of a message about an access to it."""
        return f" of the block with rank {rank}; the ranks of the cluster are 0 to {self._cluster - 1}"
