"""How the tests themselves are run."""

from __future__ import annotations

import pytest

from gpu_kernels import compilers
from tests import conftest


@pytest.mark.parametrize(("driver", "processes"), [(True, 0), (False, None)])
def test_processes(driver: bool, processes: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside none where there is a GPU's driver; else as many as xdist says."""
    monkeypatch.setattr(compilers, "pycuda_importable", lambda: driver)
    assert conftest.pytest_xdist_auto_num_workers() == processes
