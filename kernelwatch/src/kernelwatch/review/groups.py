"""The changes of a review, grouped by kernel and flags, with mean ratios, counts and evidence."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean, geometric_mean

from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict, format_percent, relative_change
from kernelwatch.suite.benchmark_names import EXACT, TIMED, Kind
from kernelwatch.suite.metrics import RATIOS

#: Bytes of a sector, as in `ptxcount.counting.transactions.SECTOR`, whose import would be slow.
_SECTOR = 32

#: Smallest relative change that reports list by default.
MIN_LISTED_CHANGE = 0.01

#: `ChangeGroup.flags` of a group that has all sets of flags of its kernel, at least two.
ANY_FLAGS = "any"

#: Verdicts on times that `ChangeGroup.counts` counts.
_JUDGED = (Verdict.SLOWER, Verdict.FASTER, Verdict.SAME, Verdict.UNDECIDED)

#: Displayed names of ratios whose names sound like totals.
_NAMES = {
    name.replace("_", " "): f"{name.replace('_', ' ')} per request"
    for name in RATIOS
    if name.endswith(("_sectors", "_lines"))
}


@dataclass(frozen=True)
class _Difference:
    """A change of numbers as text; `direction` is 1 if all rose, -1 if all fell, 0 if some rose and some fell."""

    text: str
    direction: int


@dataclass(frozen=True)
class ChangeGroup:
    """Changes in the configurations of a kernel with one set of flags, or with several sets that changed alike.

    `flags` are sets of nvcc's flags, separated by ", "; ANY_FLAGS if they are all sets of the kernel, at least two;
    empty if the benchmark has none. `times` has all times, also unchanged ones; none if `elsewhere`. `numbers` has the
    changed numbers; if `elsewhere`, those of other architectures. `evidence` describes the changes of numbers and
    machine code, for example "registers -10 %", "5 more instructions (1 of 2) on sm_90", "machine code changed".
    Numbers that changed in the same direction as the times come first.
    """

    kernel: str
    flags: str
    times: tuple[Row, ...]
    numbers: tuple[Row, ...]
    evidence: tuple[str, ...]
    elsewhere: bool = False

    @property
    def ratio(self) -> float | None:
        """Geometric mean of head / base over all its times; None without times, or if a ratio is 0 or infinite."""
        return _average_ratios(self.times)

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of times by verdict, and of exact numbers that rose, fell, or are noted or acknowledged.

        If some numbers decide, only these count as risen or fallen. In a group with times, "acknowledged" counts times.
        """
        times, deciding, numbers = (
            Counter(row.judgement.verdict for row in rows) for rows in (self.times, self._deciding, self.numbers)
        )
        return {
            **{verdict.value.lower(): times[verdict] for verdict in _JUDGED},
            "rose": deciding[Verdict.SLOWER] + deciding[Verdict.TRADE],
            "fell": deciding[Verdict.FASTER],
            "noted": numbers[Verdict.NOTED],
            "acknowledged": (times or numbers)[Verdict.ACKNOWLEDGED],
        }

    @property
    def verdict(self) -> Verdict:
        """The worst verdict on the group's times; if no time changed, on its numbers: those that decide, if any do."""
        rows = select_changed(self.times) or self._deciding
        return min((row.judgement.verdict for row in rows), key=lambda verdict: verdict.rank, default=Verdict.SAME)

    @property
    def sort_key(self) -> tuple[int, float, str, bool, str]:
        """Sort key, worst first: by verdict, then by the size of the change of times."""
        size = 0.0 if self.ratio is None else abs(math.log(self.ratio))
        return self.verdict.rank, -size, self.kernel, self.flags != ANY_FLAGS, self.flags

    @property
    def _deciding(self) -> Sequence[Row]:
        return [row for row in self.numbers if row.decides] or self.numbers


def select_changed(rows: Iterable[Row], at_least: float = 0.0) -> tuple[Row, ...]:
    """Return the rows with a verdict other than SAME and a relative change of at least `at_least`."""
    differing = (row for row in rows if row.judgement.verdict is not Verdict.SAME)
    return tuple(row for row in differing if relative_change(row.judgement.ratio) >= at_least)


