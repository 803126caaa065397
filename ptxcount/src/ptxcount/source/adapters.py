"""Kernels as other packages hold them: CuPy's RawKernel, Numba's dispatchers, kernels that Triton compiled.

None of these packages is imported here. They are known by what their kernels have.
"""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..machine.argument_layout import Argument
from ..ptx.parser import parse_cached
from ..util.errors import LaunchError

#: Packages whose dispatchers `numba.cuda` compiles.
_NUMBA = ("numba", "numba_cuda")
#: Options of NVRTC that nvcc lacks.
_OF_NVRTC = ("-default-device", "--device-as-default-execution-space")


@dataclass
class AdaptedKernel:
    """Kernel of a Python package, ready for `count`."""

    #: A file or a text, of CUDA C++ or PTX.
    source: Path | str
    #: The kernel in it; None for the only one.
    entry: str | None
    #: As the kernel takes them.
    arguments: list[Argument] = field(default_factory=list)
    #: Options of nvcc.
    flags: str = ""
    #: The threads of a block, where the kernel was compiled for so many.
    block: int | None = None
    #: Bytes of dynamic shared memory that it was compiled for.
    dynamic_shared: int = 0
    #: Names of the arguments in errors; empty to use their places.
    names: list[str] = field(default_factory=list)


def adapt_kernel(kernel: Any, entry: str | None, arguments: Sequence[Any], arch: str) -> AdaptedKernel:
    """Adapt a kernel of any known kind for `count`; `LaunchError` for others."""
    if isinstance(kernel, (str, Path)):
        return AdaptedKernel(kernel, entry, list(arguments))
    if hasattr(kernel, "asm") and "ptx" in kernel.asm:
        return _adapt_triton(kernel, entry, list(arguments))
    if hasattr(kernel, "py_func") and hasattr(kernel, "targetoptions"):
        return _adapt_numba(kernel, entry, list(arguments), arch)
    if hasattr(kernel, "code") and hasattr(kernel, "name") and hasattr(kernel, "options"):
        flags = shlex.join(option for option in kernel.options if option not in _OF_NVRTC)
        return AdaptedKernel(kernel.code, entry or kernel.name, list(arguments), flags)
    type_name = type(kernel).__name__
    supported = "a Path, a text, a CuPy RawKernel, a Numba dispatcher or a kernel that Triton compiled"
    raise LaunchError(f"a kernel is {supported}, not {type_name}")


def _adapt_triton(kernel: Any, entry: str | None, arguments: list[Any]) -> AdaptedKernel:
    """Adapt a Triton kernel; the pointers to scratch memory that it appends are null unless the kernel asks for any."""
    data, ptx = kernel.metadata, kernel.asm["ptx"]
    name = entry or data.name
    kernel_entry = parse_cached(ptx).entries.get(name)
    missing = 0 if kernel_entry is None else len(kernel_entry.parameters) - len(arguments)
    scratch = [getattr(data, f"{scratch_name}_scratch_size", 0) for scratch_name in ("global", "profile")]
    if 0 < missing <= len(scratch):
        arguments += [np.zeros(max(size, 1), np.uint8) for size in scratch[:missing]]
    return AdaptedKernel(ptx, name, arguments, "", data.num_warps * 32, data.shared)


def _adapt_numba(kernel: Any, signature: str | None, arguments: list[Any], arch: str) -> AdaptedKernel:
    """Compile for the signature, or else for the types of the arguments; `LaunchError` for other packages."""
    package = type(kernel).__module__.partition(".")[0]
    if package not in _NUMBA:
        raise LaunchError(
            f"a dispatcher of {package}: of Numba those of numba-cuda are known; give the PTX that {package} compiles, "
            "as a text, and the arguments that it takes"
        )
    cuda = importlib.import_module("numba.cuda")
    types = signature or tuple(importlib.import_module("numba").typeof(argument) for argument in arguments)
    digits = arch.removeprefix("sm_").rstrip("af")
    ptx, _ = cuda.compile_ptx(kernel.py_func, types, lineinfo=True, cc=(int(digits[:-1]), int(digits[-1])))
    flat: list[Argument] = []
    names: list[str] = []
    for place, each in enumerate(arguments):
        flat += _flatten_array(each) if isinstance(each, np.ndarray) else [each]
        names += [f"argument {place}"] * (len(flat) - len(names))
    return AdaptedKernel(ptx, None, flat, names=names)


def _flatten_array(array: Any) -> list[Argument]:
    """Flatten an array as Numba passes it: two owners, elements, their bytes, the data, the shape, the strides."""
    sizes = [array.size, array.itemsize]
    numbers = [np.int64(n) for n in (0, 0, *sizes)]
    return [*numbers, array, *(np.int64(n) for n in (*array.shape, *array.strides))]
