"""Processes that begin with asv imported, so that many of them take little time."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.faults.writer", "tests.faults.measurer"])


def start(does: Callable[..., None], *args: Any) -> Any:
    """A process that does something of `tests.faults.writer`."""
    process = CONTEXT.Process(target=does, args=args, daemon=True)
    process.start()
    return process
