"""The kernels that the instrument itself launches, built and loaded as the catalog's are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gpu_kernels import build, launch
from gpu_kernels.spec import Array, Kernel, Operation, Shape

#: Bytes of an element: the widest access of a thread.
WIDTH = 16

_DTYPE = "complex128"
_FOLDER = Path(__file__).parent


def _shapes(size: int, **_: int) -> tuple[Shape, Shape]:
    return (size,), (size,)


def _elements(size: int, **_: int) -> int:
    return size


def _copied(output: Array, input: Array, size: int, length: int = 0) -> Array:
    expected = output.copy()
    expected.view(np.uint8)[:length] = input.view(np.uint8)[:length]
    return expected


def _tool(name: str, source: str, threads: int, **minimum: int) -> Kernel:
    """A kernel over `size` elements, one a thread."""
    operation = Operation(name, {"size": 1, **minimum}, _shapes, _elements, _copied)
    return Kernel(name, str(_FOLDER / source), operation, (threads, 1, 1), ("size",))


DEVICE_COPY = _tool("device_copy", "tools.cu", 256, length=1)
FLUSH_L2 = _tool("flush_l2", "tools.cu", 512)
STAMP = _tool("stamp", "stamp.cu", 1)


def prebuild(arch: str) -> None:
    """Compile all tools into the cache. Errors as `build.cubin`."""
    for tool in (DEVICE_COPY, FLUSH_L2, STAMP):
        build.cubin(tool, _DTYPE, arch=arch)


def load(tool: Kernel) -> launch.Function:
    """A tool, ready to launch with `size` elements of WIDTH bytes. Errors as `launch.load`."""
    return launch.load(tool, _DTYPE)


def elements(length: int) -> int:
    """The elements that hold `length` bytes, the last perhaps in part."""
    return -(-length // WIDTH)


def copier() -> Callable[[int, int, int, Any], None]:
    """(output address, input address, bytes, stream) -> None: launches a copy of that many bytes."""
    function = load(DEVICE_COPY)

    def copy(output: int, input: int, length: int, stream: Any) -> None:
        function(output, input, stream=stream, size=elements(length), length=length)

    return copy
