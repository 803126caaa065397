"""Shared and local memory of the thread blocks of a chunk: bytes, bounds, what was written, and races."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..lanes.symbolic_values import Value, dense
from ..lanes.warps import Array, spread, unsigned
from ..util.errors import MisalignedError, OutOfBoundsError, SharedRaceError, Source, UninitializedReadError
from .cluster_races import ClusterRaces
from .global_memory import Report
from .shared_races import RaceDetector, Stored
from .warp_clocks import WarpClocks

#: Where the rank of a block stands in an address of its cluster's shared memory, one more than it is: 0 is the own.
RANK_BITS = 24
_WITHIN = (1 << RANK_BITS) - 1


class SharedMemory:
    """The shared memory of each block of a chunk, of which so many, a cluster, reach each other's.

    No two accesses of the kernel overlap by less than a unit of bytes: what was written, and by whom, is kept for each.
    """

    def __init__(
        self,
        blocks: int,
        threads: int,
        size: int,
        unit: int,
        cluster: int = 1,
        races: str = "",
        clocks: WarpClocks | None = None,
    ) -> None:
        self._shape, self._size, self._unit, self._cluster = (blocks, threads), size, unit, cluster
        self._policy = races
        self._stride = -(-size // 16) * 16
        self._data = np.zeros((blocks, self._stride), np.uint8)
        self._written = np.zeros((1, self._stride // unit), bool)
        self.races = RaceDetector(self._stride // unit, clocks)
        #: The order between blocks of a cluster; None where there is one block, or nobody asks.
        self.cluster_races: ClusterRaces | None = None
        if cluster > 1 and races != "off":
            self.cluster_races = ClusterRaces(blocks, self._stride // unit)
        self._reserved = 0

    def select(self, rows: Array) -> SharedMemory:
        """The shared memory of some of the blocks."""
        part = SharedMemory(0, self._shape[1], self._size, self._unit, self._cluster, self._policy)
        part._shape, part._data = (len(rows), self._shape[1]), self._data[rows]
        part._written = self._written[rows] if len(self._written) > 1 else self._written.copy()
        part.races, part._reserved = self.races.select(rows), self._reserved
        part.cluster_races = self.cluster_races.select(rows) if self.cluster_races else None
        return part

    def load(self, address: Value, size: int, count: int, active: Array, report: Report) -> list[Array]:
        """Read adjacent elements for each active thread; as `ArrayMemory.load`."""
        where, index = self._touch("load", address, size, count, active, report)
        data = self._data.reshape(-1).view(unsigned(size))
        if where is None:
            return [data[index + k if k else index] for k in range(count)]
        results = [np.zeros(self._shape, unsigned(size)) for _ in range(count)]
        for k, result in enumerate(results):
            result[where] = data[index + k]
        return results

    def store(self, address: Value, size: int, values: list[Array], active: Array, report: Report) -> None:
        """Write adjacent elements for each active thread; as `ArrayMemory.store`."""
        where, index = self._touch("store", address, size, len(values), active, report, values=values)
        data = self._data.reshape(-1).view(unsigned(size))
        for k, value in enumerate(values):
            data[index + k if k else index] = value if where is None else spread(value, self._shape)[where]

    def atomic(
        self, address: Value, size: int, active: Array, report: Report, shape: tuple[int, int]
    ) -> list[tuple[Array, Array, Array]]:
        """Check an atomic access; as `ArrayMemory.atomic`."""
        _, index = self._touch("atomic", address, size, 1, active, report, whole=True)
        return [(self._data.reshape(-1).view(unsigned(size)), index, np.ones(len(index), bool))]

    def expand(self) -> None:
        """Keep track of each block by itself from now on."""
        if len(self._written) < self._shape[0]:
            self._written = self._written.repeat(self._shape[0], axis=0)
            self.races.expand(self._shape[0])

    def reserve(self, count: int) -> None:
        """Take the first bytes as written, and look for no races there: a library waits by them."""
        self._written[:, : count // self._unit] = True
        self._reserved = count

    @property
    def has_cluster(self) -> bool:
        """Whether there are other blocks in a cluster."""
        return self._cluster > 1

    def find_remote(self, address: Value) -> Array:
        """Find the addresses that lie in another block of the cluster; broadcastable to (blocks, threads)."""
        rank = dense(address).astype(np.int64) >> RANK_BITS
        own = np.arange(self._shape[0])[:, None] % self._cluster + 1
        return np.asarray((rank > 0) & (rank != own))

    def first_of_cluster(self, row: int) -> int:
        """The block of rank 0 in the cluster of a block."""
        return row // self._cluster * self._cluster

    def owner(self, row: int, address: int) -> tuple[int, int]:
        """The block whose shared memory an address of a block lies in, and the offset there."""
        rank = address >> RANK_BITS
        return self.first_of_cluster(row) + rank - 1 if rank else row, address & _WITHIN

    def reach(self, row: int, offset: int, count: int, report: Report, *, written: bool | None) -> Array:
        """The bytes of a block from an offset on, read or written by what is no thread; None: partly read."""
        if not 0 <= offset <= self._size - count:
            text = f"{count} bytes at {offset} of {self._size} bytes of shared memory"
            report(OutOfBoundsError, (row, 0), text, offset)
        self.expand()
        units = self._written[row, offset // self._unit : (offset + count) // self._unit]
        if written:
            units[:] = True
        elif written is False and not units.all():
            text = f"bulk load of {count} bytes at shared address {offset}"
            report(UninitializedReadError, (row, 0), text, offset)
        return self._data[row, offset : offset + count]

    def barrier(self, waiting: Array) -> None:
        """A barrier of the blocks with threads in a mask (1 or blocks, 1 or threads)."""
        blocks = waiting.any(axis=1)
        if blocks.all():
            self.races.barrier(None)
        else:
            self.expand()
            self.races.barrier(np.flatnonzero(blocks))

    def order_blocks(self, threads: Array) -> None:
        """Put the blocks with threads in a mask (1 or blocks, 1 or threads) behind what others of a cluster did."""
        if self.cluster_races is not None:
            rows = threads.any(axis=1)
            self.cluster_races.order(None if rows.all() else np.flatnonzero(rows))

    def order_lanes(self, warps: Array, mask: int) -> None:
        """Order the lanes of a mask in some warps, (1 or blocks, warps)."""
        if len(warps) > 1:
            self.expand()
        if self.races.clocks is not None:
            self.races.clocks.order_lanes(warps, mask)

    def _touch(
        self,
        kind: str,
        address: Value,
        size: int,
        count: int,
        active: Array,
        report: Report,
        *,
        whole: bool = False,
        values: Sequence[Array] = (),
    ) -> tuple[tuple[Array, Array] | None, Array]:
        """Check an access to ``count`` elements of ``size`` bytes, and record it; a store with its values.

        Returns blocks and threads of the active threads, and the first element of each; or, where all blocks do the
        same, None and the elements of (blocks, threads).
        """
        row, width, blocks = dense(address), size * count, self._shape[0]
        row = row.view(f"i{row.itemsize}").astype(np.int64)
        distant = self._cluster > 1 and bool((row > _WITHIN).any())
        alike = active.size == 1 and row.shape[0] == 1 and not whole and self.cluster_races is None and not distant
        if alike:
            offsets = spread(row, (1, self._shape[1]))[0]
            rows, threads = np.zeros(self._shape[1], np.int64), np.arange(self._shape[1])
        else:
            rows, threads = np.nonzero(spread(active, self._shape))
            offsets = spread(row, self._shape)[rows, threads]
            self.expand()
        where, owners = None if alike else (rows, threads), rows
        if distant:
            rank, offsets = offsets >> RANK_BITS, offsets & _WITHIN
            owners = np.where(rank > 0, rows // self._cluster * self._cluster + rank - 1, rows)

        def fail(error: Any, at: int, text: str, *other: Source) -> None:
            report(error, (int(rows[at]), int(threads[at])), text.format(int(offsets[at])), int(offsets[at]), *other)

        outside, crooked = (offsets < 0) | (offsets > self._size - width), (offsets & (width - 1)) != 0
        if outside.any():
            fail(
                OutOfBoundsError, int(outside.argmax()), f"{width} bytes at {{}} of {self._size} bytes of shared memory"
            )
        if crooked.any():
            fail(MisalignedError, int(crooked.argmax()), f"shared address {{}} is not a multiple of {width} bytes")
        first = np.arange(blocks)[:, None] if alike else owners
        index = np.asarray(first * (self._stride // size) + offsets // size)
        stored = None
        if values and self._policy != "strict":
            full = [spread(value, self._shape) for value in values]
            each = full if where is None else [value[where][None, :] for value in full]
            data = self._data.reshape(-1).view(unsigned(size))
            stored = Stored(data, index if alike else index[None, :], each, len(self._written) == 1)
        if alike and len(self._written) > 1:  # the blocks have parted before: look at each
            owners = rows = np.arange(blocks).repeat(len(threads))
            threads, offsets = np.tile(threads, blocks), np.tile(offsets, blocks)
        units = (offsets // self._unit)[:, None] + np.arange(width // self._unit)
        flat, written = owners[:, None] * self._written.shape[1] + units, self._written.reshape(-1)
        what = f"{kind} of {width} bytes at shared address {{}}"
        if kind == "store":
            written[flat] = True
        elif not (known := written[flat]).all():
            fail(UninitializedReadError, int(known.all(axis=1).argmin()), what)
            written[flat] = True
        unwatched = self._policy == "off" or (self._reserved > 0 and bool((offsets < self._reserved).all()))
        source = getattr(report, "source", Source(0))
        if not unwatched and self.cluster_races is not None:
            race = self.cluster_races.touch(kind, owners, rows, units, source, stored)
            if race is not None:
                text = f", also touched by block {race[1] % self._cluster} of the cluster since they were ordered last"
                fail(SharedRaceError, race[0], what + text, race[2])
        if not (unwatched or distant):
            race = self.races.touch(kind, owners, threads, units, source, stored)
            if race is not None:
                text = f", also touched by thread number {race[1]} of the block since the last barrier"
                fail(SharedRaceError, race[0], what + text, race[2])
        return where, index


class LocalMemory:
    """The local memory of each thread of a chunk: ``size`` bytes a thread, zero at first."""

    def __init__(self, blocks: int, threads: int, size: int) -> None:
        self._shape, self._size = (blocks, threads), size
        self._stride = -(-size // 16) * 16
        self._data = np.zeros((blocks, threads * self._stride), np.uint8)

    def select(self, rows: Array) -> LocalMemory:
        """The local memory of some of the blocks."""
        part = LocalMemory(0, self._shape[1], self._size)
        part._shape, part._data = (len(rows), self._shape[1]), self._data[rows]
        return part

    def _index(self, address: Value, size: int, width: int, active: Array, report: Report) -> Array:
        whole = dense(address)
        offsets = spread(whole.view(f"i{whole.itemsize}").astype(np.int64), self._shape)
        on = spread(active, self._shape)
        for wrong, error in (
            ((offsets < 0) | (offsets > self._size - width), OutOfBoundsError),
            ((offsets & (width - 1)) != 0, MisalignedError),
        ):
            if (wrong & on).any():
                block, thread = (int(axis[0]) for axis in np.nonzero(wrong & on))
                at = int(offsets[block, thread])
                report(error, (block, thread), f"{width} bytes at {at} of {self._size} bytes of local memory", at)
        first = np.arange(self._shape[0] * self._shape[1]).reshape(self._shape) * self._stride
        return np.where(on, (first + offsets) // size, 0)

    def load(self, address: Value, size: int, count: int, active: Array, report: Report) -> list[Array]:
        """Read adjacent elements for each active thread; as `ArrayMemory.load`."""
        index = self._index(address, size, size * count, active, report)
        return [self._data.reshape(-1).view(unsigned(size))[index + k] for k in range(count)]

    def store(self, address: Value, size: int, values: list[Array], active: Array, report: Report) -> None:
        """Write adjacent elements for each active thread; as `ArrayMemory.store`."""
        index = self._index(address, size, size * len(values), active, report)
        on = spread(active, self._shape)
        for k, value in enumerate(values):
            self._data.reshape(-1).view(unsigned(size))[(index + k)[on]] = spread(value, self._shape)[on]
