"""Fields of a tensor map, and the elements that a copy moves; tuples are in axis order, x first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...lanes.warps import Array
from ...util.architectures import MAX_SHARED
from ...util.grammar import count_noun

#: The bits of a shared address that a swizzle changes, by its span in bytes; they are XORed with the bits 3 above.
SWIZZLES = {0: 0x00, 32: 0x10, 64: 0x30, 128: 0x70}
#: Bits of a corner coordinate (signed) and of an offset (unsigned), by dimensions of an image tensor.
_IM2COL_BITS = {3: 16, 4: 8, 5: 5}
_BYTE = np.dtype("u1")


class Column(NamedTuple):
    """Fields of ``im2col`` mode: corners of the bounding box, channels per pixel, and pixels."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    channels: int
    pixels: int


class Elements(NamedTuple):
    """Elements of a copy in the order of shared memory: byte offsets in the array, and a mask, true in the tensor.

    Both have one axis. ``columns`` is the number of elements per row.
    """

    offsets: Array
    inside: Array
    columns: int


@dataclass(frozen=True)
class MapFields:
    """Fields of a tensor map: for tiles, or for columns of pixels if ``column`` is set."""

    address: int = 0
    dtype: np.dtype[Any] = _BYTE
    extents: tuple[int, ...] = (0,)
    #: Byte strides of each axis except x.
    pitches: tuple[int, ...] = ()
    box: tuple[int, ...] = (0,)
    steps: tuple[int, ...] = (0,)
    swizzle: int = 0
    interleave: int = 0
    fills_nan: bool = False
    column: Column | None = None

    @classmethod
    def describe(cls, array: Array, address: int, **fields: Any) -> MapFields:
        """Return the fields of a map of an array with contiguous rows; ``fields`` are all other fields, x first."""
        return cls(address, array.dtype, array.shape[::-1], array.strides[-2::-1], **fields)

    def find_problem(self) -> str:
        """Return the first field that the driver API refuses, with the value; empty if none is known."""
        rank, shape, size = len(self.extents), self.extents[::-1], self.dtype.itemsize
        if not 1 <= rank <= 5:
            return f"the tensor has {rank} dimensions; allowed are 1 to 5"
        if size not in (1, 2, 4, 8):
            return f"elements have {size} bytes; allowed are 1, 2, 4, 8"
        if not all(1 <= extent <= 1 << 32 for extent in shape):
            return f"the tensor has the shape {shape}; each axis must have 1 to 2**32 elements"
        if self.interleave and rank < 3:
            return f"the tensor has {count_noun(rank, 'dimension')}; an interleaved layout needs 3 to 5"
        unit = max(16, self.interleave)
        if self.address % unit:
            return f"the tensor is at address {self.address:#x}; the address must be a multiple of {unit}"
        for pitch in self.pitches:
            if pitch % unit or not 0 <= pitch < 1 << 40:
                allowed = f"a multiple of {unit}" if pitch % unit else "from 0 to 2**40 - 1"
                stride = count_noun(pitch, "byte")
                return f"the array of shape {shape} has a stride of {stride}; the stride must be {allowed}"
        if self.fills_nan and self.dtype.kind not in "fV":
            return f"elements are {self.dtype}; only floats can be filled with NaN"
        if len(self.steps) != rank or not all(1 <= step <= 8 for step in self.steps):
            return f"element strides are {self.steps[::-1]}; give a number from 1 to 8 for each axis of {shape}"
        if self.swizzle not in SWIZZLES:
            return f"swizzle is {self.swizzle}; allowed are {', '.join(map(str, SWIZZLES))}"
        if self.column:
            return self._find_problem_of_column(self.column, rank, shape) or self._find_problem_of_row()
        return self._find_problem_of_box(rank, shape, size) or self._find_problem_of_row()

    @property
    def _row_bytes(self) -> int:
        """Bytes of a row of the box; in ``im2col`` mode, of the channels of a pixel."""
        return self.dtype.itemsize * (self.column.channels if self.column else self.box[0])

    def _find_problem_of_row(self) -> str:
        span, width = self.swizzle if not self.interleave else 0, self._row_bytes
        if width % 16 or (span and width > span):
            channels = self.column and count_noun(self.column.channels, "channel")
            name = f"{channels} of a pixel" if channels else f"box {self.box[::-1]}"
            most = f" and at most {span}, the span of the swizzle" if span else ""
            return f"{name}: a row has {count_noun(width, 'byte')}; it must have a multiple of 16{most}"
        return ""

    def _find_problem_of_box(self, rank: int, shape: tuple[int, ...], size: int) -> str:
        box = self.box[::-1]
        if len(box) != rank or not all(1 <= count <= 256 for count in box):
            return f"box is {box}; give a number from 1 to 256 for each axis of {shape}"
        count = size * int(np.prod(self._count_elements()))
        if count > MAX_SHARED:  # an H200 rejects 256 KiB; its limit is unknown, above 16 KiB
            return f"box {box} has {count} bytes; at most {MAX_SHARED}, a block's shared memory, are allowed"
        return ""

    def _find_problem_of_column(self, column: Column, rank: int, shape: tuple[int, ...]) -> str:
        if rank not in _IM2COL_BITS:
            return f"the tensor has the shape {shape}; im2col needs 3 to 5 dimensions"
        most = 1 << (_IM2COL_BITS[rank] - 1)
        for name, corner in (("lower", column.lower), ("upper", column.upper)):
            if len(corner) != rank - 2 or not all(-most <= place < most for place in corner):
                numbers = count_noun(rank - 2, "number")
                return f"the {name} corner is {corner[::-1]}; give {numbers} from {-most} to {most - 1}"
        if any(high < low for low, high in self.find_bounds(column)):
            return f"no pixel of {shape} lies between the corners {column.lower[::-1]} and {column.upper[::-1]}"
        for name, count, limit in (("channels", column.channels, 256), ("pixels", column.pixels, 1024)):
            if not 1 <= count <= limit:
                return f"the column has {count} {name}; allowed are 1 to {limit}"
        return ""

    def find_bounds(self, column: Column) -> list[tuple[int, int]]:
        """Return the first and the last coordinate of the bounding box along width, height and depth."""
        ends = (extent - 1 for extent in self.extents[1:-1])
        return [(low, end + high) for low, high, end in zip(column.lower, column.upper, ends, strict=True)]

    def explain_wrong_start(self, start: Sequence[int], offsets: Sequence[int]) -> str:
        """Return why an im2col column may not start here; empty for tiles and for valid starts."""
        if not self.column:
            return ""
        most = (1 << _IM2COL_BITS[len(self.extents)]) - 1
        for offset in offsets:
            if offset > most:
                return f"im2col offsets are {(*offsets,)}; allowed are 0 to {most} (an H200 drops higher bits)"
        bounds = self.find_bounds(self.column)
        if all(low <= place <= high for place, (low, high) in zip(start[1:], bounds, strict=False)):
            return ""
        lows, highs = zip(*bounds, strict=True)
        return f"the column begins at {(*start,)}; it must begin within the bounding box, {lows} to {highs}"

    def locate(self, start: Sequence[int], offsets: Sequence[int] = ()) -> Elements:
        """Return the elements of a copy that begins at the coordinates ``start``, x first, with ``im2col`` offsets."""
        if self.column:
            return self._locate_column(self.column, start, offsets)
        steps, counts = (1, *self.steps[1:]), self._count_elements()
        places = [first + step * np.arange(count) for first, step, count in zip(start, steps, counts, strict=True)]
        return self._combine(np.ix_(*places[::-1])[::-1], counts[0])

    def _count_elements(self) -> list[int]:
        """Return the number of elements that a tile copy moves along each axis. TMA ignores the element stride of x."""
        return [-(-count // step) for count, step in zip(self.box, (1, *self.steps[1:]), strict=True)]

    def _locate_column(self, column: Column, start: Sequence[int], offsets: Sequence[int]) -> Elements:
        """Enumerate pixels along width, then height and depth, then images.

        The first line begins at ``start``, all others at the lower corner.
        """
        # `carry` is the number of pixels after the first one, then of lines after the first line, and so on.
        carry, axes = np.arange(column.pixels)[:, None], [start[0] + np.arange(column.channels)]
        shifts = offsets or (0,) * len(column.lower)
        bounds = self.find_bounds(column)
        for first, (low, high), step, shift in zip(start[1:-1], bounds, self.steps[1:-1], shifts, strict=True):
            pixels_in_first_line, pixels_per_line = (high - first) // step + 1, (high - low) // step + 1
            later = carry - pixels_in_first_line  # pixels after the first line; negative within it
            coordinate = np.where(later < 0, first + carry * step, low + later % pixels_per_line * step)
            carry = np.where(later < 0, 0, 1 + later // pixels_per_line)
            axes.append(coordinate + shift)
        return self._combine([*axes, start[-1] + carry], column.channels)

    def _combine(self, axes: Sequence[Array], columns: int) -> Elements:
        """Return the elements with coordinates ``axes``, arrays that broadcast together, x first."""
        offset, inside = np.zeros((1,), np.int64), np.ones((1,), bool)
        for coordinate, pitch, extent in zip(axes, (self.dtype.itemsize, *self.pitches), self.extents, strict=True):
            offset = offset + np.clip(coordinate, 0, extent - 1) * pitch
            inside = inside & (coordinate >= 0) & (coordinate < extent)
        return Elements(offset.reshape(-1), np.broadcast_to(inside, offset.shape).reshape(-1), columns)

    def pad_offsets(self, offsets: Array) -> Array:
        """Return the shared offsets of bytes from their offsets in a dense box.

        Rows are at least a swizzle span apart (CUDA guide).
        """
        row = self._row_bytes
        return np.asarray(offsets // row * max(row, self.swizzle) + offsets % row)

    def swizzle_addresses(self, addresses: Array) -> Array:
        """Apply the swizzle to addresses in shared memory."""
        return np.asarray(addresses ^ ((addresses >> 3) & SWIZZLES[self.swizzle]))
