"""Host memory worked on by all cores: NumPy lets other threads run while it copies and compares."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

#: From this many bytes on, threads pay for their start.
WORTH_IT = 4 << 20


def each(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """What the function returns for each item, in order. No thread is left: a process is timed as it began."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, items))
