"""What the values of the axes mean."""

from __future__ import annotations

import pytest

from benchmarks import axes, values


def test_matrix() -> None:
    """Rows come first."""
    assert values.matrix("5003x2999") == {"rows": 5003, "columns": 2999}
    assert values.elements("5003x2999") == 5003 * 2999


def test_matrix_sized_copy() -> None:
    """As many elements as the matrix has beside whose transposes they stand."""
    assert values.matrix_sized_copy("stride_copy stride=2") == ("stride_copy", {"size": 12800 * 12800, "stride": 2})
    assert values.MATRIX_SIZE in axes.MATRICES


@pytest.mark.parametrize("value", ["5003", "5003x", "3x4x5", "axb", ""])
def test_no_matrix(value: str) -> None:
    """What is no such value is refused."""
    with pytest.raises(ValueError, match=r"unpack|invalid literal"):
        values.matrix(value)


@pytest.mark.parametrize("value", ["offset_copy", "offset_copy offset", "offset_copy offset=x", "a b c=1"])
def test_no_copy(value: str) -> None:
    """Nor here."""
    with pytest.raises(ValueError, match=r"unpack|invalid literal"):
        values.matrix_sized_copy(value)
