"""How far runs of one commit differ, by configuration, and whether the review leaves them alone: `make selftest`.

The suite runs on one commit with many processes a configuration, round by round. Two of them, taken as far apart as
they come, make a run; every two runs are reviewed as base and head.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from asv.config import Config
from numpy.typing import NDArray
from scipy import stats
from tabulate import tabulate

from benchmarks.instruments import machine
from benchmarks.timed import SAMPLES
from report.compare import timed
from report.compare.noise import FILE, LONG, TOO_NOISY, Entry, Noise
from report.compare.verdict import Judgement, Verdict
from report.results import ROOT, History, Point, machines
from runner import rounds

#: Processes of a configuration in an ordinary run, of which the review compares two.
ROUNDS = 2

#: Chance of an A/A difference above the threshold.
ALPHA = 0.01

#: No threshold is below this: the third digit is the last that two runs of an H200 agreed in (docs/measurements.md).
LEAST = 0.001

#: A configuration's name -> the samples of each of its processes.
Processes = dict[str, list[tuple[float, ...]]]


def entries(found: Processes) -> list[Entry]:
    """The noise of every configuration that two processes or more measured."""
    known = {name: processes for name, processes in found.items() if len(processes) > 1}
    spreads: dict[bool, list[float]] = {}
    for processes in known.values():
        medians = _medians(processes)
        spreads.setdefault(bool(np.median(medians) < LONG), []).append(_spread(medians))
    usual = {short: float(np.median(each)) for short, each in spreads.items()}
    return [entry(name, each, usual[bool(np.median(_medians(each)) < LONG)]) for name, each in known.items()]


def entry(name: str, processes: Sequence[Sequence[float]], usual: float = 0.0) -> Entry:
    """The noise of one configuration.

    Two runs differ by the ratio of their medians, each over ROUNDS processes. If medians of processes scatter by a
    relative standard deviation s, estimated from n of them, that ratio scatters by s sqrt(2 / ROUNDS), and exceeds
    t(1 - ALPHA / 2, n - 1) times that by chance ALPHA (Student's t). A few processes may agree by luck: s is never
    taken to be less than `usual`.

    Parameters
    ----------
    name : as the review prints it.
    processes : samples in seconds, two processes or more.
    usual : the median of that spread over all configurations that take as long, short or not.
    """
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
    """The review's verdicts on every two runs, by the thresholds that all other processes give.

    Never by thresholds from the same processes, which would allow whatever these did; where too few others are left,
    by those stored. Fewer processes tell less, so these thresholds are wider than those that all give.
    """
    count = max(map(len, found.values()), default=0) // ROUNDS
    complete = {name: processes for name, processes in found.items() if len(processes) == count * ROUNDS}
    for base, head in itertools.combinations(range(count), 2):
        others = {name: _without(processes, count, base, head) for name, processes in complete.items()}
        told = {entry.configuration: entry.threshold for entry in entries(others)} if count >= 2 * ROUNDS else {}
        pairs = [(_run(each[base::count]), _run(each[head::count])) for each in complete.values()]
        thresholds = [
            told.get(name) or stored.threshold(name, pair[0].value or 0.0)
            for name, pair in zip(complete, pairs, strict=True)
        ]
        yield dict(zip(complete, timed.judge(pairs, thresholds), strict=True))


def _without(processes: list[tuple[float, ...]], count: int, *runs: int) -> list[tuple[float, ...]]:
    return [samples for index, samples in enumerate(processes) if index % count not in runs]


def _run(processes: list[tuple[float, ...]]) -> Point:
    return Point.of([sample for process in processes for sample in process])


def collect(history: History, commit: str) -> Processes:
    """The samples of every timed configuration that a commit has, by processes.

    Raises
    ------
    ValueError : too few samples are kept of the commit, or other than SAMPLES a process.
    """
    results = history.commit(commit)
    found: Processes = {}
    for benchmark in history.benchmarks("time") if results else []:
        for point in history.points(results, benchmark):
            if len(point.samples) % SAMPLES:
                raise ValueError(f"{point.name(benchmark)} has {len(point.samples)} samples, not {SAMPLES} a process")
            if point.samples:
                found[point.name(benchmark)] = point.processes
    most = max(map(len, found.values()), default=0)
    if most < 2 * ROUNDS:
        raise ValueError(
            f"{history.machine} has samples of {most} processes a configuration of {commit[:8]}; at least {2 * ROUNDS} "
            f"are needed; run: asv run --record-samples --attribute rounds={2 * ROUNDS} {commit[:8]}^!"
        )
    return found


def table(noise: Sequence[Entry], judged: Sequence[dict[str, Judgement]]) -> str:
    """What a person wants to know of it."""
    rows = []
    for title, chosen in (
        ("20 µs and above", [each for each in noise if (each.seconds or 0) >= LONG]),
        ("below 20 µs", [each for each in noise if (each.seconds or 0) < LONG]),
    ):
        if chosen:
            thresholds = [each.threshold for each in chosen]
            names = {each.configuration for each in chosen}
            found = [each for run in judged for name, each in run.items() if name in names]
            flagged = sum(each.is_change for each in found)
            undecided = sum(each.verdict is Verdict.UNDECIDED for each in found)
            differences = [abs(each.ratio - 1) for each in found]
            used = [each.threshold for each in found]
            figures = (
                np.median([each.between or 0 for each in chosen]),
                np.median(thresholds),
                max(thresholds),
                np.median(used),
                max(used),
                np.median(differences),
                max(differences),
            )
            noisy = sum(threshold >= TOO_NOISY for threshold in thresholds)
            rows.append([title, len(chosen), *(f"{100 * each:.3f}" for each in figures), noisy, flagged, undecided])
    heads = ["times", "configurations", "between processes, %", "threshold, %", "largest, %"]
    heads += ["judged by, %", "largest, %", "two runs differ by, %", "largest, %", "too noisy", "flagged", "undecided"]
    return str(tabulate(rows, headers=heads, tablefmt="github"))


def write(path: Path, facts: dict[str, Any], noise: Sequence[Entry]) -> None:
    """Replace the machine's file of noise, whole or not at all."""
    lines = [json.dumps({"selftest": facts}), *(json.dumps(asdict(each)) for each in noise)]
    draft = path.with_suffix(".new")
    draft.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    draft.replace(path)


def main(words: Sequence[str] | None = None) -> int:
    """Measure, judge, write; 1 if the review would flag what did not change, 2 if there is nothing to measure."""
    parser = argparse.ArgumentParser("python -m report.selftest", description=__doc__.splitlines()[0])
    parser.add_argument("--commit", default="HEAD", help="any git revision (default: HEAD)")
    parser.add_argument("--processes", type=int, default=2 * ROUNDS, help="of a configuration (default: %(default)s)")
    parser.add_argument("--bench", action="append", help="as of asv run; then judge only (default: all times)")
    parser.add_argument("--results", type=Path, help="measure nothing: judge what was measured into this folder")
    parser.add_argument("--check", action="store_true", help="judge only; keep the stored thresholds")
    options = parser.parse_args(words)
    if options.processes < 2 * ROUNDS or options.processes % ROUNDS:
        parser.error(f"--processes is {options.processes}; {ROUNDS} make a run, and two runs are the least")
    try:
        commit = _full_hash(options.commit)
    except subprocess.CalledProcessError:
        parser.error(f"--commit is {options.commit!r}, which names no commit; give a branch, a tag or a hash")
    keep = not (options.check or options.bench)  # the file holds the thresholds of all times
    if options.results is not None:
        return conclude(options.results, commit, keep=keep)
    if machine.gpu() is None:
        print("no GPU here: there are no times whose noise could be measured", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        rounds.run(commit, Path(folder), options.bench or ["time_"], options.processes)
        return conclude(Path(folder), commit, keep=keep)


def _full_hash(commit: str) -> str:
    words = ["git", "rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def conclude(results: Path, commit: str, *, keep: bool) -> int:
    """Judge what was measured into a folder, write the thresholds, print the table; the exit code."""
    config = Config.load(str(ROOT / "asv.conf.json"))
    config.results_dir = str(results)
    try:
        name = _machine(results)
        history = History(name, config=config)
        found = collect(history, commit)
    except (FileNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    folder, facts = ROOT / "results" / name, _facts(history, commit, found)
    stored, noise = Noise(folder), entries(found)
    # Another GPU's noise is no measure for this one's.
    judged = list(repetitions(found, stored if stored.selftest.get("uuid") == facts["uuid"] else Noise()))
    if keep:
        if stored.selftest:
            print(f"replaced: thresholds of {stored.selftest}")
        folder.mkdir(parents=True, exist_ok=True)
        write(folder / FILE, facts, noise)
    print(f"{len(judged)} comparisons of two runs of {ROUNDS} processes:\n{table(noise, judged)}")
    return told(judged)


def _machine(results: Path) -> str:
    names = [name for name in machines(results) if not name.startswith(machine.NO_GPU)]
    if len(names) != 1:
        raise ValueError(f"{results} holds results of {len(names)} machines with a GPU, not of one: {', '.join(names)}")
    return names[0]


def _facts(history: History, commit: str, found: Processes) -> dict[str, Any]:
    """What was measured when and where."""
    results = history.commit(commit)
    run = history.timed_run_of(results) if results else {}
    before = run.get("before", {})
    return {
        "commit": commit,
        "date": run.get("started"),
        "gpu": run.get("gpu"),
        "driver": before.get("driver"),
        "uuid": before.get("uuid"),
        "processes": max(map(len, found.values())),
    }


def told(judged: Sequence[dict[str, Judgement]]) -> int:
    """Print what is flagged; 1 if anything is."""
    flagged = [
        f"flagged: {name}, {each.ratio:.4f} of base, threshold {each.threshold:.4f}"
        for run in judged
        for name, each in run.items()
        if each.is_change
    ]
    print(*flagged, sep="\n", end="\n" if flagged else "")
    return int(bool(flagged))


if __name__ == "__main__":
    sys.exit(main())
