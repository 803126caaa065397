"""Which regressions of a machine's history stand, mended by no later commit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from kernelwatch.review.consecutive import Step
from kernelwatch.review.rows import Failure, Lone, Row, failures
from kernelwatch.review.verdict import TOLD, Verdict
from kernelwatch.store.results import TIMED


@dataclass(frozen=True)
class Regression:
    """What became worse between two commits of a machine that were measured one after the other.

    The rows have the largest change first, times before numbers; `broken` fails since.
    """

    machine: str
    base: str
    head: str
    rows: tuple[Row, ...]
    broken: tuple[Failure, ...] = ()


@dataclass
class _Open:
    """A configuration that became worse, and how its time has changed since, in times of base."""

    base: str
    head: str
    row: Row
    now: float

    def mended_by(self, later: Row) -> bool:
        """Whether a later step took it back. Numbers are exact; times are followed by what the review told of them."""
        if later.kind != TIMED:
            return later.head <= self.row.base
        if later.judgement.verdict in TOLD:
            self.now *= later.judgement.ratio
        return self.now <= 1 + self.row.judgement.threshold


def standing(machine: str, steps: Iterable[Step]) -> list[Regression]:
    """Return the regressions of a machine that stand, newest first; `steps` are its history, oldest first."""
    opened: dict[tuple[str, str], list[_Open]] = defaultdict(list)
    failing: dict[tuple[str, str], tuple[str, str, Lone]] = {}
    heads: list[str] = []
    for step in steps:
        heads.append(step.head)
        for one in step.comparisons:
            for row in one.rows:
                key = one.environment, row.name
                accepts = opened[key] and one.acknowledged.entries(row)  # an entry that came later
                opened[key] = [each for each in opened[key] if not (accepts or each.mended_by(row))]
                if row.judgement.verdict is Verdict.SLOWER:
                    opened[key].append(_Open(one.base.commit, step.head, row, row.judgement.ratio))
            for lone in one.broken:
                failing[one.environment, lone.name] = one.base.commit, step.head, lone
            for lone in one.repaired:
                failing.pop((one.environment, lone.name), None)
    found: dict[tuple[str, str], tuple[list[Row], list[Lone]]] = defaultdict(lambda: ([], []))
    for each in (each for every in opened.values() for each in every):
        found[each.base, each.head][0].append(each.row)
    for base, head, lone in failing.values():
        found[base, head][1].append(lone)
    newest_first = sorted(found.items(), key=lambda item: (-heads.index(item[0][1]), item[0]))
    return [
        Regression(machine, *ends, tuple(sorted(rows, key=_worst)), tuple(failures(Verdict.BROKEN, lones)))
        for ends, (rows, lones) in newest_first
    ]


def _worst(row: Row) -> tuple[bool, float, str]:
    return row.kind != TIMED, -row.size, row.name
