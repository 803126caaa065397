"""The oracle of small floating-point types; modules of tests that import it are skipped without it."""

from __future__ import annotations

import pytest

ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes, the oracle of small floats, is not installed")
