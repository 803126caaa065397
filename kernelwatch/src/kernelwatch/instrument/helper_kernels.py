"""The kernels that the instrument itself launches, built by the library of today."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from kernelwatch.instrument import device
from kernelwatch.instrument.device import BoundKernel
from kernelwatch.instrument.protocol import Call
from kernelwatch.kernel import Kernel, geometry, matrix_copy
from kernelwatch.kernel.arguments import laid_out
from kernelwatch.kernel.parameters import inputs, outputs, scalar

#: The dtype of an element, and its bytes: the widest access of a thread.
DTYPE, WIDTH = "complex128", 16

_FOLDER = Path(__file__).parent

#: Blocks of THREADS that fill a multiprocessor of 2048 threads: a grid of one even wave leaves no state behind.
_BLOCKS, _THREADS = 4, 512


def _tool(name: str, source: str, threads: int, grid: geometry.Grid = geometry.cover, **numbers: int) -> Kernel:
    """Return a kernel over `size` elements, which takes an array to write and others to read, and 64-bit integers."""
    read = [inputs(each, "size") for each in ("input", "other")[: 1 + ("sets" in numbers)]]
    least = {"size": 1, **numbers}
    return Kernel(
        name,
        [outputs("output", "size"), *read, *(scalar(each, "int64", least=value) for each, value in least.items())],
        threads,
        over=("size",),
        grid=grid,
        text=lambda: (_FOLDER / source).read_text(encoding="utf-8"),
        options=["-DELEMENT={bits}"],
    )


DEVICE_COPY = _tool(matrix_copy.NAME, "tools.cu", 256, length=1)
FLUSH_L2 = _tool("flush_l2", "tools.cu", _THREADS)
COMPARE = _tool("compare", "tools.cu", _THREADS, geometry.persistent(_BLOCKS), sets=1, pitch=1)
STAMP = _tool("stamp", "stamp.cu", 1)


@cache
def _cubin(tool: Kernel, arch: str) -> bytes:
    return tool.cubin(DTYPE, arch=arch).data


def prebuild(arch: str) -> None:
    """Compile all tools into the cache. Errors as `Kernel.cubin`."""
    for tool in (DEVICE_COPY, FLUSH_L2, COMPARE, STAMP):
        _cubin(tool, arch)


def call(tool: Kernel, **arguments: int) -> Call:
    """Return the call of a tool for its arguments, such as `size` elements of WIDTH bytes. Errors as `Kernel.cubin`."""
    bound = tool.bound(DTYPE, **arguments)
    parameters, addresses = laid_out(bound, [(8, 8, None)] * len(bound))
    shape = tool.geometry(DTYPE, device.multiprocessors(), **arguments)
    return Call(
        cubin=_cubin(tool, device.arch()),
        entry=tool.name,
        grid=shape.grid,
        block=shape.block,
        parameters=parameters,
        addresses=addresses,
    )


def load(tool: Kernel, **arguments: int) -> BoundKernel:
    """Return a tool in the current context. Arguments and errors as `call`."""
    return BoundKernel(call(tool, **arguments))


def elements(length: int) -> int:
    """Return how many elements hold `length` bytes, the last perhaps in part."""
    return -(-length // WIDTH)


def copied(length: int) -> dict[str, int]:
    """Return the arguments of a copy of `length` bytes."""
    return {"size": elements(length), "length": length}


def copy(length: int) -> Call:
    """Return the call of such a copy, which takes the output's address and the input's."""
    return call(DEVICE_COPY, **copied(length))