def group_rows(rows: Iterable[Row], arch: str | None, at_least: float = 0.0) -> list[ChangeGroup]:
    """Return the changes grouped by kernel and flags; `arch` is the architecture of the machine's GPU.

    Groups with changed times come first, the slower ones before the others. Groups with only counted or compiled
    changes follow. Machine code of other architectures comes last; if `arch` is None, there is none. Groups without
    changed times are merged if flags make no difference. They are left out if they only repeat the counts of a group
    with changed times. Relative changes below `at_least` are left out.
    """
    by_group: dict[tuple[str, str, bool], list[Row]] = defaultdict(list)
    for row in rows:
        elsewhere = row.arch is not None and arch is not None and row.arch != arch
        by_group[row.kernel, row.flags, elsewhere].append(row)
    timed, exact, foreign = list[ChangeGroup](), list[ChangeGroup](), list[ChangeGroup]()
    for (kernel, flags, elsewhere), members in by_group.items():
        times = tuple(row for row in members if row.kind == TIMED)
        numbers = tuple(row for row in members if row.kind != TIMED)
        if elsewhere:
            evidence = _join_texts(_list_differences(members, at_least, named=True))
            foreign.append(ChangeGroup(kernel, flags, (), select_changed(members, at_least), evidence, elsewhere=True))
        elif select_changed(times, at_least):
            differences = _describe_numbers(numbers, at_least, _average_ratios(times))
            evidence = (*differences, *_describe_machine_code(members))
            timed.append(ChangeGroup(kernel, flags, times, select_changed(numbers, at_least), evidence))
        else:  # counts separately: they are equal for all flags, compiled numbers are not
            exact += [
                ChangeGroup(kernel, flags, times, select_changed(alike, at_least), _describe_numbers(alike, at_least))
                for alike in ([row for row in numbers if row.kind == kind] for kind in EXACT)
            ]
    kernels_and_flags = {(kernel, flags) for kernel, flags, _ in by_group}
    merged = (_merge_alike(groups, kernels_and_flags) for groups in (_drop_repeated(exact, timed), foreign))
    return [group for groups in (timed, *merged) for group in sorted(groups, key=lambda group: group.sort_key)]


def _describe_numbers(numbers: Sequence[Row], at_least: float, time_ratio: float | None = None) -> tuple[str, ...]:
    """Return the evidence of numbers; those that changed opposite to the times come last."""
    return _join_texts((*_describe_traffic(numbers), *_list_differences(numbers, at_least)), time_ratio)


def _drop_repeated(groups: Iterable[ChangeGroup], timed: Iterable[ChangeGroup]) -> Iterator[ChangeGroup]:
    """Yield the groups, except those of counts whose evidence groups with changed times repeat."""
    timed_evidence = {(group.kernel, text) for group in timed for text in group.evidence}
    for group in groups:
        is_counted = all(row.kind == Kind.COUNTED.value for row in group.numbers)
        if not (is_counted and timed_evidence.issuperset((group.kernel, text) for text in group.evidence)):
            yield group


def _merge_alike(groups: Iterable[ChangeGroup], kernels_and_flags: Set[tuple[str, str]]) -> Iterator[ChangeGroup]:
    """Merge groups of a kernel with equal evidence, and join their flags; all flags of a kernel become ANY_FLAGS.

    Groups without changed numbers are left out.
    """
    alike: dict[tuple[str, tuple[str, ...]], list[ChangeGroup]] = defaultdict(list)
    for group in (group for group in groups if group.numbers):
        alike[group.kernel, group.evidence].append(group)
    for (kernel, _), members in alike.items():
        merged_flags = sorted({group.flags for group in members})
        kernel_flags = sorted(flags for name, flags in kernels_and_flags if name == kernel and flags)
        text = ANY_FLAGS if len(merged_flags) > 1 and merged_flags == kernel_flags else ", ".join(merged_flags)
        times = {row.name: row for group in members for row in group.times}
        numbers = tuple(row for group in members for row in group.numbers)
        yield replace(members[0], flags=text, times=tuple(times.values()), numbers=numbers)


def _average_ratios(times: Iterable[Row]) -> float | None:
    ratios = [row.judgement.ratio for row in times]
    return geometric_mean(ratios) if ratios and all(0 < ratio < math.inf for ratio in ratios) else None


def _join_texts(differences: Iterable[_Difference], time_ratio: float | None = None) -> tuple[str, ...]:
    """Return the texts of differences; those opposite to the change of the times come last."""

    def is_opposed(difference: _Difference) -> bool:
        return time_ratio is not None and (time_ratio - 1) * difference.direction < 0

    return tuple(difference.text for difference in sorted(differences, key=is_opposed))


