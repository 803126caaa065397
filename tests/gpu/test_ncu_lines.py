"""The executor's lines against the tag stage of the chip's L1."""

from __future__ import annotations

import shutil

import pytest

from tests import ncu_compare, ncu_lines
from tests.ncu_lines import Row

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Every pattern of access, profiled once; `pytest -rP` shows the table where all agree, too."""
    ncu = shutil.which("ncu")
    if ncu is None:
        pytest.skip("ncu is not on PATH; it comes with the CUDA toolkit")
    found = ncu_lines.rows(ncu_compare.profile(ncu, ncu_lines.CASES, ncu_lines.metrics(ncu)))
    print(ncu_lines.table(found))
    return found


@pytest.mark.parametrize("kind", ncu_lines.OPERATIONS)
def test_lines_are_the_sets_that_are_accessed(kind: str, rows: list[Row]) -> None:
    """Lines over the whole warp are the chip's set accesses. If not, see whether `by pass` or another column is."""
    wrong = [row for row in rows if row.kind == kind and row.chip.get(ncu_lines.CANDIDATES[0]) != row.lines]
    assert not wrong, f"{len(wrong)} launches disagree:\n{ncu_lines.table(row for row in rows if row.kind == kind)}"
