"""What the values of those axes mean that say several things in one: the one place that takes them apart."""

from __future__ import annotations

import math

#: The matrix of `axes.MATRICES` beside whose transposes the matrix-sized copies stand.
MATRIX_SIZE = "12800x12800"


def matrix(value: str) -> dict[str, int]:
    """Of `axes.MATRICES` and its like: "5003x2999" is 5003 rows and 2999 columns.

    Raises
    ------
    ValueError : it is no such value.
    """
    rows, columns = map(int, value.split("x"))
    return {"rows": rows, "columns": columns}


def elements(value: str) -> int:
    """How many elements such a matrix has."""
    return math.prod(matrix(value).values())


def matrix_sized_copy(value: str) -> tuple[str, dict[str, int]]:
    """Of `axes.MATRIX_SIZED_COPIES`: "offset_copy offset=1" is that kernel, with that argument and that size.

    Raises
    ------
    ValueError : it is no such value.
    """
    kernel, argument = value.split(" ")
    name, number = argument.split("=")
    return kernel, {"size": elements(MATRIX_SIZE), name: int(number)}
