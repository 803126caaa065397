"""Which slow drifts both detectors find, and how often they are deceived, in series with the noise of stored samples.

A series is made of a configuration's stored processes: each commit's time is the mean of two of their relative
deviations, drawn with replacement. Into it a step or a drift is put, in units of the configuration's threshold.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from asv import step_detect
from tabulate import tabulate

from experiments import pages
from kernelwatch.project import ROOT
from kernelwatch.review.commits import find
from kernelwatch.review.comparison import compare
from kernelwatch.review.drift import detectors
from kernelwatch.review.drift.detectors import Level, Series, by_asv, by_ruptures, rise
from kernelwatch.store.noise import Noise
from kernelwatch.store.results import TIMED, History

MACHINE = "nvidia-h200"

SEED = 20

#: By how much more two runs of one GPU scatter than the processes of one run; the page has what is stored of RAN.
RUNS = 1.25

#: Commits of MACHINE that one GPU measured, and that launch much machine code alike.
RAN = (("f22cf79", "926c240"), ("98a96e0", "740a787"))

COMMITS = (16, 64)

#: Penalties that were tried.
PENALTIES = (4.0, 6.0, 8.0, 10.0, 12.0, 14.0)

#: Sizes of what is put in, in thresholds.
SIZES = (0.5, 1.0, 1.25, 1.5, 2.0, 3.0)


def _step(commits: int) -> Series:
    return np.asarray(np.arange(commits) >= commits // 2, dtype=float)


def _drift(commits: int) -> Series:
    """From a quarter of the series to three quarters."""
    return np.clip((np.arange(commits) - commits / 4) / (commits / 2), 0, 1)


def _ramp(commits: int) -> Series:
    return np.arange(commits) / (commits - 1)


SHAPES: dict[str, Callable[[int], Series]] = {
    "one step": _step,
    "a drift over half of the commits": _drift,
    "a drift over all of them": _ramp,
}


def asv_alone(series: Series) -> list[Level]:
    """Levels as asv finds them by itself, with a penalty of its own choice."""
    return [Level(start, stop, math.log(value)) for start, stop, value, *_ in step_detect.detect_steps(np.exp(series))]


class Pool:
    """The stored noise: of each configuration its threshold, and the deviations of its processes from their mean.

    Parameters
    ----------
    history : History
        The stored results of a machine.
    noise : Noise
        The machine's.
    """

    def __init__(self, history: History, noise: Noise) -> None:
        found: dict[str, list[float]] = defaultdict(list)
        seconds: dict[str, float] = {}
        for commit in history.commits():
            for results in history.environments(commit).values():
                for benchmark, point, _ in history.times(results):
                    medians = np.log([np.median(samples) for samples in point.processes])
                    if len(medians) > 1:
                        name = point.name(benchmark)
                        unbiased = math.sqrt(len(medians) / (len(medians) - 1))
                        found[name] += list(unbiased * (medians - medians.mean()))
                        seconds[name] = point.value or 0.0
        #: The standard deviation of one process, by configuration.
        self.deviations = {name: float(np.std(each)) for name, each in found.items()}
        self._known = [(noise.threshold(name, seconds[name]), np.array(each)) for name, each in sorted(found.items())]

    def __len__(self) -> int:
        return len(self._known)

    @property
    def threshold(self) -> float:
        """The median of the configurations' thresholds."""
        return float(np.median([threshold for threshold, _ in self._known]))

    def series(self, count: int, commits: int, seed: int) -> Iterator[tuple[float, Series]]:
        """Yield unchanged series of some configurations, in logarithms, each with its threshold."""
        rng = np.random.default_rng(seed)
        for place in rng.integers(len(self._known), size=count):
            threshold, deviations = self._known[place]
            yield math.log1p(threshold), RUNS * rng.choice(deviations, (commits, 2)).mean(axis=1)


def between_runs(pool: Pool, base: str, head: str) -> tuple[int, float]:
    """How many times of the same machine code two commits have, and by how much more they scatter than processes do."""
    rows = [row for row in compare(find(base, head, MACHINE, ROOT), ROOT).rows if row.kind == TIMED]
    changes = [math.log(row.head / row.base) / pool.deviations[row.name] for row in rows if row.code_unchanged]
    return len(changes), float(np.std(changes))


def size(levels: Sequence[Level]) -> float:
    """Of the rise; 0 if there is none."""
    found = rise(levels)
    return 0.0 if found is None else found.size


def false_alarms(pool: Pool, count: int, commits: int) -> Iterator[list[Any]]:
    """Yield a row a penalty: in how many of a thousand unchanged series a rise of any size is seen."""
    series = [each for _, each in pool.series(count, commits, SEED)]
    for penalty in PENALTIES:
        ways = (partial(by_asv, penalty=penalty), partial(by_ruptures, penalty=penalty))
        seen = np.array([[size(way(each)) > 0 for way in ways] for each in series])
        shares = (*seen.mean(axis=0), seen.all(axis=1).mean())
        yield [commits, f"{penalty:g}", *(f"{1000 * share:.0f}" for share in shares)]


