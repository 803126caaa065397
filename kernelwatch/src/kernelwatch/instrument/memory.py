"""Device memory that a measuring process keeps: one arena for the buffers of large jobs, and references.

The time of strided writes depends on the memory that they hit: read-coalesced transposes differed by up to 5.7 % on an
H200 with the place of their buffers (docs/evidence/times.md, "Where buffers lie"). An arena, allocated before any job's
buffers, keeps a job's buffers in the same place. NumPy writes a reference once; it serves many comparisons.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kernelwatch.instrument import device
from kernelwatch.instrument.inputs import Bytes

#: Bytes of the arena: the suite's largest job needs 5.2 GB.
ARENA_BYTES = 6 << 30

#: Bytes of a page of large allocations: buffers are aligned as in allocations of their own.
_PAGE = 2 << 20

#: Reads from a reference: called with the first byte and the host memory to fill.
ReferenceReader = Callable[[int, Bytes], None]

#: Requests a reference of a length in bytes.
FetchReference = Callable[[int], ReferenceReader]

#: Maximum bytes of references that are kept on the host; the newest stay.
_HOST_BYTES = 2 << 30

#: Bytes that are read and uploaded at a time.
_PIECE_BYTES = 64 << 20


@lru_cache
def _staging_buffer() -> Bytes:
    return device.allocate_page_locked(_PIECE_BYTES)


class _ArenaPart(NamedTuple):
    """A part of the arena, with the interface of PyCUDA's allocations."""

    address: int

    def __int__(self) -> int:
        return self.address

    def free(self) -> None:
        """Do nothing: the arena stays."""


class _DevicePool:
    """One allocation of `size` bytes in the process's context, which can be released; none for 0 bytes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._pool: Any = device.allocate(size)[0] if size else None

    def release(self) -> None:
        """Free the memory, for good."""
        if self._pool is not None:
            self._pool.free()
        self._pool = None


class Arena(_DevicePool):
    """Memory for the buffers of one job at a time.

    A device with less than twice as many bytes free has no arena: each job then allocates its own memory.
    """

    def __init__(self, size: int = ARENA_BYTES) -> None:
        free, _total = device.cuda.mem_get_info()
        super().__init__(size if free >= 2 * size else 0)

    def allocate(self, *sizes: int) -> list[Any]:
        """Return memory of each of these sizes, in bytes. Errors as `device.allocate`."""
        *starts, end = itertools.accumulate((-(-size // _PAGE) * _PAGE for size in sizes), initial=0)
        if self._pool is None or end > self._size:
            return device.allocate(*sizes)
        return [_ArenaPart(int(self._pool) + start) for start in starts]


class ReferenceStore(_DevicePool):
    """References by name: large ones in the device pool, in the process's context, and those read by the host here.

    The pool is allocated before any buffers, so that these lie where they would without it.
    """

    def __init__(self, size: int = 0) -> None:
        super().__init__(size)
        self._on_host: OrderedDict[str, Bytes] = OrderedDict()
        self._on_device: dict[str, int] = {}
        self._used = 0

    def has_reference(self, name: str) -> bool:
        """Return whether a reference is kept."""
        return name in self._on_host or name in self._on_device

    def load_on_host(self, name: str, length: int, fetch: FetchReference) -> Bytes:
        """Return a reference in host memory."""
        if name not in self._on_host:
            reference = np.empty(length, np.uint8)
            fetch(length)(0, reference)
            self._on_host[name] = reference
            while len(self._on_host) > 1 and sum(map(len, self._on_host.values())) > _HOST_BYTES:
                self._on_host.popitem(last=False)
        self._on_host.move_to_end(name)
        return self._on_host[name]

    def load_on_device(self, name: str, length: int, fetch: FetchReference) -> int | None:
        """Return the address of a reference on the device, of `length` bytes, in the current process's context.

        None if it does not fit there. A full store forgets all other references, whose addresses become invalid.
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
        """Free the memory, for good."""
        self._on_device.clear()
        super().release()


def make_reader(reference: Bytes) -> ReferenceReader:
    """Return a reader of a reference in host memory."""
    return lambda start, into: np.copyto(into, reference[start : start + len(into)])
