"""The changes of each measured commit by the review's rules, grouped by kernel and flags, for Overview and Commits."""

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from kernelwatch.review.commit_review import Review
from kernelwatch.review.groups import MIN_LISTED_CHANGE, ChangeGroup, group_rows
from kernelwatch.review.pairing import ONLY_BASE
from kernelwatch.review.rows import Failure, Row
from kernelwatch.review.verdict import CHANGED_TIMES, RISES, Verdict, format_percent
from kernelwatch.show import text
from kernelwatch.show.report import format_counts
from kernelwatch.show.site import commits, configurations
from kernelwatch.show.site.compared import WORSE, list_compared, name_count, pack_compared
from kernelwatch.store.points import Point
from kernelwatch.store.results import History
from kernelwatch.suite import launch_facts
from kernelwatch.suite.benchmark_names import TIMED, classify_benchmark
from kernelwatch.workflow.steps import HistoryStep, MeasuredValues, find_step, review_step

#: Fields of a group with its numbers of configurations.
COUNTS = ("slower", "faster", "undecided", "rose", "fell", "acknowledged", "noted", "broken", "failed", "repaired")

#: The same fields in the order of their weight. The first that is not 0 is a group's verdict, unless that is "mixed".
_BY_WEIGHT = ("broken", "failed", "slower", "faster", "rose", "fell", "undecided", "repaired", "acknowledged", "noted")

#: Maximum number of rows of a picture. Maximum `size` of a group, the logarithm of a ratio, for sorting.
_MAX_ROWS, _MAX_SIZE = 12, math.log(10)

#: Fields that describe changes, for a group of failures.
_NO_TIMES = {
    "flags": "", "timed": False, "times": 0, "mean": "", "elsewhere": False, "accepted": [], "largest": "", "most": "",
    "at": "", "ratio": None, "kernel_times": 0,
}  # fmt: skip


def describe_change(
    history: History, head: str, load_measured: Callable[[str], MeasuredValues], repository: Path, root: Path
) -> dict[str, Any] | None:
    """Return the changes of a commit against its measured ancestors, and the commits and source lines between.

    Return None if no ancestor was measured. `load_measured` returns the values of a commit.
    """
    full_step = find_step(history, head, load_measured)
    if full_step is None:
        return None
    # The ancestor with which the commit shares most configurations.
    base, _ = max(full_step.shared, key=lambda pair: len(full_step.shared[pair]), default=(None, None))
    reviews, problems = review_step(history, _reduce_step(full_step, load_measured), root)
    rows = [row for review in reviews for row in review.rows]
    groups = [{**group, "machine": history.machine} for group in _describe_groups(reviews)]
    # Two versions of a generator of PTX are two compilers: such configurations have values, but are no pairs.
    unpaired = {configuration.name for review in reviews for configuration in review.unpaired[ONLY_BASE]}
    return {
        "machine": history.machine,
        "head": head,
        "base": base,
        "new": full_step.new,
        "timed": sum(classify_benchmark(name) == TIMED for names in full_step.shared.values() for name in names),
        "notes": list(dict.fromkeys((*problems, *(note for review in reviews for note in review.notes)))),
        **_describe_source(repository, base, head, groups),
        "groups": groups,
        "compared": pack_compared(history, list_compared(rows, groups)),
        "compared_kernels": _list_kernels(history, set().union(*full_step.shared.values()) - unpaired),
    }


def _reduce_step(step: HistoryStep, load_measured: Callable[[str], MeasuredValues]) -> HistoryStep:
    """Return a step with only the configurations that a review must judge."""
    head_values = load_measured(step.head)
    selected = {
        (base, environment): select_configurations(names, load_measured(base)[environment], head_values[environment])
        for (base, environment), names in step.shared.items()
    }
    return dataclasses.replace(step, shared={pair: names for pair, names in selected.items() if names})


