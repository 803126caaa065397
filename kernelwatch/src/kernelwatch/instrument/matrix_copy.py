"""The library's own copy of a matrix of any element type: what kernels that move as many bytes are compared with."""

from __future__ import annotations

from kernelwatch.kernel.operation import Operation, Shape

#: What it is called as a kernel; `tools.DEVICE_COPY` is its code.
NAME = "device_copy"


def _shapes(rows: int, columns: int) -> tuple[Shape, ...]:
    return (rows, columns), (rows, columns)


OPERATION = Operation("device copy", {"rows": 1, "columns": 1}, _shapes, lambda output, input, rows, columns: input)
