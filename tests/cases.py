"""Tables of cases that several tests share, made from the rows of the catalog."""

from __future__ import annotations

import math

from gpu_kernels import KERNELS
from gpu_kernels.operations import TRANSPOSE
from kernelwatch.kernel.launch import DTYPE

TRANSPOSES = [name for name, kernel in KERNELS.items() if kernel.operation is TRANSPOSE]

#: Those that cover the matrix by threads; the others have threads that walk over it, which takes long.
COVERING_TRANSPOSES = [name for name in TRANSPOSES if len(KERNELS[name].over) == len(TRANSPOSE.minimum)]

#: Those that multiply matrices.
PRODUCTS = [name for name, kernel in KERNELS.items() if set(kernel.parameters) == {"rows", "inner", "columns"}]

#: Elements a thread up to which a launch is tried everywhere: by a single one, a large matrix takes minutes on the CPU.
MOST_A_THREAD = 4096

#: Steps of a thread up to which a launch is tried in every dtype.
MOST_STEPS = 260


def elements_a_thread(name: str, arguments: dict[str, int]) -> float:
    """Return how many elements of the output each thread of a launch has to make."""
    geometry = KERNELS[name].geometry(**arguments)
    return math.prod(KERNELS[name].arrays(**arguments)[0]) / math.prod(geometry.grid + geometry.block)


#: (kernel, its arguments): every kernel at shapes that do not fit its blocks, up to MOST_A_THREAD.
AWKWARD: list[tuple[str, dict[str, int]]] = [
    (name, arguments)
    for name, kernel in KERNELS.items()
    for case in kernel.operation.awkward
    if elements_a_thread(name, arguments := dict(zip(kernel.operation.minimum, case, strict=True))) <= MOST_A_THREAD
]


def awkward(name: str) -> list[dict[str, int]]:
    """Return the arguments of a kernel's awkward launches."""
    return [arguments for kernel, arguments in AWKWARD if kernel == name]


def steps_a_thread(name: str, arguments: dict[str, int]) -> int:
    """Return how many steps a thread walks through at most: over what the grid does not cover."""
    return math.prod(value for argument, value in arguments.items() if argument not in KERNELS[name].over)


#: (kernel, dtype, its arguments): the same in every dtype that the kernel has. Long walks, which take long on the CPU,
#: in one: the dtype changes neither their steps nor their edges.
AWKWARD_IN_EVERY_DTYPE = [
    (name, dtype, arguments)
    for name, arguments in AWKWARD
    for dtype in KERNELS[name].operation.dtypes
    if dtype == DTYPE or steps_a_thread(name, arguments) <= MOST_STEPS
]
