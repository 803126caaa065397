"""How far measurements of the same machine code differ, in times and in ratios to copies.

`python -m experiments.agreement`: two runs of one commit, one after the other; six commits on two GPUs; and pairs of
commits in `results/` whose machine code is the same, but for the kernels named: one GPU or two, minutes or hours apart.
`python -m experiments.agreement BASE HEAD`: two commits in `results/`, whatever differs between them.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from asv.config import Config
from numpy.typing import NDArray
from tabulate import tabulate

from benchmarks import axes
from report.compare.noise import LONG
from report.results import ROOT, History

#: What two folders in it hold of the same commits -> its name.
KEPT = {"one GPU, one run after the other": "two-runs-h200", "six commits, two GPUs": "six-commits-h200"}

#: Two commits, and the kernels whose machine code differs between them (cubins.jsonl).
PAIRS: list[tuple[str, str, Sequence[str]]] = [
    ("98a96e0", "993f78c", axes.TRANSPOSES),
    ("f22cf79", "926c240", ["transpose_read_write_coalesced"]),
    ("740a787", "993f78c", []),
    ("740a787", "952ced2", []),
]

#: Commit and configuration by name -> seconds, and the same in copies.
Values = dict[str, NDArray[np.float64]]


def values(results: Path, commits: Mapping[str, str]) -> Values:
    """What a folder of results holds of commits, by the names that these are to have, where it holds a ratio too."""
    config = Config.load(str(ROOT / "asv.conf.json"))
    config.results_dir = str(results)
    history = History("nvidia-h200", config=config)
    found: Values = {}
    for message, commit in commits.items():
        stored = history.commit(commit)
        assert stored is not None, "its own list names it"
        for benchmark, point, copies in history.times(stored):
            if copies is not None:
                found[f"{message}: {point.name(benchmark)}"] = np.array([point.value, copies])
    return found


def table(first: Values, second: Values) -> str:
    """How far the second differs from the first, by kind and length of the time."""
    rows = []
    names = first.keys() & second.keys()
    for kind, (length, long) in itertools.product(
        ("back_to_back", "isolated"), (("20 µs and above", True), ("below", False))
    ):
        chosen = [name for name in names if f"time_{kind}(" in name and (second[name][0] >= LONG) == long]
        if chosen:
            shares = 100 * np.abs([second[name] / first[name] - 1 for name in chosen])
            cells = [
                f"{np.median(column):.3f} ({np.percentile(column, 95):.2f}, {column.max():.2f})" for column in shares.T
            ]
            rows.append([f"{kind.replace('_', ' ')}, {length}", len(chosen), *cells])
    heads = ["", "configurations", "times differ by, median (95th percentile, largest), %", "ratios to the copy, %"]
    return str(tabulate(rows, headers=heads, tablefmt="github", disable_numparse=True))


def kept(folder: Path) -> Values:
    """What a folder holds of the commits that it names."""
    commits = json.loads((folder / "commits.json").read_text(encoding="utf-8"))
    return values(folder / "results", commits)


def all_but(kernels: Sequence[str], commit: str) -> Values:
    """What `results/` holds of a commit, all but of some kernels."""
    found = values(ROOT / "results", {"": commit})
    return {name: value for name, value in found.items() if not any(f"({kernel}," in name for kernel in kernels)}


def main(words: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser("python -m experiments.agreement", description=__doc__.splitlines()[0])
    parser.add_argument("commits", nargs="*", metavar="COMMIT", help="BASE and HEAD (default: those that are listed)")
    commits = parser.parse_args(words).commits
    if len(commits) not in (0, 2):
        parser.error(f"{len(commits)} commits are given; give two, or none")
    if commits:
        print(table(*(all_but([], commit) for commit in commits)))
        return
    for title, name in KEPT.items():
        print(f"\n{title}:\n")
        print(table(*(kept(folder) for folder in sorted((ROOT / "tests" / "data" / name).iterdir()))))
    for base, head, changed in PAIRS:
        print(f"\n{base} and {head}{', all but ' * bool(changed)}{', '.join(changed)}:\n")
        print(table(all_but(changed, base), all_but(changed, head)))


if __name__ == "__main__":
    main()
