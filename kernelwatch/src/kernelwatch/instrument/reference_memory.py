"""References: expected outputs, and contents before a launch that do not repeat a block.

A commit's process writes them into shared memory for the measuring process, some in advance.
"""

import mmap
import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from kernelwatch.instrument.inputs import Bytes

#: Maximum number of references that are written in advance, while the GPU measures.
_MAX_AHEAD = 2


class Reference(NamedTuple):
    """A launch's reference: its length in bytes, and a function that writes it into memory."""

    length: int
    fill: Callable[[Bytes], None]

    def content(self) -> Bytes:
        """Return the reference's bytes in new memory of this process."""
        memory = np.empty(self.length, np.uint8)
        self.fill(memory)
        return memory


def map_memory(handle: int, length: int) -> Bytes:
    """Map `length` bytes of the shared memory of a file descriptor; 0 maps all of the memory."""
    return np.frombuffer(mmap.mmap(handle, length, mmap.MAP_SHARED), np.uint8)


class ReferenceMemory:
    """Shared memory for references; `handle` is its file descriptor.

    The memory is reused, because allocating takes as long as writing.
    """

    def __init__(self) -> None:
        self.handle = os.memfd_create("reference")
        self._memory: Bytes = np.empty(0, np.uint8)

    def write(self, reference: Reference) -> int:
        """Write a reference into the memory; return the memory's handle."""
        if reference.length > len(self._memory):
            os.truncate(self.handle, reference.length)
            self._memory = map_memory(self.handle, reference.length)
        reference.fill(self._memory[: reference.length])
        return self.handle


class ReferenceWriter:
    """Writes references. NumPy computes some before they are requested, while the GPU measures."""

    def __init__(self) -> None:
        self._current = ReferenceMemory()
        self._free = [ReferenceMemory() for _ in range(_MAX_AHEAD)]
        self._threads = ThreadPoolExecutor(_MAX_AHEAD)
        #: Reference -> its memory, and the future of its handle.
        self._ahead: dict[Reference, tuple[ReferenceMemory, Future[int]]] = {}
        #: Names of the references whose writing has begun.
        self._seen_names: set[str] = set()

    def look_ahead(self, current: str, later: Iterable[tuple[str, Reference]]) -> None:
        """Start writing later references in threads, except those that were written before.

        At most _MAX_AHEAD references, and a quarter of the host's memory, wait for their requests. `current` is the
        name of the reference of the job that is measured now.
        """
        self._seen_names.add(current)
        if not self._free:
            return
        room = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
        for name, reference in later:
            if name in self._seen_names:
                continue
            if sum(pending.length for pending in (*self._ahead, reference)) > room:
                return
            self._seen_names.add(name)
            memory = self._free.pop()
            self._ahead[reference] = memory, self._threads.submit(memory.write, reference)
            if not self._free:
                return

    def write(self, reference: Reference) -> int:
        """Write a reference unless it was written in advance; return the memory's handle, valid until the next call."""
        if reference not in self._ahead:
            return self._current.write(reference)
        self._free.append(self._current)
        self._current, written = self._ahead.pop(reference)
        return written.result()
