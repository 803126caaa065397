"""Releases of CUDA: the compiler of a run, the folder of its wheels, and the name of its results.

A run has one compiler. An environment variable selects it: NVCC, or CUDA_TOOLKIT, as in `CUDA_TOOLKIT=13.5.0 asv run`.
asv's matrix has CUDA_TOOLKIT in `env_nobuild`, but not for the default compiler, so its results have asv's plain names.
"""

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
from kernelwatch.errors import CompileError, KernelwatchError, NvccNotFoundError
from kernelwatch.toolchain import nvcc

#: Environment variable with a release of CUDA, and its key in asv's matrix.
VARIABLE = "CUDA_TOOLKIT"
MATRIX_KEY = ("env_nobuild", VARIABLE)

#: Requirement of the compiler's wheels without the release, and the default release.
_WHEEL_NAME, _, DEFAULT = nvcc.WHEEL.rpartition("==")

#: Release of CUDA -> the version of its nvcc, as in records.
NVCC_VERSIONS = {
    "13.0.0": "13.0.48", "13.0.2": "13.0.88", "13.1.0": "13.1.80", "13.1.1": "13.1.115", "13.2.0": "13.2.51",
    "13.2.1": "13.2.78", "13.2.2": "13.2.86", "13.3.0": "13.3.33", "13.3.1": "13.3.73", "13.4.1.0": "13.4.59",
    "13.4.2": "13.4.92", "13.5.0": "13.5.37",
}  # fmt: skip

_VERSION_PATTERN = re.compile(r"\bV(\d[\d.]*\d)")

#: Pattern of releases and versions that pip and asv's file names accept.
RELEASE_PATTERN = re.compile(r"\d+(\.\d+)+")

#: Number of pip's last lines in an error message.
_PIP_LINES = 5


def parse_version(text: str | None) -> str | None:
    """Return the version, such as "13.0.88", in the output of `nvcc --version`; None if the output has none."""
    match = _VERSION_PATTERN.search(text or "")
    return match[1] if match else None


def series_name(version: str | None) -> str | None:
    """Return the name of the results of a version of nvcc; None for the default compiler, or without a version.

    The name is the release if NVCC_VERSIONS has it, else the version. Each compiler has its own series.
    """
    if version is None or version == NVCC_VERSIONS[DEFAULT]:
        return None
    releases = {nvcc_version: release for release, nvcc_version in NVCC_VERSIONS.items()}
    return releases.get(version, version)


def compiler_of_results(variables: Mapping[str, str]) -> str | None:
    """Return the compiler of results from the variables that asv stored; None for the default compiler."""
    return variables.get(VARIABLE)


def primary_compiler(names: Sequence[str | None]) -> str | None:
    """Return a machine's primary compiler: the default one if `names` has it or is empty, else the most frequent."""
    if None in names or not names:
        return None
    return Counter(names).most_common(1)[0][0]


def find_requested_compiler(variables: Mapping[str, str] = os.environ) -> str | None:
    """Return the name in results of the compiler that the environment variable requests; None for the default."""
    requested = variables.get(VARIABLE) or DEFAULT
    return series_name(NVCC_VERSIONS.get(requested, requested))


@cache
def installed_release() -> str | None:
    """Return the name in results of the nvcc that compiles kernels; None for the default one, or without a version."""
    try:
        return series_name(parse_version(nvcc.version_text(nvcc.find_nvcc())))
    except (CompileError, NvccNotFoundError):  # compiling a kernel reports the error
        return None


def use_requested_release() -> None:
    """Set the compiler of this process and its children to the release that the environment variable names, if any.

    Raises the exceptions of `install_nvcc`.
    """
    requested = os.environ.get(VARIABLE)
    if requested and installed_release() != find_requested_compiler():
        os.environ["NVCC"] = str(install_nvcc(requested))
        installed_release.cache_clear()


def install_nvcc(release: str) -> Path:
    """Return the path of a release's nvcc; install it into its own folder if necessary.

    Raises KernelwatchError if `release` is not a release, the cache cannot be written, or pip fails.
    """
    if not RELEASE_PATTERN.fullmatch(release):
        raise KernelwatchError(
            f"{VARIABLE}={release} is not a release of CUDA; write one such as {DEFAULT}, or set NVCC to another nvcc"
        )
    folder = cache_dir.cache_folder("cuda-toolkit") / release
    if problem := cache_dir.find_problem(folder.parent):
        raise KernelwatchError(f"{problem}; set {cache_dir.CACHE} to a writable folder")
    lock = cache_dir.make_file_lock(folder.with_name(f"{release}.lock"))
    cache_dir.acquire_lock(lock)  # without locks, the second of two simultaneous installations fails to rename
    try:
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
                _install_wheels(release, Path(unfinished, release))
                Path(unfinished, release).rename(folder)
    finally:
        lock.release()
    return folder / "nvidia" / "cu13" / "bin" / "nvcc"


def _install_wheels(release: str, folder: Path) -> None:
    """Install a release's wheels into a folder. Raises KernelwatchError with pip's last lines if pip fails."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    # Without pip's cache, because a release has some 300 MB.
    words = [*pip, "--no-cache-dir", "--target", str(folder), f"{_WHEEL_NAME}=={release}"]
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        last_lines = " ".join(done.stderr.splitlines()[-_PIP_LINES:]) or f"pip ended with {done.returncode}"
        advice = f"correct {VARIABLE}, or set NVCC to an installed nvcc"
        raise KernelwatchError(f"nvcc of CUDA {release} cannot be installed: {last_lines}; {advice}")
    expected = folder / "nvidia" / "cu13" / "nvvm" / "bin" / "cicc"
    if not expected.exists():  # 13.0.0: nvcc does not find its own front end
        expected.parent.mkdir(exist_ok=True)
        expected.symlink_to("../../bin/cicc")
