"""Shared tables of cases, from the rows of the catalog."""

import math
from typing import Any

from gpu_kernels import KERNELS
from kernelwatch.kernel import Kernel
from kernelwatch.kernel.arguments import ArrayArgument
from kernelwatch.kernel.launch import DTYPE
from kernelwatch.suite import registry

TRANSPOSES = [name for name in KERNELS if name.startswith("transpose_")]

#: Transposes whose grid covers rows and columns. Other transposes loop over the matrix, which takes long.
COVERING_TRANSPOSES = [name for name in TRANSPOSES if len(KERNELS[name].over) == 2]

PRODUCTS = [name for name, kernel in KERNELS.items() if set(kernel.parameters) == {"rows", "inner", "columns"}]

#: Limit on elements per thread: a single thread takes minutes for a large matrix on the CPU.
MOST_A_THREAD = 4096

#: Limit on steps of a thread for launches in every dtype.
MOST_STEPS = 260


def list_array_shapes(kernel: Kernel, dtype: str = DTYPE, /, **extents: Any) -> list[tuple[int, ...]]:
    arguments = kernel.bind_arguments(dtype, **extents)
    return [argument.shape for argument in arguments if isinstance(argument, ArrayArgument)]


def elements_a_thread(name: str, arguments: dict[str, int]) -> float:
    geometry = KERNELS[name].compute_geometry(**arguments)
    return math.prod(list_array_shapes(KERNELS[name], **arguments)[0]) / math.prod(geometry.grid + geometry.block)


#: Parameters -> their values for which kernels often fail: edges of blocks and tiles, thin, prime.
SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "rows columns": (
        *((1, 1), (1, 65), (65, 1), (31, 33), (32, 32), (33, 31), (64, 96), (97, 101), (1, 3000), (3000, 1)),
        *((257, 1030), (1000, 700), (1024, 1024)),
    ),
    "size offset": (
        *((1, 0), (31, 1), (32, 2), (33, 31), (255, 32), (256, 0), (257, 1), (1000, 2), (4099, 31)),
        *((65536, 31), (100003, 0), (100003, 1)),
    ),
    "size stride": (
        *((1, 1), (31, 2), (32, 3), (33, 8), (255, 32), (256, 1), (257, 2), (1000, 3), (4099, 8)),
        *((50001, 2), (50001, 3), (65536, 32)),
    ),
    "size": ((1,), (31,), (33,), (255,), (992,), (1000,), (1023,), (1024,), (1025,), (4099,), (65536,), (100003,)),
    "size bins": ((1, 1), (4097, 9)),
    "rows inner columns": (
        *((1, 1, 1), (1, 127, 1), (33, 1, 33), (31, 33, 32), (33, 31, 1), (32, 32, 32), (1, 33, 127)),
        *((33, 33, 31), (127, 32, 33), (31, 127, 127)),
    ),
}


def dtypes(name: str) -> list[str]:
    """Return the dtypes that a kernel is counted in."""
    return sorted(registry.current_suite().dtypes[name])


#: (kernel, its arguments): every kernel at its `SHAPES`, up to MOST_A_THREAD elements per thread.
AWKWARD: list[tuple[str, dict[str, int]]] = [
    (name, arguments)
    for name, kernel in KERNELS.items()
    for names, cases in SHAPES.items()
    for case in cases
    if set(names.split()) == set(kernel.parameters)
    if elements_a_thread(name, arguments := dict(zip(names.split(), case, strict=True))) <= MOST_A_THREAD
]


def awkward(name: str) -> list[dict[str, int]]:
    return [arguments for kernel, arguments in AWKWARD if kernel == name]


def steps_a_thread(name: str, arguments: dict[str, int]) -> int:
    """Return the number of a thread's iterations over the extents that the grid does not cover."""
    return math.prod(value for argument, value in arguments.items() if argument not in KERNELS[name].over)


#: (kernel, dtype, its arguments): launches of AWKWARD in every dtype of the kernel. Long loops run only in `DTYPE`,
#: because other dtypes change neither their steps nor their edges.
AWKWARD_IN_EVERY_DTYPE = [
    (name, dtype, arguments)
    for name, arguments in AWKWARD
    for dtype in dtypes(name)
    if dtype == DTYPE or steps_a_thread(name, arguments) <= MOST_STEPS
]
