"""Local memory of the threads of a chunk: bytes and bounds."""

from __future__ import annotations

from copy import copy

import numpy as np

from ..lanes.symbolic_values import Value, dense
from ..lanes.warps import Array, find_first, spread, unsigned
from ..util.errors import MisalignedError, OutOfBoundsError
from ..util.grammar import count_noun
from .address_map import Report


class LocalMemory:
    """The local memory of each thread of a chunk: ``size`` bytes per thread, initially zero."""

    def __init__(self, blocks: int, threads: int, size: int) -> None:
        self._shape, self._size = (blocks, threads), size
        self._stride = -(-size // 16) * 16
        self._data = np.zeros((blocks, threads * self._stride), np.uint8)

    def select(self, rows: Array) -> LocalMemory:
        """Return the memory of the blocks ``rows``."""
        part = copy(self)
        part._shape, part._data = (len(rows), self._shape[1]), self._data[rows]
        return part

    def _index_elements(self, address: Value, size: int, width: int, active: Array, report: Report) -> Array:
        """Return the index of each thread's first element of ``size`` bytes, 0 if inactive; report wrong addresses."""
        dense_address = dense(address)
        offsets = spread(dense_address.view(f"i{dense_address.itemsize}").astype(np.int64), self._shape)
        is_active = spread(active, self._shape)
        is_outside = (offsets < 0) | (offsets > self._size - width)
        for is_wrong, error, problem in (
            (is_outside, OutOfBoundsError, f"; the thread has {count_noun(self._size, 'byte')}"),
            ((offsets & (width - 1)) != 0, MisalignedError, f", which is not a multiple of {width} bytes"),
        ):
            if (is_wrong & is_active).any():
                block, thread = find_first(is_wrong & is_active)
                offset = int(offsets[block, thread])
                text = f"{count_noun(width, 'byte')} at address {offset} of local memory{problem}"
                report(error, (block, thread), text, offset)
        first = np.arange(self._shape[0] * self._shape[1]).reshape(self._shape) * self._stride
        return np.where(is_active, (first + offsets) // size, 0)

    def load(self, address: Value, size: int, count: int, active: Array, report: Report) -> list[Array]:
        """Read ``count`` adjacent elements of ``size`` bytes for each active thread, as `ArrayMemory.load` does."""
        index = self._index_elements(address, size, size * count, active, report)
        return [self._data.reshape(-1).view(unsigned(size))[index + k] for k in range(count)]

    def store(self, address: Value, size: int, values: list[Array], active: Array, report: Report) -> None:
        """Write adjacent elements of ``size`` bytes for each active thread, as `ArrayMemory.store` does."""
        index = self._index_elements(address, size, size * len(values), active, report)
        is_active = spread(active, self._shape)
        for k, value in enumerate(values):
            self._data.reshape(-1).view(unsigned(size))[(index + k)[is_active]] = spread(value, self._shape)[is_active]