def _describe_source(
    repository: Path, base: str | None, head: str, groups: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the changed lines since `base`, and the commits since the base of each group; both empty without groups.

    So git runs only for commits with changes, and most commits have none.
    """
    if not groups or base is None:
        return {"source": [], "between": {}}
    bases = sorted({base, *(group["base"] for group in groups)})
    return {
        "source": commits.find_changed_lines(repository, base, head, {group["kernel"] for group in groups}),
        "between": {ancestor: commits.describe_range(repository, ancestor, head) for ancestor in bases},
    }


def _list_kernels(history: History, names: Iterable[str]) -> list[str]:
    """Return the kernels of configurations; the benchmark instead of a kernel that the suite does not have."""
    found = (_find_kernels(history, name.partition("(")[0]).get(name) for name in names)
    return sorted({kernel for kernel in found if kernel is not None})


@cache
def _find_kernels(history: History, benchmark: str) -> dict[str, str]:
    """Return configuration -> kernel, or the benchmark if the suite has no such kernel."""
    combinations = configurations.list_combinations(history.find_axes(benchmark))
    launches = ((params, launch_facts.find_launch(benchmark, params)) for params in combinations)
    return {
        Point(params, None).format_name(benchmark): launch.kernel if launch else benchmark
        for params, launch in launches
    }


def select_configurations(
    names: Iterable[str], base: Mapping[str, float | None], head: Mapping[str, float | None]
) -> set[str]:
    """Return the configurations among `names` that a review must judge, from their values at base and at head.

    If a time changed by at least MIN_LISTED_CHANGE, all times are judged, because Holm's correction depends on their
    number. If another number changed, all numbers of its benchmark class are judged, because some explain others. A
    missing value counts as a change.
    """
    by_class: dict[str, list[str]] = defaultdict(list)
    for name in names:
        by_class[TIMED if classify_benchmark(name) == TIMED else name.partition("(")[0].rpartition(".")[0]].append(name)
    return {
        name
        for benchmark_class, class_names in by_class.items()
        if any(
            _is_different(base[name], head[name], MIN_LISTED_CHANGE if benchmark_class == TIMED else 0.0)
            for name in class_names
        )
        for name in class_names
    }


def _is_different(base: float | None, head: float | None, threshold: float) -> bool:
    if base is None or head is None:
        return True
    return base != head and max(base, head) >= (1 + threshold) * min(base, head)


def _describe_groups(reviews: Sequence[Review]) -> list[dict[str, Any]]:
    if not reviews:
        return []
    bases = {row.name: review.base.commit for review in reviews for row in review.rows}
    failing = [_describe_failure(failure, review.base.commit) for review in reviews for failure in review.failures]
    rows = sorted((row for review in reviews for row in review.rows), key=Row.sort_key)
    times = Counter(row.kernel for row in rows if row.kind == TIMED)
    groups = group_rows(rows, reviews[0].arch, MIN_LISTED_CHANGE)
    return [*failing, *({**_describe_group(group, bases), "kernel_times": times[group.kernel]} for group in groups)]


def _describe_group(group: ChangeGroup, bases: dict[str, str]) -> dict[str, Any]:
    """Return a group's fields for the templates. `largest`, `most`, `at` and `of` describe its worst configuration.

    `bases` maps a configuration to the commit with which it is compared.
    """
    changed_times = [row for row in group.times if row.judgement.verdict in CHANGED_TIMES]
    changed = changed_times or [*group.numbers] or [*group.times]
    largest = max(changed, key=rank_row)
    timed, rows = largest.kind == TIMED, (*group.times, *group.numbers)
    counts = ", ".join(f"{group.counts[word]} {word}" for word in COUNTS[3:] if group.counts.get(word))
    accepted = [row for row in group.times or group.numbers if row.judgement.verdict is Verdict.ACKNOWLEDGED]
    evidence = sorted(group.evidence, key=lambda fact: not fact.startswith("machine code"))
    base_value, head_value = (text.format_quantity(side, largest.unit) for side in (largest.base, largest.head))
    return {
        "kernel": group.kernel,
        "flags": group.flags,
        **summarize_counts(group.counts),
        "timed": timed,
        "times": len(group.times),
        "mean": format_percent(group.ratio) if group.ratio else "",
        "configurations": format_counts(group) if timed else counts,
        "size": min(largest.size, _MAX_SIZE),
        "elsewhere": group.elsewhere,
        "verified": all(row.verified for row in rows),
        "accepted": sorted({row.judgement.reason for row in accepted}),
        "evidence": evidence,
        "base": bases[largest.name],
        "largest": f"{largest.parameters_text}: {base_value} → {head_value}",
        "most": f"{largest.metric} {base_value} → {head_value}",
        "at": " ".join(filter(None, [largest.parameters_text, text.shorten_flags(largest.flags)])),
        "ratio": largest.judgement.ratio if timed else None,
        "of": {"benchmark": largest.benchmark, "params": dict(largest.params)},
        "picture": _describe_picture(largest, group.times if timed else group.numbers),
    }


def rank_row(row: Row) -> tuple[bool, bool, float]:
    """Return a key that is largest for a group's worst row.

    Rises that decide rank first, then noted rises, then all others. Within a rank, larger changes have larger keys.
    """
    verdict = row.judgement.verdict
    return verdict in WORSE, verdict in RISES, row.size


def _describe_picture(largest: Row, rows: Iterable[Row]) -> dict[str, Any]:
    """Return the bars of a group's picture: one for each value of the axis with most values.

    The other axes are those of `largest`, the worst configuration. Only the last _MAX_ROWS bars are returned, which may
    lack `largest`.
    """
    alike = [row for row in rows if row.benchmark == largest.benchmark and row.flags == largest.flags]
    axis = max(largest.params, key=lambda name: len({row.params[name] for row in alike}), default="")
    other_axes = [name for name in largest.params if name != axis]
    shown = [row for row in alike if all(row.params[name] == largest.params[name] for name in other_axes)]
    has_rates = all(row.rates for row in shown)
    picture_rows = []
    for row in sorted(shown, key=lambda row: (_count_elements(row.params.get(axis, "")), row.name)):
        base, head = (rate / 1e9 for rate in row.rates) if has_rates and row.rates else (row.base, row.head)
        picture_rows.append(
            {"place": row.params.get(axis, ""), "before": base, "after": head, "verdict": name_count(row)}
        )
    fixed = ", ".join(value for name in other_axes if name != "kernel" and (value := largest.params[name]))
    unit = "GB/s" if has_rates else f"{largest.metric}{f' ({largest.unit})' if largest.unit else ''}"
    return {"axis": axis, "fixed": fixed, "unit": unit, "rows": picture_rows[-_MAX_ROWS:]}


def _count_elements(size: str) -> float:
    """Return the number of elements of a size such as "256x256"; 0 for other texts."""
    sides = size.split("x")
    return math.prod(map(float, sides)) if all(side.isdecimal() for side in sides) else 0.0


def _describe_failure(failure: Failure, base: str) -> dict[str, Any]:
    word, first = failure.verdict.value.lower(), failure.configurations[0]
    return {
        **_NO_TIMES,
        **summarize_counts({word: len(failure.configurations)}),
        "kernel": failure.kernel,
        "configurations": f"{len(failure.configurations)} {word}",
        "size": 0.0 if failure.verdict is Verdict.REPAIRED else _MAX_SIZE,
        "verified": launch_facts.is_verified(launch_facts.find_definition(first.benchmark, first.params)),
        "evidence": [failure.reason],
        "base": base,
        "of": {"benchmark": first.benchmark, "params": dict(first.params)},
        "picture": {"rows": []},
    }


def summarize_counts(counts: Mapping[str, int]) -> dict[str, Any]:
    """Return a group's numbers of configurations, for all of COUNTS, and its `verdict`."""
    words = [word for word in _BY_WEIGHT if counts.get(word)]
    is_mixed = words[:2] in (["slower", "faster"], ["rose", "fell"])
    verdict = "mixed" if is_mixed else [*words, "same"][0]
    return {**{name: counts.get(name, 0) for name in COUNTS}, "verdict": verdict}
