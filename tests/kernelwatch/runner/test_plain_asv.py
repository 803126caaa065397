"""asv without the plugin: the same classes, names, axes, versions and numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kernelwatch.benchmarks as kw
from kernelwatch.config.project_root import ROOT
from kernelwatch.instrument import machine, session, stopping_rule
from kernelwatch.instrument.tolerance import WrongOutputError
from tests import on_fake_gpu
from tests.fake_cuda import FakeGpu
from tests.kernelwatch.runner.test_times import NO_DRIVER, Small, gpu, no_driver

__all__ = ["gpu", "no_driver"]


#: Facts of a benchmark that identify its results.
IDENTITY = ("params", "param_names", "version", "unit", "type")


def read_identities(results: Path) -> dict[str, dict[str, Any]]:
    """Return the identities of the benchmarks in `benchmarks.json`."""
    document = json.loads((results / "benchmarks.json").read_text())
    benchmarks = {name: benchmark for name, benchmark in document.items() if isinstance(benchmark, dict)}
    return {name: {field: benchmark[field] for field in IDENTITY} for name, benchmark in benchmarks.items()}


def test_stored_names_stay() -> None:
    """Names identify stored results; new ones may be added."""
    from asv_runner.discovery import disc_benchmarks

    discovered = {benchmark.name: benchmark for benchmark in disc_benchmarks(str(ROOT / "benchmarks"))}
    stored = read_identities(ROOT / "results")
    identities = {name: [getattr(discovered.get(name), field, None) for field in IDENTITY] for name in stored}
    assert identities == {name: list(identity.values()) for name, identity in stored.items()}


@pytest.fixture
def own_gpu(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGpu]:
    """Provide the device in this process."""
    monkeypatch.setattr(machine, "nvml_handle", lambda: None)
    session._process_session.cache_clear()
    yield gpu
    session._process_session.cache_clear()


class SmallRatios(kw.Control):
    """A control."""

    timed = Small


@pytest.mark.usefixtures("own_gpu")
def test_timed_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in asv's loop, each sample has one `setup` and two readings of the timer."""
    more = stopping_rule.MIN_SAMPLES + 2
    monkeypatch.setattr(stopping_rule, "MIN_SAMPLES", more)  # the instrument gives their number
    benchmark = Small()
    samples = []
    benchmark.setup("right", 64)
    for _ in range(benchmark.repeat):
        benchmark.setup("right", 64)
        benchmark.timer()  # a sample that raises has no second reading and is repeated
        benchmark.setup("right", 64)
        begin = benchmark.timer()
        benchmark.time_back_to_back("right", 64)
        samples.append(benchmark.timer() - begin)
    assert samples == pytest.approx([on_fake_gpu.SECONDS] * benchmark.repeat)
    assert benchmark.timer.is_used_up
    ratios = SmallRatios()
    ratios.setup("right", 64)
    ratio = ratios.track_copy_ratio("right", 64)
    assert ratio["samples"] == pytest.approx([2.5] * benchmark.repeat)
    assert ratio["number"] == 1
    method: Any = SmallRatios.track_copy_ratio
    assert method.benchmark_name.endswith(".SmallRatios.track_copy_ratio")
    for kernel, error in (("wrong", WrongOutputError), ("missing", NotImplementedError)):
        with pytest.raises(error, match=kernel):
            Small().setup(kernel, 64)


def test_no_device_skips(no_driver: FakeGpu) -> None:
    with pytest.raises(NotImplementedError, match=NO_DRIVER):
        Small().setup("right", 64)
    assert not no_driver.launched
