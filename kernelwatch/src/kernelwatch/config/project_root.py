"""The folder of the watched project."""

import itertools
import os
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

#: Environment variable with the project's folder.
VARIABLE = "KERNELWATCH_ROOT"

#: Environment variable with the project's folder. asv sets it in its processes, also without this library's plugin.
ASV_VARIABLE = "ASV_CONF_DIR"

#: Environment variable with the folder of the measured commit's files. asv has other variables; see `checkout_folder`.
CHECKOUT = "KERNELWATCH_CHECKOUT"

#: Environment variable with the folders of this library and ptxcount, for the processes of a run.
LIBRARIES = "KERNELWATCH_LIBRARIES"

#: File that marks the project's folder, and the folder in which asv keeps copies of the commits that it measures.
CONFIG_FILE, _ASV_FOLDER = "asv.conf.json", ".asv"


def find_project(start: Path) -> Path | None:
    """Return the project's folder: KERNELWATCH_ROOT, asv's variable, or `start` or its nearest parent with CONFIG_FILE.

    Folders in _ASV_FOLDER do not count. Return None if there is no such folder.
    """
    if configured := os.environ.get(VARIABLE) or os.environ.get(ASV_VARIABLE):
        return Path(configured).resolve()
    folder = start.resolve()
    return _find_project_folder([folder, *folder.parents])


def find_root(start: Path) -> Path:
    """Return the project's folder, also if `start` is outside of it; `start` if there is no project.

    Processes of `asv run --python=same` start outside of the project. But the code that imports this library, or the
    library itself, may lie in it.
    """
    callers = (folder for file in _iter_callers() for folder in file.parents)
    fallbacks = itertools.chain(callers, Path(__file__).resolve().parents)
    return find_project(start) or _find_project_folder(fallbacks) or start.resolve()


def _find_project_folder(folders: Iterable[Path]) -> Path | None:
    for folder in folders:
        if (folder / CONFIG_FILE).is_file() and _ASV_FOLDER not in folder.parts:
            return folder
    return None


def _iter_callers() -> Iterator[Path]:
    """Yield the files of the call stack outside this library, innermost first; one imports the library."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if not file.is_relative_to(Path(__file__).parents[1]):
            yield file
        frame = frame.f_back


ROOT = find_root(Path.cwd())


def list_libraries() -> list[str]:
    """Return the folders from which this library and ptxcount are imported in this process, or in the run's."""
    if paths := os.environ.get(LIBRARIES):
        return paths.split(os.pathsep)
    origins = [getattr(find_spec(name), "origin", None) for name in ("kernelwatch", "ptxcount")]
    return list(dict.fromkeys(str(Path(origin).parents[1]) for origin in origins if origin))
