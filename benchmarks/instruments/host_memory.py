"""Memory of this machine, asked before arrays are made in it.

An allocation alone proves nothing: many a Linux grants more than there is, and kills who then writes to it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import DTypeLike

#: Where a container's limit stands, in bytes or as "max" (cgroup v2); missing outside of one.
LIMIT = Path("/sys/fs/cgroup/memory.max")

#: Elements that `counting` makes at a time.
BLOCK = 1 << 20


def physical() -> int:
    """Bytes of memory that this machine has, or this container may use, whoever uses them now."""
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        return min(there, int(LIMIT.read_text(encoding="ascii")))
    except (OSError, ValueError):
        return there


def require(nbytes: int) -> None:
    """Refuse arrays that this machine could not hold even if all of its memory were free.

    What else is in use is not looked at: what passes may still be too much.

    Raises
    ------
    MemoryError : with the bytes needed and those there are.
    """
    there = physical()
    if nbytes > there:
        raise MemoryError(f"they take {nbytes} bytes, it has {there}")


def counting(count: int, dtype: DTypeLike, step: int = 1) -> npt.NDArray[Any]:
    """0, step, 2 step, ... below `count` steps, each cut to what `dtype` holds; never more memory than the array's."""
    made = np.empty(count, dtype)
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        made[start:stop] = np.arange(start, stop) * np.int64(step)
    return made
