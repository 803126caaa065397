"""How the tests themselves are run."""

from __future__ import annotations

import pytest

from kernelwatch.toolchain import nvcc_call
from tests import conftest


@pytest.mark.parametrize(("driver", "processes"), [(True, 0), (False, None)])
def test_processes(driver: bool, processes: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside none where there is a GPU's driver; else as many as xdist says."""
    monkeypatch.setattr(nvcc_call, "pycuda_importable", lambda: driver)
    assert conftest.pytest_xdist_auto_num_workers() == processes