#: Who is scored: a name, and what it takes for a rise above a threshold.
_WAYS = {"asv by itself": asv_alone, "asv": by_asv, "ruptures": by_ruptures}


def score(pool: Pool, count: int, commits: int, shape: Series, height: float) -> list[float]:
    """The shares of series in which each of _WAYS, and the last two together, find a rise above the threshold.

    Parameters
    ----------
    pool : Pool
        The stored noise.
    count, commits : int
        Series, and the commits of each.
    shape : Series
        What is put in, from 0 to 1.
    height : float
        Its size in thresholds.
    """
    seen = np.array(
        [
            [size(way(each + height * threshold * shape)) > threshold for way in _WAYS.values()]
            for threshold, each in pool.series(count, commits, SEED + 1)
        ]
    )
    return [*map(float, seen.mean(axis=0)), float(seen[:, 1:].all(axis=1).mean())]


def scores(pool: Pool, count: int, commits: int) -> Iterator[list[Any]]:
    """Yield a row for each shape and size, and one for unchanged series."""
    nothing = np.zeros(commits)
    cases = [("nothing", 0.0, nothing)]
    cases += [(name, height, make(commits)) for name, make in SHAPES.items() for height in SIZES]
    for name, height, shape in cases:
        found = score(pool, count, commits, shape, height)
        yield [commits, name, f"{height:g}" if height else "", *(f"{1000 * share:.0f}" for share in found)]


def page(pool: Pool, count: int) -> str:
    """Return the page of Markdown."""
    together = ["asv by itself", "asv", "ruptures", "asv and ruptures"]
    ran = [(base, head, *between_runs(pool, base, head)) for base, head in RAN]
    penalties = [row for commits in COMMITS for row in false_alarms(pool, count, commits)]
    found = [row for commits in COMMITS for row in scores(pool, count, commits)]
    return _PAGE.format(
        date=datetime.now(timezone.utc).date(),
        threshold=f"{100 * pool.threshold:.2g} %",
        machine=MACHINE,
        configurations=len(pool),
        count=count,
        seeds=f"{SEED} and {SEED + 1}",
        runs=RUNS,
        ran=" and ".join(f"{scatter:.2f} in {times} times of {base} and {head}" for base, head, times, scatter in ran),
        least=detectors.LEAST,
        asv=detectors.ASV_PENALTY,
        ruptures=detectors.RUPTURES_PENALTY,
        penalties=tabulate(penalties, ["commits", "penalty", *together[1:]], "github", disable_numparse=True),
        scores=tabulate(found, ["commits", "put in", "thresholds", *together], "github", disable_numparse=True),
    )


def main(words: Sequence[str] | None = None) -> int:
    """Score, and write the page."""
    parser = argparse.ArgumentParser("python -m experiments.drifts", description=__doc__.splitlines()[0])
    parser.add_argument("--render", type=Path, metavar="FILE", help="write the page there (default: standard output)")
    parser.add_argument("--series", type=int, default=1000, help="of each kind (default: %(default)s)")
    options = parser.parse_args(words)
    pool = Pool(History(MACHINE), Noise(ROOT / "results" / MACHINE))
    pages.put(page(pool, options.series), options.render)
    return 0


_PAGE = """\
# Which drifts are found

Made on {date} by `python -m experiments.drifts --render docs/evidence/drift.md`. It needs no GPU: the noise is that of
the stored samples of {machine}, {configurations} configurations, whose thresholds are {threshold} in the median.

A series has a time a commit. Each time is the mean of two processes' relative deviations, drawn with replacement from
those that are stored of one configuration, times {runs}: two runs of one GPU scatter more than two processes of one
run. Stored times of the same machine code do so by a factor of {ran}.
Into a series a step or a drift is put, in units of the threshold by which the review judges that configuration.
{count} series each, seeds {seeds}. Numbers are series in a thousand. What a GPU's noise does over weeks is not in it.

## Penalties

A detector finds levels. Each further level costs a penalty. Series without any change, and those in which a rise of any
size is seen:

{penalties}

Both take the smallest of these penalties with which, in series of either length, they together see a rise in one of a
thousand unchanged series at most: {asv:g} for asv's, {ruptures:g} for ruptures'.

## Found

A rise is reported where both find more than one threshold between the lowest level and the last. A smaller one is left
alone: the re-measurement that must confirm it is judged by that same threshold. A level has {least} commits or more.
*asv by itself* chooses its own penalty. It takes a drift for correlated noise, so it is not used.

{scores}
"""


if __name__ == "__main__":
    sys.exit(main())
