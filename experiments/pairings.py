"""How far any two runs differ that a commit's processes could have made.

`python -m experiments.pairings [COMMIT]`: a run is two processes; of the eight of 926c240 (the default), two runs can
be made in 210 ways, which are not independent. For each, the median and the largest difference of all configurations.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from tabulate import tabulate

from report.compare.noise import LONG
from report.processes import ROUNDS, Processes, collect
from report.results import History

#: What two runs may differ by, from LONG on (relative).
ALLOWED = 0.003

Run = tuple[int, ...]


def pairings(processes: int) -> list[tuple[Run, Run]]:
    """All ways to make two runs of ROUNDS processes each, by the numbers of the processes."""
    runs = list(itertools.combinations(range(processes), ROUNDS))
    return [(one, other) for one, other in itertools.combinations(runs, 2) if not set(one) & set(other)]


def differences(samples: NDArray[np.float64], ways: Sequence[tuple[Run, Run]]) -> NDArray[np.float64]:
    """By how much the medians of two runs differ, relative to the first.

    Parameters
    ----------
    samples : seconds; configurations x processes x samples.
    ways : the two runs of each.

    Returns
    -------
    Ways x configurations.
    """
    medians = {run: np.median(samples[:, run].reshape(len(samples), -1), axis=1) for way in ways for run in way}
    return np.array([np.abs(medians[other] / medians[one] - 1) for one, other in ways])


def arrays(found: Processes) -> tuple[list[str], NDArray[np.float64]]:
    """The configurations that all processes measured, and their samples as `differences` has them."""
    most = max(map(len, found.values()))
    complete = {name: processes for name, processes in found.items() if len(processes) == most}
    return list(complete), np.array(list(complete.values()))


def report(names: Sequence[str], samples: NDArray[np.float64]) -> str:
    """A table by length of the time, and what differs most wherever two runs differ by more than ALLOWED."""
    ways = pairings(samples.shape[1])
    long = np.median(samples, axis=(1, 2)) >= LONG
    found = differences(samples, ways)
    rows = [
        [title, int(chosen.sum()), *_range(np.median(found[:, chosen], axis=1)), *_range(found[:, chosen].max(axis=1))]
        for title, chosen in (("20 µs and above", long), ("below", ~long))
        if chosen.any()
    ]
    heads = ["times", "configurations", "median, %: least", "most", "largest, %: least", "most"]
    lines = [f"{len(ways)} ways to make two runs of {ROUNDS} of {samples.shape[1]} processes", ""]
    lines += [str(tabulate(rows, heads, tablefmt="github", disable_numparse=True)), ""]
    lines += _beyond(np.array(names)[long], found[:, long]) if long.any() else []
    return "\n".join(lines)


def _range(values: NDArray[np.float64]) -> Iterator[str]:
    yield from (f"{100 * value:.3f}" for value in (values.min(), values.max()))


def _beyond(names: NDArray[np.str_], found: NDArray[np.float64]) -> Iterator[str]:
    worst = Counter(names[row.argmax()] for row in found if row.max() > ALLOWED)
    yield f"In {worst.total()} of them a time from {LONG * 1e6:g} µs on differs by more than {ALLOWED:.1%}."
    yield from (f"Most in {count}: {name}" for name, count in worst.most_common())


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; 2 if there is nothing to make two runs of."""
    parser = argparse.ArgumentParser("python -m experiments.pairings", description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="?", default="926c240", metavar="COMMIT", help="in results/ (default: 926c240)")
    parser.add_argument("--machine", default="nvidia-h200", help="default: nvidia-h200")
    options = parser.parse_args(words)
    try:
        print(report(*arrays(collect(History(options.machine), options.commit))))
    except (FileNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
