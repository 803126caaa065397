"""Which slowdowns the review catches: each kernel against itself with 2, 5 and 10 % more launches.

python -m experiments.slowdowns                                # measures, keeps the samples in docs/slowdowns.jsonl
python -m experiments.slowdowns --render docs/slowdowns.md     # judges what is kept, by the thresholds stored now

After every 50th, 20th or 10th launch an extra one runs, on other buffers; the time is still divided by the number of
the others. Two fresh processes measure the original and each slowed variant, one after another; the review judges.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tabulate import tabulate

from benchmarks import axes
from benchmarks.instruments import device, machine
from benchmarks.instruments.clock import take
from benchmarks.instruments.experiment import Experiment
from benchmarks.instruments.replay import Cycle, back_to_back
from benchmarks.time_copy import MatrixSizedCopy, OffsetCopy, StrideCopy
from benchmarks.time_transpose import Transpose
from benchmarks.timed import SAMPLES, _Timed
from experiments import facts, forks, kept
from gpu_kernels.flags import DEFAULT
from report.compare import timed
from report.compare.noise import LONG, Noise
from report.compare.verdict import Judgement, Verdict
from report.results import ROOT, Point
from runner import monitor

#: Variant -> one more launch after each so many; 0: none. The second is the original again.
VARIANTS = {"original": 0, "original again": 0, "2 %": 50, "5 %": 20, "10 %": 10}

#: A multiple of it holds every variant's extra launches whole.
TURN = 100

ROUNDS = 2

#: What all cases have in common.
_FIXED = ("float32", DEFAULT)

MATRICES = ["256x256", "1024x1024", "2048x2048", "4096x4096"]

#: Every kernel, at lengths from 2 µs on.
BENCHMARKS: list[tuple[type[_Timed], tuple[Any, ...]]] = [
    *((Transpose, case) for case in itertools.product(axes.TRANSPOSES, MATRICES)),
    (OffsetCopy, (1, 67108864)),
    (StrideCopy, (2, 4194304)),
    (MatrixSizedCopy, ("offset_copy offset=1",)),
    (MatrixSizedCopy, ("stride_copy stride=2",)),
]


def configuration(benchmark: type[_Timed], params: tuple[Any, ...]) -> str:
    """A case's name, as the review prints it."""
    module = benchmark.__module__.removeprefix("benchmarks.")
    return f"{module}.{benchmark.__name__}.time_back_to_back({', '.join(map(str, (*params, *_FIXED)))})"


CASES = {configuration(*case): case for case in BENCHMARKS}

#: (variant, configuration) -> samples in seconds, those of one process after those of another.
Samples = dict[tuple[str, str], list[float]]


