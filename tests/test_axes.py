"""The literal axes of the benchmarks against the tables of the package."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks import axes
from gpu_kernels import DTYPES, FLAG_SETS, KERNELS
from gpu_kernels.operations import TRANSPOSE


@pytest.mark.parametrize(
    ("axis", "table", "where"),
    [
        (axes.KERNELS, list(KERNELS), "gpu_kernels/catalog.py and KERNELS"),
        (
            axes.TRANSPOSES,
            [name for name, kernel in KERNELS.items() if kernel.operation is TRANSPOSE],
            "gpu_kernels/catalog.py and TRANSPOSES",
        ),
        (axes.DTYPES, list(DTYPES), "gpu_kernels/dtypes.py and DTYPES"),
        (axes.FLAG_SETS, list(FLAG_SETS), "gpu_kernels/flags.py and FLAG_SETS"),
    ],
    ids=["kernels", "transposes", "dtypes", "flag sets"],
)
def test_axes_follow_the_tables(axis: list[str], table: list[str], where: str) -> None:
    """Whoever adds a row adds a name, at the end."""
    assert axis == table, f"{where} of benchmarks/axes.py disagree: append the missing name to the axis, never reorder"


def test_axes_are_literal() -> None:
    """Asv addresses results by position in the axes, so nothing in them may be computed."""
    tree = ast.parse(Path(axes.__file__).read_text(encoding="utf-8"))
    assignments = [node for node in tree.body if isinstance(node, ast.Assign)]
    assert len(assignments) > 5
    for node in assignments:
        values = ast.literal_eval(node.value)  # raises ValueError if anything is computed
        assert len(values) == len(set(values))