def _list_differences(rows: Iterable[Row], at_least: float, *, named: bool = False) -> Iterator[_Difference]:
    """Yield the changes of exact numbers: those that decide before those that explain, then the largest first.

    A text names architectures if another architecture changed differently, or if `named`.
    """
    metrics: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        metrics[row.metric][row.arch or ""].append(row)
    for metric, by_arch in sorted(metrics.items(), key=_sort_metric):
        archs_by_difference: dict[_Difference, list[str]] = defaultdict(list)
        for arch, arch_rows in sorted(by_arch.items()):
            if differing := select_changed(arch_rows, at_least):
                text = _format_change(metric, differing) + _format_part(len(differing), len(arch_rows))
                directions = {1 if row.head > row.base else -1 for row in differing}
                archs_by_difference[_Difference(text, sum(directions))].append(arch)
        for difference, archs in archs_by_difference.items():
            if named or len(archs) < len(by_arch):
                # Join with "and", because a comma separates two differences.
                yield replace(difference, text=f"{difference.text} on {' and '.join(archs)}")
            else:
                yield difference


def _sort_metric(item: tuple[str, dict[str, list[Row]]]) -> tuple[bool, float]:
    metric_rows = [row for rows in item[1].values() for row in rows]
    decides = any(row.decides and row.base != row.head for row in metric_rows)
    return not decides, -max(row.size for row in metric_rows)


def _format_part(count: int, total: int, noun: str = "") -> str:
    return "" if count == total else f" ({count} of {total}{noun})"


def _format_change(metric: str, rows: Sequence[Row]) -> str:
    """Format the change of a metric in some rows.

    If all rows changed by the same integer, give this number, as in "2 more registers". If a row changed from or to 0,
    give the means of both commits. Otherwise give the change in per cent.
    """
    metric = _NAMES.get(metric, metric)
    step, *other_steps = {round(row.head - row.base, 6) for row in rows}
    ratios = [row.judgement.ratio for row in rows]
    if not other_steps and step.is_integer() and step:
        noun = metric.removesuffix("s") if abs(step) == 1 else metric
        return f"{abs(step):.0f} {'more' if step > 0 else 'fewer'} {noun}"
    if not all(0 < ratio < math.inf for ratio in ratios):
        base, head = (fmean(getattr(row, side) for row in rows) for side in ("base", "head"))
        return f"{metric} {base:.3g} -> {head:.3g}"
    if min(ratios) < 1 < max(ratios):
        return f"{metric} {format_percent(min(ratios))} to {format_percent(max(ratios))}"
    return f"{metric} {format_percent(geometric_mean(ratios))}"


def _describe_traffic(rows: Iterable[Row]) -> Iterator[_Difference]:
    """Yield one difference: moved bytes over needed bytes, at head and base, of the launches with changed sectors.

    Yield nothing if both ratios print alike, or a ratio is below 1.
    """
    launches: dict[object, list[Row]] = defaultdict(list)
    for row in rows:
        if row.counts_global_sectors and row.useful_bytes:
            launches[row.launch_key].append(row)
    moving = [launch_rows for launch_rows in launches.values() if any(row.base != row.head for row in launch_rows)]
    needed = sum(launch_rows[0].useful_bytes or 0 for launch_rows in moving)
    base, head = (
        _SECTOR * sum(getattr(row, side) for launch_rows in moving for row in launch_rows) for side in ("base", "head")
    )
    if moving and min(base, head) >= needed:
        before, now = (f"{moved / needed:.3g}" for moved in (base, head))
        if before != now:
            yield _Difference(f"moves {now} times what it needs ({before} before)", 1 if head > base else -1)


def _describe_machine_code(rows: Iterable[Row]) -> Iterator[str]:
    recorded = (row for row in rows if row.code_unchanged is not None and row.arch is None)
    unchanged_by_dtype = {row.params.get("dtype"): row.code_unchanged for row in recorded}
    if changed_count := list(unchanged_by_dtype.values()).count(False):
        yield f"machine code changed{_format_part(changed_count, len(unchanged_by_dtype), ' dtypes')}"
    elif unchanged_by_dtype:
        yield "machine code unchanged"
