"""What to tell of two commits besides their rows: what else differs between their runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kernelwatch.review.commits import Sides
from kernelwatch.review.evidence import Evidence
from kernelwatch.review.verdict import NOT_AGAIN
from kernelwatch.store.noise import ANOTHER_GPU
from kernelwatch.store.results import Point

#: Facts of a run that explain a change by themselves, and asv's types of the benchmarks that they matter for.
_FACTS = {
    "GPU": ("time",),
    "driver": ("time",),
    "fetch granularity of the L2 cache": ("time",),
    "compiler": ("time", "track"),
}


def notes(sides: Sides, times: Sequence[tuple[str, Point, Point]], evidence: Evidence) -> Iterator[str]:
    """Yield what to tell, a sentence each; the times are benchmark, and a configuration's of base and of head."""
    if sides.base.commit == sides.head.commit and not sides.is_of_compilers:
        yield f"base and head are the same commit, {sides.base.commit[:8]}: give another BASE"
    yield from (f"{fact}; measure both with one: {sides.again}" for fact in _other_facts(sides))
    several = {benchmark for benchmark, base, _ in times if evidence.are_several_gpus(benchmark, base)}
    if several:
        count = f"{len(several)} of {len({benchmark for benchmark, *_ in times})} timed benchmarks"
        yield (
            f"not one GPU, but several of the kind, measured {count}: no threshold is below {ANOTHER_GPU * 100:g} %; "
            f"to judge smaller changes measure both on one GPU: {sides.again}"
        )
    if equal := sum(evidence.is_one_measurement(base, head) for _, base, head in times):
        yield f"{equal} of {len(times)} times: {NOT_AGAIN} (docs/method.md)"


def _other_facts(sides: Sides) -> Iterator[str]:
    """Each benchmark has the facts of the run that measured it: later ones may have measured others, elsewhere."""
    history, both = sides.history, [side.results for side in sides.both]
    for what, types in _FACTS.items():
        every = (name for each in types for name in history.benchmarks(each))
        names = (name for name in every if not any(history.why_not_run(each, name) for each in both))
        pairs = (tuple(_facts(history.run_of(results, name))[what] for results in both) for name in names)
        for base, head in dict.fromkeys(pairs):
            if base != head and None not in (base, head) and not (what == "compiler" and sides.is_of_compilers):
                yield f"another {what}: {base} for base, {head} for head"


def _facts(run: dict[str, Any]) -> dict[str, Any]:
    before = run.get("before") or {}
    return {
        "GPU": run.get("gpu"),
        "driver": before.get("driver"),
        "fetch granularity of the L2 cache": before.get("l2_fetch_bytes"),
        "compiler": run.get("nvcc"),
    }
