"""How far any two runs differ that a commit's processes could have made.

A run is ROUNDS processes. Eight processes make two runs in 210 ways, which are not independent of each other.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from tabulate import tabulate

from kernelwatch.review.processes import ROUNDS, Processes
from kernelwatch.store.noise import LONG

#: What two runs may differ by, from LONG on (relative).
ALLOWED = 0.003

#: Two runs, each by the numbers of its processes.
Pairing = tuple[tuple[int, ...], tuple[int, ...]]


def pairings(processes: int) -> list[Pairing]:
    """Return all ways to make two runs of ROUNDS processes each."""
    runs = list(itertools.combinations(range(processes), ROUNDS))
    return [(one, other) for one, other in itertools.combinations(runs, 2) if not set(one) & set(other)]


def differences(samples: NDArray[np.float64], ways: Sequence[Pairing]) -> NDArray[np.float64]:
    """Return by how much the medians of two runs differ, relative to the first.

    Parameters
    ----------
    samples : ndarray of shape (configurations, processes, samples)
        In seconds.
    ways : sequence of Pairing
        The two runs of each.

    Returns
    -------
    ndarray of shape (ways, configurations)
    """
    medians = {run: np.median(samples[:, run].reshape(len(samples), -1), axis=1) for way in ways for run in way}
    return np.array([np.abs(medians[other] / medians[one] - 1) for one, other in ways])


def arrays(found: Processes) -> tuple[list[str], NDArray[np.float64]]:
    """Return the configurations that all processes measured, and their samples as `differences` has them."""
    most = max(map(len, found.values()))
    complete = {name: processes for name, processes in found.items() if len(processes) == most}
    return list(complete), np.array(list(complete.values()))


def table(found: Processes) -> str:
    """Return a table by length of the time, and what differs most wherever two runs differ by more than ALLOWED."""
    names, samples = arrays(found)
    ways = pairings(samples.shape[1])
    long = np.median(samples, axis=(1, 2)) >= LONG
    differ = differences(samples, ways)
    rows = []
    for title, chosen in (("20 µs and above", long), ("below", ~long)):
        if chosen.any():
            own = differ[:, chosen]
            rows.append([title, int(chosen.sum()), *_range(np.median(own, axis=1)), *_range(own.max(axis=1))])
    heads = ["times", "configurations", "median, %: least", "most", "largest, %: least", "most"]
    lines = [f"{len(ways)} ways to make two runs of {ROUNDS} of {samples.shape[1]} processes", ""]
    lines += [str(tabulate(rows, heads, tablefmt="github", disable_numparse=True)), ""]
    lines += _beyond(np.array(names)[long], differ[:, long]) if long.any() else []
    return "\n".join(lines)


def _range(values: NDArray[np.float64]) -> Iterator[str]:
    yield from (f"{100 * value:.3f}" for value in (values.min(), values.max()))


def _beyond(names: NDArray[np.str_], differ: NDArray[np.float64]) -> Iterator[str]:
    worst = Counter(names[row.argmax()] for row in differ if row.max() > ALLOWED)
    yield f"In {worst.total()} of them a time from {LONG * 1e6:g} µs on differs by more than {ALLOWED:.1%}."
    yield from (f"Most in {count}: {name}" for name, count in worst.most_common())
