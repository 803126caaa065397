"""Build PyCUDA from source unless its wheel exists, and store the wheel: `kernelwatch pycuda-wheel`.

PyCUDA is published only as source and takes a minute or two to compile. It needs CUDA's headers, from PyPI's wheels or
a toolkit, and a libcuda for linking. A stub suffices, because importing PyCUDA loads the real libcuda.so.1.
"""

import importlib.metadata
import os
import subprocess
import sys
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path

from kernelwatch.config import cache_dir

#: Requirement of CUDA's headers. cudaProfiler.h, which PyCUDA includes, is in the wheel of `profiler`.
HEADERS = "cuda-toolkit[cudart,crt,profiler]==13.0.2"

#: Requirement of the extra `gpu`.
REQUIREMENT = "pycuda==2026.1"


def wheels_folder() -> Path:
    """Return the folder of built wheels."""
    return cache_dir.cache_folder("wheels")


def install_pycuda() -> None:
    """Install PyCUDA into this Python environment; build it first if necessary.

    Raises CalledProcessError if pip or a compiler fails; the output says why.
    """
    name, _, version = REQUIREMENT.partition("==")
    with suppress(importlib.metadata.PackageNotFoundError):
        if importlib.metadata.version(name) == version:
            return
    wheel_options = ["--only-binary=pycuda", "--find-links", str(wheels_folder()), REQUIREMENT]
    if _run_pip("install", *wheel_options, quietly=True) != 0:
        print(f"building {REQUIREMENT} from source (once; takes a minute or two)", flush=True)
        build_wheel()
        _run_pip("install", *wheel_options)


def build_wheel() -> None:
    """Build PyCUDA's wheel into `wheels_folder()`. Raises CalledProcessError if pip or a compiler fails."""
    with tempfile.TemporaryDirectory() as folder:
        work_folder = Path(folder)
        toolkit = _find_toolkit(work_folder)
        _run_pip("download", "--quiet", "--no-deps", "--no-binary=pycuda", "--dest", folder, REQUIREMENT)
        with tarfile.open(next(work_folder.glob("pycuda-*.tar.gz"))) as archive:
            # The filter is not an argument of extractall, which lacks it in Python before 3.11.4.
            archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            archive.extractall(work_folder)
        source = next(path for path in work_folder.glob("pycuda-*") if path.is_dir())
        # The stub defines one function, because linkers drop an empty library.
        link = ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-Wl,-soname,libcuda.so.1", "-o", f"{folder}/libcuda.so"]
        subprocess.run(link, input=b'extern "C" int cuInit(unsigned) { return 100; }', check=True)
        settings = {
            "CUDA_ENABLE_CURAND": False,  # not used here, and its headers are in another wheel
            "CUDA_ROOT": str(toolkit),
            "CUDADRV_LIB_DIR": [folder],
            "CXXFLAGS": ["-w", "-g0"],  # some Pythons request debug information, which would be most of the wheel
        }
        lines = [f"{key} = {value!r}\n" for key, value in settings.items()]
        (source / "siteconf.py").write_text("".join(lines), encoding="utf-8")
        _run_pip("wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels_folder()), str(source))


def _find_toolkit(folder: Path) -> Path:
    """Return a CUDA toolkit with the headers that PyCUDA includes.

    It is CUDA_HOME, by default /usr/local/cuda, if that has the headers; else PyPI's wheels, installed into `folder`.
    """
    root = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    if (root / "include" / "cudaProfiler.h").exists():
        return root
    target = folder / "toolkit"
    _run_pip("install", "--quiet", "--target", str(target), HEADERS)
    return next(target.glob("nvidia/cu*"))


def _run_pip(*arguments: str, quietly: bool = False) -> int:
    """Run pip; return its exit code. Unless `quietly`, show its output, and raise CalledProcessError if it fails."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, check=not quietly, capture_output=quietly).returncode
