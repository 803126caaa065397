"""What differs between the runs of two commits besides the commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kernelwatch.review.commits import Sides
from kernelwatch.store.noise import ANOTHER_GPU

COMPILER = "compiler"

#: Facts of a run that explain a change by themselves: what a fact is called, where a run's record holds it, and asv's
#: types of the benchmarks that it matters for.
_FACTS = (
    ("GPU", ("gpu",), ("time",)),
    ("driver", ("before", "driver"), ("time",)),
    (COMPILER, ("nvcc",), ("time", "track")),
)


def notes(sides: Sides, several_gpus: Mapping[str, bool]) -> Iterator[str]:
    """Yield what to tell, a sentence each; of each timed benchmark, whether several GPUs measured a configuration."""
    if sides.base.commit == sides.head.commit and not sides.is_of_compilers:
        yield f"base and head are the same commit, {sides.base.commit[:8]}: give another BASE"
    yield from (f"{fact}; measure both with one: {sides.again}" for fact in _other_facts(sides))
    if count := sum(several_gpus.values()):
        several = f"several of the kind, measured {count} of {len(several_gpus)} timed benchmarks"
        least = f"no threshold is below {ANOTHER_GPU * 100:g} %"
        yield f"not one GPU, but {several}: {least}; to judge smaller changes measure both on one GPU: {sides.again}"


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


def _fact(run: dict[str, Any], path: tuple[str, ...]) -> str | None:
    found: Any = run
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return None if found is None else str(found)
