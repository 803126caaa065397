"""Tables of cases that several tests share, made from the rows of the catalog."""

from __future__ import annotations

from gpu_kernels import KERNELS, catalog
from gpu_kernels.operations import TRANSPOSE

TRANSPOSES = catalog.performing(TRANSPOSE)

#: (kernel, its arguments): every kernel at shapes that do not fit its blocks.
AWKWARD: list[tuple[str, dict[str, int]]] = [
    (name, dict(zip(kernel.operation.minimum, case, strict=True)))
    for name, kernel in KERNELS.items()
    for case in kernel.operation.awkward
]

#: (kernel, dtype, its arguments): the same in every dtype that the kernel has.
AWKWARD_IN_EVERY_DTYPE = [
    (name, dtype, arguments) for name, arguments in AWKWARD for dtype in KERNELS[name].operation.dtypes
]
