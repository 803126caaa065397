"""References, as a commit's process writes them: into memory that the measuring process reads, some before it asks."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from kernelwatch.instrument.inputs import Bytes

#: How many are written at once while the GPU measures.
_AT_ONCE = 2


class Reference(NamedTuple):
    """The expected content of an output: its length in bytes, and a function that writes it into memory."""

    length: int
    fill: Callable[[Bytes], None]

    def content(self) -> Bytes:
        """Return the bytes in memory of this process."""
        found = np.empty(self.length, np.uint8)
        self.fill(found)
        return found


def mapped(handle: int, length: int) -> Bytes:
    """Return the memory of a handle: so many bytes, or all for 0."""
    return np.frombuffer(mmap.mmap(handle, length, mmap.MAP_SHARED), np.uint8)


class ReferenceMemory:
    """Memory that its process writes references into and another reads. To make it anew would take as long as writing.

    `handle` is the memory's.
    """

    def __init__(self) -> None:
        self.handle = os.memfd_create("reference")
        self._held: Bytes = np.empty(0, np.uint8)

    def write(self, reference: Reference) -> int:
        """Write a reference and return the memory's handle."""
        if reference.length > len(self._held):
            os.truncate(self.handle, reference.length)
            self._held = mapped(self.handle, reference.length)
        reference.fill(self._held[: reference.length])
        return self.handle


class WrittenAhead:
    """Writes references, some of them before they are asked for: NumPy makes them while the GPU measures."""

    def __init__(self) -> None:
        self._now = ReferenceMemory()
        self._free = [ReferenceMemory() for _ in range(_AT_ONCE)]
        self._threads = ThreadPoolExecutor(_AT_ONCE)
        #: By the bytes and the function of a reference: where it lies, once it is written.
        self._ahead: dict[Reference, tuple[ReferenceMemory, Future[int]]] = {}
        #: What jobs call those that have been written.
        self._known: set[str] = set()

    def look_ahead(self, now: str, later: Iterable[tuple[str, Reference]]) -> None:
        """Begin with the first of later references that are not known, as far as there is memory."""
        self._known.add(now)
        room = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
        for name, reference in later if self._free else ():
            if name not in self._known:
                if sum(each.length for each in (*self._ahead, reference)) > room:
                    return
                self._known.add(name)
                memory = self._free.pop()
                self._ahead[reference] = memory, self._threads.submit(memory.write, reference)
                if not self._free:
                    return

    def write(self, reference: Reference) -> int:
        """Return the handle of memory that holds a reference. It is valid until the next is asked for."""
        if reference not in self._ahead:
            return self._now.write(reference)
        self._free.append(self._now)
        self._now, written = self._ahead.pop(reference)
        return written.result()
