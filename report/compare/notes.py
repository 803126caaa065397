"""What differs between the runs of two commits besides the commit: the reader is told on top."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from report.compare.commits import Sides
from report.compare.gpus import Told
from report.compare.noise import ANOTHER_GPU, Gpus, Noise, defaults

#: Facts of a run that explain a change by themselves: what a fact is called, where a run's record holds it, and asv's
#: types of the benchmarks that it matters for.
_FACTS = (
    ("GPU", ("gpu",), ("time",)),
    ("driver", ("before", "driver"), ("time",)),
    ("compiler", ("nvcc",), ("time", "track")),
)


def notes(sides: Sides, noise: Noise, told: Mapping[str, Told]) -> Iterator[str]:
    """What to tell, a sentence each.

    Parameters
    ----------
    told : of the GPUs that measured each benchmark.
    """
    yield from _other_facts(sides)
    yield from _other_gpus(told)
    known = noise.selftest.get("uuid")
    gpus = [sides.history.gpus(sides.base.results, sides.head.results, benchmark=name) for name in told]
    if known and any(len(each) == 1 and not each & {known, None} for each in gpus):
        yield f"the thresholds are the noise of another GPU of the kind, {known}"


def _other_facts(sides: Sides) -> Iterator[str]:
    """Each benchmark has the facts of the run that measured it: later ones may have measured others, elsewhere."""
    both = (sides.base.results, sides.head.results)
    for what, path, types in _FACTS:
        names = (name for each in types for name in _in_both(sides, each))
        pairs = (tuple(_fact(sides.history.run_of(results, name), path) for results in both) for name in names)
        for base, head in dict.fromkeys(pairs):
            if base != head and base is not None and head is not None:
                yield f"another {what}: {base} for base, {head} for head"


def _other_gpus(told: Mapping[str, Told]) -> Iterator[str]:
    for gpus in (Gpus.ALIKE, Gpus.SEVERAL):
        found = [each for each in told.values() if each.gpus is gpus]
        if found:
            several = f"not one GPU, but several of the kind, measured {len(found)} of {len(told)} timed benchmarks"
            same = defaults() if gpus is Gpus.ALIKE else f"{ANOTHER_GPU:.0%}"
            yield f"{several}{_alike(found)}: their times are SAME up to {same}"


def _alike(found: Sequence[Told]) -> str:
    """Why GPUs count as alike; empty if they do not."""
    if any(each.gpus is not Gpus.ALIKE for each in found):
        return ""
    fewest = min((each.changes for each in found), key=len)
    return f", which are alike ({len(fewest)} times of the same machine code differ by {max(fewest):.2%} at most)"


def _in_both(sides: Sides, type_: str) -> list[str]:
    """The benchmarks of asv's type that both commits have."""
    history, both = sides.history, (sides.base.results, sides.head.results)
    return [name for name in history.benchmarks(type_) if not any(history.ran(each, name) for each in both)]


def _fact(run: dict[str, Any], path: tuple[str, ...]) -> str | None:
    found: Any = run
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return None if found is None else str(found)
