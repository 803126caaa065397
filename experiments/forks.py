"""Calls functions in forked processes, as asv runs each configuration.

The earlier work of a process changes its times (docs/evidence/log.md, "Not the first in its process").
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def call(function: Callable[..., Result], *arguments: object) -> Result:
    """Return what a function returns from a process that does nothing else. CUDA must not be initialised in this one.

    Raises
    ------
    BrokenProcessPool
        The process died. What the function raises is raised here.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as fork:
        return fork.submit(function, *arguments).result()
