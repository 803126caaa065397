"""Tensor memory of the blocks of a chunk: 128 lanes of 512 columns of 32 bits (PTX ISA, "Tensor Memory").

An address has the lane in its upper 16 bits, and the column in its lower 16.
"""

from __future__ import annotations

import numpy as np

from ..lanes.warps import Array, find_first
from ..util.errors import OutOfBoundsError, Source, TensorMemoryError, UninitializedTensorReadError
from .address_map import Report

LANE_COUNT, COLUMN_COUNT = 128, 512
#: Minimum columns of an allocation (PTX ISA, "Tensor Memory Allocation").
_UNIT = 32
_FREE = -1


def split_address(address: int) -> tuple[int, int]:
    """Split an address into lane and column."""
    return address >> 16 & 0xFFFF, address & 0xFFFF


class TensorMemory:
    """The tensor memory of each block of a chunk."""

    def __init__(self, blocks: int) -> None:
        self._data = np.zeros((blocks, LANE_COUNT, COLUMN_COUNT), np.uint32)
        self._written = np.zeros((blocks, LANE_COUNT, COLUMN_COUNT), bool)
        #: First column of the allocation that each column belongs to, or `_FREE`.
        self._owners = np.full((blocks, COLUMN_COUNT), _FREE)
        self._sources: dict[tuple[int, int], Source] = {}
        self._relinquished = np.zeros(blocks, bool)
        #: Columns written by asynchronous instructions (products, copies and shifts) without a ``commit``.
        self._uncommitted = np.zeros((blocks, COLUMN_COUNT), bool)
        #: Columns written by asynchronous instructions with a ``commit`` whose mbarrier no thread has waited for.
        self._unfinished = np.zeros((blocks, COLUMN_COUNT), bool)
        #: Columns of each block whose writers an mbarrier tracks, by the mbarrier's block and offset.
        self._covered: dict[tuple[int, int], dict[int, Array]] = {}
        #: Columns of stores without a ``wait::st``, by quarter of the lanes.
        self._stored = np.zeros((blocks, 4, COLUMN_COUNT), bool)

    def select(self, rows: Array) -> TensorMemory:
        """Return the memory of the blocks ``rows``."""
        part = TensorMemory(0)
        for name in ("_data", "_written", "_owners", "_relinquished", "_uncommitted", "_unfinished", "_stored"):
            setattr(part, name, getattr(self, name)[rows])
        places = {int(row): place for place, row in enumerate(rows)}
        part._sources = {(places[row], first): s for (row, first), s in self._sources.items() if row in places}
        for (row, offset), covered in self._covered.items():
            selected = {places[block]: columns for block, columns in covered.items() if block in places}
            if row in places:
                part._covered[places[row], offset] = selected
        return part

    def allocate(self, row: int, count: int, source: Source, report: Report) -> int:
        """Allocate the first free columns of a block; return the address of the columns."""
        if not (_UNIT <= count <= COLUMN_COUNT and count & (count - 1) == 0):
            text = f"tcgen05.alloc of {count} columns; it must be a power of two from {_UNIT} to {COLUMN_COUNT}"
            report(TensorMemoryError, (row, 0), text, count)
        if self._relinquished[row]:
            text = "tcgen05.alloc after tcgen05.relinquish_alloc_permit; allocate all columns before"
            report(TensorMemoryError, (row, 0), text, count)
        free = self._owners[row] == _FREE
        for first in range(0, COLUMN_COUNT - count + 1, _UNIT):
            if free[first : first + count].all():
                self._owners[row, first : first + count] = first
                self._written[row, :, first : first + count] = False
                self._sources[row, first] = source
                return first
        text = f"{count} adjacent columns requested, {free.sum()} columns are free: tcgen05.alloc waits forever"
        report(TensorMemoryError, (row, 0), text, count)
        return 0

    def deallocate(self, row: int, address: int, count: int, report: Report) -> None:
        """End an allocation of ``count`` columns of a block, at the address that `allocate` returned."""
        owned = self._owners[row] == address
        if not 0 <= address < COLUMN_COUNT or owned.sum() != count:
            text = f"tcgen05.dealloc of {count} columns at {address:#x}, where {owned.sum()} are allocated; free each "
            text += "allocation as a whole"
            report(TensorMemoryError, (row, 0), text, address)
        if (owned & (self._uncommitted[row] | self._unfinished[row])).any():
            text = f"tcgen05.dealloc of columns at {address:#x}: no thread waited for their products or copies; use "
            text += "tcgen05.commit and wait for its mbarrier"
            report(TensorMemoryError, (row, 0), text, address)
        self._owners[row, owned] = _FREE
        self._uncommitted[row, owned] = self._unfinished[row, owned] = False
        self._stored[row, :, owned] = False
        self._sources.pop((row, address), None)

    def relinquish(self, row: int) -> None:
        """Note that a block has relinquished allocation."""
        self._relinquished[row] = True

    def find_leak(self) -> tuple[int, int, Source] | None:
        """Return block, number of columns and source of an allocation without ``dealloc``; None if there is none."""
        if not self._sources:
            return None
        row, first = min(self._sources)
        return row, int((self._owners[row] == first).sum()), self._sources[row, first]

    def load(
        self, blocks: Array, lanes: Array, columns: Array, report: Report, *, is_asynchronous: bool = False
    ) -> Array:
        """Return the words at lanes and columns of some blocks; the arrays are broadcast together.

        ``is_asynchronous``: a product or shift reads the words. It comes after earlier products, copies and shifts, but
        may overtake ``tcgen05.st``.
        """
        self._check_places(blocks, lanes, columns, report)
        if is_asynchronous:
            self._fail(self._stored[blocks, lanes // 32, columns], blocks, lanes, columns,
                       "written by a tcgen05.st without tcgen05.wait::st", report)  # fmt: skip
        else:
            pending = self._uncommitted[blocks, columns] | self._unfinished[blocks, columns]
            self._fail(pending, blocks, lanes, columns,
                       "written by a product or copy whose tcgen05.commit no thread waited for", report)  # fmt: skip
        unwritten = ~self._written[blocks, lanes, columns]
        if unwritten.any():
            self._report_first(UninitializedTensorReadError, unwritten, blocks, lanes, columns, "{}", report)
            self._written[tuple(np.broadcast_arrays(blocks, lanes, columns))] = True
        return self._data[blocks, lanes, columns]

    def store(
        self, blocks: Array, lanes: Array, columns: Array, words: Array, report: Report, *,
        is_asynchronous: bool = False,
    ) -> None:  # fmt: skip
        """Store words at lanes and columns of some blocks; the arrays are broadcast together.

        ``is_asynchronous``: a product, copy or shift writes the words; a thread must wait for the commit's mbarrier.
        """
        self._check_places(blocks, lanes, columns, report)
        self._data[blocks, lanes, columns] = words
        self._written[blocks, lanes, columns] = True
        if is_asynchronous:
            self._uncommitted[blocks, columns] = True
        else:
            self._stored[blocks, lanes // 32, columns] = True

    def finish_stores(self, rows: Array, quarters: Array) -> None:
        """Note that the stores to ``quarters`` of the lanes in the blocks ``rows`` are complete."""
        self._stored[rows, quarters] = False

    def commit(self, rows: list[int], barriers: list[tuple[int, int]]) -> None:
        """Let mbarriers, given by block and offset, track all unfinished columns of the blocks ``rows``."""
        for row in rows:
            self._unfinished[row] |= self._uncommitted[row]
            self._uncommitted[row] = False
            for barrier in barriers:
                covered = self._covered.setdefault(barrier, {})
                covered[row] = self._unfinished[row] | covered.get(row, False)

    def note_waits(self, rows: Array, offsets: Array) -> None:
        """Note that threads waited for mbarriers, given by block and offset: all that they track is complete."""
        if not self._covered:
            return
        for barrier in {*zip(rows.tolist(), offsets.tolist(), strict=True)}:
            for row, columns in self._covered.pop(barrier, {}).items():
                self._unfinished[row] &= ~columns

    def _check_places(self, blocks: Array, lanes: Array, columns: Array, report: Report) -> None:
        outside = (lanes < 0) | (lanes >= LANE_COUNT) | (columns < 0) | (columns >= COLUMN_COUNT)
        text = f"{{}} of {LANE_COUNT} lanes and {COLUMN_COUNT} columns of tensor memory"
        self._report_first(OutOfBoundsError, outside, blocks, lanes, columns, text, report)
        self._fail(self._owners[blocks, columns] == _FREE, blocks, lanes, columns, "which is not allocated", report)

    def _fail(self, is_wrong: Array, blocks: Array, lanes: Array, columns: Array, text: str, report: Report) -> None:
        self._report_first(TensorMemoryError, is_wrong, blocks, lanes, columns, "{}, " + text, report)

    @staticmethod
    def _report_first(
        error: type[Exception], is_wrong: Array, blocks: Array, lanes: Array, columns: Array, text: str, report: Report
    ) -> None:
        """Report an error at the first place in a mask; ``text`` has ``{}`` for the lane and the column."""
        if not is_wrong.any():
            return
        arrays = np.broadcast_arrays(is_wrong, blocks, lanes, columns)
        first = find_first(arrays[0])
        row, lane, column = (int(array[first]) for array in arrays[1:])
        report(error, (row, 0), text.format(f"lane {lane}, column {column}"), lane << 16 | column)
