"""Copy host memory on all cores: NumPy releases the interpreter's lock while it copies and compares."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from numpy.typing import NDArray

#: Bytes of a piece that one thread copies.
_PIECE_BYTES = 4 << 20


@cache
def _start_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count())  # kept, because starting threads takes longer than copying 8 MiB


os.register_at_fork(after_in_child=_start_threads.cache_clear)  # a forked process does not inherit the threads


def run_in_steps(function: Callable[[int], None], length: int, step: int) -> None:
    """Call a function with 0, `step`, 2 `step` and so on, below `length`, in threads."""
    list(_start_threads().map(function, range(0, length, step)))


def copy_array(source: NDArray[Any], target: NDArray[Any]) -> None:
    """Copy an array into another one of the same shape, in threads, in pieces of about _PIECE_BYTES."""
    rows = max(1, _PIECE_BYTES * len(source) // max(1, source.nbytes))

    def copy_part(first: int) -> None:
        target[first : first + rows] = source[first : first + rows]

    run_in_steps(copy_part, len(source), rows)
