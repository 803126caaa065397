"""A content-addressed cache of compiled kernels on disk.

An entry is one file, which is written under another name and then renamed. Renaming is atomic on POSIX, so entries stay
complete even if two processes build the same kernel, or a process is killed. If the folder is not writable, kernels are
compiled each time; a run reports this before it begins.
"""

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from kernelwatch.config import cache_dir
from kernelwatch.toolchain.nvcc_call import NvccOutput
from ptxcount.util import atomic_write

#: Version of an entry's format.
_FORMAT = "1"


class _CacheEntry(msgspec.Struct):
    """One file of the cache; `digest` covers all its contents and its name, to detect damage."""

    digest: str
    messages: str
    data: bytes


def _cache_folder() -> Path:
    return cache_dir.cache_folder("kernels")


def make_key(*parts: str) -> str:
    """Return the name of an entry: the hexadecimal SHA-256 of a JSON list of `_FORMAT` and the parts."""
    return hashlib.sha256(json.dumps([_FORMAT, *parts]).encode()).hexdigest()


def lookup(name: str, make: Callable[[], NvccOutput]) -> NvccOutput:
    """Return nvcc's output from the entry `name`. If it is missing or damaged, call `make`, and store the output.

    Exceptions of `make` are passed on.
    """
    path = _cache_folder() / name[:2] / f"{name}.json"
    with suppress(OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
        if path.is_file():  # reading a pipe could block for ever
            entry = msgspec.json.decode(path.read_bytes(), type=_CacheEntry)
            cached = NvccOutput(entry.data, entry.messages)
            if entry.digest == _make_digest(name, cached):
                return cached
    compiled = make()
    with suppress(OSError):  # the folder may not be writable
        path.parent.mkdir(parents=True, exist_ok=True)
        entry = _CacheEntry(_make_digest(name, compiled), compiled.messages, compiled.data)
        atomic_write.write(path, msgspec.json.encode(entry), is_durable=False)
    return compiled


def find_problem() -> str | None:
    """Return why nothing can be cached, and the remedy; None if caching works."""
    reason = cache_dir.find_problem(_cache_folder())
    advice = "kernels are compiled each time; set KERNELWATCH_CACHE to a writable folder"
    return f"{reason}; {advice}" if reason else None


def _make_digest(name: str, compiled: NvccOutput) -> str:
    return make_key(name, compiled.messages, hashlib.sha256(compiled.data).hexdigest())
