"""Stale reads: non-coherent loads of memory that the launch itself has written.

The memory model of PTX excludes ``ld.global.nc`` and texture fetches. CUDA allows them only for data that a kernel does
not write. ptxas moves them before stores and barriers, and their cache may keep the old value.
"""

import numpy as np

from ..lanes.warps import Array, unsigned
from ..ptx.program import Instruction
from ..util.errors import Source

#: Number of all sources of writes after the first 254: a byte holds the number.
_MAX_NUMBER = 255
_FETCHES = ("tex", "tld4")


class WrittenBytes:
    """The bytes of an array that a launch has written, and the instruction that wrote each byte last."""

    def __init__(self, size: int) -> None:
        #: Number of the last writer of each byte; 0 if there is none.
        self._writers = np.zeros(size, np.uint8)
        #: Number of each source of writes, from 1 on; one for all after the first 254.
        self._numbers: dict[Source | None, int] = {}

    def record(self, index: Array, size: int, count: int, source: Source | None) -> None:
        """Record writes of ``count`` adjacent elements of ``size`` bytes, of which ``index`` has the first."""
        number = self._numbers.setdefault(source, min(len(self._numbers) + 1, _MAX_NUMBER))
        elements, (value,) = self._view_elements(size), np.full(size, number, np.uint8).view(unsigned(size))
        for k in range(count):
            elements[index + k] = value

    @property
    def has_writes(self) -> bool:
        """True if the launch has written the array."""
        return bool(self._numbers)

    def find_read(self, index: Array, size: int, count: int) -> tuple[int, Source | None] | None:
        """Return the first access that reads a written byte, and the writer if known; None if there is no access."""
        elements = self._view_elements(size)
        read = np.stack([elements[index + k] for k in range(count)], axis=1).view(np.uint8)
        if not read.any():
            return None
        access, byte = divmod(int((read != 0).argmax()), read.shape[1])
        number = int(read[access, byte])
        return access, None if number == _MAX_NUMBER else [*self._numbers][number - 1]

    def _view_elements(self, size: int) -> Array:
        return self._writers[: self._writers.size // size * size].view(unsigned(size))


def describe_load(load: Instruction) -> tuple[str, str] | None:
    """Return the name of a non-coherent load, and the advice for it; None for other instructions."""
    if "nc" in load.modifiers:
        return "non-coherent load", "use __ldcg(), or pointers without const __restrict__"
    return ("texture fetch", "fetch it in another launch") if load.opcode in _FETCHES else None
