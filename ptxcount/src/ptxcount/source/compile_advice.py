"""Advice for errors of nvcc with a known fix, such as a missing header, or a name that CUDA 13 removed."""

import importlib.util
import os
import re
import shlex
import sysconfig
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

#: The release of NVIDIA's packages in the extra ``nvcc``.
RELEASE = "13.0.2"
#: Patterns of header names -> the wheel with these headers, and the requirement of pip that installs it.
HEADERS = {
    rf"({pattern})": (wheel, f"cuda-toolkit[{extra}]=={RELEASE}" if extra else wheel)
    for pattern, wheel, extra in (
        (r"curand\w*\.h", "nvidia-curand", "curand"),
        (r"cublas\w*\.h|nvblas\.h", "nvidia-cublas", "cublas"),
        (r"cusparse\w*\.h", "nvidia-cusparse", "cusparse"),
        (r"cusolver\w*\.h", "nvidia-cusolver", "cusolver"),
        (r"cufft\w*\.h|cudalibxt\.h", "nvidia-cufft", "cufft"),
        (r"(cub|thrust|cuda|nv)/.*", "nvidia-cuda-cccl", "cccl"),
        (r"(npp|nppi)\w*\.h", "nvidia-npp", "npp"),
        (r"nvjpeg\w*\.h", "nvidia-nvjpeg", "nvjpeg"),
        (r"nvtx3/.*", "nvidia-nvtx", "nvtx"),
        (r"nvml\.h", "nvidia-nvml-dev", "nvml"),
        (r"nvrtc\.h", "nvidia-cuda-nvrtc", "nvrtc"),
        (r"nvJitLink\.h", "nvidia-nvjitlink", "nvjitlink"),
        (r"cuda_profiler_api\.h|cudaProfiler\.h", "nvidia-cuda-profiler-api", "profiler"),
        (r"cupti\w*\.h", "nvidia-cuda-cupti", "cupti"),
        (r"cufile\.h", "nvidia-cufile", "cufile"),
        (r"cuda_runtime\w*\.h|cuda_\w+\.h|cooperative_groups(\.h|/.*)|mma\.h", "nvidia-cuda-runtime", "cudart"),
        (r"crt/.*", "nvidia-cuda-crt", "crt"),
        (r"cudnn\w*\.h", "nvidia-cudnn-cu13", ""),
        (r"nccl\w*\.h", "nvidia-nccl-cu13", ""),
        (r"nvshmem\w*\.h", "nvidia-nvshmem-cu13", ""),
        (r"cusparseLt\.h", "nvidia-cusparselt-cu13", ""),
        (r"(torch|ATen|c10)/.*", "torch", ""),
    )
}
#: Packages that may be installed with headers, and their include folders.
_PACKAGES = (("nvidia", "*/include"), ("torch", "include"), ("torch", "include/torch/csrc/api/include"))
#: Errors for a missing header, of the preprocessor or the front end.
_MISSING = re.compile(
    r'error: (?:(\S+): No such file or directory|(?:could not|cannot) open source file "([^"]+)")', re.MULTILINE
)
#: Error for a name that a CUDA library removed.
_REMOVED = re.compile(r'error: namespace "((?:cub|thrust)(?:::\w+)*)" has no member "(\w+)"')
#: Error of ptxas for an instruction of another architecture, such as sm_90a.
_OTHER_TARGET = re.compile(r"not supported on \.target '(sm_(?:9|1\d)\d)'")
#: Error of nvcc for an architecture that it does not compile for.
_UNKNOWN_ARCH = re.compile(r"Unsupported gpu architecture '(\w+)'")
_GUIDE = "https://nvidia.github.io/cccl/cccl/3.0_migration_guide.html"
#: Maximum number of files searched for a header.
_MAX_FILES = 50_000


def advise(messages: str, source: Path | None, root: Path | None = None) -> str:
    """Return a fix for a known error in nvcc's messages, such as a pip command; empty if no fix is known.

    `_iter_folders_with` searches for a missing header. ``root`` is the folder from which nvcc runs, by default the
    current one: the repository's folders in it are given relative to it.
    """
    if removed := _REMOVED.search(messages):
        name = "::".join(removed.groups())
        return (
            f"this release of CUDA has no {name}; {_GUIDE} lists replacements for names that CUDA 13 removed. "
            "To compile with another release, set NVCC to its nvcc, as in NVCC=/usr/local/cuda-12.9/bin/nvcc"
        )
    if target := _OTHER_TARGET.search(messages):
        return f"{target[1]} lacks an instruction; if {target[1]}a has it, compile with --arch {target[1]}a"
    if unknown := _UNKNOWN_ARCH.search(messages):
        return f"this nvcc does not compile for {unknown[1]}; give an architecture that nvcc --list-gpu-code prints"
    if missing := _MISSING.search(messages):
        return _advise_on_header(missing[1] or missing[2], source, root or Path.cwd())
    return ""


def _advise_on_header(header: str, source: Path | None, root: Path) -> str:
    if folder := next(_iter_folders_with(header, source, root), None):
        return f"{header} is in {folder}; add {shlex.join([f'-I{folder}'])}"
    for pattern, (wheel, words) in HEADERS.items():
        if re.fullmatch(pattern, header):
            return f"{header} comes with the wheel {wheel}; run: pip install '{words}'"
    return f"{header} is neither in a nearby folder nor in a wheel of NVIDIA; add its folder: -IFOLDER"


def _iter_folders_with(header: str, source: Path | None, root: Path) -> Iterator[Path]:
    """Yield include folders with a header: of the source's repository or folder, of installed packages, of Python.

    Hidden folders, ``node_modules`` and ``venv`` are left out, and files after the first 50,000.
    """
    if source is not None:
        folder = source.resolve().parent
        top = next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), folder)
        matches = [path for path in islice(_iter_files(top), _MAX_FILES) if f"/{path}".endswith(f"/{header}")]
        matches.sort(key=lambda path: -len(os.path.commonpath([path, folder])))  # the nearest to the source first
        for path in matches:
            place = Path(path.removesuffix(header))
            yield place.relative_to(root) if place.is_relative_to(root) else place
    for package, pattern in _PACKAGES:
        spec = importlib.util.find_spec(package)
        locations = spec.submodule_search_locations if spec else None
        for location in locations or ():
            yield from (path for path in sorted(Path(location).glob(pattern)) if (path / header).is_file())
    python = Path(sysconfig.get_path("include"))
    if (python / header).is_file():
        yield python


def _iter_files(top: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in ("node_modules", "venv")]
        yield from (os.path.join(folder, name) for name in names)  # noqa: PTH118 -- of thousands
