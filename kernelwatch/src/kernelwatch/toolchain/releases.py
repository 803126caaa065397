"""The compilers that are watched: which one a run uses, where its wheels are kept, and how its results are called.

A run has one compiler, which a variable of the environment names: `CUDA_TOOLKIT=13.5.0 asv run`. asv is told of it as
of a value of its matrix that rebuilds nothing. Without the variable it is the default, whose results asv keeps under
the name that they had before there were others.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from filelock import FileLock

from kernelwatch import home
from kernelwatch.errors import CompileError, NvccNotFoundError
from kernelwatch.toolchain import nvcc

#: The variable that names a release of CUDA, and its key in asv's matrix.
VARIABLE = "CUDA_TOOLKIT"
KEY = ("env_nobuild", VARIABLE)

#: The release whose results have asv's plain name.
DEFAULT = nvcc.WHEEL.rpartition("==")[2]

#: A file a release: its wheels, pinned by version and hash.
PINS = Path(__file__).parent / "pins"

_PINNED = re.compile(r"^nvidia-cuda-nvcc==(\S+)", re.MULTILINE)
_VERSION = re.compile(r"\bV(\d[\d.]*\d)")

_FILE = re.compile(rf"-{VARIABLE}(\d[\d.]*)\.json$")

#: Lines of pip's that an error shows.
_SHOWN = 5


@cache
def releases() -> dict[str, str]:
    """Return the version of nvcc of each watched release of CUDA, oldest first."""
    found = {path.stem: _PINNED.findall(path.read_text(encoding="utf-8"))[0] for path in PINS.glob("*.txt")}
    return dict(sorted(found.items(), key=lambda item: order(item[0])))


def order(release: str) -> tuple[int, ...]:
    """Sort key of releases and of versions, oldest first."""
    return tuple(map(int, re.findall(r"\d+", release)))


def version(text: str | None) -> str | None:
    """Read the version, "13.0.88", off what `nvcc --version` prints; None where it says none."""
    found = _VERSION.search(text or "")
    return found[1] if found else None


def name(version: str | None) -> str | None:
    """Return what the results of a version of nvcc are called; None for the default's.

    That is the watched release with this nvcc, else the version itself: another compiler is another series.
    """
    if version is None or version == releases()[DEFAULT]:
        return None
    return next((release for release, known in releases().items() if known == version), version)


def version_of(name: str | None) -> str:
    """Return the version of nvcc whose results are called so."""
    return releases().get(name or DEFAULT, name or DEFAULT)


def of_results(variables: Mapping[str, str]) -> str | None:
    """Return the compiler of results by the variables that asv stored with them; None for the default's."""
    return variables.get(VARIABLE)


def own(names: Sequence[str | None]) -> str | None:
    """Return a machine's own compiler, of those of its results: the default, or else the one that measured most."""
    return None if None in names or not names else Counter(names).most_common(1)[0][0]


def of_file(name: str) -> str | None:
    """Return the compiler that a file of results is called after; None for the default's."""
    found = _FILE.search(name)
    return found[1] if found else None


def named(variables: Mapping[str, str] = os.environ) -> str | None:
    """Return the compiler that the variable asks for, as results are called; None for the default."""
    wanted = variables.get(VARIABLE) or DEFAULT
    return name(releases().get(wanted, wanted))


@cache
def found() -> str | None:
    """Return what the results of the nvcc that kernels are compiled with are called; None where there is none."""
    try:
        return name(version(nvcc.version(nvcc.find_nvcc())))
    except (CompileError, NvccNotFoundError):  # whoever compiles meets it again
        return None


def use() -> None:
    """Let this process and those that it starts compile with the release that the variable names, if it names one.

    Raises
    ------
    UserError
        No such release is watched, or its wheels cannot be had.
    """
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return
    if wanted not in releases():
        from asv.util import UserError  # noqa: PLC0415 -- asv's environments import this module, too, and need no asv

        known = ", ".join(releases())
        raise UserError(f"{VARIABLE}={wanted} is not watched; known are {known}; of another nvcc, give NVCC its path")
    if found() != name(releases()[wanted]):
        os.environ["NVCC"] = str(fetched(wanted))
        found.cache_clear()


def fetched(release: str) -> Path:
    """Return nvcc of a release. Its wheels are installed once, in a folder of their own, if their hashes are right.

    Raises
    ------
    UserError
        pip cannot install them; the message has its last lines.
    """
    folder = directory() / release
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{release}.lock")):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
                _install(release, Path(unfinished, release))
                Path(unfinished, release).rename(folder)
    return folder / "nvidia" / "cu13" / "bin" / "nvcc"


def directory() -> Path:
    """Return the folder of the compilers' wheels."""
    return home.cache("cuda-toolkit")


def _install(release: str, folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    # Not into pip's own cache too: a release takes some 300 MB.
    wheels = ["--no-cache-dir", "--no-deps", "--require-hashes", "--requirement", str(PINS / f"{release}.txt")]
    done = subprocess.run([*pip, *wheels, "--target", str(folder)], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        from asv.util import UserError  # noqa: PLC0415 -- as above

        said = " ".join(done.stderr.splitlines()[-_SHOWN:])
        raise UserError(f"nvcc of CUDA {release} cannot be installed into {folder.parent.parent}: {said}")
    expected = folder / "nvidia" / "cu13" / "nvvm" / "bin" / "cicc"
    if not expected.exists():  # 13.0.0: nvcc does not find its own front end
        expected.parent.mkdir(exist_ok=True)
        expected.symlink_to("../../bin/cicc")
