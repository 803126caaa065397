"""The rows of a comparison by kernel and flags: what changed, by how much in the mean, and what changed with it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, geometric_mean
from typing import NamedTuple

from kernelwatch.metrics import RATIOS
from kernelwatch.review.comparison import Comparison
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict, change, percent
from kernelwatch.store.results import EXACT, TIMED

#: Bytes that a sector has, `ptxcount.transactions.SECTOR`, without what counts them.
_SECTOR = 32

#: Flags of a group that all flag sets of its kernel share.
ANY_FLAGS = "any"

#: What a time is judged.
_JUDGED = (Verdict.SLOWER, Verdict.FASTER, Verdict.SAME, Verdict.UNDECIDED)

#: Ratios that have the words of a total.
_NAMES = {
    name.replace("_", " "): f"{name.replace('_', ' ')} a request"
    for name in RATIOS
    if name.endswith(("_sectors", "_lines"))
}

#: A kernel and nvcc's flags.
_Key = tuple[str, str]


class Difference(NamedTuple):
    """How a number of a kernel changed, in the digits that are shown, or its machine code.

    It holds in a `part` of the configurations, so many of how many, if not in all; of `archs`, if not of all that both
    commits have.
    """

    change: str
    part: tuple[int, int] | None = None
    archs: tuple[str, ...] = ()

    def __str__(self) -> str:
        """For example "registers -10 %", "5 more instructions (1 of 2) on sm_90", "machine code changed"."""
        part = " ({} of {})".format(*self.part) if self.part else ""
        on = f" on {' and '.join(self.archs)}" if self.archs else ""  # a comma is between two differences
        return f"{self.change}{part}{on}"


def changed(rows: Iterable[Row], at_least: float) -> tuple[Row, ...]:
    """The rows that changed by a relative change or more."""
    others = (row for row in rows if row.judgement.verdict is not Verdict.SAME)
    return tuple(row for row in others if change(row.judgement.ratio) >= at_least)


def differences(rows: Sequence[Row], at_least: float, *, named: bool = False) -> Iterator[Difference]:
    """What changed in exact numbers: what decides, then what explains, the largest of each first.

    It is told of architectures where they differ, or are to be named.
    """
    metrics: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        metrics[row.metric][row.arch or ""].append(row)
    for metric, by_arch in sorted(metrics.items(), key=_largest):
        archs: dict[Difference, list[str]] = defaultdict(list)
        for arch, each in sorted(by_arch.items()):
            if found := changed(each, at_least):
                archs[Difference(_change(metric, found), _part(len(found), len(each)))].append(arch)
        for difference, on in archs.items():
            yield difference if len(on) == len(by_arch) and not named else difference._replace(archs=tuple(on))


def moved(rows: Iterable[Row]) -> Iterator[Difference]:
    """How many times the bytes that it needs a kernel moves, of the launches together that move another number.

    Nothing where it moves fewer: what it is declared to read or write, it does not.
    """
    launches: dict[object, list[Row]] = defaultdict(list)
    for row in rows:
        if row.is_moved and row.useful_bytes:
            launches[row.launch].append(row)
    found = [each for each in launches.values() if any(row.base != row.head for row in each)]
    if found:
        needed = sum(each[0].useful_bytes or 0 for each in found)
        base, head = (sum(getattr(row, side) for each in found for row in each) for side in ("base", "head"))
        told = [_SECTOR * sectors / needed for sectors in (head, base)]
        if min(told) >= 1:
            yield Difference("moves {:.3g} times what it needs ({:.3g} before)".format(*told))


def _largest(metric: tuple[str, dict[str, list[Row]]]) -> tuple[bool, float]:
    """Sort key: the metrics that decide, and of these the one with the largest change, first."""
    every = [row for rows in metric[1].values() for row in rows]
    decides = any(row.decides and row.base != row.head for row in every)
    return not decides, -max(row.size for row in every)


def _part(some: int, every: int) -> tuple[int, int] | None:
    return None if some == every else (some, every)


def _change(metric: str, changed: Sequence[Row]) -> str:
    """By how much a number changed: everywhere by the same whole number, from nothing or to nothing, or in per cent."""
    metric = _NAMES.get(metric, metric)
    step, *others = {round(row.head - row.base, 6) for row in changed}
    ratios = [row.judgement.ratio for row in changed]
    if not others and step.is_integer() and step:
        named = metric.removesuffix("s") if abs(step) == 1 else metric
        return f"{abs(step):.0f} {'more' if step > 0 else 'fewer'} {named}"
    if not all(0 < ratio < math.inf for ratio in ratios):
        base, head = (fmean(getattr(row, side) for row in changed) for side in ("base", "head"))
        return f"{metric} {base:.3g} -> {head:.3g}"
    if min(ratios) < 1 < max(ratios):
        return f"{metric} {percent(min(ratios))} to {percent(max(ratios))}"
    return f"{metric} {percent(geometric_mean(ratios))}"


def machine_code(rows: Iterable[Row]) -> Iterator[Difference]:
    """Whether the machine code of times and counted numbers changed, for some dtypes; nothing where no run said."""
    said = (row for row in rows if row.code_unchanged is not None and row.arch is None)
    known = {row.params.get("dtype"): row.code_unchanged for row in said}
    other = list(known.values()).count(False)
    if other:
        yield Difference("machine code changed", _part(other, len(known)))
    elif known:
        yield Difference("machine code unchanged")


@dataclass(frozen=True)
class Group:
    """What changed in the configurations of a kernel with one set of flags, or with several that are alike.

    `flags` are nvcc's, several separated by ", "; ANY_FLAGS stands for all that the kernel was compiled with. They are
    empty where a benchmark has none. `times` are all of its times, unchanged ones too; `numbers` those that changed, of
    other architectures than the machine's if `elsewhere`; `evidence` what changed in them, and in the machine code.
    """

    kernel: str
    flags: str
    times: tuple[Row, ...]
    numbers: tuple[Row, ...]
    evidence: tuple[Difference, ...]
    elsewhere: bool = False

    @property
    def ratio(self) -> float | None:
        """Geometric mean of head over base of all its times; None without times."""
        return mean(self.times)

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many times are slower, faster, same, undecided; numbers rose and decide, fell, noted; acknowledged."""
        times, deciding, numbers = (
            Counter(row.judgement.verdict for row in rows) for rows in (self.times, self._deciding, self.numbers)
        )
        return {
            **{each.value.lower(): times[each] for each in _JUDGED},
            "rose": deciding[Verdict.SLOWER] + deciding[Verdict.TRADE],
            "fell": deciding[Verdict.FASTER],
            "noted": numbers[Verdict.NOTED],
            "acknowledged": (times or numbers)[Verdict.ACKNOWLEDGED],
        }

    @property
    def verdict(self) -> Verdict:
        """The worst on its times, or on its numbers where no time changed."""
        found = {row.judgement.verdict for row in self.times} - {Verdict.SAME}
        found = found or {row.judgement.verdict for row in self._deciding} or {Verdict.SAME}
        return min(found, key=list(Verdict).index)

    @property
    def _deciding(self) -> Sequence[Row]:
        """Its numbers that decide; where none does, all that explain."""
        return [row for row in self.numbers if row.decides] or self.numbers


