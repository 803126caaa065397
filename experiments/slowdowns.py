"""Which slowdowns the review catches: each kernel against itself with 2, 5 and 10 % more launches.

python -m experiments.slowdowns                                        # measures, and keeps the results
python -m experiments.slowdowns --render docs/evidence/slowdowns.md    # judges what is kept by today's thresholds
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments import facts, pages
from experiments.cases import sweeps
from gpu_kernels.flags import DEFAULT
from gpu_kernels.sweep import Launch, Sweep
from kernelwatch.asv import suite
from kernelwatch.asv.timed import measured
from kernelwatch.instrument import machine, measuring
from kernelwatch.project import ROOT
from kernelwatch.review import timed
from kernelwatch.review.verdict import Judgement, Verdict
from kernelwatch.store import folders, jsonl
from kernelwatch.store.noise import LONG, Noise
from kernelwatch.store.results import Point

#: Variant -> one more launch after each so many; 0: none. The second is the original again.
VARIANTS = {"original": 0, "original again": 0, "2 %": 50, "5 %": 20, "10 %": 10}

ROUNDS = 2

#: Rows and columns of the largest matrices.
SIDE = 4096

#: What all cases have in common, where their kernels have it.
_FIXED = {"dtype": "float32", "flags": DEFAULT}

_HOW = """\
Kernels are slowed down by an extra launch, on other buffers, after every 50th, 20th or 10th launch. The time is still
divided by the number of the others. The original and each variant are measured in two rounds, one after another. Then
the review judges them."""

#: (variant, configuration) -> samples in seconds, those of one process after those of another.
Times = dict[tuple[str, str], list[float]]


def cases() -> dict[str, Launch]:
    """Return what is slowed, by the configuration's name as the review prints it."""
    found = {}
    for sweep in sweeps():
        few = replace(sweep, axes={axis: _values(sweep, axis) for axis in sweep.axes})
        for params in few.points():
            found[f"{suite.time(sweep)}({', '.join(map(str, params.values()))})"] = sweep.launch(params)
    return found


def _values(sweep: Sweep, axis: str) -> Sequence[str | int]:
    """Return all kernels, matrices that take 2 µs and more, and of any other axis the value that summaries show."""
    values = sweep.axes[axis]
    if axis in ("kernel", "copy"):
        return values
    if axis == "rows x columns":
        values = [value for value in values if max(map(int, str(value).split("x"))) <= SIDE]
    else:
        values = [value for value in values if value == _FIXED.get(axis)]
    return values or [sweep.chosen()[axis]]


def run(launches: Mapping[str, Launch]) -> Times:
    """Return the samples of every variant of every case, in ROUNDS rounds each, in turns."""
    found: Times = {}
    with measuring.running():
        for turn, (variant, every) in itertools.product(range(ROUNDS), VARIANTS.items()):
            print(f"round {turn + 1} of {ROUNDS}: {variant}", file=sys.stderr, flush=True)
            for name, launch in launches.items():
                found.setdefault((variant, name), []).extend(measured(launch, every=every).samples)
    return found


def read(path: Path) -> tuple[dict[str, Any], Times]:
    """Return the facts and the samples. Raises as `facts.read`."""
    known, entries = facts.read(path)
    return known, {(each["variant"], each["configuration"]): each["samples"] for each in entries}


def judge(found: Times, noise: Noise) -> dict[tuple[str, str], Judgement]:
    """Return the review's verdict on every variant against the original."""
    keys = [(variant, name) for variant, name in found if variant != "original"]
    pairs = [(Point.of(found["original", name]), Point.of(found[variant, name])) for variant, name in keys]
    thresholds = [noise.threshold(name, base.value or 0.0) for (_, name), (base, _) in zip(keys, pairs, strict=True)]
    return dict(zip(keys, timed.judge(pairs, thresholds), strict=True))


def title(name: str) -> str:
    """Return a configuration's name without what all have in common."""
    benchmark, _, params = name.removesuffix(f", {', '.join(_FIXED.values())})").removesuffix(")").partition("(")
    return f"`{benchmark.split('.')[1]}({params})`"


