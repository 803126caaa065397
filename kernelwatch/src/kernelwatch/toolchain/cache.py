"""A content-addressed cache of compiled kernels on disk.

An entry is one file. It is written under another name and then renamed, which is atomic on POSIX. So no entry is ever
broken, even if two processes build the same kernel at once, or are killed. If the folder cannot be written, kernels are
compiled each time; a run says so before it begins.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from kernelwatch.config import cache_dir
from kernelwatch.toolchain.nvcc_call import NvccOutput
from ptxcount.util import atomic_write

#: Bumped when the format of an entry changes.
_FORMAT = "1"


class _Entry(msgspec.Struct):
    """A file; the `digest` tells damage, over all that is read from it, and its name."""

    digest: str
    messages: str
    data: bytes


def directory() -> Path:
    """The cache's folder."""
    return cache_dir.cache("kernels")


def key(*parts: str) -> str:
    """The name of the entry that these parts make: SHA-256 over their unambiguous concatenation."""
    return hashlib.sha256(json.dumps([_FORMAT, *parts]).encode()).hexdigest()


def lookup(name: str, make: Callable[[], NvccOutput]) -> NvccOutput:
    """Return the entry `name`; if it is missing or damaged, make it, and keep it where it can be kept.

    What `make` raises is raised here.
    """
    path = directory() / name[:2] / f"{name}.json"
    with suppress(OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
        if path.is_file():  # a pipe could be read for ever
            entry = msgspec.json.decode(path.read_bytes(), type=_Entry)
            found = NvccOutput(entry.data, entry.messages)
            if entry.digest == _digest(name, found):
                return found
    made = make()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        entry = _Entry(_digest(name, made), made.messages, made.data)
        atomic_write.write(path, msgspec.json.encode(entry), is_kept=False)
    return made


def problem() -> str | None:
    """Return why nothing can be cached and what to do; None if it can."""
    why = cache_dir.problem(directory())
    advice = "kernels are compiled anew each time; set KERNELWATCH_CACHE to a folder that can"
    return why and f"{why}; {advice}"


def _digest(name: str, compiled: NvccOutput) -> str:
    return key(name, compiled.messages, hashlib.sha256(compiled.data).hexdigest())
