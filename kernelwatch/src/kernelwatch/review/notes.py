"""What differs between the runs of two commits besides the commit: the reader is told on top."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kernelwatch.review.commits import Sides
from kernelwatch.review.gpus import Likeness
from kernelwatch.store.noise import ANOTHER_GPU, Gpus, Noise, defaults

COMPILER = "compiler"

#: Facts of a run that explain a change by themselves: what a fact is called, where a run's record holds it, and asv's
#: types of the benchmarks that it matters for.
_FACTS = (
    ("GPU", ("gpu",), ("time",)),
    ("driver", ("before", "driver"), ("time",)),
    (COMPILER, ("nvcc",), ("time", "track")),
)


def notes(sides: Sides, noise: Noise, gpus: Mapping[str, Likeness]) -> Iterator[str]:
    """Yield what to tell, a sentence each; `gpus` says how alike those are that measured each benchmark."""
    again = sides.again
    if sides.base.commit == sides.head.commit and not sides.is_of_compilers:
        yield f"base and head are the same commit, {sides.base.commit[:8]}: give another BASE"
    yield from (f"{fact}; measure both with one: {again}" for fact in _other_facts(sides))
    yield from (f"{told}; to judge smaller changes measure both on one GPU: {again}" for told in _other_gpus(gpus))
    known = noise.selftest.get("uuid")
    if known and any(len(each.uuids) == 1 and not each.uuids & {known, None} for each in gpus.values()):
        own = "for this one's own: kernelwatch selftest"
        yield f"the thresholds are the noise of another GPU of the kind, {known}; {own}"


def _other_facts(sides: Sides) -> Iterator[str]:
    """Each benchmark has the facts of the run that measured it: later ones may have measured others, elsewhere."""
    both = [side.results for side in sides.both]
    for what, path, types in _FACTS:
        if what == COMPILER and sides.is_of_compilers:
            continue  # that is what is compared
        names = (name for each in types for name in _in_both(sides, each))
        pairs = (tuple(_fact(sides.history.run_of(results, name), path) for results in both) for name in names)
        for base, head in dict.fromkeys(pairs):
            if base != head and base is not None and head is not None:
                yield f"another {what}: {base} for base, {head} for head"


def _other_gpus(gpus: Mapping[str, Likeness]) -> Iterator[str]:
    for kind in (Gpus.ALIKE, Gpus.SEVERAL):
        found = [each for each in gpus.values() if each.gpus is kind]
        if found:
            several = f"not one GPU, but several of the kind, measured {len(found)} of {len(gpus)} timed benchmarks"
            told, least = (_alike(found), defaults()) if kind is Gpus.ALIKE else ("", f"{ANOTHER_GPU * 100:g} %")
            yield f"{several}{told}: no threshold is below {least}"


def _alike(found: Sequence[Likeness]) -> str:
    """Why GPUs count as alike. Benchmarks that the same two measured share what tells."""
    changes = [change for each in dict.fromkeys(each.changes for each in found) for change in each]
    most = f"{max(changes) * 100:.2f} %"
    return f", which are alike ({len(changes)} times of the same machine code differ by {most} at most)"


def _in_both(sides: Sides, type_: str) -> list[str]:
    """The benchmarks of asv's type that both commits have."""
    history, both = sides.history, [side.results for side in sides.both]
    return [name for name in history.benchmarks(type_) if not any(history.ran(each, name) for each in both)]


def _fact(run: dict[str, Any], path: tuple[str, ...]) -> str | None:
    found: Any = run
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return None if found is None else str(found)
