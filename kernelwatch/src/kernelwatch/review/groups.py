"""The rows of a comparison by kernel and flags: what changed, by how much in the mean, and what changed with it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from kernelwatch.review.comparison import Comparison
from kernelwatch.review.differences import changed, differences, machine_code
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict
from kernelwatch.store.results import EXACT, TIMED

#: Flags of a group that all flag sets of its kernel share.
ANY_FLAGS = "any"

#: A kernel and nvcc's flags.
_Key = tuple[str, str]


@dataclass(frozen=True)
class Group:
    """What changed in the configurations of a kernel with one set of flags, or with several that are alike.

    Parameters
    ----------
    kernel : str
        The kernel.
    flags : str
        nvcc's, several separated by ", "; ANY_FLAGS stands for all that the kernel was compiled with. Empty where a
        benchmark has none.
    times : tuple of Row
        All of its times, unchanged ones too.
    numbers : tuple of Row
        Its counted and compiled numbers that changed.
    evidence : tuple of str
        What changed in them, and in the machine code: "5 more instructions", "registers -10 %", "machine code changed".
    elsewhere : bool
        Whether the numbers are of other architectures than the machine's.
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
        ratios = [row.judgement.ratio for row in self.times]
        return geometric_mean(ratios) if ratios and all(0 < each < math.inf for each in ratios) else None

    @property
    def slower(self) -> int:
        """Times that are SLOW."""
        return self._count(self.times, Verdict.SLOW)

    @property
    def faster(self) -> int:
        """Times that are FAST."""
        return self._count(self.times, Verdict.FAST)

    @property
    def same(self) -> int:
        """Times that are SAME."""
        return self._count(self.times, Verdict.SAME)

    @property
    def undecided(self) -> int:
        """Times that are UNDECIDED."""
        return self._count(self.times, Verdict.UNDECIDED)

    @property
    def more(self) -> int:
        """Counted and compiled numbers that increased and decide, or would beside slower times."""
        return self._count(self.numbers, Verdict.SLOW, Verdict.TRADE)

    @property
    def noted(self) -> int:
        """Counted and compiled numbers that increased and do not decide."""
        return self._count(self.numbers, Verdict.NOTED)

    @property
    def fewer(self) -> int:
        """Counted and compiled numbers that decreased."""
        return self._count(self.numbers, Verdict.FAST)

    @property
    def verdict(self) -> Verdict:
        """The worst on its times, or on its numbers where no time changed."""
        found = {row.judgement.verdict for row in self.times} - {Verdict.SAME}
        found = found or {row.judgement.verdict for row in self.numbers} or {Verdict.SAME}
        return min(found, key=list(Verdict).index)

    @property
    def acknowledged(self) -> int:
        """Times that became slower, or numbers that increased, and were accepted."""
        return self._count(self.times or self.numbers, Verdict.ACKNOWLEDGED)

    @staticmethod
    def _count(rows: Iterable[Row], *verdicts: Verdict) -> int:
        return sum(row.judgement.verdict in verdicts for row in rows)


def groups(comparison: Comparison, at_least: float = 0.0) -> list[Group]:
    """What changed by kernel and flags.

    Groups whose times changed come first, slower ones before others, then by the size of the change. Then those of
    which only counted or compiled numbers changed, alike for all flags where flags do not matter. Machine code of other
    architectures than the machine's comes last.

    Parameters
    ----------
    comparison : Comparison
        The two commits.
    at_least : float
        The relative change from which on a row counts here. It changes no verdict.
    """
    here: dict[_Key, list[Row]] = defaultdict(list)
    elsewhere: dict[_Key, list[Row]] = defaultdict(list)
    for row in comparison.rows:
        other = None not in (row.arch, comparison.arch) and row.arch != comparison.arch
        (elsewhere if other else here)[row.kernel, row.flags].append(row)
    flags_of: dict[str, set[str]] = defaultdict(set)
    for kernel, flags in (*here, *elsewhere):
        flags_of[kernel].add(flags)

    timed = [group for key, rows in here.items() for group in _timed(key, rows, at_least)]
    told = {each for group in timed for each in _said(group)}
    names = {(group.kernel, group.flags) for group in timed}
    exact = [
        group
        for key, rows in here.items()
        for group in (_exact(key, rows, at_least) if key not in names else ())
        # Flags do not change what is counted: what stands beside a time is told.
        if group.numbers[0].kind != EXACT["track_counted"] or not told.issuperset(_said(group))
    ]
    others = [group for key, rows in elsewhere.items() for group in _elsewhere(key, rows, at_least)]
    return [
        *sorted(timed, key=_worst),
        *sorted(_merged(exact, flags_of), key=_worst),
        *sorted(_merged(others, flags_of), key=_worst),
    ]


def _timed(key: _Key, rows: list[Row], at_least: float) -> Iterator[Group]:
    """The group of a kernel some of whose times changed, with all that is known beside them."""
    times, numbers = _times(rows), [row for row in rows if row.kind != TIMED]
    if changed(times, at_least):
        evidence = (*differences(numbers, at_least), *machine_code(rows))
        yield Group(*key, times, changed(numbers, at_least), evidence)


def _exact(key: _Key, rows: list[Row], at_least: float) -> Iterator[Group]:
    """Groups of a kernel only whose numbers changed: the counted ones, and the compiled ones, which flags do change."""
    for kind in EXACT.values():
        numbers = [row for row in rows if row.kind == kind]
        if found := changed(numbers, at_least):
            yield Group(*key, _times(rows), found, tuple(differences(numbers, at_least)))


def _elsewhere(key: _Key, rows: list[Row], at_least: float) -> Iterator[Group]:
    if found := changed(rows, at_least):
        yield Group(*key, (), found, tuple(differences(rows, at_least, named=True)), elsewhere=True)


def _said(group: Group) -> Iterator[tuple[str, str]]:
    """Its evidence, and of which kernel it is."""
    return ((group.kernel, text) for text in group.evidence)


def _times(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(row for row in rows if row.kind == TIMED)


def _worst(group: Group) -> tuple[int, float, str, bool, str]:
    """Sort key: by verdict, then by size, of times alone."""
    size = 0.0 if group.ratio is None else abs(math.log(group.ratio))
    return list(Verdict).index(group.verdict), -size, group.kernel, group.flags != ANY_FLAGS, group.flags


def _merged(found: Sequence[Group], flags_of: dict[str, set[str]]) -> Iterator[Group]:
    """One group for several that differ in their flags alone."""
    alike: dict[tuple[str, tuple[str, ...]], list[Group]] = defaultdict(list)
    for group in found:
        alike[group.kernel, group.evidence].append(group)
    for (kernel, evidence), each in alike.items():
        flags = sorted({group.flags for group in each})
        every = len(flags) > 1 and set(flags) == flags_of[kernel] - {""}
        times = {row.name: row for group in each for row in group.times}
        numbers = tuple(row for group in each for row in group.numbers)
        text = ANY_FLAGS if every else ", ".join(flags)
        yield Group(kernel, text, tuple(times.values()), numbers, evidence, each[0].elsewhere)
