"""What many processes of one commit say: the noise of each configuration, and the review of every two runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from kernelwatch.review import timed
from kernelwatch.review.verdict import Judgement
from kernelwatch.store.noise import LONG, Entry, Noise
from kernelwatch.store.results import History, Point

#: Processes of a configuration in an ordinary run, of which the review compares two.
ROUNDS = 2

#: Chance of an A/A difference above the threshold.
ALPHA = 0.01

#: No threshold is below this: the third digit is the last that two runs of an H200 agreed in (docs/evidence/log.md).
LEAST = 0.001

#: A configuration's name -> the samples of each of its processes.
Processes = dict[str, list[tuple[float, ...]]]


def entries(found: Processes) -> list[Entry]:
    """Return the noise of every configuration that two processes or more measured."""
    known = {name: processes for name, processes in found.items() if len(processes) > 1}
    spreads: dict[bool, list[float]] = {}
    for processes in known.values():
        medians = _medians(processes)
        spreads.setdefault(bool(np.median(medians) < LONG), []).append(_spread(medians))
    usual = {short: float(np.median(each)) for short, each in spreads.items()}
    return [entry(name, each, usual[bool(np.median(_medians(each)) < LONG)]) for name, each in known.items()]


def entry(name: str, processes: Sequence[Sequence[float]], usual: float = 0.0) -> Entry:
    """Return the noise of one configuration.

    Two runs differ by the ratio of their medians, each over ROUNDS processes. If medians of processes scatter by a
    relative standard deviation s, estimated from n of them, that ratio scatters by s sqrt(2 / ROUNDS), and exceeds
    t(1 - ALPHA / 2, n - 1) times that by chance ALPHA (Student's t). A few processes may agree by luck: s is never
    taken to be less than `usual`.

    Parameters
    ----------
    name : str
        As the review prints it.
    processes : sequence of sequence of float
        Samples in seconds, of two processes or more.
    usual : float
        The median of that spread over all configurations that take as long, short or not.
    """
    from scipy import stats  # noqa: PLC0415 -- slow to import, and only this needs it

    medians = _medians(processes)
    between = _spread(medians)
    within = float(np.median([np.std(samples) / np.mean(samples) for samples in processes]))
    quantile = float(stats.t.ppf(1 - ALPHA / 2, len(processes) - 1))
    threshold = max(LEAST, quantile * max(between, usual) * math.sqrt(2 / ROUNDS))
    return Entry(name, threshold, float(np.median(medians)), between, within, len(processes))


def _medians(processes: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    return np.array([np.median(samples) for samples in processes])


def _spread(medians: NDArray[np.float64]) -> float:
    return float(medians.std(ddof=1) / medians.mean())


def repetitions(found: Processes, stored: Noise) -> Iterator[dict[str, Judgement]]:
    """Yield the review's verdicts on every two runs, by the thresholds that all other processes give.

    Never by thresholds from the same processes, which would allow whatever these did; where too few others are left,
    by those stored. Fewer processes tell less, so these thresholds are wider than those that all give.
    """
    count = max(map(len, found.values()), default=0) // ROUNDS
    complete = {name: processes for name, processes in found.items() if len(processes) == count * ROUNDS}
    for base, head in itertools.combinations(range(count), 2):
        others = {name: _without(processes, count, base, head) for name, processes in complete.items()}
        told = {entry.configuration: entry.threshold for entry in entries(others)} if count >= 2 * ROUNDS else {}
        pairs = [(run_of(each[base::count]), run_of(each[head::count])) for each in complete.values()]
        thresholds = [
            told.get(name) or stored.threshold(name, pair[0].value or 0.0)
            for name, pair in zip(complete, pairs, strict=True)
        ]
        yield dict(zip(complete, timed.judge(pairs, thresholds), strict=True))


def _without(processes: list[tuple[float, ...]], count: int, *runs: int) -> list[tuple[float, ...]]:
    return [samples for index, samples in enumerate(processes) if index % count not in runs]


def run_of(processes: Sequence[Sequence[float]]) -> Point:
    """Return the run that some processes make."""
    return Point.of(*processes)


def collect(history: History, commit: str) -> Processes:
    """Return the samples of every timed configuration that a commit has, by processes.

    Raises
    ------
    ValueError
        Too few samples are kept of the commit, or not as many of each process.
    """
    results = history.commit(commit)
    found: Processes = {}
    for benchmark in history.benchmarks("time") if results else []:
        for point in history.points(results, benchmark):
            if sum(point.counts) != len(point.samples):
                name = point.name(benchmark)
                raise ValueError(f"{name} has {len(point.samples)} samples, not {sum(point.counts)} of its processes")
            if point.samples:
                found[point.name(benchmark)] = point.processes
    most = max(map(len, found.values()), default=0)
    if most < 2 * ROUNDS:
        raise ValueError(
            f"{history.machine} has samples of {most} processes a configuration of {commit[:8]}; at least {2 * ROUNDS} "
            f"are needed; run: asv run --record-samples --attribute rounds={2 * ROUNDS} {commit[:8]}^!"
        )
    return found
