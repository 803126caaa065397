"""The kernels by name: the only list."""

from __future__ import annotations

from gpu_kernels.errors import UnknownKernelError
from gpu_kernels.operations import OFFSET_COPY, STRIDE_COPY, TRANSPOSE
from gpu_kernels.spec import Kernel

_LINE = (256, 1, 1)
_SQUARE = (32, 32, 1)

#: To add a kernel: its `.cu`, one row here, one name in `benchmarks/axes.py`.
KERNELS: dict[str, Kernel] = {
    row.name: row
    for row in (
        Kernel("offset_copy", "offset_copy.cu", OFFSET_COPY, _LINE, ("size",)),
        Kernel("stride_copy", "stride_copy.cu", STRIDE_COPY, _LINE, ("size",)),
        Kernel("transpose_read_coalesced", "transpose.cu", TRANSPOSE, _SQUARE, ("columns", "rows")),
        Kernel("transpose_write_coalesced", "transpose.cu", TRANSPOSE, _SQUARE, ("rows", "columns")),
        Kernel("transpose_read_write_coalesced", "transpose.cu", TRANSPOSE, _SQUARE, ("columns", "rows")),
        Kernel("transpose_read_write_coalesced_unpadded", "transpose.cu", TRANSPOSE, _SQUARE, ("columns", "rows")),
    )
}


def get(kernel: str | Kernel) -> Kernel:
    """Return the kernel of that name; a Kernel of one's own is what it is.

    Raises
    ------
    UnknownKernelError : the catalog holds no such kernel.
    """
    if isinstance(kernel, Kernel):
        return kernel
    try:
        return KERNELS[kernel]
    except (KeyError, TypeError):  # TypeError: not hashable
        raise UnknownKernelError(f"kernel {kernel!r} is not known; allowed are {', '.join(KERNELS)}") from None
