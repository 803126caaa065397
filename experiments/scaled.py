"""Which slowdowns of 2 % the review would miss, of all configurations: `python -m experiments.scaled`.

From the eight processes a configuration that gave a machine's thresholds: two make a run, every run is reviewed against
every other with all times of that one multiplied. It needs no GPU, but knows only times, not what makes them long.
"""

from __future__ import annotations

import itertools
from collections import Counter

from tabulate import tabulate

from report import processes
from report.compare import timed
from report.compare.noise import LONG, Noise
from report.compare.verdict import Verdict
from report.results import ROOT, History

MACHINE, COMMIT = "nvidia-h200", "926c240"
SLOWDOWN = 1.02


def missed(found: processes.Processes, noise: Noise) -> tuple[int, Counter[str]]:
    """How many pairs of runs there are, and in how many of them each configuration is not SLOW."""
    count = max(map(len, found.values())) // processes.ROUNDS
    pairs = list(itertools.permutations(range(count), 2))
    unseen = Counter(dict.fromkeys(found, 0))
    for base, head in pairs:
        runs = [
            (processes.run_of(each[base::count]), processes.run_of(each[head::count], SLOWDOWN))
            for each in found.values()
        ]
        thresholds = [noise.threshold(name, one.value or 0.0) for name, (one, _) in zip(found, runs, strict=True)]
        judged = zip(found, timed.judge(runs, thresholds), strict=True)
        unseen.update(name for name, each in judged if each.verdict is not Verdict.SLOW)
    return len(pairs), unseen


def main() -> None:
    """Print how many are missed by length, then which."""
    found, noise = processes.collect(History(MACHINE), COMMIT), Noise(ROOT / "results" / MACHINE)
    pairs, unseen = missed(found, noise)
    seconds = {entry.configuration: entry.seconds or 0.0 for entry in processes.entries(found)}
    for title, long in (("20 µs and above", True), ("below", False)):
        names = [name for name in found if (seconds[name] >= LONG) == long]
        print(f"{title}: {sum(unseen[name] for name in names)} of {pairs * len(names)} missed")
    rows = [[name, f"{1e6 * seconds[name]:.2f}", count] for name, count in unseen.most_common() if count]
    print(tabulate(rows, headers=["configuration", "µs", f"missed in {pairs} pairs"], tablefmt="github"))


if __name__ == "__main__":
    main()
