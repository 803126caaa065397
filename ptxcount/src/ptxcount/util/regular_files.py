"""Files that can be read to their end: no pipes, devices or folders."""

from __future__ import annotations

import stat
from pathlib import Path

from .errors import LaunchError

_KINDS = {
    stat.S_IFIFO: "a named pipe (FIFO)",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}


def require_regular(path: Path) -> None:
    """Refuse what has no end or would block; raise `LaunchError` unless the path is a regular file or missing."""
    try:
        kind = _KINDS.get(stat.S_IFMT(path.stat().st_mode))
    except OSError:  # the reader reports a missing file in its own words
        return
    except ValueError:
        raise LaunchError(f"{str(path)!r}: the name of a file cannot hold a NUL") from None
    if kind:
        raise LaunchError(f"{path} is {kind}; give a regular file")
