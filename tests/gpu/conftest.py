"""The fixture for rows of the table of `python -m tests.gpu`."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def report_share(record_property: Callable[[str, object], None]) -> Callable[[str, int, int], None]:
    """Return a function that takes a row: what was checked, of how many, and the total."""
    return lambda title, good, total: record_property("held", [title, good, total])
