"""The timer that asv's attribute `timer` names: it returns times that the GPU measured."""

from collections import deque
from collections.abc import Iterable


class SampleClock:
    """A timer whose calls come in pairs: the first returns 0.0, the second the seconds of the next sample.

    asv subtracts two readings of the timer, so only their difference matters.
    """

    def __init__(self) -> None:
        self._remaining: deque[float] = deque()
        self._running = False

    def add(self, samples: Iterable[float]) -> None:
        """Add samples to return later, in seconds per launch."""
        self._remaining.extend(samples)

    @property
    def is_used_up(self) -> bool:
        """True if no sample is left to return, as before the first call of `add`."""
        return not self._remaining

    def reset(self) -> None:
        """Start a new pair, even if the last one was not completed."""
        self._running = False

    def __call__(self) -> float:
        """Return 0.0 at the first call of a pair; return the next sample, in seconds, at the second call.

        Raises IndexError if no sample is left.
        """
        self._running = not self._running
        return 0.0 if self._running else self._remaining.popleft()