def table(found: Times, judged: Mapping[tuple[str, str], Judgement]) -> str:
    """Return a table with a row a configuration: verdict and measured slowdown of each variant."""
    variants = [variant for variant in VARIANTS if variant != "original"]
    rows = []
    for name in dict.fromkeys(name for _, name in found):
        verdicts = [judged[variant, name] for variant in variants]
        cells = [f"{each.verdict.value} ({100 * (each.ratio - 1):+.2f} %)" for each in verdicts]
        seconds = float(np.median(found["original", name]))
        rows.append([title(name), f"{seconds * 1e6:.2f}", f"{100 * verdicts[0].threshold:.2f}", *cells])
    return pages.table(rows, ["configuration", "µs", "threshold, %", *variants])


def wrongly_judged(found: Times, judged: Mapping[tuple[str, str], Judgement]) -> list[str]:
    """Return false alarms, and the slowdowns of launches from LONG on that were missed."""
    wrong = []
    for (variant, name), each in judged.items():
        allowed = {Verdict.SLOW} if VARIANTS[variant] else {Verdict.SAME, Verdict.UNDECIDED}
        if np.median(found["original", name]) < LONG:
            allowed |= {Verdict.SAME, Verdict.UNDECIDED}
        if each.verdict not in allowed:
            wrong.append(f"{variant} of {title(name)}")
    return wrong


def page(known: Mapping[str, Any], found: Times) -> tuple[str, bool]:
    """Return a page of Markdown, and whether any verdict on it is wrong."""
    noise = Noise(*(place / known["machine"] for place in folders.places(ROOT / "results")))
    judged = judge(found, noise)
    wrong = wrongly_judged(found, judged)
    long = [name for _, name in judged if np.median(found["original", name]) >= LONG]
    missed = [
        f"{variant} of {title(name)}"
        for (variant, name), each in judged.items()
        if VARIANTS[variant] and each.verdict is not Verdict.SLOW
    ]
    lines = [
        "# Which slowdowns the review catches",
        "",
        f"{pages.made('slowdowns')}: {facts.sentence(known)}, {_FIXED['dtype']}, `{DEFAULT}`.",
        "",
        _HOW,
        f"Thresholds: {noise.source()}.",
        *_of_another_gpu(known, noise),
        "",
        table(found, judged),
        "",
        f"{len(long)} comparisons at {LONG * 1e6:g} µs and above, {len(wrong)} wrong"
        + (f": {', '.join(wrong)}." if wrong else "."),
        f"Not caught, of any length: {', '.join(missed) or 'none'}.",
        "",
    ]
    return "\n".join(lines), bool(wrong)


def _of_another_gpu(known: Mapping[str, Any], noise: Noise) -> Iterator[str]:
    if noise.selftest and noise.selftest.get("uuid") != known.get("uuid"):
        yield f"They are the noise of {noise.selftest.get('uuid')}; these samples are of {known.get('uuid')}."


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if the original is flagged or a slowdown of 2 % and more at 20 µs and above is missed."""
    parser = argparse.ArgumentParser("python -m experiments.slowdowns", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=pages.EVIDENCE / "slowdowns.jsonl", help="the samples, JSON lines")
    parser.add_argument("--render", type=Path, metavar="FILE", help="measure nothing; judge what is kept")
    options = parser.parse_args(words)
    launches = cases()
    if options.render is None:
        gpu = machine.gpu()
        if gpu is None:
            print("no GPU here: nothing can be slowed down; --render FILE judges what is kept", file=sys.stderr)
            return 2
        lines: list[dict[str, Any]] = [{"facts": facts.now(gpu)}]
        for (variant, name), samples in run(launches).items():
            lines.append({"variant": variant, "configuration": name, "samples": samples})
        jsonl.replace(options.data, lines)
    known, found = read(options.data)
    text, wrong = page(known, found)
    pages.put(text, options.render)
    pages.tell_missing([title(name) for name in launches if ("original", name) not in found])
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
