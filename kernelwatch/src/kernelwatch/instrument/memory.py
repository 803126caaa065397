"""Device memory that a measuring process reuses: an arena for buffers in the process's own context, and references.

The time of strided writes depends on the address. On an H200, other addresses changed the times of read-coalesced
transposes by up to 5.7 % (docs/evidence/times.md, "Where buffers lie"). An arena, which is allocated first, keeps the
buffers of a job at the same addresses.
"""

import itertools
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kernelwatch.instrument import device
from kernelwatch.instrument.inputs import Bytes

#: Bytes of the arena. The largest job of this project's suite needs 5.2 GB.
ARENA_BYTES = 6 << 30

#: Alignment of buffers in the arena in bytes: that of large allocations.
_PAGE = 2 << 20

#: Function that reads a reference. Its arguments are the first byte to read and the host memory to fill.
ReferenceReader = Callable[[int, Bytes], None]

#: Function that requests a reference; its argument is the length in bytes.
FetchReference = Callable[[int], ReferenceReader]

#: Maximum bytes of references on the host, unless a single one is larger. The least recently used are dropped.
_HOST_BYTES = 2 << 30

#: Bytes to read and upload at a time.
_PIECE_BYTES = 64 << 20


@lru_cache
def _staging_buffer() -> Bytes:
    return device.allocate_page_locked(_PIECE_BYTES)


class _ArenaPart(NamedTuple):
    """A part of the arena that begins at a device address, with the interface of PyCUDA's allocations."""

    address: int

    def __int__(self) -> int:
        return self.address

    def free(self) -> None:
        """Do nothing: the arena keeps its memory."""


class _DevicePool:
    """An allocation of `size` bytes in the process's context, which can be released; none for 0 bytes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._pool: Any = device.allocate(size)[0] if size else None

    def release(self) -> None:
        """Free the memory; the pool is never allocated again."""
        if self._pool is not None:
            self._pool.free()
        self._pool = None


class Arena(_DevicePool):
    """Memory for the buffers of one job at a time.

    A job allocates its own memory if it is larger than the arena. All jobs do so after `release`, or if less than twice
    the arena's size is free at the beginning.
    """

    def __init__(self, size: int = ARENA_BYTES) -> None:
        free, _total = device.cuda.mem_get_info()
        super().__init__(size if free >= 2 * size else 0)

    def allocate(self, *sizes: int) -> list[Any]:
        """Return one buffer per size in bytes. A buffer in the arena is valid until the next call.

        Raises NotImplementedError if too little memory is free.
        """
        *starts, end = itertools.accumulate((-(-size // _PAGE) * _PAGE for size in sizes), initial=0)
        if self._pool is None or end > self._size:
            return device.allocate(*sizes)
        return [_ArenaPart(int(self._pool) + start) for start in starts]


class ReferenceStore(_DevicePool):
    """References by name: in a pool of `size` bytes on the device, and in host memory.

    The pool is allocated before any buffers, so that the pool does not change the buffers' addresses.
    """

    def __init__(self, size: int = 0) -> None:
        super().__init__(size)
        self._on_host: OrderedDict[str, Bytes] = OrderedDict()
        self._on_device: dict[str, int] = {}
        self._used = 0

    def has_reference(self, name: str) -> bool:
        """Return whether a reference is stored on the host or on the device."""
        return name in self._on_host or name in self._on_device

    def load_on_host(self, name: str, length: int, fetch: FetchReference) -> Bytes:
        """Return a reference of `length` bytes in host memory; call `fetch` unless the host stores it already."""
        if name not in self._on_host:
            reference = np.empty(length, np.uint8)
            fetch(length)(0, reference)
            self._on_host[name] = reference
            while len(self._on_host) > 1 and sum(map(len, self._on_host.values())) > _HOST_BYTES:
                self._on_host.popitem(last=False)
        self._on_host.move_to_end(name)
        return self._on_host[name]

    def load_on_device(self, name: str, length: int, fetch: FetchReference) -> int | None:
        """Return the device address of a reference of `length` bytes; call `fetch` if neither host nor device store it.

        Return None if the pool is smaller than the reference, or was released. If the pool is full, its other
        references are dropped, and their addresses become invalid.
        """
        if name not in self._on_device:
            if self._pool is None or length > self._size:
                return None
            on_host = self._on_host.get(name)
            read_reference = fetch(length) if on_host is None else make_reader(on_host)
            if self._used + length > self._size:
                self._on_device.clear()
                self._used = 0
            address = int(self._pool) + self._used
            for start in range(0, length, _PIECE_BYTES):
                piece = _staging_buffer()[: length - start]
                read_reference(start, piece)
                device.cuda.memcpy_htod(address + start, piece)
            self._on_device[name] = address
            self._used += length
        return self._on_device[name]

    def release(self) -> None:
        """Free the pool, which is never allocated again. References in host memory stay."""
        self._on_device.clear()
        super().release()


def make_reader(reference: Bytes) -> ReferenceReader:
    """Return a reader of a reference in host memory."""
    return lambda start, into: np.copyto(into, reference[start : start + len(into)])
