"""Times as multiples of a plain copy of the same useful bytes, which is timed in turns with the kernel.

The ratio is meant to cancel what slows down everything, such as another GPU of the same kind or another day's
temperature. Lower is better; 1 is as fast as a copy. If asv interleaves the rounds of several commits, the ratio has
the last round's samples only.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from kernelwatch import settings, suite
from kernelwatch.asv.timed import CLASSES, Timed
from kernelwatch.instrument import paired_samples
from kernelwatch.instrument.paired_samples import PairedSample

#: Behind the decimal point of a ratio: two runs agree in three (docs/evidence/log.md), and asv prints all there are.
DIGITS = 5


class _Control:
    """The control of a timed benchmark."""

    version = "3"
    timeout = Timed.timeout
    timed: ClassVar[type[Timed]]

    # The very function of the timed benchmarks: asv then gives both the same folder.
    setup_cache = Timed.setup_cache

    def samples(self, run_folder: str, *params: Any) -> list[PairedSample]:
        """Return what the timed benchmark's processes noted in this run; nothing if it was not run."""
        return paired_samples.read(Path(run_folder), self.timed.__name__, params)

    def setup(self, run_folder: str, *params: Any) -> None:
        """Take samples here if the timed benchmark was not run."""
        if not self.samples(run_folder, *params):
            self.timed().setup(run_folder, *params)


def _metric(title: str) -> Any:
    """Return the benchmark that reports a configuration's samples in units of the copies before them."""

    def track(self: _Control, run_folder: str, *params: Any) -> dict[str, Any]:
        return _told(self.timed.__name__, Path(run_folder), params)

    track.unit = "copies"  # type: ignore[attr-defined]
    track.pretty_name = f"{title}: time in copies of the same bytes"  # type: ignore[attr-defined]
    return track


def _told(timed: str, folder: Path, params: Sequence[Any]) -> dict[str, Any]:
    found = paired_samples.read(folder, timed, params)
    paired_samples.forget(folder, timed, params)
    return {"samples": [round(sample.seconds / sample.copy_seconds, DIGITS) for sample in found], "number": 1}


def answer(benchmark: str, place: int, folder: Path) -> dict[str, Any] | None:
    """Return what a process would report of a configuration that this run has timed; None if a process must be run.

    Parameters
    ----------
    benchmark : str
        Any.
    place : int
        The configuration's, in asv's order.
    folder : Path
        The working folder of the run's processes.
    """
    timed = OF_BENCHMARK.get(benchmark)
    found = _told(timed.__name__, folder, list(itertools.product(*timed.params))[place]) if timed else {}
    return found if found.get("samples") else None


def _class(timed: type[Timed]) -> type[_Control]:
    title = f"{timed.sweep.title}, isolated" if timed.sweep.isolated else timed.sweep.title
    body = {
        "__module__": f"{settings.suite_folder()}.track_control",
        "__doc__": f"{title}, in copies.",
        "timed": timed,
        "params": timed.params,
        "param_names": timed.param_names,
        "track_copy_ratio": _metric(title),
    }
    return type(timed.__name__, (_Control,), body)


#: The benchmark of ratios -> the class that it is about.
OF_BENCHMARK = {found: each for name, each in CLASSES.items() if (found := suite.control(name)) in suite.BENCHMARKS}

#: By name, as asv sees them.
OF_MODULE = {each.__name__: _class(each) for each in OF_BENCHMARK.values()}
