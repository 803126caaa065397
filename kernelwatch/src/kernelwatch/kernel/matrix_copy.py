"""The library's own copy of a matrix of any element type: what kernels that move as many bytes are compared with."""

from __future__ import annotations

from kernelwatch.kernel.arguments import dtype_of

#: What it is called as a kernel; `tools.DEVICE_COPY` is its code.
NAME = "device_copy"


def useful_bytes(dtype: str, rows: int, columns: int) -> int:
    """Return the bytes that it reads and writes."""
    return 2 * rows * columns * dtype_of(dtype).itemsize
