"""Where nvcc is, and which one."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

from .errors import CompileError, NvccNotFoundError

#: The PyPI requirement that brings nvcc; pinned because another compiler is another measurement.
REQUIREMENT = "cuda-toolkit[nvcc,cudart,crt,nvvm,cccl]==13.0.2"


def _from_wheel() -> Path | None:
    """The nvcc of the newest CUDA wheel in this Python environment (`nvidia/cu13/bin/nvcc` in site-packages)."""
    spec = importlib.util.find_spec("nvidia")
    if spec is None or spec.submodule_search_locations is None:
        return None
    found = [path for folder in spec.submodule_search_locations for path in Path(folder).glob("cu*/bin/nvcc")]
    return max(found, key=lambda path: path.parts[-3], default=None)


def find_nvcc() -> Path:
    """Return the path of nvcc: the variable NVCC, else this environment's PyPI wheel, else PATH.

    Raises
    ------
    NvccNotFoundError
        There is none, or NVCC names none.
    """
    named = os.environ.get("NVCC")
    if named:
        path = shutil.which(named)
        if path is None:
            raise NvccNotFoundError(
                f"NVCC={named} is not an executable; set it to the path of nvcc, or unset it and "
                f"run: pip install '{REQUIREMENT}'"
            )
        return Path(path)
    wheel = _from_wheel()
    if wheel is not None:
        return wheel
    path = shutil.which("nvcc")
    if path is None:
        raise NvccNotFoundError(
            f"no nvcc in NVCC, in this environment's wheels or on PATH; run: pip install '{REQUIREMENT}'"
        )
    return Path(path)


def options_of_environment() -> list[str]:
    """The variables by which nvcc takes options from the environment, with their values (nvcc's manual, 3.1)."""
    names = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
    return [f"{name}={os.environ[name]}" for name in names if os.environ.get(name)]


@lru_cache
def version(nvcc: Path) -> str:
    """What `nvcc --version` prints, as it is: another text is another compiler.

    Raises
    ------
    CompileError
        nvcc does not run.
    """
    try:
        done = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise CompileError(f"{nvcc} --version failed: {error}; set NVCC to a working nvcc") from error
    return done.stdout


def release(nvcc: Path) -> tuple[int, int]:
    """The CUDA release that nvcc belongs to, as (major, minor).

    Raises
    ------
    CompileError
        The version text names no release.
    """
    text = version(nvcc)
    match = re.search(r"release (\d+)\.(\d+)", text)
    if match is None:
        raise CompileError(f"{nvcc} --version names no release: {text!r}; set NVCC to an NVIDIA nvcc")
    return int(match[1]), int(match[2])
