"""The library's own copy of a matrix of any element type, for comparison with kernels that move as many bytes."""

from kernelwatch.kernel.arguments import to_dtype

#: Name of the copy as a kernel; `helper_kernels.DEVICE_COPY` is its code.
NAME = "device_copy"


def useful_bytes(dtype: str, rows: int, columns: int) -> int:
    """Return the bytes that the copy reads and writes."""
    return 2 * rows * columns * to_dtype(dtype).itemsize
