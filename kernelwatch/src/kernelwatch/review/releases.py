"""From two releases of CUDA to stored results of one commit with either: a review between compilers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

from kernelwatch.review.commits import CannotCompareError, Side, Sides, few, histories, resolve
from kernelwatch.review.rows import Row
from kernelwatch.store.results import History
from kernelwatch.toolchain import releases as compilers


def find(base: str, head: str, commit: str | None, machine: str | None, root: Path) -> Sides:
    """Return the stored results of two compilers at one commit.

    Parameters
    ----------
    base, head : str
        Releases of CUDA, such as "13.0.2".
    commit : str or None
        A git revision, or the beginning of a hash; None takes the newest commit that both compiled.
    machine : str or None
        The machine; None takes the one whose results of both are newest, those with times before others.
    root : Path
        The folder that holds `asv.conf.json`, `results/` and the repository.

    Raises
    ------
    CannotCompareError
        A compiler or the commit is unknown, or results are missing.
    """
    for release in (base, head):
        if release not in compilers.releases():
            known_ones = ", ".join(compilers.releases())
            raise CannotCompareError(f"{release!r} is no watched compiler; known are {known_ones}")
    names = [compilers.named({compilers.VARIABLE: each}) for each in (base, head)]
    known = histories(machine, root)
    both = [tuple(each.by(name) for name in names) for each in known if {*names} <= {*each.compilers}]
    measured = {one.machine: [each for each in one.commits() if each in other.commits()] for one, other in both}
    every = {each for history in (*known, *itertools.chain(*both)) for each in history.commits()}
    wanted = resolve(commit, root, sorted(every)) if commit else None
    newest = [(one, other, [each for each in measured[one.machine] if wanted in (None, each)]) for one, other in both]
    shared = [_sides(base, one, head, other, commits[-1]) for one, other, commits in newest if commits]
    if not shared:
        told = "; ".join(f"{name}: {few(commits[::-1])}" for name, commits in measured.items()) or "no commit"
        what, again = (f"of {wanted[:8]} ", wanted[:8]) if wanted else ("", "HEAD")
        raise CannotCompareError(
            f"no machine has results {what}by both {base} and {head}; both compiled {told}; "
            f"run: make compilers COMPILERS='{base} {head}' COMMIT={again}"
        )
    return max(shared, key=_telling)


def _sides(base: str, one: History, head: str, other: History, commit: str) -> Sides:
    both = one.commit(commit), other.commit(commit)
    assert both[0] is not None, "it was measured"
    assert both[1] is not None, "it was measured"
    return Sides(one, Side(base, commit, both[0]), Side(head, commit, both[1]))


def _telling(sides: Sides) -> tuple[bool, float]:
    """Sort key: results of both compilers that have times first, then newer ones."""
    both = (sides.base.results, sides.head.results)
    timed = all(any(sides.history.times(results)) for results in both)
    return timed, min(results.date for results in both)


def again(side: Side) -> str:
    """Return the command that measures a commit with a compiler."""
    release = side.compiler or compilers.DEFAULT
    return f"{compilers.VARIABLE}={release} asv run --record-samples {side.commit[:8]}^!"


def differing(rows: Iterable[Row]) -> str:
    """Return how many cubins have other machine code: not every change of it shows in the numbers of registers.

    Empty where no run looked at the code.
    """
    told = {row.name.partition("(")[2]: row.code_unchanged for row in rows if row.arch}
    known = [unchanged for unchanged in told.values() if unchanged is not None]
    return f"machine code differs in {known.count(False)} of {len(known)} cubins" if known else ""
