"""Kernels of anybody's on a real device: timed and verified; wrong ones are refused, and give no time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwatch import Kernel, suite
from kernelwatch.asv import timed
from kernelwatch.instrument import measuring
from kernelwatch.instrument.job import Outcome
from kernelwatch.instrument.verification import WrongOutputError
from kernelwatch.kernel import Launch, sources
from tests.own_kernels import CASES, Case

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module", autouse=True)
def _process() -> Iterator[None]:
    """A measuring process."""
    with measuring.running():
        yield


def _measured(kernel: Kernel, case: Case, monkeypatch: pytest.MonkeyPatch, **how: Any) -> Outcome:
    monkeypatch.setattr(suite, "kernel", lambda _: kernel)
    return timed.measured(Launch(kernel.name, case.dtype, arguments=case.extents), **how)


@pytest.mark.parametrize("name", CASES)
def test_timed_verified_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone and in a row; a kernel that is wrong in one place has no time, unless nothing says what is right."""
    case = CASES[name]
    monkeypatch.setenv(sources.CHECKOUT, str(tmp_path))
    right = case.kernel(case.text, tmp_path)
    row, alone = (_measured(right, case, monkeypatch, isolated=isolated).samples for isolated in (False, True))
    gigabytes = right.useful_bytes(case.dtype, **case.extents) / np.median(row) / 1e9
    print(
        f"TIMED {name:60} {np.median(row) * 1e6:9.2f} us {np.median(alone) * 1e6:9.2f} us alone {gigabytes:7.0f} GB/s"
    )
    assert 5e-7 < np.median(row) < np.median(alone) * 1.2
    wrong = case.kernel(case.text.replace(*case.wrong), tmp_path)
    with pytest.raises(WrongOutputError, match=wrong.name):
        _measured(wrong, case, monkeypatch)
    wrong.says = None
    assert _measured(wrong, case, monkeypatch).samples
