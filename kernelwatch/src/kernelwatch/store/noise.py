"""By how much a time may change on a machine before it means anything, and the A/A result which that was taken from."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from kernelwatch.store.jsonl import lines
from kernelwatch.store.reading import convert

#: Beside the results. Not `.json`: asv takes every such file for results, and warns about it in each command.
FILE = "noise.jsonl"

#: From here on a threshold hides what a reader would want to know.
TOO_NOISY = 0.05

#: So many of those are named.
NAMED = 5

#: Seconds from which on a launch is long enough for its start and end not to matter.
LONG = 20e-6

#: Seconds from which on, and relative change up to which, a time is SAME, longest first: two runs of an H200 agreed
#: to 0.45 % from 20 µs on, and scatter more below (docs/evidence/agreement.md, "One GPU").
DEFAULTS = ((LONG, 0.01), (0.0, 0.05))

#: Between two GPUs of a kind no threshold is below this, unless they are alike: H200s differed by up to 2 % in the
#: median and by up to 7.3 %, but for times that are too noisy to judge (docs/evidence/agreement.md).
ANOTHER_GPU = 0.08


class Gpus(Enum):
    """Which GPUs measured base and head."""

    ONE = "the very same, or no run says which"
    ALIKE = "several of the kind that do not differ: no threshold is below the default"
    SEVERAL = "several of the kind"


#: A number that is not below 0 or infinite.
Finite = Annotated[float, Meta(ge=0, le=sys.float_info.max)]


@dataclass(frozen=True)
class Entry:
    """One configuration's line: what the review calls it, and what is known of it, where that was kept."""

    configuration: str
    #: Relative change of the median up to which it is SAME.
    threshold: Finite
    #: Its median.
    seconds: Finite | None = None
    #: Relative standard deviations between its processes and within them.
    between: Finite | None = None
    within: Finite | None = None
    #: How many measured it.
    processes: Annotated[int, Meta(ge=0)] | None = None


class Noise:
    """The noise of one machine.

    Its file holds a line a configuration: `{"configuration": "benchmark(parameter, ...)", "threshold": 0.004}`, with
    more of `Entry` where it is known. Of two lines for one configuration the later counts; what it does not name has
    the default. A line `{"selftest": {...}}` holds the facts of the measurement.

    Parameters
    ----------
    *folders : Path
        The machine's folders of results; none: nothing is known, and the defaults hold.

    Raises
    ------
    ValueError
        A line is not as above.
    """

    def __init__(self, *folders: Path) -> None:
        self._known: dict[str, Entry] = {}
        #: What was measured when and where, by name; empty where the file does not say.
        self.selftest: dict[str, Any] = {}
        for place, entry in (each for folder in folders for each in lines(folder / FILE)):
            if isinstance(entry, dict) and "configuration" not in entry and "selftest" in entry:
                self.selftest = convert(entry["selftest"], dict, place)
            else:
                line = convert(entry, Entry, place)
                self._known[line.configuration] = line

    def entries(self) -> list[Entry]:
        """What the file says of each configuration that it names."""
        return list(self._known.values())

    def threshold(self, configuration: str, value: float, gpus: Gpus = Gpus.ONE) -> float:
        """Relative change up to which a configuration is SAME, called as the review prints it.

        `value` is base's, in seconds. `gpus` measured base and head; the file holds the noise of one.
        """
        known = self._known.get(configuration)
        least = default(value)
        threshold = least if known is None else float(known.threshold)
        return max(threshold, {Gpus.ONE: 0.0, Gpus.ALIKE: least, Gpus.SEVERAL: ANOTHER_GPU}[gpus])

    def notes(self) -> Iterator[str]:
        """What a reader of a comparison must know of it."""
        noisy = sorted((entry.threshold, name) for name, entry in self._known.items() if entry.threshold >= TOO_NOISY)
        if noisy:
            worst = ", ".join(f"{name} up to {threshold:.0%}" for threshold, name in reversed(noisy[-NAMED:]))
            more = f", and {len(noisy) - NAMED} more" if len(noisy) > NAMED else ""
            yield f"too noisy here to judge, changes go unseen: {worst}{more}; judge these by their counted numbers"

    def source(self) -> str:
        """Where the thresholds come from, for a reader."""
        known = f"{FILE} for {len(self._known)} configurations, else " if self._known else ""
        return f"{known}{defaults()}"


def default(seconds: float) -> float:
    """Return the relative change up to which a time is SAME where nothing else is known of it."""
    return next((threshold for least, threshold in DEFAULTS if seconds >= least), DEFAULTS[-1][1])


def defaults() -> str:
    """DEFAULTS, for a reader."""
    return ", ".join(
        f"{threshold * 100:g} % " + (f"from {least * 1e6:g} µs on" if least else "below")
        for least, threshold in DEFAULTS
    )
