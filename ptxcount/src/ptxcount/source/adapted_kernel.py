"""A kernel of a Python package in the form that `count` executes."""

import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..machine.argument_layout import KernelArgument, find_base
from ..util.errors import LaunchError

#: Swizzle spans in bytes, by CUDA's enumeration ``CUtensorMapSwizzle``.
SWIZZLES = (0, 32, 64, 128)
#: Triton and cuTile specialize kernels for addresses and lengths that are multiples of this.
DIVISOR = 16


@dataclass
class AdaptedKernel:
    """Kernel of a Python package, ready for `count`."""

    #: A file or a text: CUDA C++ or PTX.
    source: Path | str
    #: Name of the kernel; None if the source has only one.
    entry: str | None
    #: Arguments in the kernel's order.
    arguments: list[KernelArgument] = field(default_factory=list)
    #: Options of nvcc.
    flags: str = ""
    #: The architecture that the package generated CUDA C++ for, such as sm_90a.
    arch: str | None = None
    #: The grid in blocks, if the package launches in another unit; else None.
    grid: int | Sequence[int] | None = None
    #: The block size that the kernel was compiled for; None if any is possible.
    block: int | Sequence[int] | None = None
    #: Bytes of dynamic shared memory that the kernel was compiled for.
    dynamic_shared: int = 0
    #: Names of the arguments in errors; empty to use their indices.
    names: list[str] = field(default_factory=list)
    #: Blocks along x of each unit of the grid, such as a Triton program with ``num_ctas``.
    program_blocks: int = 1
    #: Bytes per block of each array of scratch memory. Pointers to these arrays follow the arguments.
    scratch_sizes: Sequence[int] = ()
    #: The cluster size, if the package sets one at the launch.
    cluster: Sequence[int] | None = None


def parse_capability(arch: str) -> tuple[int, int]:
    """Parse an architecture: "sm_90" -> (9, 0), "sm_100a" -> (10, 0). Raise `LaunchError` for other texts."""
    match = re.fullmatch(r"sm_(\d+)(\d)[af]?", arch)
    if match is None:
        raise LaunchError(f"arch is {arch!r}; give an architecture such as sm_90")
    return int(match[1]), int(match[2])


def import_tool(module: str, kernel: Any) -> Any:
    """Import a module that compiles a kernel; raise `LaunchError` if the import fails."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        problem = f"a {type(kernel).__name__} of {package_of(kernel)} cannot be compiled without {module}: {error}"
        remedy = "install or update its package, or pass the kernel's PTX as a text"
        raise LaunchError(f"{problem}; {remedy}") from None


def package_of(kernel: Any) -> str:
    """Return the name of the top-level package of a kernel's type."""
    return type(kernel).__module__.partition(".")[0]


def describe_shape(array: Any, lengths: str = "i4", strides: str = "i8") -> tuple[list[Any], list[Any]]:
    """Return the lengths of an array, and its strides in elements, as two lists of scalars of the given dtypes.

    Raises `LaunchError` if a stride is no multiple of the element size, as for a field of structs.
    """
    if any(stride % array.itemsize for stride in array.strides):
        problem = f"the strides of the array of shape {array.shape} are {array.strides} bytes"
        needed = f"the kernel takes strides in elements, of {array.itemsize} bytes"
        raise LaunchError(f"{problem}; {needed}; pass a copy, numpy.ascontiguousarray(array)")
    steps = [stride // array.itemsize for stride in array.strides]
    return [np.dtype(lengths).type(n) for n in array.shape], [np.dtype(strides).type(n) for n in steps]


def is_aligned(array: Any) -> bool:
    """Tell if the array's address in the simulated memory, which aligns base arrays, is a multiple of 16."""
    return bool((array.ctypes.data - find_base(array).ctypes.data) % DIVISOR == 0)


def view_array(argument: Any) -> Any:
    """View another package's array in host memory as a NumPy array. Return any other argument unchanged.

    Raises `LaunchError` if NumPy cannot view the array, as for one in GPU memory.
    """
    is_array = hasattr(argument, "__array__") or hasattr(argument, "__array_interface__")
    if isinstance(argument, (np.ndarray, np.generic)) or not is_array:
        return argument
    try:
        return np.asarray(argument)
    except (TypeError, ValueError, RuntimeError) as error:
        problem = f"an argument of type {type(argument).__name__} cannot become a NumPy array: {error}"
        raise LaunchError(f"{problem}; pass a copy in host memory") from None
