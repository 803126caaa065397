"""References that are written before they are asked for: NumPy makes them while the GPU measures."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from kernelwatch.instrument.exchange import Reference, ReferenceMemory

#: How many are written at once.
_AT_ONCE = 2


class WrittenAhead:
    """Writes references, some of them before they are asked for."""

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
