"""The rows of a review by kernel and flags: what changed, by how much in the mean, and what changed with it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean, geometric_mean

from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict, change, percent
from kernelwatch.store.points import EXACT, TIMED
from kernelwatch.suite.metrics import RATIOS

#: Bytes that a sector has, `ptxcount.counting.transactions.SECTOR`, without what counts them.
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


@dataclass(frozen=True)
class Group:
    """What changed in the configurations of a kernel with one set of flags, or with several that are alike.

    `flags` are nvcc's, several separated by ", "; ANY_FLAGS stands for all that the kernel was compiled with. They are
    empty where a benchmark has none. `times` are all of its times, unchanged ones too; `numbers` those that changed, of
    other architectures than the machine's if `elsewhere`; `evidence` what changed in them, and in the machine code, for
    example "registers -10 %", "5 more instructions (1 of 2) on sm_90", "machine code changed".
    """

    kernel: str
    flags: str
    times: tuple[Row, ...]
    numbers: tuple[Row, ...]
    evidence: tuple[str, ...]
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
        rows = changed(self.times) or self._deciding
        return min((row.judgement.verdict for row in rows), key=list(Verdict).index, default=Verdict.SAME)

    @property
    def badness(self) -> tuple[int, float, str, bool, str]:
        """Sort key, worst first: by verdict, then by size, of times alone."""
        size = 0.0 if self.ratio is None else abs(math.log(self.ratio))
        return list(Verdict).index(self.verdict), -size, self.kernel, self.flags != ANY_FLAGS, self.flags

    @property
    def _deciding(self) -> Sequence[Row]:
        """Its numbers that decide; where none does, all that explain."""
        return [row for row in self.numbers if row.decides] or self.numbers


def mean(rows: Iterable[Row]) -> float | None:
    """Geometric mean of head over base; None of no rows, or where a ratio is 0 or infinite."""
    ratios = [row.judgement.ratio for row in rows]
    return geometric_mean(ratios) if ratios and all(0 < each < math.inf for each in ratios) else None


def changed(rows: Iterable[Row], at_least: float = 0.0) -> tuple[Row, ...]:
    """The rows that changed by a relative change or more."""
    others = (row for row in rows if row.judgement.verdict is not Verdict.SAME)
    return tuple(row for row in others if change(row.judgement.ratio) >= at_least)


def group_rows(rows: Iterable[Row], arch: str | None, at_least: float = 0.0) -> list[Group]:
    """Return what changed by kernel and flags, on a machine whose GPU has an architecture.

    Groups whose times changed come first, slower ones before others, then by the size of the change. Then those of
    which only counted or compiled numbers changed, alike for all flags where flags do not matter. Machine code of other
    architectures than the machine's comes last.
    Smaller relative changes than `at_least` do not count here, which changes no verdict.
    """
    every: dict[tuple[str, str, bool], list[Row]] = defaultdict(list)
    for row in rows:
        elsewhere = None not in (row.arch, arch) and row.arch != arch
        every[row.kernel, row.flags, elsewhere].append(row)
    timed, exact, others = list[Group](), list[Group](), list[Group]()
    for (kernel, flags, elsewhere), own in every.items():
        times, numbers = (tuple(row for row in own if (row.kind == TIMED) is which) for which in (True, False))
        if elsewhere and changed(own, at_least):
            found = tuple(_differences(own, at_least, named=True))
            others.append(Group(kernel, flags, (), changed(own, at_least), found, elsewhere=True))
        elif changed(times, at_least):  # with all that is known beside them
            found = (*_moved(numbers), *_differences(numbers, at_least), *_machine_code(own))
            timed.append(Group(kernel, flags, times, changed(numbers, at_least), found))
        elif not elsewhere:
            for kind in EXACT.values():  # apart: flags change what is compiled, and not what is counted
                numbers = tuple(row for row in own if row.kind == kind)
                found = (*_moved(numbers), *_differences(numbers, at_least))
                exact.append(Group(kernel, flags, times, changed(numbers, at_least), found))
    # What is counted is alike for all flags: what stands beside a time of the kernel is told.
    told = {(group.kernel, each) for group in timed for each in group.evidence}
    exact = [
        group
        for group in exact
        if any(row.kind != EXACT["track_counted"] for row in group.numbers)
        or not told.issuperset((group.kernel, each) for each in group.evidence)
    ]
    known = {(kernel, flags) for kernel, flags, _ in every}
    merged = (_merged(some, known) for some in (exact, others))
    return [group for some in (timed, *merged) for group in sorted(some, key=lambda group: group.badness)]


def _merged(found: Iterable[Group], known: Set[tuple[str, str]]) -> Iterator[Group]:
    """One group for several that differ in their flags alone."""
    alike: dict[tuple[str, tuple[str, ...]], list[Group]] = defaultdict(list)
    for group in found:
        alike[group.kernel, group.evidence].append(group)
    for (kernel, _), each in alike.items():
        flags = sorted({group.flags for group in each})
        every = len(flags) > 1 and {*flags} == {flags for name, flags in known if name == kernel and flags}
        times = {row.name: row for group in each for row in group.times}
        numbers = tuple(row for group in each for row in group.numbers)
        text = ANY_FLAGS if every else ", ".join(flags)
        yield replace(each[0], flags=text, times=tuple(times.values()), numbers=numbers)


def _differences(rows: Iterable[Row], at_least: float, *, named: bool = False) -> Iterator[str]:
    """What changed in exact numbers: what decides, then what explains, the largest of each first.

    It is told of architectures where they differ, or are to be named.
    """
    metrics: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        metrics[row.metric][row.arch or ""].append(row)
    for metric, by_arch in sorted(metrics.items(), key=_largest):
        archs: dict[str, list[str]] = defaultdict(list)
        for arch, each in sorted(by_arch.items()):
            if found := changed(each, at_least):
                archs[_amount(metric, found) + _part(len(found), len(each))].append(arch)
        for amount, on in archs.items():
            # A comma is between two differences.
            yield f"{amount} on {' and '.join(on)}" if named or len(on) < len(by_arch) else amount


def _largest(metric: tuple[str, dict[str, list[Row]]]) -> tuple[bool, float]:
    """Sort key: the metrics that decide, and of these the one with the largest change, first."""
    every = [row for rows in metric[1].values() for row in rows]
    decides = any(row.decides and row.base != row.head for row in every)
    return not decides, -max(row.size for row in every)


def _part(some: int, every: int) -> str:
    return "" if some == every else f" ({some} of {every})"


def _amount(metric: str, rows: Sequence[Row]) -> str:
    """By how much a number changed: everywhere by the same whole number, from nothing or to nothing, or in per cent."""
    metric = _NAMES.get(metric, metric)
    step, *others = {round(row.head - row.base, 6) for row in rows}
    ratios = [row.judgement.ratio for row in rows]
    if not others and step.is_integer() and step:
        named = metric.removesuffix("s") if abs(step) == 1 else metric
        return f"{abs(step):.0f} {'more' if step > 0 else 'fewer'} {named}"
    if not all(0 < ratio < math.inf for ratio in ratios):
        base, head = (fmean(getattr(row, side) for row in rows) for side in ("base", "head"))
        return f"{metric} {base:.3g} -> {head:.3g}"
    if min(ratios) < 1 < max(ratios):
        return f"{metric} {percent(min(ratios))} to {percent(max(ratios))}"
    return f"{metric} {percent(geometric_mean(ratios))}"


def _moved(rows: Iterable[Row]) -> Iterator[str]:
    """How many times the bytes that it needs a kernel moves, of the launches together that move another number.

    Nothing where it moves fewer: what it is declared to read or write, it does not.
    """
    launches: dict[object, list[Row]] = defaultdict(list)
    for row in rows:
        if row.is_moved and row.useful_bytes:
            launches[row.launch].append(row)
    found = [each for each in launches.values() if any(row.base != row.head for row in each)]
    needed = sum(each[0].useful_bytes or 0 for each in found)
    base, head = (_SECTOR * sum(getattr(row, side) for each in found for row in each) for side in ("base", "head"))
    if found and min(base, head) >= needed:
        yield f"moves {head / needed:.3g} times what it needs ({base / needed:.3g} before)"


def _machine_code(rows: Iterable[Row]) -> Iterator[str]:
    """Whether the machine code of times and counted numbers changed, for some dtypes; nothing where no run said."""
    said = (row for row in rows if row.code_unchanged is not None and row.arch is None)
    known = {row.params.get("dtype"): row.code_unchanged for row in said}
    other = list(known.values()).count(False)
    if known:
        yield f"machine code changed{_part(other, len(known))}" if other else "machine code unchanged"
