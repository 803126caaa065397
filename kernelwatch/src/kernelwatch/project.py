"""The folder of the project that is watched."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

#: The variable that names it.
VARIABLE = "KERNELWATCH_ROOT"

#: The variable by which asv tells it the processes of its environments, also where it runs without the plugin.
OF_ASV = "ASV_CONF_DIR"

#: The variable by which a run tells its own processes where its libraries are.
LIBRARIES = "KERNELWATCH_LIBRARIES"

#: The file that it has; asv's copies of it, of the commits that it measures, lie in a folder of that name.
_FILE, _COPIES = "asv.conf.json", ".asv"


def find(start: Path) -> Path:
    """Return the project's folder: what KERNELWATCH_ROOT or asv names, else the nearest upward that asv is set up in.

    Where there is none, it is that of the library's own checkout, or else `start`.
    """
    named = os.environ.get(VARIABLE) or os.environ.get(OF_ASV)
    if named:
        return Path(named).resolve()
    start = start.resolve()
    for folder in (start, *start.parents, *Path(__file__).resolve().parents):
        if (folder / _FILE).is_file() and _COPIES not in folder.parts:
            return folder
    return start


ROOT = find(Path.cwd())


def libraries() -> list[str]:
    """Return the folders that this library and ptxcount are imported from: of the run under way, or else here."""
    if told := os.environ.get(LIBRARIES):
        return told.split(os.pathsep)
    origins = [getattr(find_spec(name), "origin", None) for name in ("kernelwatch", "ptxcount")]
    return list(dict.fromkeys(str(Path(origin).parents[1]) for origin in origins if origin))
