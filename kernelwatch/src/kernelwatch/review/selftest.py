"""How far runs of one commit differ, by configuration, and whether the review leaves them alone: `make selftest`.

The suite runs on one commit with many processes a configuration, round by round. Two of them, taken as far apart as
they come, make a run; every two runs are reviewed as base and head.

kernelwatch selftest --pairings COMMIT --machine NAME    # of a commit that is stored with four rounds or more
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from asv.config import Config
from tabulate import tabulate

from kernelwatch.asv import rounds
from kernelwatch.command import without_traceback
from kernelwatch.instrument import machine
from kernelwatch.project import ROOT
from kernelwatch.review import pairings
from kernelwatch.review.processes import ROUNDS, Processes, collect, entries, repetitions
from kernelwatch.review.verdict import Judgement, Verdict
from kernelwatch.store import folders, jsonl
from kernelwatch.store.noise import FILE, LONG, TOO_NOISY, Entry, Noise
from kernelwatch.store.results import History, machines


def table(noise: Sequence[Entry], judged: Sequence[dict[str, Judgement]]) -> str:
    """Return what a person wants to know of it."""
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
    jsonl.replace(path, [{"selftest": facts}, *map(asdict, noise)])


@without_traceback
def main(words: Sequence[str] | None = None) -> int:
    """Measure, judge, write; return 1 if the review would flag what did not change, 2 if there is nothing to judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commit", default="HEAD", help="any git revision (default: HEAD)")
    parser.add_argument("--processes", type=int, default=2 * ROUNDS, help="of a configuration (default: %(default)s)")
    parser.add_argument("--bench", action="append", help="as of asv run; then judge only (default: all times)")
    parser.add_argument("--results", type=Path, help="measure nothing: judge what was measured into this folder")
    parser.add_argument("--check", action="store_true", help="judge only; keep the stored thresholds")
    parser.add_argument("--pairings", metavar="COMMIT", help="measure nothing: how far any two runs of it differ")
    parser.add_argument("--machine", metavar="NAME", help="with --pairings: whose results")
    options = parser.parse_args(words)
    if bool(options.pairings) != bool(options.machine):
        parser.error("--pairings COMMIT and --machine NAME belong together")
    if options.pairings:
        return pair(options.machine, options.pairings)
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


def pair(name: str, commit: str) -> int:
    """Print how far any two runs differ that a commit's stored processes could have made; return the exit code."""
    try:
        print(pairings.table(collect(History(name), commit)))
    except (FileNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def conclude(results: Path, commit: str, *, keep: bool) -> int:
    """Judge what was measured into a folder, write the thresholds, print the table; return the exit code."""
    config = Config.load(str(ROOT / "asv.conf.json"))
    config.results_dir = str(results)
    try:
        name = _machine(results)
        history = History(name, config=config)
        found = collect(history, commit)
    except (FileNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    folder, facts = folders.written(ROOT / "results") / name, _facts(history, commit, found)
    stored, noise = Noise(*(place / name for place in folders.places(ROOT / "results"))), entries(found)
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
    """Return what was measured when and where."""
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
    """Print what is flagged; return 1 if anything is."""
    flagged = [
        f"flagged: {name}, {each.ratio:.4f} of base, threshold {each.threshold:.4f}"
        for run in judged
        for name, each in run.items()
        if each.is_change
    ]
    print(*flagged, sep="\n", end="\n" if flagged else "")
    return int(bool(flagged))
