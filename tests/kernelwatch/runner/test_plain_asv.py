"""Benchmarks in asv without the plugin: asv's loop over samples, and the timer that returns them."""

from __future__ import annotations

import timeit
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import kernelwatch.benchmarks as kw
from kernelwatch.instrument import machine, session, stopping_rule
from kernelwatch.instrument.clock import SampleClock
from kernelwatch.instrument.tolerance import WrongOutputError
from tests import on_fake_gpu
from tests.fake_cuda import FakeGpu
from tests.kernelwatch.runner.test_times import NO_DRIVER, Small, gpu, no_driver

__all__ = ["gpu", "no_driver"]


@pytest.fixture
def own_gpu(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGpu]:
    """Yield the fake GPU. This process measures, as if without a measuring process."""
    monkeypatch.setattr(machine, "nvml_handle", lambda: None)
    session._process_session.cache_clear()
    yield gpu
    session._process_session.cache_clear()


class SmallRatios(kw.Control):
    """A control."""

    timed = Small


@pytest.mark.usefixtures("own_gpu")
def test_asv_loop_takes_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    more = stopping_rule.MIN_SAMPLES + 2
    monkeypatch.setattr(stopping_rule, "MIN_SAMPLES", more)  # the number of samples that the instrument takes
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


def test_setup_skips_without_a_device(no_driver: FakeGpu) -> None:
    with pytest.raises(NotImplementedError, match=NO_DRIVER):
        Small().setup("right", 64)
    assert not no_driver.launched


def test_timeit_returns_samples_exactly() -> None:
    """Timeit returns each sample to the last bit, in order.

    An exception loses no sample, because asv's setup calls `reset`.
    """
    clock = SampleClock()
    samples = [2e-3, 2.0000002e-3, 1e-6, 59.999996, float(np.float32(3.3)) * 1e-3 / 7]
    clock.add(samples)
    failing = timeit.Timer("raise OSError('boom')", setup=clock.reset, timer=clock)
    with pytest.raises(OSError, match="boom"):
        failing.timeit(1)
    timer = timeit.Timer("pass", setup=clock.reset, timer=clock)
    assert [timer.timeit(1) for _ in samples] == samples
    assert clock.is_used_up
