"""The measuring process on a device: samples, skips, wrong kernels, and faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks import track_control
from benchmarks.time_copy import DeviceCopy, StrideCopy
from benchmarks.time_transpose import IsolatedTranspose, Transpose, TransposeInL2
from kernelwatch.benchmarks import timed
from kernelwatch.benchmarks.timed import Timed
from kernelwatch.instrument import server, session, stopping_rule
from kernelwatch.instrument.client import MeasuringError
from kernelwatch.instrument.job_messages import JobOutcome
from kernelwatch.instrument.tolerance import WrongOutputError
from kernelwatch.kernel import Kernel, Launch
from kernelwatch.suite import registry
from tests.gpu.harness import run_and_check
from tests.wrong_kernels import FAULTY, WRITING, WRONG

pytestmark = pytest.mark.gpu


def _measure_timed(timed_class: type[Timed], params: tuple[object, ...]) -> JobOutcome:
    point = dict(zip(timed_class.param_names, params, strict=True))
    return session.measure_description(timed.describe_job(timed_class.sweep, timed_class.sweep.launch(point)))


TILE = ("transpose_read_write_coalesced", "256x256", "float32", "-Xptxas -O3")

#: Limit on the seconds of a configuration, ten times the usual. Only a hanging kernel exceeds it.
LIMIT = 3.0


@pytest.fixture(scope="module", autouse=True)
def _process() -> Iterator[None]:
    with server.start_server(job_seconds=LIMIT):
        yield


def _measure(kernel: Kernel, arguments: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(registry, "find_kernel", lambda _: kernel)
    return session.measure_launch(Launch(kernel.name, arguments=arguments))


@pytest.mark.parametrize(
    ("kernel", "arguments", "message"), WRONG + WRITING, ids=lambda value: getattr(value, "name", "")
)
def test_wrong_kernels_are_rejected(
    kernel: Kernel, arguments: dict[str, int], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(WrongOutputError, match=message):
        _measure(kernel, arguments, monkeypatch)
    with pytest.raises(WrongOutputError, match=kernel.name):
        run_and_check(kernel, "float32", "-Xptxas -O3", **arguments)


@pytest.mark.parametrize(("kernel", "arguments", "message"), FAULTY, ids=lambda value: getattr(value, "name", ""))
def test_fault_costs_one_configuration(
    kernel: Kernel, arguments: dict[str, int], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched, pytest.raises(MeasuringError, match=message):
        _measure(kernel, arguments, patched)
    assert session.measure_launch(Launch("offset_copy", arguments={"size": 1000, "offset": 1})).samples


@pytest.mark.parametrize("timed_class", [Transpose, IsolatedTranspose])
def test_samples_are_paired_and_limited(timed_class: type[Timed]) -> None:
    outcome = _measure_timed(timed_class, TILE)
    assert stopping_rule.MIN_SAMPLES <= len(outcome.samples) == len(outcome.copies) <= stopping_rule.MAX_SAMPLES
    assert all(1e-7 < seconds < 1e-3 for seconds in (*outcome.samples, *outcome.copies))


def test_isolated_launch_takes_longer() -> None:
    """An isolated launch takes longer than one back to back, which overlaps with its neighbours."""
    alone, in_a_row = (min(_measure_timed(timed_class, TILE).samples) for timed_class in (IsolatedTranspose, Transpose))
    assert alone > in_a_row


@pytest.mark.parametrize("length", [2**20 + 16, 3 * 2**20 + 5])
def test_plain_copy_copies_odd_lengths(length: int) -> None:
    """The lengths are no multiples of a block's 4096 bytes; the second is none of 16 bytes either."""
    assert _measure_timed(DeviceCopy, (f"1x{length}", "int8")).samples


def test_ratio_without_a_time() -> None:
    """A ratio is measured even if no time was. An offset copy takes about as long as the plain copy."""
    copy_ratio = vars(track_control)["OffsetCopy"]()
    copy_ratio.setup(0, 1 << 26, "complex128", "-Xptxas -O3")
    ratios = copy_ratio.track_copy_ratio()["samples"]
    assert stopping_rule.MIN_SAMPLES <= len(ratios) <= stopping_rule.MAX_SAMPLES
    assert all(0.9 < ratio < 1.5 for ratio in ratios)


@pytest.mark.parametrize(
    ("timed_class", "params", "reason"),
    [
        (
            Transpose,
            ("nope", "256x256", "float32", "-Xptxas -O3"),
            "this commit does not have it: there is no kernel 'nope'",
        ),
        (StrideCopy, (2**30, 4194304, "float64", "-Xptxas -O3"), "needs .* bytes of GPU memory, .* are free"),
        (
            TransposeInL2,
            ("transpose_read_coalesced", "12800x12800", "float32", "-Xptxas -O3"),
            "needs .* bytes of L2 cache, but the GPU has",
        ),
        (DeviceCopy, ("900000x900000", "float64"), "needs .* bytes of GPU memory, .* are free"),
    ],
)
def test_impossible_jobs_are_skipped(timed_class: type[Timed], params: tuple[object, ...], reason: str) -> None:
    with pytest.raises(NotImplementedError, match=reason):
        _measure_timed(timed_class, params)
