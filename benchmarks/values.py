"""What the values of those axes mean that say several things in one: the one place that takes them apart."""

from __future__ import annotations


def matrix(value: str) -> dict[str, int]:
    """Of `axes.MATRICES` and its like: "5003x2999" is 5003 rows and 2999 columns.

    Raises
    ------
    ValueError : it is no such value.
    """
    rows, columns = map(int, value.split("x"))
    return {"rows": rows, "columns": columns}


def matrix_sized_copy(value: str) -> tuple[str, dict[str, int]]:
    """Of `axes.MATRIX_SIZED_COPIES`: the kernel and its arguments, as many elements as the largest matrix among them.

    Raises
    ------
    ValueError : it is no such value.
    """
    kernel, argument = value.split(" ")
    name, number = argument.split("=")
    return kernel, {"size": 12800 * 12800, name: int(number)}
