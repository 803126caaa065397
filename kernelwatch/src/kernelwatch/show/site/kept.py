"""What publishing has worked out, kept by all that it was made from: `~/.cache/coalescing-watch/published`.

An entry is one file, called by the SHA-256 of what it was made from, and never changed. It begins with its own SHA-256:
a damaged one is made anew, like one that is missing. It takes its place by a rename, so that two processes may publish.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import platformdirs

#: The environment variable that names another folder.
FOLDER = "COALESCING_WATCH_PUBLISHED"

#: Days after which an entry that no site needed is removed.
DAYS = 30

_DAY = 86_400


def directory() -> Path:
    """The folder of all entries."""
    return Path(os.environ.get(FOLDER) or platformdirs.user_cache_path("coalescing-watch") / "published")


def key(*parts: Any) -> str:
    """The name of what is made from these parts: JSON values, and bytes."""
    return hashlib.sha256(orjson.dumps(parts, default=bytes.hex)).hexdigest()


def of(name: str, make: Callable[[], Any]) -> Any:
    """Return the entry `name`, a JSON value; if it is missing or damaged, make and keep it.

    NaN and infinities are null in it, as on the pages. Where nothing can be kept, all is made each time.
    """
    payload = _payload(name)
    return orjson.loads(write(name, make()) if payload is None else payload)


def read(name: str) -> Any:
    """Return the entry `name`; None if it is missing or damaged."""
    payload = _payload(name)
    return None if payload is None else orjson.loads(payload)


def write(name: str, value: Any) -> bytes:
    """Keep an entry, if that can be; return it as JSON."""
    payload = orjson.dumps(value)
    with contextlib.suppress(OSError):
        _write(_path(name), payload)
    return payload


def tidy() -> None:
    """Remove what no site has needed for long."""
    oldest = time.time() - DAYS * _DAY
    for path in directory().glob("*/*"):
        with contextlib.suppress(OSError):  # another process was first
            if path.stat().st_mtime < oldest:
                path.unlink()


def _path(name: str) -> Path:
    return directory() / name[:2] / name


def _payload(name: str) -> bytes | None:
    path = _path(name)
    try:
        digest, payload = path.read_bytes().split(b"\n", 1)
        if hashlib.sha256(payload).hexdigest().encode() != digest:
            return None
        if (now := time.time()) - path.stat().st_mtime > _DAY:
            os.utime(path, (now, now))
    except (OSError, ValueError):
        return None
    return payload


def _write(path: Path, payload: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(b"\n".join([hashlib.sha256(payload).hexdigest().encode(), payload]))
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
