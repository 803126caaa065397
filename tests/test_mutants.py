"""What `make mutants` plants faults in, and which tests it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import ROOT
from tests.mutants import GROUPS


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
