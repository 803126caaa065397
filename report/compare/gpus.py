"""Whether the GPUs that measured two commits are alike: what the commits have in common tells.

Two GPUs of a kind may differ by more than what is looked for. But most machine code is the same in two commits: where
it took the same time on both GPUs, the GPUs do not differ, and what did change can be judged almost as on one of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from report.compare.evidence import Evidence
from report.compare.noise import LONG, Gpus
from report.compare.verdict import ratio
from report.results import Point

#: H200s are of two sorts at least. From 20 µs on, the same machine code differed by 0.27 % at most between GPUs of one
#: sort; between two, by 1.9 % and more in some configuration of every kernel (docs/measurements.md).
ALIKE = 0.005

#: So many times must agree: a few might all be of what two sorts do equally well.
FEWEST = 50


@dataclass(frozen=True)
class Told:
    """What one benchmark's times are to be compared by.

    Parameters
    ----------
    gpus : of the runs that measured it.
    changes : relative changes of the times from LONG on, of the same GPUs and machine code; empty where one GPU
        measured both commits.
    """

    gpus: Gpus
    changes: tuple[float, ...] = ()


def tell(evidence: Evidence, pairs: Iterable[tuple[str, Point, Point]]) -> Mapping[str, Told]:
    """What is to be told of each benchmark of which there are times.

    Parameters
    ----------
    pairs : benchmark, and a configuration's times of base and head.
    """
    measured: dict[str, frozenset[str | None]] = {}
    changes: dict[frozenset[str | None], list[float]] = defaultdict(list)
    for benchmark, base, head in pairs:
        by = measured.setdefault(benchmark, evidence.gpus(benchmark))
        if len(by) > 1 and (base.value or 0.0) >= LONG and evidence.machine_code_unchanged(benchmark, base):
            changes[by].append(abs(ratio(base.value or 0.0, head.value or 0.0) - 1))
    return {benchmark: _told(by, changes[by]) for benchmark, by in measured.items()}


def _told(by: frozenset[str | None], changes: list[float]) -> Told:
    if len(by) <= 1:
        return Told(Gpus.ONE)
    alike = len(changes) >= FEWEST and max(changes) <= ALIKE
    return Told(Gpus.ALIKE if alike else Gpus.SEVERAL, tuple(changes))
