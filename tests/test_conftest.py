"""How the tests themselves are run."""

from __future__ import annotations

import os

import pytest

from kernelwatch.toolchain import nvcc_call
from tests import conftest


@pytest.mark.parametrize(("driver", "processes"), [(True, 0), (False, 3)])
def test_processes(driver: bool, processes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """None where there is a GPU's driver; else one more than there are processors."""
    monkeypatch.setattr(nvcc_call, "pycuda_importable", lambda: driver)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {4, 5})
    assert conftest.pytest_xdist_auto_num_workers() == processes
