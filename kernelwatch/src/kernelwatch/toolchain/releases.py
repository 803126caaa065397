"""Releases of CUDA: which one a run compiles with, where its wheels are kept, and how its results are called.

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

from kernelwatch.config import cache_dir
from kernelwatch.errors import CompileError, NvccNotFoundError
from kernelwatch.toolchain import nvcc

#: The variable that names a release of CUDA, and its key in asv's matrix.
VARIABLE = "CUDA_TOOLKIT"
KEY = ("env_nobuild", VARIABLE)

#: What pip installs of a release, and the release whose results have asv's plain name.
_WHEELS, _, DEFAULT = nvcc.WHEEL.rpartition("==")

#: Release of CUDA -> the version of its nvcc, by which records name it.
NVCC = {
    "13.0.0": "13.0.48", "13.0.2": "13.0.88", "13.1.0": "13.1.80", "13.1.1": "13.1.115", "13.2.0": "13.2.51",
    "13.2.1": "13.2.78", "13.2.2": "13.2.86", "13.3.0": "13.3.33", "13.3.1": "13.3.73", "13.4.1.0": "13.4.59",
    "13.4.2": "13.4.92", "13.5.0": "13.5.37",
}  # fmt: skip

_VERSION = re.compile(r"\bV(\d[\d.]*\d)")

#: How releases and versions read; pip and asv's file names take it as it is.
_RELEASE = re.compile(r"\d+(\.\d+)+")

#: Lines of pip's that an error shows.
_SHOWN = 5


def version(text: str | None) -> str | None:
    """Read the version, "13.0.88", off what `nvcc --version` prints; None where it says none."""
    found = _VERSION.search(text or "")
    return found[1] if found else None


def name(version: str | None) -> str | None:
    """Return what the results of a version of nvcc are called; None for the default's.

    That is its release, if the table has it, else the version itself: another compiler is another series.
    """
    if version is None or version == NVCC[DEFAULT]:
        return None
    return next((release for release, known in NVCC.items() if known == version), version)


def of_results(variables: Mapping[str, str]) -> str | None:
    """Return the compiler of results by the variables that asv stored with them; None for the default's."""
    return variables.get(VARIABLE)


def own(names: Sequence[str | None]) -> str | None:
    """Return a machine's own compiler, of those of its results: the default, or else the one that measured most."""
    return None if None in names or not names else Counter(names).most_common(1)[0][0]


def named(variables: Mapping[str, str] = os.environ) -> str | None:
    """Return the compiler that the variable asks for, as results are called; None for the default."""
    wanted = variables.get(VARIABLE) or DEFAULT
    return name(NVCC.get(wanted, wanted))


@cache
def found() -> str | None:
    """Return what the results of the nvcc that kernels are compiled with are called; None where there is none."""
    try:
        return name(version(nvcc.version(nvcc.find_nvcc())))
    except (CompileError, NvccNotFoundError):  # whoever compiles meets it again
        return None


def use() -> None:
    """Let this process and those that it starts compile with the release that the variable names, if it names one.

    Raises UserError where it is no release, or pip cannot install its wheels, with pip's last lines.
    """
    wanted = os.environ.get(VARIABLE)
    if wanted and found() != named():
        os.environ["NVCC"] = str(fetched(wanted))
        found.cache_clear()


def fetched(release: str) -> Path:
    """Return nvcc of a release. Its wheels are installed once, in a folder of their own. Raises UserError as `use`."""
    from asv.util import UserError  # noqa: PLC0415 -- asv's environments import this module, too, and need no asv

    if not _RELEASE.fullmatch(release):
        raise UserError(f"{VARIABLE}={release} is no release of CUDA, such as {DEFAULT}; of another nvcc, set NVCC")
    folder = cache_dir.cache("cuda-toolkit") / release
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = cache_dir.file_lock(folder.with_name(f"{release}.lock"))
    cache_dir.acquire(lock)  # where there are no locks, the later of two that install at once fails to rename
    try:
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
                if said := _install(release, Path(unfinished, release)):
                    raise UserError(f"nvcc of CUDA {release} cannot be installed into {folder}: {said}")
                Path(unfinished, release).rename(folder)
    finally:
        lock.release()
    return folder / "nvidia" / "cu13" / "bin" / "nvcc"


def _install(release: str, folder: Path) -> str:
    """Install the wheels; return what pip says if it cannot, else nothing."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    # Not into pip's own cache too: a release takes some 300 MB.
    words = [*pip, "--no-cache-dir", "--target", str(folder), f"{_WHEELS}=={release}"]
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=False)
    expected = folder / "nvidia" / "cu13" / "nvvm" / "bin" / "cicc"
    if not done.returncode and not expected.exists():  # 13.0.0: nvcc does not find its own front end
        expected.parent.mkdir(exist_ok=True)
        expected.symlink_to("../../bin/cicc")
    return " ".join(done.stderr.splitlines()[-_SHOWN:]) if done.returncode else ""
