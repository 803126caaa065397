"""A content-addressed cache of compiled kernels on disk.

An entry is one file. It is written under another name and then renamed, which is atomic on POSIX. So no entry is ever
broken, even if two processes build the same kernel at once, or are killed. If the folder cannot be written, kernels are
compiled each time; a run says so before it begins.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kernelwatch import home
from kernelwatch.toolchain.nvcc_call import NvccOutput
from ptxcount import whole

#: Bumped when the format of an entry changes.
_FORMAT = "1"


def directory() -> Path:
    """The cache's folder."""
    return home.cache("kernels")


def key(*parts: str) -> str:
    """The name of the entry that these parts make: SHA-256 over their unambiguous concatenation."""
    return hashlib.sha256(json.dumps([_FORMAT, *parts]).encode()).hexdigest()


def lookup(name: str, make: Callable[[], NvccOutput]) -> NvccOutput:
    """Return the entry `name`; if it is missing or damaged, make it, and keep it where it can be kept.

    What `make` raises is raised here.
    """
    path = directory() / name[:2] / f"{name}.json"
    found = _read(path)
    if found is None:
        found = make()
        with suppress(OSError):
            _write(path, found)
    return found


def problem() -> str | None:
    """Return why nothing can be cached and what to do; None if it can."""
    why = home.problem(directory())
    advice = "kernels are compiled anew each time; set KERNELWATCH_CACHE to a folder that can"
    return why and f"{why}; {advice}"


def _read(path: Path) -> NvccOutput | None:
    try:
        if not path.is_file():
            return None  # missing, or a pipe, which could be read for ever
        entry = json.loads(path.read_text(encoding="utf-8"))
        found = NvccOutput(base64.b64decode(entry["data"], validate=True), entry["messages"])
        return found if entry["digest"] == _digest(path, found) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None  # damaged, or of a commit that made no digest: made anew


def _digest(path: Path, compiled: NvccOutput) -> str:
    """What tells damage: over all that is read from an entry, and its name."""
    return key(path.stem, compiled.messages, hashlib.sha256(compiled.data).hexdigest())


def _write(path: Path, compiled: NvccOutput) -> None:
    entry = {
        "digest": _digest(path, compiled),
        "sha256": hashlib.sha256(compiled.data).hexdigest(),  # what commits before the digest look at
        "messages": compiled.messages,
        "data": base64.b64encode(compiled.data).decode(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    whole.write(path, json.dumps(entry), is_kept=False)
