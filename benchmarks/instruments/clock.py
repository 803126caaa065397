"""A timer for asv's `timer` attribute that reads CUDA events instead of the host's clock."""

from __future__ import annotations

from typing import Protocol


class TimedWork(Protocol):
    """Work on the GPU that is timed on the GPU."""

    def __call__(self) -> None:
        """Start the work; does not wait for it."""

    def seconds(self) -> float:
        """Wait for the work that was last started; return the seconds that one launch of it took."""


def take(work: TimedWork, count: int) -> list[float]:
    """Samples of a work, seconds a launch, after one that does not count: it also brings the work onto the device."""
    samples = []
    for _ in range(count + 1):
        work()
        samples.append(work.seconds())
    return samples[1:]


class EventClock:
    """A toggle: the first call of a pair returns 0.0, the second the seconds that one launch took between.

    `timeit` subtracts its two readings of the timer, so only their difference matters. It is never the time since
    an anchor: the driver returns milliseconds in float32, whose spacing is 61 ns at 1 s and 3.9 µs at 60 s.

    Parameters
    ----------
    work : what is started between the two calls.
    """

    def __init__(self, work: TimedWork) -> None:
        self._work = work
        self._running = False
        #: What the last pair's second reading was, None since a pair began.
        self.last: float | None = None

    def reset(self) -> None:
        """Begin a new pair, whatever became of the last one (its body may have raised)."""
        self._running = False
        self.last = None

    def __call__(self) -> float:
        """Seconds a launch at the second call of a pair; 0.0 at the first."""
        self._running = not self._running
        if self._running:
            return 0.0
        self.last = self._work.seconds()
        return self.last
