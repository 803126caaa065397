"""Memory of this machine, checked before arrays are allocated.

An allocation alone proves nothing. Many Linux machines grant more memory than there is, and kill the process that
writes to it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import DTypeLike

#: File with a container's limit, in bytes or as "max" (cgroup v2); missing outside of one.
LIMIT = Path("/sys/fs/cgroup/memory.max")

#: Whole numbers from 0 that float16 tells apart; beyond 65504 it has none.
HALF_NUMBERS = 2048

#: Elements that `counting` makes at a time.
BLOCK = 1 << 20


def physical() -> int:
    """Memory of this machine or container in bytes, used or not."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        return min(total, int(LIMIT.read_text(encoding="ascii")))
    except (OSError, ValueError):
        return total


def require(nbytes: int) -> None:
    """Raise `MemoryError` for arrays that this machine could not hold even if all of its memory were free.

    Memory that is in use is not considered, so arrays that pass may still be too large.
    """
    total = physical()
    if nbytes > total:
        raise MemoryError(f"they take {nbytes} bytes, it has {total}")


def counting(count: int, dtype: DTypeLike, step: int = 1) -> npt.NDArray[Any]:
    """Count 0, step, 2 step, ..., cut to a dtype, without ever taking more memory than the result's.

    float16 begins anew at 2048.
    """
    array = np.empty(count, dtype)
    period = HALF_NUMBERS if array.dtype == np.float16 else count
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        array[start:stop] = np.arange(start, stop) % period * np.int64(step)
    return array
