"""The timer that tells asv what was measured, as `timeit` uses it."""

from __future__ import annotations

import timeit

import numpy as np
import pytest

from kernelwatch.instrument.clock import SampleClock


def test_timeit_gets_the_samples() -> None:
    """`timeit` subtracts two readings and finds each sample, to the last bit and in its order.

    After a body that raised, `reset` (asv's setup) makes the next call a first one: no sample is lost.
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
