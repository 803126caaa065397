"""Which slowdowns the review catches: each kernel against itself with 2, 5 and 10 % more launches.

python -m experiments.slowdowns --out docs/slowdowns.md

Every so many launches of a replay one more is made, on buffers that are not near in turn, and not counted. Two fresh
processes measure the original and each slowed variant, as in a run of the suite; the review judges them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tabulate import tabulate

from benchmarks import axes
from benchmarks.instruments import device, machine
from benchmarks.instruments.clock import EventClock
from benchmarks.instruments.experiment import Experiment
from benchmarks.instruments.replay import Launches, back_to_back
from benchmarks.timed import kernel_work
from gpu_kernels.flags import DEFAULT
from report.compare import timed
from report.compare.noise import Noise
from report.compare.verdict import Judgement, Verdict
from report.results import ROOT, Point
from runner import monitor

#: Variant -> one more launch after each so many; 0: none. The second is the original again.
VARIANTS = {"original": 0, "original again": 0, "2 %": 50, "5 %": 20, "10 %": 10}

#: A multiple of it holds every variant's extra launches whole.
TURN = 100

SIDES = (256, 1024, 2048, 4096)

#: Seconds of a launch below which a miss is no error.
SHORT = 20e-6

ROUNDS = 2
SAMPLES = 12

Case = tuple[str, int]
CASES: list[Case] = list(itertools.product(axes.TRANSPOSES, SIDES))

#: (variant, case) -> samples in seconds, those of one process after those of another.
Samples = dict[tuple[str, Case], list[float]]


def slowed(work: Launches, every: int) -> Launches:
    """The same launches with one more after each `every`, and a turn that holds a whole number of those."""
    turn = -(-work.turn // TURN) * TURN

    def enqueue(index: int, stream: Any) -> None:
        work.enqueue(index, stream)
        if every and index % every == every - 1:
            work.enqueue(index + work.turn // 2, stream)  # far in turn: what it moves is not in the L2 either

    return replace(work, enqueue=enqueue, turn=turn)


def measure(every: int, folder: Path) -> list[list[float]]:
    """The samples of each case in this process, in the order of CASES."""
    device.require()
    return [_case(kernel, side, every, folder) for kernel, side in CASES]


def _case(kernel: str, side: int, every: int, folder: Path) -> list[float]:
    experiment = Experiment(kernel_work(kernel, "float32", DEFAULT, rows=side, columns=side), in_l2=False)
    experiment.verify(folder)
    sample = back_to_back(slowed(experiment.launches, every))
    clock = EventClock(sample)
    taken = []
    for _ in range(SAMPLES + 1):
        clock()
        sample()
        taken.append(clock())
    return taken[1:]


def run() -> Samples:
    """Measure every variant in ROUNDS fresh processes each, in turns."""
    found: Samples = {}
    with tempfile.TemporaryDirectory() as folder, monitor.running():
        for turn, (variant, every) in itertools.product(range(ROUNDS), VARIANTS.items()):
            print(f"round {turn + 1} of {ROUNDS}: {variant}", file=sys.stderr, flush=True)
            words = [sys.executable, "-m", "experiments.slowdowns", "--worker", str(every), folder]
            done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
            for case, samples in zip(CASES, json.loads(done.stdout), strict=True):
                found.setdefault((variant, case), []).extend(samples)
    return found


def judge(found: Samples, noise: Noise) -> dict[tuple[str, Case], Judgement]:
    """The review's verdict on every variant against the original."""
    keys = [(variant, case) for variant, case in found if variant != "original"]
    pairs = [(_point(found["original", case]), _point(found[variant, case])) for variant, case in keys]
    names = [f"time_transpose.Transpose.time_back_to_back({k}, {s}x{s}, float32, {DEFAULT})" for _, (k, s) in keys]
    thresholds = [noise.threshold(name, base.value or 0.0) for name, (base, _) in zip(names, pairs, strict=True)]
    return dict(zip(keys, timed.judge(pairs, thresholds), strict=True))


def _point(samples: list[float]) -> Point:
    return Point({}, float(np.median(samples)), tuple(samples))


def table(found: Samples, judged: dict[tuple[str, Case], Judgement]) -> str:
    """A row a kernel and size: verdict and measured slowdown of each variant."""
    rows = []
    for case in dict.fromkeys(case for _, case in found):
        kernel, side = case
        seconds = float(np.median(found["original", case]))
        verdicts = [judged[variant, case] for variant in VARIANTS if variant != "original"]
        cells = [f"{each.verdict.value} ({100 * (each.ratio - 1):+.2f} %)" for each in verdicts]
        rows.append([f"`{kernel}`", f"{side}²", f"{seconds * 1e6:.2f}", f"{100 * verdicts[0].threshold:g}", *cells])
    heads = ["kernel", "matrix", "µs", "threshold, %", *(name for name in VARIANTS if name != "original")]
    return str(tabulate(rows, headers=heads, tablefmt="github", disable_numparse=True))


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if the original is flagged or a slowdown of 2 % and more at 20 µs and above is missed."""
    parser = argparse.ArgumentParser("python -m experiments.slowdowns", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the table to this file, too")
    parser.add_argument("--worker", nargs=2, metavar=("EVERY", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.worker:
        every, folder = options.worker
        print(json.dumps(measure(int(every), Path(folder))))
        return 0
    gpu = machine.gpu()
    if gpu is None:
        print("no GPU here: nothing can be slowed down", file=sys.stderr)
        return 2
    found = run()
    judged = judge(found, Noise(ROOT / "results" / machine.default_name(gpu)))
    text = table(found, judged)
    print(text)
    if options.out:
        options.out.write_text(f"{text}\n", encoding="utf-8")
    wrong = wrongly_judged(found, judged)
    print(f"{len(judged)} comparisons, {len(wrong)} wrong: {', '.join(wrong)}")
    return int(bool(wrong))


def wrongly_judged(found: Samples, judged: dict[tuple[str, Case], Judgement]) -> list[str]:
    """What is flagged though it did not get slower, and what is missed at 20 µs and above."""
    wrong = []
    for (variant, case), each in judged.items():
        allowed = {Verdict.SLOW} if VARIANTS[variant] else {Verdict.SAME, Verdict.UNDECIDED}
        if np.median(found["original", case]) < SHORT:
            allowed |= {Verdict.SAME, Verdict.UNDECIDED}
        if each.verdict not in allowed:
            wrong.append(f"{variant} {case[0]} {case[1]}²")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
