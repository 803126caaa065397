"""Progress of a launch: a limit for stalls, and an estimate of the remaining time."""

import logging
import time

from ..lanes.symbolic_values import Value, dense
from ..lanes.warps import Array
from ..util.grammar import count_noun

#: CPU seconds without progress: until an error, and until addresses are tracked.
STALL_LIMIT, _PATIENCE = 20.0, 1.0
#: Minimum elapsed seconds for an estimate of the remaining time, and minimum remaining seconds for a message.
_MIN_MEASURED, _MIN_REPORTED = 1.0, 60.0
_UNITS = [(86400, "day"), (3600, "hour"), (60, "minute")]
_log = logging.getLogger("ptxcount")


class LaunchProgress:
    """Time of the last progress of a launch.

    A launch makes progress if threads reach an exit, or a barrier of a block or cluster completes. After a second
    without progress, it also makes progress if an instruction accesses other addresses than at its last execution.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._since = time.thread_time()
        self._tracks_addresses = False
        self._addresses: dict[object, Array] = {}

    def note_progress(self) -> None:
        """Record progress: the time limit for stalls starts again."""
        self._since = time.thread_time()
        self._tracks_addresses = False

    def is_stalled(self) -> bool:
        """Tell if the time without progress exceeds the limit; after a second without progress, track addresses."""
        idle = time.thread_time() - self._since
        if idle > _PATIENCE and not self._tracks_addresses:
            self._tracks_addresses, self._addresses = True, {}
        return idle > self.limit

    def note_address(self, instruction: object, address: Value) -> None:
        """Record progress if addresses are tracked, and an instruction's differ from those of its last execution."""
        if not self._tracks_addresses:
            return
        new, old = dense(address), self._addresses.get(instruction)
        self._addresses[instruction] = new
        if old is not None and (old.shape != new.shape or bool((old != new).any())):
            self.note_progress()


class Estimate:
    """Logs the estimated remaining time of a launch, once, if it is over a minute."""

    def __init__(self, blocks: int) -> None:
        self._blocks, self._start, self._is_reported = blocks, time.monotonic(), False

    def report_remaining_time(self, done: int) -> None:
        """Log the remaining time after ``done`` blocks: once, at the first call after a second, if over a minute."""
        elapsed = time.monotonic() - self._start
        if self._is_reported or not done or elapsed < _MIN_MEASURED:
            return
        self._is_reported = True
        remaining = elapsed / done * (self._blocks - done)
        if remaining > _MIN_REPORTED:
            seconds, unit = next((seconds, unit) for seconds, unit in _UNITS if remaining >= seconds)
            text = "%d of %d blocks took %.1f s: the rest will take about %s; a smaller grid takes less"
            _log.warning(text, done, self._blocks, elapsed, count_noun(round(remaining / seconds), unit))
