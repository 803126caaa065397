"""What differs between the runs of two commits besides the commit, and whether the GPUs that measured them are alike.

Two GPUs of a kind may differ by more than what is looked for. But most machine code is the same in two commits: where
it took the same time on both GPUs, the GPUs do not differ, and what did change can be judged almost as on one of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernelwatch.review.commits import Sides
from kernelwatch.review.evidence import Evidence, Uuids
from kernelwatch.review.noise import Noise
from kernelwatch.review.verdict import change, ratio
from kernelwatch.store.noise import ANOTHER_GPU, LONG, Gpus
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
            changes[measured[benchmark]].append(change(ratio(base.value or 0.0, head.value or 0.0)))
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


COMPILER = "compiler"

#: Facts of a run that explain a change by themselves: what a fact is called, where a run's record holds it, and asv's
#: types of the benchmarks that it matters for.
_FACTS = (
    ("GPU", ("gpu",), ("time",)),
    ("driver", ("before", "driver"), ("time",)),
    (COMPILER, ("nvcc",), ("time", "track")),
)


def notes(sides: Sides, gpus: Mapping[str, Likeness]) -> Iterator[str]:
    """Yield what to tell, a sentence each; `gpus` says how alike those are that measured each benchmark."""
    again = sides.again
    if sides.base.commit == sides.head.commit and not sides.is_of_compilers:
        yield f"base and head are the same commit, {sides.base.commit[:8]}: give another BASE"
    yield from (f"{fact}; measure both with one: {again}" for fact in _other_facts(sides))
    yield from (f"{told}; to judge smaller changes measure both on one GPU: {again}" for told in _other_gpus(gpus))


def _other_facts(sides: Sides) -> Iterator[str]:
    """Each benchmark has the facts of the run that measured it: later ones may have measured others, elsewhere."""
    history, both = sides.history, [side.results for side in sides.both]
    for what, path, types in _FACTS:
        if what == COMPILER and sides.is_of_compilers:
            continue  # that is what is compared
        every = (name for each in types for name in history.benchmarks(each))
        names = (name for name in every if not any(history.why_not_run(each, name) for each in both))
        pairs = (tuple(_fact(history.run_of(results, name), path) for results in both) for name in names)
        for base, head in dict.fromkeys(pairs):
            if base != head and base is not None and head is not None:
                yield f"another {what}: {base} for base, {head} for head"


def _other_gpus(gpus: Mapping[str, Likeness]) -> Iterator[str]:
    for kind in (Gpus.ALIKE, Gpus.SEVERAL):
        found = [each for each in gpus.values() if each.gpus is kind]
        if found:
            several = f"not one GPU, but several of the kind, measured {len(found)} of {len(gpus)} timed benchmarks"
            told, least = (_alike(found), Noise()) if kind is Gpus.ALIKE else ("", f"{ANOTHER_GPU * 100:g} %")
            yield f"{several}{told}: no threshold is below {least}"


def _alike(found: Sequence[Likeness]) -> str:
    """Why GPUs count as alike. Benchmarks that the same two measured share what tells."""
    every = [one for changes in {each.changes for each in found} for one in changes]
    return f", which are alike ({len(every)} times of the same machine code differ by {max(every) * 100:.2f} % at most)"


def _fact(run: dict[str, Any], path: tuple[str, ...]) -> str | None:
    found: Any = run
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return None if found is None else str(found)