def mean(rows: Iterable[Row]) -> float | None:
    """Geometric mean of head over base; None of no rows, or where a ratio is 0 or infinite."""
    ratios = [row.judgement.ratio for row in rows]
    return geometric_mean(ratios) if ratios and all(0 < each < math.inf for each in ratios) else None


def groups(comparison: Comparison, at_least: float = 0.0) -> list[Group]:
    """What changed by kernel and flags.

    Groups whose times changed come first, slower ones before others, then by the size of the change. Then those of
    which only counted or compiled numbers changed, alike for all flags where flags do not matter. Machine code of other
    architectures than the machine's comes last.
    Smaller relative changes than `at_least` do not count here, which changes no verdict.
    """
    here, elsewhere = defaultdict[_Key, list[Row]](list), defaultdict[_Key, list[Row]](list)
    for row in comparison.rows:
        other = None not in (row.arch, comparison.arch) and row.arch != comparison.arch
        (elsewhere if other else here)[row.kernel, row.flags].append(row)
    timed, exact, others = [], [], []
    for key, rows in here.items():
        times, numbers = (tuple(row for row in rows if (row.kind == TIMED) is which) for which in (True, False))
        if changed(times, at_least):  # with all that is known beside them
            evidence = (*moved(numbers), *differences(numbers, at_least), *machine_code(rows))
            timed.append(Group(*key, times, changed(numbers, at_least), evidence))
            continue
        for kind in EXACT.values():  # apart: flags change what is compiled, and not what is counted
            of_kind = [row for row in numbers if row.kind == kind]
            if found := changed(of_kind, at_least):
                exact.append(Group(*key, times, found, (*moved(of_kind), *differences(of_kind, at_least))))
    for key, rows in elsewhere.items():
        if found := changed(rows, at_least):
            others.append(Group(*key, (), found, tuple(differences(rows, at_least, named=True)), elsewhere=True))
    # What is counted is alike for all flags: what stands beside a time of the kernel is told.
    told = {(group.kernel, each) for group in timed for each in group.evidence}
    exact = [
        group
        for group in exact
        if group.numbers[0].kind != EXACT["track_counted"]
        or not told.issuperset((group.kernel, each) for each in group.evidence)
    ]
    merged = (_merged(each, {*here, *elsewhere}) for each in (exact, others))
    return [group for each in (timed, *merged) for group in sorted(each, key=_worst)]


def _worst(group: Group) -> tuple[int, float, str, bool, str]:
    """Sort key: by verdict, then by size, of times alone."""
    size = 0.0 if group.ratio is None else abs(math.log(group.ratio))
    return list(Verdict).index(group.verdict), -size, group.kernel, group.flags != ANY_FLAGS, group.flags


def _merged(found: Iterable[Group], known: Set[_Key]) -> Iterator[Group]:
    """One group for several that differ in their flags alone."""
    alike: dict[tuple[str, tuple[Difference, ...]], list[Group]] = defaultdict(list)
    for group in found:
        alike[group.kernel, group.evidence].append(group)
    for (kernel, evidence), each in alike.items():
        flags = sorted({group.flags for group in each})
        every = len(flags) > 1 and {*flags} == {flags for name, flags in known if name == kernel and flags}
        times = {row.name: row for group in each for row in group.times}
        numbers = tuple(row for group in each for row in group.numbers)
        text = ANY_FLAGS if every else ", ".join(flags)
        yield Group(kernel, text, tuple(times.values()), numbers, evidence, each[0].elsewhere)
