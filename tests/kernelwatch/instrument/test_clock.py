"""The timer that hands samples to asv through `timeit`."""

from __future__ import annotations

import timeit

import numpy as np
import pytest

from kernelwatch.instrument.clock import SampleClock


def test_timeit_returns_samples_exactly() -> None:
    """Two subtracted readings give each sample to the last bit, in order.

    After an exception, asv's setup calls `reset`, so no sample is lost.
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
