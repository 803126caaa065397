"""Builds PyCUDA from source if there is no wheel of it yet, and keeps the wheel: `kernelwatch pycuda-wheel`.

PyCUDA is published as source only and takes a minute or two to compile. It needs CUDA's headers, which come from
PyPI's wheels or a toolkit. It also needs a libcuda to link with. A stub suffices, because the real one is found by its
name, libcuda.so.1, when PyCUDA is imported.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path

from kernelwatch.config import cache_dir

#: cudaProfiler.h, which PyCUDA includes, has a wheel of its own.
HEADERS = "cuda-toolkit[nvcc,cudart,crt,nvvm,cccl,profiler]==13.0.2"

#: As the extra `gpu` has it.
REQUIREMENT = "pycuda==2026.1"


def wheels() -> Path:
    """Where built wheels are kept."""
    return cache_dir.cache("wheels")


def install() -> None:
    """Install PyCUDA into this Python environment, building it first if need be.

    Raises CalledProcessError where pip or a compiler fails; its output says why.
    """
    name, _, version = REQUIREMENT.partition("==")
    with suppress(importlib.metadata.PackageNotFoundError):
        if importlib.metadata.version(name) == version:
            return
    built = ["--only-binary=pycuda", "--find-links", str(wheels()), REQUIREMENT]
    if _pip("install", *built, quietly=True) != 0:
        print(f"building {REQUIREMENT} from source (a minute or two; once)", flush=True)
        build()
        _pip("install", *built)


def build() -> None:
    """Build the wheel into `wheels()`."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        toolkit = _toolkit(here)
        _pip("download", "--quiet", "--no-deps", "--no-binary=pycuda", "--dest", folder, REQUIREMENT)
        with tarfile.open(next(here.glob("pycuda-*.tar.gz"))) as archive:
            # Not an argument of extractall: Python before 3.11.4 has no filters.
            archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            archive.extractall(here)
        source = next(path for path in here.glob("pycuda-*") if path.is_dir())
        # A library to link with that holds one function: without any, linkers drop it as not needed.
        link = ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-Wl,-soname,libcuda.so.1", "-o", f"{folder}/libcuda.so"]
        subprocess.run(link, input=b'extern "C" int cuInit(unsigned) { return 100; }', check=True)
        settings = {
            "CUDA_ENABLE_CURAND": False,  # not used here, and its headers are another wheel
            "CUDA_ROOT": str(toolkit),
            "CUDADRV_LIB_DIR": [folder],
            "CXXFLAGS": ["-w", "-g0"],  # some Pythons ask for debug information: most of the wheel
        }
        lines = [f"{key} = {value!r}\n" for key, value in settings.items()]
        (source / "siteconf.py").write_text("".join(lines), encoding="utf-8")
        _pip("wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels()), str(source))


def _toolkit(folder: Path) -> Path:
    """A CUDA toolkit with the headers that PyCUDA includes: CUDA_HOME's, or PyPI's wheels unpacked in `folder`.

    An empty CUDA_HOME asks for PyPI's.
    """
    root = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    if (root / "include" / "cudaProfiler.h").exists():
        return root
    target = folder / "toolkit"
    _pip("install", "--quiet", "--target", str(target), HEADERS)
    return next(target.glob("nvidia/cu*"))


def _pip(*arguments: str, quietly: bool = False) -> int:
    """Run pip; unless `quietly`, show what it says and raise CalledProcessError if it fails."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, check=not quietly, capture_output=quietly).returncode
