"""The fixture that hands results to the table at the end of `python -m tests.gpu`."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def report_share(record_property: Callable[[str, object], None]) -> Callable[[str, int, int], None]:
    """Return what takes a row: what was looked at, of how many it holds, and how many there are."""
    return lambda title, good, total: record_property("held", [title, good, total])
