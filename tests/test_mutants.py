"""What `make mutants` plants faults in, and which tests it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwatch.project import ROOT
from tests.mutants import GROUPS, _annotated, _within


def test_every_module_of_the_counter() -> None:
    """Each in one group; only what the package shows is in none."""
    planted = [Path(module).name for group in GROUPS.values() for module in group.modules if "/ptxcount/" in module]
    there = {file.name for file in (ROOT / "ptxcount" / "src" / "ptxcount").glob("*.py")}
    assert sorted(planted) == sorted(there - {"__init__.py"})


@pytest.mark.parametrize("name", GROUPS)
def test_groups(name: str) -> None:
    """Modules and tests are there."""
    assert all((ROOT / module).exists() for module in GROUPS[name].modules)
    assert any(any(ROOT.glob(pattern)) for pattern in GROUPS[name].tests)


MODULE = """
from __future__ import annotations
{import_}
class Row:
    field: int | None
    other: int | None = 1 | 2

def sized(count: int | None = 3 | 4) -> int | None:
    known: int | None = 5 | 6
    return known
"""


@pytest.mark.parametrize(("import_", "planted"), [("import msgspec", "|||||"), ("import numpy", "|||")])
def test_annotations(import_: str, planted: str, tmp_path: Path) -> None:
    """No fault is planted where nothing is evaluated; msgspec evaluates the annotations of fields."""
    file = tmp_path / "module.py"
    file.write_text(MODULE.format(import_=import_))
    annotated = list(_annotated(file))
    lines = file.read_text().splitlines()
    there = [(at + 1, column) for at, line in enumerate(lines) for column, one in enumerate(line) if one == "|"]
    assert "".join("|" for place in there if not _within(place, annotated)) == planted
