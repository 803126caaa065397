"""How well two sets of stored times agree: `python -m report.agreement COMMIT COMMIT [--without TEXT ...]`.

Meant for two runs of the same machine code: what differs is the measurement's own noise.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

import numpy as np
from tabulate import tabulate

from report.compare.noise import LONG
from report.results import History

#: A configuration's name, its seconds in the first run, and the relative difference of the second.
Difference = tuple[str, float, float]


def differences(history: History, one: str, two: str, without: Sequence[str] = ()) -> Iterator[Difference]:
    """Each configuration timed in both commits, but for those whose name holds a text of `without`.

    Raises
    ------
    LookupError : a commit has no results on this machine.
    """
    first, second = (history.commit(prefix) for prefix in (one, two))
    if first is None or second is None:
        raise LookupError(f"no results of {one if first is None else two} on {history.machine}; run: make bench")
    for benchmark in history.benchmarks(kind="time"):
        others = {tuple(point.params.items()): point.value for point in history.points(second, benchmark)}
        for point in history.points(first, benchmark):
            name = point.name(benchmark)
            other = others.get(tuple(point.params.items()))
            if point.value is not None and other is not None and not any(text in name for text in without):
                yield name, point.value, abs(other / point.value - 1)


def table(found: Sequence[Difference]) -> str:
    """Number of configurations, median, 99th percentile and largest difference, for all and for long ones."""
    body = []
    for label, rows in (("all", found), ("20 µs and above", [row for row in found if row[1] >= LONG])):
        if rows:
            shares = np.array([difference for _, _, difference in rows]) * 100
            worst = max(rows, key=lambda row: row[2])
            figures = [f"{value:.3f}" for value in (np.median(shares), np.percentile(shares, 99), shares.max())]
            body.append([label, len(rows), *figures, f"{worst[0]}, {worst[1] * 1e6:.2f} µs"])
    headers = ["times", "configurations", "median, %", "99th percentile, %", "largest, %", "which"]
    return str(tabulate(body, headers=headers, tablefmt="github", disable_numparse=True))


def main(words: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser("python -m report.agreement", description=__doc__)
    parser.add_argument("commits", nargs=2, metavar="COMMIT")
    parser.add_argument("--machine", default="nvidia-h200")
    parser.add_argument("--without", nargs="*", default=[], metavar="TEXT", help="leave out configurations named so")
    options = parser.parse_args(words)
    one, two = options.commits
    try:
        print(table(list(differences(History(options.machine), one, two, options.without))))
    except (LookupError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