def slowed(cycle: Cycle, every: int) -> Cycle:
    """The same launches with one more after each `every`, and a turn that holds a whole number of those."""
    length = -(-cycle.length // TURN) * TURN

    def enqueue(index: int, stream: Any) -> None:
        cycle.enqueue(index, stream)
        if every and index % every == every - 1:
            cycle.enqueue(index + cycle.length // 2, stream)  # far in turn: what it moves is not in the L2 either

    return replace(cycle, enqueue=enqueue, length=length)


def measure(name: str, every: int, folder: Path) -> list[float]:
    """The samples of a case in this process. `folder` as `Experiment.verify` has it."""
    benchmark, params = CASES[name]
    device.require()
    experiment = Experiment(benchmark().work(*params, *_FIXED), in_l2=False)
    experiment.verify(folder)
    return take(back_to_back(slowed(experiment.launches, every)), SAMPLES)


def run() -> Samples:
    """Measure every variant of every case in ROUNDS fresh processes each, in turns."""
    found: Samples = {}
    with tempfile.TemporaryDirectory() as folder, monitor.running():
        for turn, (variant, every) in itertools.product(range(ROUNDS), VARIANTS.items()):
            print(f"round {turn + 1} of {ROUNDS}: {variant}", file=sys.stderr, flush=True)
            for name in CASES:
                found.setdefault((variant, name), []).extend(forks.call(measure, name, every, Path(folder)))
    return found


def write(path: Path, known: dict[str, Any], found: Samples) -> None:
    """Keep the facts and the samples, an entry a variant and case."""
    entries = (
        {"variant": variant, "configuration": name, "samples": samples} for (variant, name), samples in found.items()
    )
    kept.write(path, known, entries)


def read(path: Path) -> tuple[dict[str, Any], Samples]:
    """The facts and samples that were kept."""
    known, entries = kept.read(path)
    return known, {(each["variant"], each["configuration"]): each["samples"] for each in entries}


def judge(found: Samples, noise: Noise) -> dict[tuple[str, str], Judgement]:
    """The review's verdict on every variant against the original."""
    keys = [(variant, name) for variant, name in found if variant != "original"]
    pairs = [(Point.of(found["original", name]), Point.of(found[variant, name])) for variant, name in keys]
    thresholds = [noise.threshold(name, base.value or 0.0) for (_, name), (base, _) in zip(keys, pairs, strict=True)]
    return dict(zip(keys, timed.judge(pairs, thresholds), strict=True))


def title(name: str) -> str:
    """A configuration's name without what all have in common."""
    benchmark, _, params = name.partition("(")
    return f"`{benchmark.split('.')[1]}({params.removesuffix(f', {_FIXED[0]}, {_FIXED[1]})')})`"


def table(found: Samples, judged: dict[tuple[str, str], Judgement]) -> str:
    """A row a configuration: verdict and measured slowdown of each variant."""
    rows = []
    for name in dict.fromkeys(name for _, name in found):
        seconds = float(np.median(found["original", name]))
        verdicts = [judged[variant, name] for variant in VARIANTS if variant != "original"]
        cells = [f"{each.verdict.value} ({100 * (each.ratio - 1):+.2f} %)" for each in verdicts]
        rows.append([title(name), f"{seconds * 1e6:.2f}", f"{100 * verdicts[0].threshold:.2f}", *cells])
    heads = ["configuration", "µs", "threshold, %", *(name for name in VARIANTS if name != "original")]
    return str(tabulate(rows, headers=heads, tablefmt="github", disable_numparse=True))


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if the original is flagged or a slowdown of 2 % and more at 20 µs and above is missed."""
    parser = argparse.ArgumentParser("python -m experiments.slowdowns", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT / "docs" / "slowdowns.jsonl", help="the samples, JSON lines")
    parser.add_argument(
        "--render", type=Path, metavar="FILE", help="measure nothing; judge what is kept, into this file"
    )
    options = parser.parse_args(words)
    if options.render is None:
        gpu = machine.gpu()
        if gpu is None:
            print("no GPU here: nothing can be slowed down; --render FILE judges what is kept", file=sys.stderr)
            return 2
        write(options.data, facts.now(gpu), run())
    text, wrong = report(*read(options.data))
    if options.render is None:
        print(text)
    else:
        options.render.write_text(text, encoding="utf-8")
    return int(wrong)


def report(known: dict[str, Any], found: Samples) -> tuple[str, bool]:
    """A page of Markdown, and whether any verdict on it is wrong."""
    noise = Noise(ROOT / "results" / known["machine"])
    judged = judge(found, noise)
    wrong = wrongly_judged(found, judged)
    long = [name for _, name in judged if np.median(found["original", name]) >= LONG]
    missed = [
        f"{variant} of {title(name)}"
        for (variant, name), each in judged.items()
        if VARIANTS[variant] and each.verdict is not Verdict.SLOW
    ]
    unknown = [title(name) for name in CASES if ("original", name) not in found]
    lines = [
        "# Which slowdowns the review catches",
        "",
        "Made by `python -m experiments.slowdowns --render docs/slowdowns.md` from `docs/slowdowns.jsonl`: "
        f"{facts.sentence(known)}, float32, `{DEFAULT}`.",
        "",
        *(__doc__ or "").strip().splitlines()[-2:],
        f"Thresholds: {noise.source()}.",
        *_of_another_gpu(known, noise),
        "",
        table(found, judged),
        "",
        f"{len(long)} comparisons at {LONG * 1e6:g} µs and above, {len(wrong)} wrong"
        + (f": {', '.join(wrong)}." if wrong else "."),
        f"Not caught, of any length: {', '.join(missed) or 'none'}.",
        *([f"Not measured: {', '.join(unknown)}."] if unknown else []),
        "",
    ]
    return "\n".join(lines), bool(wrong)


def _of_another_gpu(known: dict[str, Any], noise: Noise) -> Iterator[str]:
    if noise.selftest and noise.selftest.get("uuid") != known.get("uuid"):
        yield f"They are the noise of {noise.selftest.get('uuid')}; these samples are of {known.get('uuid')}."


def wrongly_judged(found: Samples, judged: dict[tuple[str, str], Judgement]) -> list[str]:
    """What is flagged though it did not get slower; what is missed counts from LONG on."""
    wrong = []
    for (variant, name), each in judged.items():
        allowed = {Verdict.SLOW} if VARIANTS[variant] else {Verdict.SAME, Verdict.UNDECIDED}
        if np.median(found["original", name]) < LONG:
            allowed |= {Verdict.SAME, Verdict.UNDECIDED}
        if each.verdict not in allowed:
            wrong.append(f"{variant} of {title(name)}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
