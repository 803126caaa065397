"""References that the measuring process keeps: made once by NumPy, compared with many times."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwatch.instrument import device, tools
from kernelwatch.instrument.inputs import Bytes

#: (bytes) -> that many, in host memory: what a job's output must hold.
Fetch = Callable[[int], Bytes]

#: References up to this many bytes are kept on the host, for contexts that do not last; the newest so many.
_SMALL, _KEPT = 16 << 20, 64


class References:
    """References by their names: large ones on the device, in the context that lasts, small ones also on the host.

    Those on the device share one allocation, made before any buffers, so that these lie where they would without.

    Parameters
    ----------
    size : int
        Bytes of that allocation; 0 for none.
    """

    def __init__(self, size: int = 0) -> None:
        self._on_host: OrderedDict[str, Bytes] = OrderedDict()
        self._on_device: dict[str, int] = {}
        self._size, self._used = size, 0
        self._pool: Any = device.allocate(size)[0] if size else None

    def has(self, name: str) -> bool:
        """Return whether one is kept."""
        return name in self._on_host or name in self._on_device

    def host(self, name: str, length: int, fetch: Fetch) -> Bytes:
        """Return one in host memory."""
        found = self._on_host.get(name)
        if found is None:
            found = fetch(length)
            if length <= _SMALL:
                self._on_host[name] = found = np.array(found)
                if len(self._on_host) > _KEPT:
                    self._on_host.popitem(last=False)
        return found

    def device(self, name: str, length: int, fetch: Fetch) -> int | None:
        """Return the address of one in the context that lasts, the current one; None if it does not fit there."""
        if name not in self._on_device:
            if self._pool is None or length > self._size:
                return None
            held = self.host(name, length, fetch)
            if self._used + length > self._size:
                self._on_device.clear()
                self._used = 0
            self._on_device[name] = int(self._pool) + self._used
            device.cuda.memcpy_htod(self._on_device[name], held)
            self._used += -(-length // tools.WIDTH) * tools.WIDTH
        return self._on_device[name]

    def forget(self) -> bool:
        """Give the device's memory back, for good; return whether there was any."""
        if self._pool is None:
            return False
        self._pool.free()
        self._on_device.clear()
        self._pool = None
        return True
