"""The timer that tells asv what was measured, as `timeit` uses it."""

from __future__ import annotations

import timeit

import numpy as np
import pytest

from kernelwatch.instrument.clock import Readings


@pytest.mark.parametrize("seconds", [2e-3, 2.0000002e-3, 1e-6, 59.999996, float(np.float32(3.3)) * 1e-3 / 7])
def test_timeit_gets_the_samples(seconds: float) -> None:
    """`timeit` subtracts two readings and finds each sample, to the last bit and in its order."""
    clock = Readings()
    samples = [seconds, 1.5 * seconds, seconds / 3]
    clock.add(samples)
    timer = timeit.Timer("pass", setup=clock.reset, timer=clock)
    assert [timer.timeit(1) for _ in samples] == samples
    assert clock.is_used_up


def test_exception_between_the_calls() -> None:
    """After a body that raised, `reset` (asv's setup) makes the next call a first one: no sample is lost."""
    clock = Readings()
    clock.add([3.0])
    timer = timeit.Timer("raise OSError('boom')", setup=clock.reset, timer=clock)
    for _ in range(2):
        with pytest.raises(OSError, match="boom"):
            timer.timeit(1)
    clock.reset()
    assert [clock(), clock()] == [0.0, 3.0]
