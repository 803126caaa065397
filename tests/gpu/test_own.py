"""Users' kernels on a device: right kernels are timed, wrong kernels are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwatch import Kernel
from kernelwatch.config.project_root import CHECKOUT
from kernelwatch.instrument import server, session
from kernelwatch.instrument.job_messages import JobOutcome
from kernelwatch.instrument.tolerance import WrongOutputError
from kernelwatch.kernel import Launch
from kernelwatch.kernel.arguments import ArrayArgument
from kernelwatch.suite import registry
from tests.own_kernels import CASES, Case

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def facts() -> Iterator[dict[str, Any]]:
    with server.start_server() as facts:
        yield facts


def _measure(kernel: Kernel, case: Case, monkeypatch: pytest.MonkeyPatch, **how: Any) -> JobOutcome:
    monkeypatch.setattr(registry, "find_kernel", lambda _: kernel)
    return session.measure_launch(Launch(kernel.name, case.dtype, arguments=case.extents), **{"samples": 3, **how})


@pytest.mark.parametrize("name", CASES)
def test_right_kernel_is_timed_and_wrong_one_refused(
    name: str, facts: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong kernel gets no time, unless the kernel has no reference.

    After an isolated launch, the L2 may still hold as many of its writes as fit. Back to back, a launch also waits
    until such writes reach DRAM: at most `kept` longer.
    """
    case = CASES[name]
    monkeypatch.setenv(CHECKOUT, str(tmp_path))
    right = case.kernel(case.text, tmp_path)
    outcomes = [_measure(right, case, monkeypatch, isolated=isolated) for isolated in (False, True)]
    back_to_back, isolated, copy = map(np.median, (outcomes[0].samples, outcomes[1].samples, outcomes[0].copies))
    useful = right.useful_bytes(case.dtype, **case.extents)
    arrays = [
        argument for argument in right.bind_arguments(case.dtype, **case.extents) if isinstance(argument, ArrayArgument)
    ]
    written = sum(array.nbytes for array in arrays if array.is_written)
    kept = min(written, facts["l2_bytes"]) * copy / useful
    figures = f"{back_to_back * 1e6:9.2f} us {isolated * 1e6:9.2f} us isolated, {kept * 1e6:.2f} us to write back"
    print(f"TIMED {name:60} {figures}")
    assert 5e-7 < back_to_back < 1.05 * isolated + kept
    wrong = case.kernel(case.text.replace(*case.wrong), tmp_path)
    with pytest.raises(WrongOutputError, match=wrong.name):
        _measure(wrong, case, monkeypatch, samples=1)
    wrong.reference = None
    assert _measure(wrong, case, monkeypatch, samples=1).samples
