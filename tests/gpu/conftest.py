"""What tests on a device hand to the table that `python -m tests.gpu` ends with."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def held(record_property: Callable[[str, object], None]) -> Callable[[str, int, int], None]:
    """Return what takes a row: what was looked at, of how many it holds, and how many there are."""
    return lambda what, good, total: record_property("held", [what, good, total])
