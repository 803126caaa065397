"""The library's own copy of a matrix of any element type, which kernels that move as many bytes are compared with."""

from __future__ import annotations

from kernelwatch.kernel.arguments import to_dtype

#: Name of the copy as a kernel; `helper_kernels.DEVICE_COPY` is its code.
NAME = "device_copy"


def useful_bytes(dtype: str, rows: int, columns: int) -> int:
    """Return the bytes that it reads and writes."""
    return 2 * rows * columns * to_dtype(dtype).itemsize
