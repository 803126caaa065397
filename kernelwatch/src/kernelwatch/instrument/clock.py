"""The timer of asv's `timer` attribute, which returns what the GPU measured."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class Readings:
    """A toggle: the first call of a pair returns 0.0, the second the seconds of the next sample.

    asv subtracts its two readings of the timer, so only their difference matters.
    """

    def __init__(self) -> None:
        self._left: deque[float] = deque()
        self._running = False

    def add(self, samples: Iterable[float]) -> None:
        """Add samples to return later: seconds a launch, from CUDA events or the GPU's timer."""
        self._left.extend(samples)

    @property
    def is_used_up(self) -> bool:
        """Whether every sample has been returned."""
        return not self._left

    def reset(self) -> None:
        """Begin a new pair, even if the last one was not completed."""
        self._running = False

    def __call__(self) -> float:
        """Return 0.0 at the first call of a pair, the seconds of the next sample at the second."""
        self._running = not self._running
        return 0.0 if self._running else self._left.popleft()
