"""What changed in exact numbers and in the machine code, as data; `kernelwatch.show.text` writes it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from statistics import fmean, geometric_mean

from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict, change, per_cent


class Form(Enum):
    """What the figures of a difference are."""

    STEP = "by how much it changed, the same whole number everywhere"
    VALUES = "the means of base and of head"
    RANGE = "the smallest and the largest change, in per cent"
    MEAN = "the mean change, in per cent"
    UNCHANGED = "none: it is the same"
    OTHER = "none: it is another"


@dataclass(frozen=True)
class Difference:
    """How one number of a kernel changed, in the digits that are shown: what reads the same is equal.

    `metric` is as `Row.metric`, or "machine code"; `figures`, of a `form`, say by how much it changed, in a `part` of
    the configurations, so many of how many, if not in all. It is of `archs`, if not of all that both commits have.
    """

    metric: str
    form: Form
    figures: tuple[float, ...]
    part: tuple[int, int] | None = None
    archs: tuple[str, ...] = ()

    @property
    def rises(self) -> bool:
        """Whether the number became larger, of a range its lower end."""
        first, *others = self.figures or (0.0,)
        return others[0] > first if self.form is Form.VALUES else first > 0


def changed(rows: Iterable[Row], at_least: float) -> tuple[Row, ...]:
    """The rows that changed by a relative change or more."""
    return tuple(
        row for row in rows if row.judgement.verdict is not Verdict.SAME and change(row.judgement.ratio) >= at_least
    )


def differences(rows: Sequence[Row], at_least: float, *, named: bool = False) -> Iterator[Difference]:
    """What changed in exact numbers, largest first; of architectures where they differ, or are to be named."""
    metrics: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        metrics[row.metric][row.arch or ""].append(row)
    for metric, by_arch in sorted(metrics.items(), key=_largest):
        archs: dict[Difference, list[str]] = defaultdict(list)
        for arch, each in sorted(by_arch.items()):
            if found := changed(each, at_least):
                archs[Difference(metric, *_figures(found), _part(len(found), len(each)))].append(arch)
        for difference, on in archs.items():
            alike = len(on) == len(by_arch) and not named
            yield difference if alike else replace(difference, archs=tuple(on))


def _largest(metric: tuple[str, dict[str, list[Row]]]) -> float:
    """Sort key: the metric with the largest change first."""
    return -max(row.size for rows in metric[1].values() for row in rows)


def _part(some: int, every: int) -> tuple[int, int] | None:
    return None if some == every else (some, every)


def _figures(changed: Sequence[Row]) -> tuple[Form, tuple[float, ...]]:
    steps = {round(row.head - row.base, 6) for row in changed}
    ratios = [row.judgement.ratio for row in changed]
    if len(steps) == 1 and (step := steps.pop()).is_integer() and step:
        return Form.STEP, (step,)
    if not all(0 < ratio < math.inf for ratio in ratios):
        means = (fmean(getattr(row, side) for row in changed) for side in ("base", "head"))
        return Form.VALUES, tuple(float(f"{mean:.3g}") for mean in means)
    if min(ratios) < 1 < max(ratios):
        return Form.RANGE, (per_cent(min(ratios)), per_cent(max(ratios)))
    return Form.MEAN, (per_cent(geometric_mean(ratios)),)


def machine_code(rows: Iterable[Row]) -> Iterator[Difference]:
    """Whether the machine code of times and counted numbers changed, for some dtypes; nothing where no run said."""
    said = (row for row in rows if row.code_unchanged is not None and row.arch is None)
    known = {row.params.get("dtype"): row.code_unchanged for row in said}
    other = list(known.values()).count(False)
    if other:
        yield Difference("machine code", Form.OTHER, (), _part(other, len(known)))
    elif known:
        yield Difference("machine code", Form.UNCHANGED, ())
