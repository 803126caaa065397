"""What a measuring process keeps on the device: one place for the buffers of large jobs, and references.

The time of strided writes depends on which memory they hit: read-coalesced transposes differed by up to 5.7 % on an
H200 with the place of their buffers (docs/evidence/times.md, "Where buffers lie"). In one allocation, made before any
job's buffers, those of a job always lie in the same place. References are made once by NumPy, compared with many times.
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
SIZE = 6 << 30

#: Bytes of a page of large allocations: buffers begin where they would in allocations of their own.
_PAGE = 2 << 20

#: (first byte, host memory to fill): reads from a reference.
Source = Callable[[int, Bytes], None]

#: (bytes) -> what a job's output must hold, which has so many.
Fetch = Callable[[int], Source]

#: Bytes of the newest references that are kept on the host.
_KEPT = 2 << 30

#: Bytes that are read and uploaded at a time.
_PIECE = 64 << 20


@lru_cache
def _staging() -> Bytes:
    return device.page_locked(_PIECE)


class _Piece(NamedTuple):
    """A part of the arena, used as PyCUDA's allocations are."""

    address: int

    def __int__(self) -> int:
        return self.address

    def free(self) -> None:
        """Do nothing: the arena stays."""


class _Pool:
    """One allocation of `size` bytes in the context that lasts, which makes room when it must; none of 0 bytes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._pool: Any = device.allocate(size)[0] if size else None

    def forget(self) -> None:
        """Give the memory back, for good."""
        if self._pool is not None:
            self._pool.free()
        self._pool = None


class Arena(_Pool):
    """Gives memory to one job at a time.

    A device with less than twice as many bytes free has no arena: each job then allocates its own memory.
    """

    def __init__(self, size: int = SIZE) -> None:
        free, _total = device.cuda.mem_get_info()
        super().__init__(size if free >= 2 * size else 0)

    def allocate(self, *sizes: int) -> list[Any]:
        """Return memory of each of these sizes, in bytes. Errors as `device.allocate`."""
        *starts, end = itertools.accumulate((-(-size // _PAGE) * _PAGE for size in sizes), initial=0)
        if self._pool is None or end > self._size:
            return device.allocate(*sizes)
        return [_Piece(int(self._pool) + start) for start in starts]


class References(_Pool):
    """References by their names: large ones on the device, in the context that lasts, and what is read there here.

    Those on the device share the pool, made before any buffers, so that these lie where they would without.
    """

    def __init__(self, size: int = 0) -> None:
        super().__init__(size)
        self._on_host: OrderedDict[str, Bytes] = OrderedDict()
        self._on_device: dict[str, int] = {}
        self._used = 0

    def has(self, name: str) -> bool:
        """Return whether one is kept."""
        return name in self._on_host or name in self._on_device

    def host(self, name: str, length: int, fetch: Fetch) -> Bytes:
        """Return one in host memory."""
        if name not in self._on_host:
            held = np.empty(length, np.uint8)
            fetch(length)(0, held)
            self._on_host[name] = held
            while len(self._on_host) > 1 and sum(map(len, self._on_host.values())) > _KEPT:
                self._on_host.popitem(last=False)
        self._on_host.move_to_end(name)
        return self._on_host[name]

    def device(self, name: str, length: int, fetch: Fetch) -> int | None:
        """Return the address of one, as long as `stretches` says, in the context that lasts, the current one.

        None if it does not fit there.
        """
        if name not in self._on_device:
            if self._pool is None or length > self._size:
                return None
            held = self._on_host.get(name)
            read = fetch(length) if held is None else reader(held)
            if self._used + length > self._size:
                self._on_device.clear()
                self._used = 0
            address = int(self._pool) + self._used
            for start in range(0, length, _PIECE):
                piece = _staging()[: length - start]
                read(start, piece)
                device.cuda.memcpy_htod(address + start, piece)
            self._on_device[name] = address
            self._used += length
        return self._on_device[name]

    def forget(self) -> None:
        """As `_Pool.forget`."""
        self._on_device.clear()
        super().forget()


def reader(held: Bytes) -> Source:
    """Return what reads from a reference that lies here."""
    return lambda start, into: np.copyto(into, held[start : start + len(into)])
