"""Times in units of a plain copy of the same useful bytes, timed by the same clock in the same process, in turns.

The ratio is to cancel what slows everything: another GPU of the same kind, another day's temperature. Lower is better,
1 is as good as a copy. Where asv interleaves the rounds of several commits, it holds the last round's samples only.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from benchmarks import time_copy, time_transpose
from benchmarks.instruments import readings
from benchmarks.instruments.readings import Reading
from benchmarks.timed import SAMPLES, _Timed

#: Behind the decimal point of a ratio: two runs agree in three (docs/measurements.md), and asv prints all there are.
DIGITS = 5


def _metric(title: str) -> Callable[..., dict[str, Any]]:
    """A benchmark that reports a configuration's samples in units of the copies before them."""

    def track(self: _Control, run_folder: str, *params: Any) -> dict[str, Any]:
        found = self.readings(run_folder, *params)
        ratios = [round(reading.seconds / reading.copy_seconds, DIGITS) for reading in found]
        readings.forget(Path(run_folder), self.timed.__name__, params)
        return {"samples": ratios, "number": 1}

    track.unit = "copies"  # type: ignore[attr-defined]
    track.pretty_name = f"{title}: time in copies of the same bytes"  # type: ignore[attr-defined]
    return track


class _Control:
    """The control of a timed benchmark: a subclass says of which, and what a person calls it."""

    version = "2"
    timeout = _Timed.timeout
    timed: ClassVar[type[_Timed]]
    title: ClassVar[str]
    params: ClassVar[list[list[Any]]]
    param_names: ClassVar[list[str]]

    # The very function of the timed benchmarks: asv then gives both the same folder.
    setup_cache = _Timed.setup_cache

    def __init_subclass__(cls) -> None:
        cls.params, cls.param_names = cls.timed.params, cls.timed.param_names
        cls.track_copy_ratio = _metric(cls.title)  # type: ignore[attr-defined]

    def readings(self, run_folder: str, *params: Any) -> list[Reading]:
        """What the timed benchmark's processes noted in this run; nothing if it was not run."""
        return readings.read(Path(run_folder), self.timed.__name__, params)

    def setup(self, run_folder: str, *params: Any) -> None:
        """Take samples here if the timed benchmark was not run."""
        if not self.readings(run_folder, *params):
            timed = self.timed()
            for _ in range(SAMPLES + 1):
                timed.sample(run_folder, *params)


class Transpose(_Control):
    """Of `time_transpose.Transpose`."""

    timed, title = time_transpose.Transpose, "Transpose, DRAM"


class TransposeInL2(_Control):
    """Of `time_transpose.TransposeInL2`."""

    timed, title = time_transpose.TransposeInL2, "Transpose, L2 cache"


class IsolatedTranspose(_Control):
    """Of `time_transpose.IsolatedTranspose`: one launch in units of one copy, both isolated."""

    timed, title = time_transpose.IsolatedTranspose, "Transpose, DRAM, isolated"


class OffsetCopy(_Control):
    """Of `time_copy.OffsetCopy`."""

    timed, title = time_copy.OffsetCopy, "Offset copy, DRAM"


class StrideCopy(_Control):
    """Of `time_copy.StrideCopy`."""

    timed, title = time_copy.StrideCopy, "Stride copy, DRAM"


class MatrixSizedCopy(_Control):
    """Of `time_copy.MatrixSizedCopy`."""

    timed, title = time_copy.MatrixSizedCopy, "Copies of 12800 x 12800 elements, DRAM"
