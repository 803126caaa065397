"""Memory of this machine, asked before arrays are made in it.

An allocation alone proves nothing: many a Linux grants more than there is, and kills who then writes to it.
"""

from __future__ import annotations

import os


def physical() -> int:
    """Bytes of memory of this machine, whoever uses them."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def require(nbytes: int) -> None:
    """Refuse what this machine cannot hold even if all of its memory were free.

    Raises
    ------
    MemoryError : with the bytes needed and those there are.
    """
    there = physical()
    if nbytes > there:
        raise MemoryError(f"they take {nbytes} bytes, it has {there}")
