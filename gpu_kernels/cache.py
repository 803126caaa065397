"""A content-addressed cache of compiled kernels on disk.

An entry is one file, written whole under another name and then renamed (rename is atomic on POSIX), so that
processes that build the same kernel at once, or are killed while they do, never leave a broken one.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import platformdirs

from .compilers import NvccOutput
from .errors import CacheError

#: Bumped when the format of an entry changes.
_FORMAT = "1"


def directory() -> Path:
    """The cache's folder: the variable GPU_KERNELS_CACHE, else the user's cache folder."""
    named = os.environ.get("GPU_KERNELS_CACHE")
    return Path(named) if named else platformdirs.user_cache_path("gpu-kernels")


def key(*parts: str) -> str:
    """The name of the entry that these parts make: SHA-256 over their unambiguous concatenation."""
    return hashlib.sha256(json.dumps([_FORMAT, *parts]).encode()).hexdigest()


def lookup(name: str, make: Callable[[], NvccOutput]) -> NvccOutput:
    """Return the entry `name`; if it is missing or damaged, make and keep it.

    Raises
    ------
    CacheError
        It cannot be kept. What `make` raises is raised here.
    """
    path = directory() / name[:2] / f"{name}.json"
    found = _read(path)
    if found is None:
        found = make()
        try:
            _write(path, found)
        except OSError as error:
            raise CacheError(
                f"{directory()} cannot be written: {error}; set GPU_KERNELS_CACHE to a folder that can"
            ) from error
    return found


def _read(path: Path) -> NvccOutput | None:
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        data = base64.b64decode(entry["data"], validate=True)
        if hashlib.sha256(data).hexdigest() != entry["sha256"]:
            return None
        return NvccOutput(data, entry["messages"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # missing or damaged: made anew


def _write(path: Path, compiled: NvccOutput) -> None:
    entry = {
        "sha256": hashlib.sha256(compiled.data).hexdigest(),
        "messages": compiled.messages,
        "data": base64.b64encode(compiled.data).decode(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(entry, file)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
