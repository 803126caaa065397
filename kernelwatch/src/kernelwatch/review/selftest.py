"""How far runs of one commit differ, by configuration, and whether the review leaves them alone: `make selftest`.

The suite runs on one commit with many processes a configuration, round by round. Two of them, taken as far apart as
they come, make a run; every two runs are reviewed as base and head.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from asv.config import Config
from tabulate import tabulate

from kernelwatch.asv import command
from kernelwatch.command import without_traceback
from kernelwatch.instrument import machine
from kernelwatch.project import ROOT
from kernelwatch.review.commits import CannotCompareError, resolve
from kernelwatch.review.processes import ROUNDS, collect, entries, repetitions
from kernelwatch.review.verdict import Judgement, Verdict
from kernelwatch.store import folders, jsonl
from kernelwatch.store.noise import FILE, LONG, TOO_NOISY, Entry, Noise
from kernelwatch.store.results import History, machines


def table(noise: Sequence[Entry], judged: Sequence[dict[str, Judgement]]) -> str:
    """Return what a person wants to know of it."""
    rows = []
    for title, is_long in (("20 µs and above", True), ("below 20 µs", False)):
        chosen = {each.configuration: each for each in noise if ((each.seconds or 0) >= LONG) is is_long}
        if chosen:
            found = [each for run in judged for name, each in run.items() if name in chosen]
            percent = {
                "between processes, %": np.median([each.between or 0 for each in chosen.values()]),
                **_both("threshold, %", [each.threshold for each in chosen.values()]),
                **_both("judged by, %", [each.threshold for each in found]),
                **_both("two runs differ by, %", [abs(each.ratio - 1) for each in found]),
            }
            counts = {
                "too noisy": sum(each.threshold >= TOO_NOISY for each in chosen.values()),
                "flagged": sum(each.is_change for each in found),
                "undecided": sum(each.verdict is Verdict.UNDECIDED for each in found),
            }
            shares = {name: f"{100 * each:.3f}" for name, each in percent.items()}
            rows.append({"times": title, "configurations": len(chosen), **shares, **counts})
    return str(tabulate(rows, headers="keys", tablefmt="github"))


def _both(name: str, values: Sequence[float]) -> dict[str, float]:
    """The median of some values, and the largest."""
    return {name: float(np.median(values)), f"largest {name.partition(',')[0]}, %": max(values)}


@without_traceback
def main(words: Sequence[str] | None = None) -> int:
    """Measure, judge, write; return 1 if the review would flag what did not change, 2 if there is nothing to judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commit", default="HEAD", help="any git revision (default: HEAD)")
    parser.add_argument("--processes", type=int, default=2 * ROUNDS, help="of a configuration (default: %(default)s)")
    parser.add_argument("--bench", action="append", help="as of asv run; then judge only (default: all times)")
    parser.add_argument("--results", type=Path, help="measure nothing: judge what was measured into this folder")
    parser.add_argument("--check", action="store_true", help="judge only; keep the stored thresholds")
    options = parser.parse_args(words)
    if options.processes < 2 * ROUNDS or options.processes % ROUNDS:
        parser.error(f"--processes is {options.processes}; {ROUNDS} make a run, and two runs are the least")
    try:
        commit = resolve(options.commit, ROOT, [])
    except CannotCompareError:
        parser.error(f"--commit is {options.commit!r}, which names no commit; give a branch, a tag or a hash")
    keep = not (options.check or options.bench)  # the file holds the thresholds of all times
    if options.results is not None:
        return conclude(options.results, commit, keep=keep)
    if machine.gpu() is None:
        print("no GPU here: there are no times whose noise could be measured", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        command.rounds(commit, Path(folder), options.bench or ["time_"], options.processes)
        return conclude(Path(folder), commit, keep=keep)


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
    print(f"{len(judged)} comparisons of two runs of {ROUNDS} processes:\n{table(noise, judged)}")
    return flagged(judged)


def flagged(judged: Sequence[dict[str, Judgement]]) -> int:
    """Print what is flagged; return 1 if anything is."""
    found = [(name, each) for run in judged for name, each in run.items() if each.is_change]
    for name, each in found:
        print(f"flagged: {name}, {each.ratio:.4f} of base, threshold {each.threshold:.4f}")
    return int(bool(found))
