"""How far two GPUs of a kind differ, in times and in their ratios to copies: `python -m experiments.two_gpus`.

From what two H200s measured of the same six commits (tests/data/six-commits-h200).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from asv.config import Config
from tabulate import tabulate

from report.compare.noise import LONG
from report.results import ROOT, History, control

DATA = ROOT / "tests" / "data" / "six-commits-h200"


def values(folder: Path) -> Iterator[tuple[str, float, float]]:
    """Commit and configuration by name, seconds, and the same in copies."""
    config = Config.load(str(ROOT / "asv.conf.json"))
    config.results_dir = str(folder / "results")
    history = History("nvidia-h200", config=config)
    for message, commit in json.loads((folder / "commits.json").read_text(encoding="utf-8")).items():
        results = history.commit(commit)
        assert results is not None, "its own list names it"
        for benchmark in history.benchmarks("time"):
            copies = {tuple(point.params.items()): point.value for point in history.points(results, control(benchmark))}
            for point in history.points(results, benchmark):
                ratio = copies.get(tuple(point.params.items()))
                if point.value is not None and ratio is not None:
                    yield f"{message}: {point.name(benchmark)}", point.value, ratio


def table() -> str:
    """Median and largest difference of the second GPU to the first, by length."""
    first, second = ({name: np.array(pair) for name, *pair in values(folder)} for folder in sorted(DATA.iterdir()))
    rows = []
    for title, long in (("20 µs and above", True), ("below", False)):
        names = [name for name in first if (first[name][0] >= LONG) == long]
        shares = 100 * np.abs([second[name] / first[name] - 1 for name in names])
        cells = [f"{np.median(column):.2f} ({column.max():.2f})" for column in shares.T]
        rows.append([title, len(names), *cells])
    heads = ["", "configurations", "times differ by, median (largest), %", "ratios to the copy, %"]
    return str(tabulate(rows, headers=heads, tablefmt="github"))


if __name__ == "__main__":
    print(table())
