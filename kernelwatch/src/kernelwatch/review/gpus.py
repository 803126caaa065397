"""Whether the GPUs that measured two commits are alike: what the commits have in common tells.

Two GPUs of a kind may differ by more than what is looked for. But most machine code is the same in two commits: where
it took the same time on both GPUs, the GPUs do not differ, and what did change can be judged almost as on one of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kernelwatch.review.evidence import Evidence, Uuids
from kernelwatch.review.verdict import ratio
from kernelwatch.store.noise import LONG, Gpus
from kernelwatch.store.results import Point

#: On one H200, two runs never differed by so much in a time of 20 µs and more: 0.45 % at most in 210 pairs of runs.
ALIKE = 0.005

#: So many times must agree. On H200s that differ, fewer do (80), even if a commit left alone no kernel, dtype and flags
#: but those that agree.
FEWEST = 100


@dataclass(frozen=True)
class Likeness:
    """How alike the GPUs are that measured a benchmark of two commits: what thresholds are to be chosen by.

    `uuids` are those of all of them, `changes` the relative changes of the times from LONG on, of any benchmark
    measured by the same two GPUs, whose machine code did not change.
    """

    gpus: Gpus
    uuids: Uuids
    changes: tuple[float, ...] = ()


def likeness(evidence: Evidence, pairs: Iterable[tuple[str, Point, Point]]) -> Mapping[str, Likeness]:
    """How alike the GPUs are that measured each benchmark of which there are times.

    Where several GPUs share the work of one commit, what is unchanged may all have been measured by others than what
    changed: then nothing tells. A fleet's records do: where each series has one GPU, several are as good as one.
    The pairs are benchmark, and a configuration's times of base and head.
    """
    measured: dict[str, tuple[Uuids, Uuids]] = {}
    changes: dict[tuple[Uuids, Uuids], list[float]] = defaultdict(list)
    moved: set[str] = set()  # benchmarks of which another GPU measured a series of head than of base
    for benchmark, base, head in pairs:
        if benchmark not in measured:
            measured[benchmark] = evidence.gpus(benchmark)
        if benchmark not in moved and not evidence.is_of_one_gpu(benchmark, base):
            moved.add(benchmark)
        if (base.value or 0.0) >= LONG and evidence.machine_code_unchanged(benchmark, base):
            changes[measured[benchmark]].append(abs(ratio(base.value or 0.0, head.value or 0.0) - 1))
    return {
        benchmark: _likeness(*sides, changes[sides]) if benchmark in moved else Likeness(Gpus.ONE, sides[0] | sides[1])
        for benchmark, sides in measured.items()
    }


def _likeness(base: Uuids, head: Uuids, changes: list[float]) -> Likeness:
    uuids = base | head
    if len(uuids) <= 1:
        return Likeness(Gpus.ONE, uuids)
    one_each = len(base) == len(head) == 1 and None not in uuids
    alike = one_each and len(changes) >= FEWEST and max(changes) <= ALIKE
    return Likeness(Gpus.ALIKE if alike else Gpus.SEVERAL, uuids, tuple(changes))
