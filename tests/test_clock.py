"""The clock, with events that are not CUDA's."""

from __future__ import annotations

import timeit

import numpy as np
import pytest

from benchmarks.instruments.clock import EventClock
from benchmarks.instruments.replay import MIN_LAUNCHES, TARGET_MS, launches_for


class FakeWork:
    """A hundred launches that take `ms` whatever happens; the driver's elapsed time is a float32."""

    def __init__(self, ms: float) -> None:
        self.ms = np.float32(ms)
        self.read = 0

    def __call__(self) -> None:
        """Nothing to start."""

    def seconds(self) -> float:
        """Count the readings."""
        self.read += 1
        return float(self.ms) * 1e-3 / 100


@pytest.mark.parametrize("ms", [2.0, 2.0000002, 1e-3, 59_999.996])
def test_timeit_gets_seconds_a_launch(ms: float) -> None:
    """`timeit` subtracts two readings and finds the event time over the launches, exactly."""
    work = FakeWork(ms)
    clock = EventClock(work)
    timer = timeit.Timer("pass", setup=clock.reset, timer=clock)
    for _ in range(5):
        assert timer.timeit(1) == float(np.float32(ms)) * 1e-3 / 100
    assert work.read == 5


def test_toggle() -> None:
    """The first call of a pair reads no event."""
    work = FakeWork(3.0)
    clock = EventClock(work)
    assert [clock(), work.read, clock(), work.read] == [0.0, 0, 3e-5, 1]


def test_exception_between_the_calls() -> None:
    """After a body that raised, `reset` (asv's setup) makes the next call a first one."""
    clock = EventClock(FakeWork(3.0))
    timer = timeit.Timer("raise OSError('boom')", setup=clock.reset, timer=clock)
    for _ in range(2):
        with pytest.raises(OSError, match="boom"):
            timer.timeit(1)
    clock.reset()
    assert clock() == 0.0


def test_exception_of_the_event() -> None:
    """An event that fails leaves no half pair behind."""
    work = FakeWork(3.0)
    clock = EventClock(work)
    work.seconds = lambda: 1 / 0  # type: ignore[method-assign]
    clock()
    with pytest.raises(ZeroDivisionError):
        clock()
    assert clock() == 0.0


@pytest.mark.parametrize(
    ("rotation_ms", "pairs"), [(0.9, 360), (0.001, 1), (2.0, 1), (50.0, 1), (0.26, 2), (0.19, 23), (7.0, 3)]
)
def test_launches_for(rotation_ms: float, pairs: int) -> None:
    """A replay uses all pairs equally often, lasts long enough, and no longer than it must."""
    launches = launches_for(rotation_ms, pairs)
    each = rotation_ms / pairs
    assert launches % pairs == 0
    assert launches >= MIN_LAUNCHES
    assert launches * each >= TARGET_MS
    assert launches in (pairs, MIN_LAUNCHES) or launches / 2 * each < TARGET_MS
