"""The folder of the project that is watched."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

#: The variable that names it.
VARIABLE = "KERNELWATCH_ROOT"

#: The variable by which asv tells it the processes of its environments, also where it runs without the plugin.
OF_ASV = "ASV_CONF_DIR"

#: The variable with the folder of the commit that is measured; asv says it by one of its own.
CHECKOUT = "KERNELWATCH_CHECKOUT"

#: The variable by which a run tells its own processes where its libraries are.
LIBRARIES = "KERNELWATCH_LIBRARIES"

#: The file that it has; asv's copies of it, of the commits that it measures, lie in a folder of that name.
_FILE, _COPIES = "asv.conf.json", ".asv"


def find(start: Path) -> Path:
    """Return the project's folder: what KERNELWATCH_ROOT or asv names, else the nearest upward that asv is set up in.

    Where there is none, as with `asv run --python=same`, it is that of the code that imports this library, or else of
    the library's own checkout, or `start`.
    """
    named = os.environ.get(VARIABLE) or os.environ.get(OF_ASV)
    if named:
        return Path(named).resolve()
    start = start.resolve()
    importers = (folder for file in _importers() for folder in file.parents)
    for folder in (start, *start.parents, *importers, *Path(__file__).resolve().parents):
        if (folder / _FILE).is_file() and _COPIES not in folder.parts:
            return folder
    return start


def _importers() -> Iterator[Path]:
    """Yield the files whose code imports this library, the nearest first, but for its own."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if not file.is_relative_to(Path(__file__).parents[1]):
            yield file
        frame = frame.f_back


ROOT = find(Path.cwd())


def libraries() -> list[str]:
    """Return the folders that this library and ptxcount are imported from: of the run under way, or else here."""
    if told := os.environ.get(LIBRARIES):
        return told.split(os.pathsep)
    origins = [getattr(find_spec(name), "origin", None) for name in ("kernelwatch", "ptxcount")]
    return list(dict.fromkeys(str(Path(origin).parents[1]) for origin in origins if origin))
