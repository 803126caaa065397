"""The fixture for rows of the table of `python -m tests.gpu`."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def report_share(record_property: Callable[[str, object], None]) -> Callable[[str, int, int], None]:
    """Return a function that adds a row: what was checked, how many passed, and the total."""
    return lambda title, good, total: record_property("held", [title, good, total])
