"""The library's own kernels for measurements: a copy, a read that flushes the L2 cache, a comparison, a time stamp."""

from functools import cache
from pathlib import Path

from kernelwatch.instrument import device
from kernelwatch.instrument.device import BoundKernel
from kernelwatch.instrument.job_messages import Call
from kernelwatch.kernel import Kernel, geometry, matrix_copy
from kernelwatch.kernel.arguments import ParameterLayout, pack_arguments
from kernelwatch.kernel.parameters import inputs, outputs, scalar

#: Dtype and bytes of an element: the largest access of a thread.
DTYPE, WIDTH = "complex128", 16

_FOLDER = Path(__file__).parent

#: Blocks per multiprocessor, and threads per block. They make one full wave, which does not slow down later launches,
#: on a multiprocessor of 2048 threads.
_BLOCKS, _THREADS = 4, 512


def _make_helper(name: str, source: str, threads: int, grid: geometry.Grid = geometry.cover, **numbers: int) -> Kernel:
    """Return a kernel over `size` elements: an output, one or two inputs, then 64-bit integers, first `size`.

    `numbers` maps the names of further integers to their minimums. With an integer `sets`, there is a second input.
    """
    input_names = ("input", "other") if "sets" in numbers else ("input",)
    return Kernel(
        name,
        [
            outputs("output", "size"),
            *(inputs(input_name, "size") for input_name in input_names),
            *(scalar(number, "int64", least=minimum) for number, minimum in {"size": 1, **numbers}.items()),
        ],
        threads,
        over=("size",),
        grid=grid,
        text=lambda: (_FOLDER / source).read_text(encoding="utf-8"),
        options=["-DELEMENT={bits}"],
    )


DEVICE_COPY = _make_helper(matrix_copy.NAME, "tools.cu", 256, length=1)
FLUSH_L2 = _make_helper("flush_l2", "tools.cu", _THREADS)
COMPARE = _make_helper("compare", "tools.cu", _THREADS, geometry.persistent(_BLOCKS), sets=1, pitch=1)
STAMP = _make_helper("stamp", "stamp.cu", 1)


@cache
def _compile_helper(helper: Kernel, arch: str) -> bytes:
    return helper.compile_cubin(DTYPE, arch=arch).data


def compile_helpers(arch: str) -> None:
    """Compile all helper kernels into the cache."""
    for helper in (DEVICE_COPY, FLUSH_L2, COMPARE, STAMP):
        _compile_helper(helper, arch)


def make_helper_call(helper: Kernel, **arguments: int) -> Call:
    """Return the launch of a helper kernel with these arguments, such as `size` elements of WIDTH bytes."""
    bound = helper.bind_arguments(DTYPE, **arguments)
    parameters, addresses = pack_arguments(bound, [ParameterLayout(8, 8, None)] * len(bound))
    shape = helper.compute_geometry(DTYPE, device.count_multiprocessors(), **arguments)
    return Call(
        cubin=_compile_helper(helper, device.device_arch()),
        entry=helper.name,
        grid=shape.grid,
        block=shape.block,
        parameters=parameters,
        addresses=addresses,
    )


def load_helper(helper: Kernel, **arguments: int) -> BoundKernel:
    """Load a helper kernel in the current context, with the grid and parameters that these arguments give."""
    return BoundKernel(make_helper_call(helper, **arguments))


def count_elements(length: int) -> int:
    """Return the number of elements of WIDTH bytes that have `length` bytes, rounded up."""
    return -(-length // WIDTH)


def copy_arguments(length: int) -> dict[str, int]:
    """Return the arguments of a copy of `length` bytes."""
    return {"size": count_elements(length), "length": length}


def make_copy_call(length: int) -> Call:
    """Return the call of a copy of `length` bytes; its arrays are the output and the input."""
    return make_helper_call(DEVICE_COPY, **copy_arguments(length))
