"""The kernels that the instrument itself launches, built and loaded as the catalog's are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from gpu_kernels import build, launch
from gpu_kernels.spec import Array, Kernel, Operation, Shape

#: Bytes of an element: the widest access of a thread.
WIDTH = 16

_DTYPE = "complex128"
_SOURCE = str(Path(__file__).with_name("tools.cu"))


def _shapes(size: int) -> tuple[Shape, Shape]:
    return (size,), (size,)


def _elements(size: int) -> int:
    return size


def _reference(output: Array, input: Array, size: int) -> Array:
    return input


_COPY = Operation("copy", minimum={"size": 1}, shapes=_shapes, elements=_elements, reference=_reference)

_tool = partial(Kernel, source=_SOURCE, operation=_COPY, grid_over=("size",))

DEVICE_COPY = _tool("device_copy", block=(256, 1, 1))
FLUSH_L2 = _tool("flush_l2", block=(512, 1, 1))
STAMP = _tool("stamp", block=(1, 1, 1))


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
    """(output address, input address, bytes, stream) -> None: launches a copy of that many bytes, up to WIDTH more."""
    function = load(DEVICE_COPY)

    def copy(output: int, input: int, length: int, stream: Any) -> None:
        function(output, input, stream=stream, size=elements(length))

    return copy
