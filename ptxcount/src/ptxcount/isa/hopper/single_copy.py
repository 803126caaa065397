"""One bulk copy of one thread: its addresses, its checks, its bytes, and its sectors."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...counting.transactions import LINE, count_bulk_copy_sectors
from ...lanes.symbolic_values import dense
from ...lanes.warps import ALL_THREADS, Array, spread
from ...machine.address_map import Report
from ...machine.chunk import Chunk
from ...util.errors import LaunchError, MisalignedError, OutOfBoundsError
from ...util.grammar import count_noun
from ..operands import unsupported
from ..spaces import make_resolver
from .map_changes import find_fields
from .map_fields import MapFields
from .mbarriers import signal_barrier

#: Bytes of NaN fills on an H200, repeated in floats of 2, 4 and 8 bytes.
_NAN = (0xF7, 0x7F)
#: Granularity of a copy in bytes.
_PIECE = 16
#: Modes that copy four rows of a matrix, each with its own coordinate.
OF_ROWS = {"tile::gather4", "tile::scatter4"}


class _GlobalElements(NamedTuple):
    """Elements of a copy in global memory; a copy of bytes has elements of 16 bytes."""

    #: Addresses, (1, elements).
    places: Array
    #: Mask of elements within the tensor.
    inside: Array
    #: Size of an element in bytes.
    width: int
    #: Elements per row.
    columns: int


class BulkCopy:
    """Bulk copy by the thread at ``thread``, (block, thread) in the chunk.

    ``numbers`` are the operands with the names of `bulk_copies`. ``reduction`` is a function of old bytes, new bytes
    and a dtype; None for a copy.
    """

    def __init__(
        self, chunk: Chunk, thread: tuple[int, int], numbers: dict[str, int], reduction: Any, *, is_store: bool
    ) -> None:
        self._chunk, self._source, self._reduction = chunk, chunk.instruction.source, reduction
        self._row, self._numbers, self._is_store = thread[0], numbers, is_store
        report = chunk.make_reporter()

        def report_for_thread(error: Any, position: tuple[int, int], text: str, place: int) -> None:
            report(error, thread, text, place)

        self._report: Report = report_for_thread
        size = numbers.get("size", 0)
        if size % _PIECE:
            text = f"a copy of {count_noun(size, 'byte')}; it must be a multiple of {_PIECE}"
            text += f"; an H200 stores {size // _PIECE * _PIECE} of them" if is_store else ""
            report_for_thread(MisalignedError, (0, 0), text, size)
        self._shared_start = chunk.shared.find_owner(self._row, numbers["from" if is_store else "to"], self._report)[1]
        alignment = 16 if "size" in numbers else 128
        if self._shared_start % alignment:
            text = f"shared address {self._shared_start}; it must be a multiple of {alignment}"
            report_for_thread(MisalignedError, (0, 0), text, self._shared_start)
        place = numbers["to" if is_store else "from"]
        self._fields: MapFields | None = None
        start = [number for name, number in numbers.items() if name.startswith("coordinate")]
        if not start:
            places = place + _PIECE * np.arange(size // _PIECE)[None, :]
            self._elements = _GlobalElements(places, ALL_THREADS, _PIECE, 1)
        else:
            self._fields = self._find_map(place)
            shifts = [number for name, number in numbers.items() if name.startswith("offset")]
            self._elements = self._locate_elements(self._fields, start, shifts)

    def _find_map(self, place: int) -> MapFields:
        """Return the fields of the tensor map at a generic address; raise an error if the copy cannot use it."""
        chunk = self._chunk
        space, offset = make_resolver(None, lambda _: np.full((1, 1), place, np.uint64))(chunk)
        first = dense(offset)[:1, :1]
        (handles,) = chunk.find_memory(space).load(first, 8, 1, np.ones((1, 1), bool), self._report)
        fields = find_fields(chunk, int(handles[0, 0]))
        problem = fields.find_problem()
        is_column = any(name.startswith("im2col") for name in chunk.instruction.modifiers)
        if not problem and is_column != bool(fields.column):
            modes = ("tile", "Tensor"), ("im2col", "Im2col")
            (mode, kind), (given_mode, _) = modes if not is_column else modes[::-1]
            problem = f"the tensor map is for {given_mode} mode; pass a ptxcount.{kind}Map to a copy in {mode} mode"
        if problem:
            raise LaunchError(f"{self._source}: {problem}")
        if fields.interleave:
            problem = f"the tensor map has an interleaved layout of {fields.interleave} bytes"
            raise unsupported(chunk.instruction, f"{problem}; ptxcount supports only tensor maps without one")
        return fields

    def _place_bytes(self, start: int, count: int, unit: int = 1) -> Array:
        """Return the shared addresses of ``count`` bytes, or of each ``unit`` of them, before the swizzle."""
        offsets = np.arange(0, count, unit)
        return start + (self._fields.pad_offsets(offsets) if self._fields else offsets)

    def _view_shared(self, row: int, start: int, count: int, *, is_written: bool | None) -> tuple[Array, Array]:
        """Check or mark a copy's bytes as `view_bytes` does; return a view with all of them, and each byte's index."""
        shared, places = self._chunk.shared, self._place_bytes(start, count)
        if self._fields:
            places = self._fields.swizzle_addresses(places)
        if not count:
            return shared.view_bytes(row, start, 0, self._report, is_written=is_written), places
        first, extent = int(places.min()), int(np.ptp(places)) + 1
        if extent > count:  # with padding in between: check and mark only the pieces that the copy accesses
            for piece in np.unique(places // _PIECE * _PIECE).tolist():
                shared.view_bytes(row, piece, _PIECE, self._report, is_written=is_written)
            is_written = None
        return shared.view_bytes(row, first, extent, self._report, is_written=is_written), places - first

    def _locate_elements(self, fields: MapFields, start: Sequence[int], shifts: Sequence[int]) -> _GlobalElements:
        """Return the elements of a tile, of four rows, or of a column of ``im2col`` mode; report wrong coordinates."""
        of_rows = not OF_ROWS.isdisjoint(self._chunk.instruction.modifiers)
        problem = _find_wrong_count(fields, start, shifts, of_rows=of_rows)
        if problem:
            raise LaunchError(f"{self._source}: {problem}")
        width = fields.dtype.itemsize
        if start[0] * width % 16:
            place = f"byte {start[0] * width} of a row (coordinate {start[0]})"
            text = f"the copy starts at {place}; it must start at a multiple of 16"
            self._report(MisalignedError, (0, 0), text, fields.address)
        stray = fields.explain_wrong_start(start, shifts)
        if self._is_store:
            stray = _explain_wrong_store(fields, start) or stray
        if stray:
            self._report(OutOfBoundsError, (0, 0), stray, fields.address)
        starts = [(start[0], row) for row in start[1:]] if of_rows else [start]
        parts = [fields.locate(first, shifts) for first in starts]
        offsets = np.concatenate([part.offsets for part in parts])
        inside = np.concatenate([part.inside for part in parts])
        return _GlobalElements(fields.address + offsets[None, :], inside[None, :], width, parts[0].columns)

    def _record_access(self, kind: str) -> None:
        """Count the copy, its sectors and its bytes in global memory; ``kind`` is "load" or "store"."""
        places, inside, width, columns = self._elements
        offsets = self._place_bytes(self._shared_start, width * places.size, width).reshape(places.shape)
        access = self._chunk.find_counters("bulk", kind, 16)
        is_multicast = "ranks" in self._numbers
        blocks = self._numbers["ranks"].bit_count() if is_multicast else 1  # each destination reads separately
        if "size" in self._numbers:  # a copy of bytes: also count the sectors for other offsets in shared memory
            sectors = [
                blocks * count_bulk_copy_sectors(places, offsets, shift, is_multicast=is_multicast)
                for shift in range(0, LINE, 16)
            ]
            access.add_untraced(1, sectors[0], places.size * width)
            access.add_shifted(sectors)
            return
        parts = (places, offsets, spread(inside, places.shape))
        rows, row_offsets, within = (np.asarray(part).reshape(-1, columns) for part in parts)
        count = count_bulk_copy_sectors(
            rows, row_offsets, inside=within, is_store=kind == "store", is_multicast=is_multicast
        )
        access.add_untraced(1, blocks * count, int(within.sum()) * width)

    def _read_global(self) -> Array:
        """Return the bytes of the elements in global memory; zeros for elements out of bounds."""
        places, inside, width, _ = self._elements
        if not inside.any():
            return np.zeros(places.size * width, np.uint8)
        unit = min(width, 4)
        parts = self._chunk.context.memory.load(places, unit, width // unit, inside, self._report)
        return np.stack([spread(part, places.shape) for part in parts], axis=-1).reshape(-1).view(np.uint8)

    def load_global(self) -> Array:
        """Count the copy, and load its bytes from global memory; zeros or NaN for elements out of bounds."""
        self._record_access("load")
        data = self._read_global()
        if self._fields and self._fields.fills_nan:
            _, inside, width, _ = self._elements
            data.reshape(-1, width)[~inside.ravel()] = np.resize(_NAN, width)
        return data

    def load_shared(self) -> Array:
        """Load the bytes of a copy within shared memory."""
        row, offset = self._chunk.shared.find_owner(self._row, self._numbers["from"], self._report)
        return self._chunk.shared.view_bytes(row, offset, self._numbers["size"], self._report, is_written=False).copy()

    def store_shared(self, data: Array) -> None:
        """Store bytes in the destination block, or in each block of a multicast, and signal any mbarriers.

        A reduction combines the bytes with those in memory.
        """
        shared, numbers = self._chunk.shared, self._numbers
        rows = [shared.find_owner(self._row, numbers["to"], self._report)[0]]
        if "ranks" in numbers:
            rows = shared.list_blocks(rows[0], numbers["ranks"], self._report)
        offset = self._shared_start
        for row in rows:
            target, order = self._view_shared(row, offset, len(data), is_written=True)
            target[order] = data if self._reduction is None else self._reduction(target[order], data, None)
            if "barrier" in numbers:
                owner, owner_offset = shared.find_owner(self._row, numbers["barrier"], self._report)
                block = self._find_signalled(row, owner)
                signal_barrier(self._chunk, block, owner_offset, self._report, arrived_bytes=len(data))

    def _find_signalled(self, row: int, owner: int) -> int:
        """Return the block whose mbarrier is signalled for bytes stored in the block ``row``.

        ``owner`` is the block of the mbarrier operand. A multicast signals the mbarrier of each destination. With
        ``.cta_group::2``, it signals one mbarrier of each pair of blocks instead: that of the block whose rank is even
        or odd like the rank of ``owner`` (PTX ISA, ``cp.async.bulk.tensor``).
        """
        if "ranks" not in self._numbers:
            return owner
        if "cta_group::2" not in self._chunk.instruction.modifiers:
            return row
        first = self._chunk.shared.find_first_block(row)
        return first + (row - first) // 2 * 2 + (owner - first) % 2

    def copy_shared_to_global(self) -> None:
        """Store or reduce elements of shared memory in global memory; drop those out of bounds. Count the copy."""
        places, inside, width, _ = self._elements
        count = places.size * width
        row, offset = self._chunk.shared.find_owner(self._row, self._numbers["from"], self._report)
        content, order = self._view_shared(row, offset, count, is_written=False)
        data = content[order]
        if self._reduction is not None:
            data = self._reduction(self._read_global(), data, self._fields.dtype if self._fields else None)
        unit = min(width, 4)
        parts = np.ascontiguousarray(data).view(f"u{unit}").reshape(*places.shape, width // unit)
        values = [parts[..., k] for k in range(parts.shape[-1])]
        if inside.any():
            self._chunk.context.memory.store(places, unit, values, inside, self._report)
        self._record_access("store")


def _find_wrong_count(fields: MapFields, start: Sequence[int], shifts: Sequence[int], *, of_rows: bool) -> str:
    """Return why the numbers of coordinates, offsets or rows of the box are wrong; empty if they are right."""
    rank = len(fields.extents)
    allowed = (2, 5) if of_rows else (rank, rank)
    if (rank, len(start)) != allowed:
        has = f"tensor map of {count_noun(rank, 'dimension')} has {count_noun(len(start), 'coordinate')}"
        needed = "a copy of four rows needs a tensor map of 2 dimensions, and 5 coordinates"
        return f"a copy with a {has}; {needed if of_rows else f'it needs {rank}'}"
    if len(shifts) not in (0, rank - 2):
        has = f"tensor map of {count_noun(rank, 'dimension')} has {count_noun(len(shifts), 'im2col offset')}"
        return f"a copy with a {has}; it needs {rank - 2}"
    if of_rows and fields.box[1] != 1:
        return f"the box of the tensor map has {fields.box[1]} rows; a copy of four rows needs a box of one row"
    return ""


def _explain_wrong_store(fields: MapFields, start: Sequence[int]) -> str:
    """Return why a store may not have these coordinates and corners; empty if it may."""
    column = fields.column
    if column and (min(column.lower) < 0 or max(column.upper) > 0):
        corners = f"{column.lower[::-1]} and {column.upper[::-1]}"
        return f"the column store has the corners {corners}; lower ones must be at least 0, upper ones at most 0"
    return f"the tile store starts at {tuple(start)}; no coordinate may be below 0" if min(start) < 0 else ""
