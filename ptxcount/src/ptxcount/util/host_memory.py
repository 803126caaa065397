"""Memory of this machine, checked before arrays are allocated.

A successful allocation proves nothing: Linux overcommits memory, and later kills a process that writes to too much.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import DTypeLike

#: File with the memory limit of a container, in bytes or as "max" (cgroup v2); missing outside of containers.
LIMIT = Path("/sys/fs/cgroup/memory.max")
#: Length after which a range of float16 restarts: float16 represents 0 to 2047 exactly.
HALF_NUMBERS = 2048
#: Elements per step of `make_range`.
BLOCK = 1 << 20


def total_memory_bytes() -> int:
    """Return the smaller of this machine's memory and its container's limit (`LIMIT`, only cgroup v2), in bytes."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        return min(total, int(LIMIT.read_text(encoding="ascii")))
    except (OSError, ValueError):
        return total


def require(nbytes: int) -> None:
    """Raise `MemoryError` if arrays of ``nbytes`` bytes exceed this machine's memory or its container's limit.

    Memory in use is ignored, so arrays that pass may still be too large.
    """
    total = total_memory_bytes()
    if nbytes > total:
        raise MemoryError(f"{nbytes} bytes of memory are needed; this machine or its container allows {total}")


def make_range(count: int, dtype: DTypeLike, step: int = 1) -> npt.NDArray[Any]:
    """Return 0, step, 2 step, ... as an array of ``count`` elements. Integers too large for the dtype wrap around.

    A range of float16 restarts after 2048 elements. No temporary array is larger than `BLOCK` elements.
    """
    array = np.empty(count, dtype)
    period = HALF_NUMBERS if array.dtype == np.float16 else count
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        array[start:stop] = np.arange(start, stop) % period * np.int64(step)
    return array
