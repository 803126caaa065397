"""Shared memory of the thread blocks of a chunk: bytes, bounds, written bytes, and races."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from ..lanes.symbolic_values import Value, dense
from ..lanes.warps import LANES, Array, spread, take_by_warp, unsigned
from ..util.errors import OutOfBoundsError, SharedRaceError, UninitializedReadError
from ..util.grammar import count_noun
from .address_map import Report
from .block_accesses import Places, SharedAccesses, describe_size, place_in_all_blocks
from .cluster_addresses import OFFSET_MASK, ClusterAddresses, find_rank
from .cluster_races import ClusterRaces
from .pending_copies import PendingCopies
from .polls import is_acquire, is_strong, is_strong_store
from .reporter import Reporter
from .shared_races import RaceDetector, StoredValues
from .warp_clocks import WarpClocks


class SharedMemory(ClusterAddresses):
    """Shared memory of each block of a chunk, including accesses to other blocks of a cluster.

    Writes and races are tracked per ``unit`` bytes: the size of the smallest element that is accessed, at most 8. The
    first ``reserved`` bytes, for cooperative groups, are written, and have no race check.
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
        reserved: int = 0,
    ) -> None:
        super().__init__((blocks, threads), cluster)
        self._size, self._unit, self._policy = size, unit, races
        self._stride = -(-size // 16) * 16
        self._data = np.zeros((blocks, self._stride), np.uint8)
        #: Mask of written units; one row stands for all blocks until `track_blocks`.
        self._written = np.zeros((1, self._stride // unit), bool)
        self._written[:, : reserved // unit] = True
        self.races = RaceDetector(self._stride // unit, clocks)
        #: Race check between blocks of a cluster; None for single blocks, or if the check is off.
        self.cluster_races: ClusterRaces | None = None
        if cluster > 1 and races != "off":
            self.cluster_races = ClusterRaces(blocks, self._stride // unit)
        self._reserved, self._copies = reserved, PendingCopies()

    def select(self, rows: Array) -> SharedMemory:
        """Return the memory of the blocks ``rows``; the launch is without clusters."""
        part = copy(self)
        part._shape, part._data = (len(rows), self._shape[1]), self._data[rows]
        part._written = self._written[rows] if len(self._written) > 1 else self._written.copy()
        part.races, part._copies = self.races.select(rows), self._copies.select(rows)
        return part

    def load(self, address: Value, size: int, count: int, active: Array, report: Report) -> list[Array]:
        """Read ``count`` adjacent elements of ``size`` bytes for each active thread, as `ArrayMemory.load` does."""
        places, index = self._check_access("load", address, size, count, active, report)
        data = self._data.reshape(-1).view(unsigned(size))
        if places.is_uniform:
            return [self._gather_row(data, index + k, places.lane_stride) for k in range(count)]
        results = [np.zeros(self._shape, unsigned(size)) for _ in range(count)]
        for k, result in enumerate(results):
            result[places.rows, places.threads] = data[index + k]
        return results

    def _gather_row(self, data: Array, index: Array, stride: int | None) -> Array:
        """Read the elements at ``index``, one per thread, from each block: (blocks, threads)."""
        blocks = data.reshape(self._shape[0], -1)
        if stride not in (0, data.itemsize):
            return blocks.take(index, axis=1, mode="clip")
        of_lane_0 = np.arange(0, data.size, blocks.shape[1])[:, None] + index[::LANES]
        return take_by_warp(data, of_lane_0, adjacent=stride != 0)

    def store(self, address: Value, size: int, values: list[Array], active: Array, report: Report) -> None:
        """Write adjacent elements of ``size`` bytes for each active thread, as `ArrayMemory.store` does."""
        places, index = self._check_access("store", address, size, len(values), active, report, values=values)
        data = self._data.reshape(-1).view(unsigned(size))
        for k, value in enumerate(values):
            stored = value if places.is_uniform else spread(value, self._shape)[places.rows, places.threads]
            data[index + k if k else index] = stored

    def start_copies(self, address: Value, size: int, active: Array) -> None:
        """Mark the bytes that active threads copy by ``cp.async`` as unwritten until the threads wait."""
        self._mark_bytes(self._copies.add(self.strip_rank(address), active, size), size, is_written=False)

    def commit_copies(self, active: Array) -> None:
        """Commit the pending ``cp.async`` copies of the active threads as a group."""
        self._copies.commit_group(active)

    def wait_copies(self, active: Array, kept_groups: int | None = None) -> None:
        """Complete ``cp.async`` copies of active threads: see `PendingCopies.complete`."""
        for addresses, size in self._copies.complete(active, kept_groups):
            self._mark_bytes(addresses, size, is_written=True)

    def _mark_bytes(self, addresses: Array, size: int, *, is_written: bool) -> None:
        """Mark ``size`` bytes at the address of each thread as written or unwritten; address -1 marks none."""
        if len(addresses) > 1:
            self.track_blocks()
        rows, threads = np.nonzero(addresses >= 0)
        units = (addresses[rows, threads] // self._unit)[:, None] + np.arange(size // self._unit)
        marked_rows = rows[:, None] if len(addresses) > 1 else slice(None)  # one row of addresses is for all blocks
        self._written[marked_rows, units] = is_written

    def find_atomic_cells(
        self, address: Value, size: int, active: Array, report: Report, shape: tuple[int, int]
    ) -> list[tuple[Array, Array, Array]]:
        """Check an atomic access; return the elements, each thread's index into them, and the selected threads."""
        _, index = self._check_access("atomic", address, size, 1, active, report, is_exact=True)
        return [(self._data.reshape(-1).view(unsigned(size)), index, np.ones(len(index), bool))]

    def track_blocks(self) -> None:
        """Track the written bytes and races of each block separately from now on."""
        if len(self._written) < self._shape[0]:
            self._written = self._written.repeat(self._shape[0], axis=0)
            self.races.expand(self._shape[0])

    def view_bytes(self, row: int, offset: int, count: int, report: Report, *, is_written: bool | None) -> Array:
        """Return a view of ``count`` bytes of a block's memory, from ``offset`` on.

        ``is_written``: True marks the bytes as written. False reports unwritten bytes. None does neither.
        """
        if not 0 <= offset <= self._size - count:
            access = f"{count_noun(count, 'byte')} at shared address {offset}"
            report(OutOfBoundsError, (row, 0), access + describe_size(self._size), offset)
        self.track_blocks()
        units = self._written[row, offset // self._unit : (offset + count) // self._unit]
        if is_written:
            units[:] = True
        elif is_written is False and not units.all():
            text = f"bulk load of {count_noun(count, 'byte')} at shared address {offset}"
            report(UninitializedReadError, (row, 0), text, offset)
        return self._data[row, offset : offset + count]

    def forget_bytes(self, row: int, offset: int, count: int) -> None:
        """Mark ``count`` bytes of a block, from ``offset`` on, as unwritten."""
        self.track_blocks()
        self._written[row, offset // self._unit : (offset + count) // self._unit] = False

    def gather_elements(self, row: int, places: Array, width: int, report: Report) -> Array:
        """Return the elements of ``width`` bytes at offsets ``places`` of a block, for an asynchronous product."""
        first = int(places.min())
        content = self.view_bytes(row, first, int(places.max()) + width - first, report, is_written=None)
        unwritten = ~self._written[row, places // self._unit]
        if unwritten.any():
            place = int(places[unwritten].min())
            report(UninitializedReadError, (row, 0), f"matrix element at shared address {place}", place)
        index = (places - first)[..., None] + np.arange(width)
        return np.ascontiguousarray(content[index]).view(f"u{width}")[..., 0]

    def _check_ranks(self, accesses: SharedAccesses, ranks: Array) -> None:
        """Report the first access to a block that the cluster lacks; ``ranks`` are those of the accessed blocks."""
        is_missing = ranks >= self._cluster
        if is_missing.any():
            access = int(is_missing.argmax())
            accesses.report_fault(OutOfBoundsError, access, self.describe_missing(int(ranks[access])))

    def reset_races(self, waiting: Array) -> None:
        """Forget the accesses of blocks with threads in a mask, (1 or blocks, 1 or threads): they have synchronized."""
        blocks = waiting.any(axis=1)
        if blocks.all():
            self.races.reset_blocks(None)
        else:
            self.track_blocks()
            self.races.reset_blocks(np.flatnonzero(blocks))

    def order_blocks(self, threads: Array) -> None:
        """Order blocks with threads in a mask, (1 or blocks, 1 or threads), after the accesses of their cluster."""
        if self.cluster_races is not None:
            rows = threads.any(axis=1)
            self.cluster_races.order_blocks(None if rows.all() else np.flatnonzero(rows))

    def order_lanes(self, warps: Array, mask: int) -> None:
        """Synchronize the lanes in the 32-bit ``mask``, in each warp of the mask ``warps``, (1 or blocks, warps)."""
        if len(warps) > 1:
            self.track_blocks()
        if self.races.clocks is not None:
            self.races.clocks.order_lanes(warps, mask)

    def order_fences(self, threads: Array) -> None:
        """Execute a fence of the threads in a mask, (1 or blocks, 1 or threads): order all that they have observed."""
        if self.races.clocks is not None:
            if len(threads) > 1:
                self.track_blocks()
            self.races.clocks.order_fences(threads, self._shape[1])

    def _check_access(
        self, kind: str, address: Value, size: int, count: int, active: Array, report: Report, *,
        is_exact: bool = False, values: Sequence[Array] = (),
    ) -> tuple[Places, Array]:  # fmt: skip
        """Check and record an access to ``count`` elements of ``size`` bytes; a store has ``values``.

        Return the places of the active threads, and the index of each thread's first element. If all threads are
        active, with the same addresses in all blocks, the places are uniform. Then there is an index for each thread:
        of one block for a load, of all blocks for a store. Atomics (``is_exact``), remote accesses, and clusters whose
        races are checked never have uniform places.
        """
        places = self._find_places(address, size * count, active, is_exact=is_exact)
        accesses = SharedAccesses(kind, places, report)
        accesses.check_bounds(self._size)
        if places.is_remote:
            self._check_ranks(accesses, places.owners - places.rows // self._cluster * self._cluster)
        index, elements_per_block = places.offsets // size, self._stride // size
        if not places.is_uniform:
            index = places.owners * elements_per_block + index
        elif values:
            index = np.arange(self._shape[0])[:, None] * elements_per_block + index
        compares_values = bool(values) and self._policy != "strict"
        stored = self._find_stored_values(size, values, places, index) if compares_values else None
        if places.is_uniform and len(self._written) > 1:  # the blocks have diverged before: check each block
            accesses.places = places.repeat(self._shape[0])
        self._check_written(accesses)
        if self._policy != "off" and not (self._reserved and bool((places.offsets < self._reserved).all())):
            self._check_races(accesses, stored)
        return places, index

    def _find_places(self, address: Value, width: int, active: Array, *, is_exact: bool) -> Places:
        """Return the places of the active threads; if possible and not ``is_exact``, those of one block for all."""
        addresses, units = dense(address), self._written.shape[1]
        is_remote = self._cluster > 1 and bool((self.find_remote(address) & active).any())
        if self._cluster > 1 and not is_remote:
            addresses = self.strip_rank(address)
        is_same_in_all_blocks = active.size == addresses.shape[0] == 1
        if is_same_in_all_blocks and self.cluster_races is None and not (is_exact or is_remote):
            content, item_size = addresses.tobytes(), addresses.itemsize
            return place_in_all_blocks(content, item_size, self._shape[1], width, self._unit, units)
        addresses = addresses.view(f"i{addresses.itemsize}").astype(np.int64)
        rows, threads = np.nonzero(spread(active, self._shape))
        offsets = spread(addresses, self._shape)[rows, threads]
        self.track_blocks()
        owners = rows
        if is_remote:
            rank, offsets = find_rank(offsets), offsets & OFFSET_MASK
            owners = np.where(rank < 0, rows, rows // self._cluster * self._cluster + rank)
        return Places(width, self._unit, units, owners, rows, threads, offsets, is_remote=is_remote)

    def _check_written(self, accesses: SharedAccesses) -> None:
        """Mark the units of a store as written; report the first load or atomic of unwritten units."""
        cells, written = accesses.places.cells, self._written.reshape(-1)
        if accesses.kind == "store":
            written[cells] = True
            return
        is_written = written[cells]
        if not is_written.all():
            waits = "; a copy by cp.async was not waited for" if self._copies else ""
            accesses.report_fault(UninitializedReadError, int(is_written.all(axis=1).argmin()), waits)
            written[cells] = True

    def _find_stored_values(self, size: int, values: Sequence[Array], places: Places, index: Array) -> StoredValues:
        data, full = self._data.reshape(-1).view(unsigned(size)), [spread(value, self._shape) for value in values]
        if places.is_uniform:
            return StoredValues(data, index, full, len(self._written) == 1)
        elements = [value[places.rows, places.threads][None, :] for value in full]
        return StoredValues(data, index[None, :], elements, len(self._written) == 1)

    def _check_races(self, accesses: SharedAccesses, stored: StoredValues | None) -> None:
        """Record the accesses of an instruction, and report a race between blocks, and one within a block.

        If an access is to another block's memory, only races between blocks are checked.
        """
        kind, reporter, places = accesses.kind, accesses.report, accesses.places
        if not isinstance(reporter, Reporter):  # the hardware reads a descriptor of the instruction
            return
        instruction, source = reporter.chunk.instruction, reporter.source
        if is_strong(instruction) or is_strong_store(instruction):
            kind = f"strong {kind}"
        if self.cluster_races is not None:
            race = self.cluster_races.record_access(kind, places.owners, places.rows, places.cells, source, stored)
            if race is not None:
                rank = race.other % self._cluster
                text = f" races with block {rank} of the cluster: no synchronization between them"
                accesses.report_fault(SharedRaceError, race.access, text, race.source)
        if places.is_remote:
            return
        is_poll = id(instruction) in reporter.chunk.context.polls
        if self._policy == "strict" and "volatile" in instruction.modifiers and not is_poll:
            kind = kind.replace("strong", "volatile")
        owners, threads, acquires = places.owners, places.threads, is_acquire(instruction)
        race = self.races.record_access(kind, owners, threads, places.cells, source, stored, acquires=acquires)
        if race is not None:
            accesses.report_fault(SharedRaceError, race.access, "", race.source, race.other)
