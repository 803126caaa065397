"""How far two runs of one commit differ, by configuration, and whether the review leaves them alone: `make selftest`.

The suite runs again and again on one commit, in fresh processes; every other pass counts as base, the others as head.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from asv.config import Config
from scipy import stats
from tabulate import tabulate

from benchmarks.instruments import machine
from report.compare import timed
from report.compare.noise import FILE, TOO_NOISY, Entry, Noise
from report.compare.verdict import Judgement, Verdict
from report.results import ROOT, History, Point
from runner import passes

#: Processes of a configuration in an ordinary run, of which the review compares two.
ROUNDS = 2

#: Chance of an A/A difference above the threshold.
ALPHA = 0.01

#: No threshold is below this: the third digit is the last that two runs of an H200 agreed in (docs/measurements.md).
LEAST = 0.001

#: A configuration's name -> the samples of each of its processes.
Processes = dict[str, list[tuple[float, ...]]]


def entry(name: str, processes: Sequence[Sequence[float]]) -> Entry:
    """The noise of one configuration.

    Two runs differ by the ratio of their medians, each over ROUNDS processes. If medians of processes scatter by a
    relative standard deviation s, estimated from n of them, that ratio scatters by s sqrt(2 / ROUNDS), and exceeds
    t(1 - ALPHA / 2, n - 1) times that by chance ALPHA (Student's t).

    Parameters
    ----------
    name : as the review prints it.
    processes : samples in seconds, two processes or more.
    """
    medians = np.array([np.median(samples) for samples in processes])
    between = float(medians.std(ddof=1) / medians.mean())
    within = float(np.median([np.std(samples) / np.mean(samples) for samples in processes]))
    quantile = float(stats.t.ppf(1 - ALPHA / 2, len(processes) - 1))
    threshold = max(LEAST, quantile * between * math.sqrt(2 / ROUNDS))
    return Entry(name, threshold, float(np.median(medians)), between, within, len(processes))


def judge(found: Processes, noise: Noise) -> dict[str, Judgement]:
    """The review's verdict on every other pass against the others, by the machine's thresholds."""
    names = [name for name, processes in found.items() if len(processes) > 1]
    pairs = [(_side(found[name][::2]), _side(found[name][1::2])) for name in names]
    thresholds = [noise.threshold(name, pair[0].value or 0.0) for name, pair in zip(names, pairs, strict=True)]
    return dict(zip(names, timed.judge(pairs, thresholds), strict=True))


def _side(processes: list[tuple[float, ...]]) -> Point:
    samples = tuple(sample for process in processes for sample in process)
    return Point({}, float(np.median(samples)), samples)


def collect(folders: Sequence[Path], name: str) -> Processes:
    """The samples of every timed configuration, a process a pass."""
    found: Processes = {}
    for folder in folders:
        config = Config.load(str(ROOT / "asv.conf.json"))
        config.results_dir = str(folder)
        history = History(name, config=config)
        (results,) = (history.commit(commit) for commit in history.commits())
        assert results is not None, "its own list names it"
        for benchmark in history.benchmarks("time"):
            for point in history.points(results, benchmark):
                if point.samples:
                    found.setdefault(point.name(benchmark), []).append(point.samples)
    return found


def table(entries: Sequence[Entry], judged: dict[str, Judgement]) -> str:
    """What a person wants to know of it."""
    rows = []
    for title, chosen in (
        ("20 µs and above", [each for each in entries if (each.seconds or 0) >= 20e-6]),
        ("below 20 µs", [each for each in entries if (each.seconds or 0) < 20e-6]),
    ):
        if chosen:
            thresholds = [each.threshold for each in chosen]
            flagged = sum(judged[each.configuration].verdict in (Verdict.SLOW, Verdict.FAST) for each in chosen)
            undecided = sum(judged[each.configuration].verdict is Verdict.UNDECIDED for each in chosen)
            noisy = sum(threshold >= TOO_NOISY for threshold in thresholds)
            figures = (np.median([each.between or 0 for each in chosen]), np.median(thresholds), max(thresholds))
            rows.append([title, len(chosen), *(f"{100 * each:.3f}" for each in figures), flagged, undecided, noisy])
    heads = ["times", "configurations", "between processes, %", "threshold, %", "largest, %"]
    return str(tabulate(rows, headers=[*heads, "flagged", "undecided", "too noisy"], tablefmt="github"))


def write(path: Path, facts: dict[str, Any], entries: Sequence[Entry]) -> None:
    """Replace the machine's file of noise, whole or not at all."""
    lines = [json.dumps({"selftest": facts}), *(json.dumps(asdict(each)) for each in entries)]
    draft = path.with_suffix(".new")
    draft.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    draft.replace(path)


def main(words: Sequence[str] | None = None) -> int:
    """Measure, judge, write; 1 if the review would flag what did not change, 2 if there is nothing to measure."""
    parser = argparse.ArgumentParser("python -m report.selftest", description=__doc__.splitlines()[0])
    parser.add_argument("--commit", default="HEAD", help="any git revision (default: HEAD)")
    parser.add_argument("--passes", type=int, default=2 * ROUNDS, help="at least two a side (default: %(default)s)")
    parser.add_argument("--bench", action="append", help="as of asv run (default: all times)")
    parser.add_argument("--check", action="store_true", help="judge by the stored thresholds, and keep them")
    options = parser.parse_args(words)
    if options.passes < 2 * ROUNDS:
        parser.error(f"--passes is {options.passes}; at least {2 * ROUNDS} are needed, {ROUNDS} a side")
    device = machine.gpu()
    if device is None:
        print("no GPU here: there are no times whose noise could be measured", file=sys.stderr)
        return 2
    name = machine.default_name(device)
    with tempfile.TemporaryDirectory() as folder:
        folders = [Path(folder, str(number)) for number in range(options.passes)]
        passes.run(options.commit, folders, options.bench or ["time_"])
        found = collect(folders, name)
    facts = {
        "commit": options.commit,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "gpu": device.name,
        "driver": machine.volatile().get("driver"),
        "uuid": machine.volatile().get("uuid"),
    }
    return conclude(ROOT / "results" / name, facts, found, keep=not options.check)


def conclude(folder: Path, facts: dict[str, Any], found: Processes, *, keep: bool) -> int:
    """Write what was found, unless it is only to be judged by what is stored; print the table; the exit code."""
    entries = [entry(name, processes) for name, processes in found.items() if len(processes) > 1]
    if keep:
        write(folder / FILE, facts, entries)
    judged = judge(found, Noise(folder))
    print(table(entries, judged))
    flagged = {name: each for name, each in judged.items() if each.verdict in (Verdict.SLOW, Verdict.FAST)}
    for name, each in flagged.items():
        print(f"flagged: {name}, {each.ratio:.4f} of base, threshold {each.threshold:.4f}")
    return int(bool(flagged))


if __name__ == "__main__":
    sys.exit(main())
