"""How far runs of one commit differ, and whether the review leaves them alone: `kernelwatch selftest`.

The suite runs on one commit with many processes a configuration, round by round. Two of them, taken as far apart as
they come, make a run; every two runs are reviewed as base and head.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from asv.config import Config
from numpy.typing import NDArray

from kernelwatch.instrument import machine
from kernelwatch.project import ROOT
from kernelwatch.review import timed
from kernelwatch.review.verdict import Judgement, Verdict
from kernelwatch.store import folders, jsonl
from kernelwatch.store.noise import FILE, LONG, TOO_NOISY, Entry, Noise
from kernelwatch.store.results import History, Point, machines

#: Processes of a configuration in an ordinary run, of which the review compares two.
ROUNDS = 2

#: Chance of an A/A difference above the threshold.
ALPHA = 0.01

#: No threshold is below this: two runs of an H200 agreed in three digits (docs/evidence/agreement.md).
LEAST = 0.001

#: A configuration's name -> the samples of each of its processes.
Processes = dict[str, list[tuple[float, ...]]]


def entries(found: Processes) -> list[Entry]:
    """Return the noise of every configuration that two processes or more measured."""
    medians = {name: _medians(processes) for name, processes in found.items() if len(processes) > 1}
    is_short = {name: bool(np.median(each) < LONG) for name, each in medians.items()}
    spreads: dict[bool, list[float]] = {True: [], False: []}
    for name, each in medians.items():
        spreads[is_short[name]].append(_spread(each))
    usual = {short: float(np.median(each)) for short, each in spreads.items() if each}
    return [entry(name, found[name], usual[is_short[name]]) for name in medians]


def entry(name: str, processes: Sequence[Sequence[float]], usual: float = 0.0) -> Entry:
    """Return the noise of one configuration, from samples in seconds of two processes or more.

    Two runs differ by the ratio of their medians, each over ROUNDS processes. If medians of processes scatter by a
    relative standard deviation s, estimated from n of them, that ratio scatters by s sqrt(2 / ROUNDS), and exceeds
    t(1 - ALPHA / 2, n - 1) times that by chance ALPHA (Student's t). A few processes may agree by luck: s is never
    taken to be less than `usual`, the median of s over all configurations that take as long, short or not.
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
    """Yield the review's verdicts on every two runs, by thresholds that were `stored` before.

    Never by thresholds from the same processes, which would allow whatever these did.
    """
    count = max(map(len, found.values()), default=0) // ROUNDS
    complete = {name: processes for name, processes in found.items() if len(processes) == count * ROUNDS}
    for one, other in itertools.combinations(range(count), 2):
        pairs = [(Point.of(*each[one::count]), Point.of(*each[other::count])) for each in complete.values()]
        thresholds = [stored.threshold(name, pair[0].value or 0.0) for name, pair in zip(complete, pairs, strict=True)]
        yield dict(zip(complete, timed.judge(pairs, thresholds), strict=True))


def collect(history: History, commit: str) -> Processes:
    """Return the samples of every timed configuration that a commit has, by processes.

    Raises
    ------
    ValueError
        Too few samples are kept of the commit, or not as many of each process.
    """
    results = history.commit(commit)
    found: Processes = {}
    for name, point in ((point.name(one), point) for one, point, _ in history.times(results)) if results else ():
        if sum(point.counts) != len(point.samples):
            raise ValueError(f"{name} has {len(point.samples)} samples, not {sum(point.counts)} of its processes")
        if point.samples:
            found[name] = point.processes
    most = max(map(len, found.values()), default=0)
    if most < 2 * ROUNDS:
        raise ValueError(
            f"{history.machine} has samples of {most} processes a configuration of {commit[:8]}; at least {2 * ROUNDS} "
            f"are needed; run: asv run --record-samples --attribute rounds={2 * ROUNDS} {commit[:8]}^!"
        )
    return found


def conclude(results: Path, commit: str, *, keep: bool) -> int:
    """Judge what was measured into a folder, write the thresholds, print the table; return the exit code."""
    config = Config.load(str(ROOT / "asv.conf.json"))
    config.results_dir = str(results)
    try:
        names = [name for name in machines(results) if not name.startswith(machine.NO_GPU)]
        if len(names) != 1:
            told = ", ".join(names)
            raise ValueError(f"{results} holds results of {len(names)} machines with a GPU, not of one: {told}")
        history = History(names[0], config=config)
        found = collect(history, commit)
    except (FileNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    measured = history.commit(commit)
    run = history.timed_run_of(measured) if measured else {}
    facts = {"commit": commit, "date": run.get("started"), "gpu": run.get("gpu")}
    facts |= {name: run.get("before", {}).get(name) for name in ("driver", "uuid")}
    facts["processes"] = max(map(len, found.values()))
    stored, noise = Noise(*(place / names[0] for place in folders.places(ROOT / "results"))), entries(found)
    # Another GPU's noise is no measure for this one's.
    judged = list(repetitions(found, stored if stored.selftest.get("uuid") == facts["uuid"] else Noise()))
    if keep:
        if stored.selftest:
            print(f"replaced: thresholds of {stored.selftest}")
        folder = folders.written(ROOT / "results") / names[0]
        folder.mkdir(parents=True, exist_ok=True)
        jsonl.replace(folder / FILE, [{"selftest": facts}, *map(asdict, noise)])
    noisy = sum(each.threshold >= TOO_NOISY for each in noise)
    print(f"{len(noise)} times, {noisy} of them too noisy; {len(judged)} comparisons of two runs of {ROUNDS} processes")
    return flagged(judged)


def flagged(judged: Sequence[dict[str, Judgement]]) -> int:
    """Print what is flagged, and how many are undecided; return 1 if anything is flagged."""
    every = [(name, each) for run in judged for name, each in run.items()]
    found = [(name, each) for name, each in every if each.is_change]
    for name, each in found:
        print(f"flagged: {name}, {each.ratio:.4f} of base, threshold {each.threshold:.4f}")
    undecided = sum(each.verdict is Verdict.UNDECIDED for _, each in every)
    print(f"{len(found)} of {len(every)} flagged, {undecided} undecided")
    return int(bool(found))
