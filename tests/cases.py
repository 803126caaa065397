"""Tables of cases that several tests share."""

from __future__ import annotations

from gpu_kernels import KERNELS
from gpu_kernels.operations import OFFSET_COPY, STRIDE_COPY, TRANSPOSE

TRANSPOSES = [name for name, kernel in KERNELS.items() if kernel.operation is TRANSPOSE]

#: Shapes around the tile's edges, thin ones, and a prime one.
AWKWARD_MATRICES = [(1, 1), (1, 65), (65, 1), (31, 33), (32, 32), (33, 31), (64, 96), (97, 101), (1, 3000), (3000, 1)]

#: (size, offset) and (size, stride), with sizes around the block's edges.
AWKWARD_OFFSETS = [(1, 0), (31, 1), (32, 2), (33, 31), (255, 32), (256, 0), (257, 1), (1000, 2), (4099, 31)]
AWKWARD_STRIDES = [(1, 1), (31, 2), (32, 3), (33, 8), (255, 32), (256, 1), (257, 2), (1000, 3), (4099, 8)]

OFFSETS = [0, 1, 2, 4, 8, 16, 31, 32]
STRIDES = [1, 2, 3, 4, 8, 16, 32]

#: (kernel, its arguments): every kernel at shapes that do not fit its blocks.
AWKWARD: list[tuple[str, dict[str, int]]] = [
    (name, arguments)
    for name, kernel in KERNELS.items()
    for operation, table in (
        (TRANSPOSE, [{"rows": rows, "columns": columns} for rows, columns in AWKWARD_MATRICES]),
        (OFFSET_COPY, [{"size": size, "offset": offset} for size, offset in AWKWARD_OFFSETS]),
        (STRIDE_COPY, [{"size": size, "stride": stride} for size, stride in AWKWARD_STRIDES]),
    )
    if kernel.operation is operation
    for arguments in table
]
