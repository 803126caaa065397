"""Regular files: no pipes, devices or folders."""

import stat
from pathlib import Path

from .errors import LaunchError

_FILE_KINDS = {
    stat.S_IFIFO: "a named pipe (FIFO)",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}


def require_regular(path: Path) -> None:
    """Raise `LaunchError` if the path is a folder, a pipe, a device or a socket, or has a NUL character."""
    try:
        kind = _FILE_KINDS.get(stat.S_IFMT(path.stat().st_mode))
    except OSError:  # the caller reports a missing file
        return
    except ValueError:
        raise LaunchError(f"{str(path)!r}: the name of a file cannot hold a NUL character; remove it") from None
    if kind:
        raise LaunchError(f"{path} is {kind}; give a regular file")
