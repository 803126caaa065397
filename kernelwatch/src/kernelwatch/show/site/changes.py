"""The review's verdicts on every measured commit, folded by kernel and flags: what Overview and Commits show."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from kernelwatch.review.compare import Review
from kernelwatch.review.groups import AT_LEAST, ChangeGroup, group_rows
from kernelwatch.review.rows import Failure, Row
from kernelwatch.review.verdict import RISES, Verdict, format_percent
from kernelwatch.show import text
from kernelwatch.show.report import format_counts
from kernelwatch.show.site import commits, kept
from kernelwatch.store.results import History
from kernelwatch.suite import registry
from kernelwatch.suite.benchmark_names import TIMED, classify_benchmark
from kernelwatch.workflow.steps import MeasuredValues, find_step, list_measured, review_step

#: What is counted of a group's configurations.
COUNTS = ("slower", "faster", "undecided", "rose", "fell", "acknowledged", "noted", "broken", "failed", "repaired")

#: Rows of a picture, and the largest change that orders groups, as a logarithm.
_ROWS, _LARGEST = 12, math.log(10)

#: What a group says of times, where it has none.
_UNTIMED = {
    "flags": "", "timed": False, "times": 0, "mean": "", "elsewhere": False, "accepted": [], "largest": "", "at": "",
    "ratio": None, "kernel_times": 0,
}  # fmt: skip


def changes(history: History, repo: Any, root: Path) -> list[dict[str, Any]]:
    """Return what changed with each commit of a machine, oldest first, as JSON; git tells the rest of it."""
    known = cache(partial(list_measured, history))
    found = kept.reviews(history, lambda head: _change(history, head, known, repo, root), root)
    return [each for each in found if each is not None]


def _change(history: History, head: str, known: Callable[[str], MeasuredValues], repo: Any, root: Path) -> Any:
    whole = find_step(history, head, known)
    if whole is None:
        return None
    shared = {
        (base, environment): changed_names(names, known(base)[environment], known(head)[environment])
        for (base, environment), names in whole.shared.items()
    }
    step = dataclasses.replace(whole, shared={where: names for where, names in shared.items() if names})
    base = max(whole.shared, key=lambda where: len(whole.shared[where]))[0] if whole.shared else None
    reviews, problems = review_step(history, step, root)
    found = [{**group, "machine": history.machine} for group in _groups(reviews)]
    # git is asked only where something changed: a history has many commits that changed nothing.
    bases = {base, *(group["base"] for group in found)} if found else set()
    kernels = {group["kernel"] for group in found}
    return {
        "machine": history.machine,
        "head": head,
        "base": base,
        "new": step.new,
        "timed": sum(classify_benchmark(name) == TIMED for names in whole.shared.values() for name in names),
        "notes": list(dict.fromkeys((*problems, *(note for review in reviews for note in review.notes)))),
        "source": commits.changed_lines(repo, base, head, kernels) if base and found else [],
        "between": {each: commits.between(repo, each, head) for each in sorted(bases)},
        "groups": found,
    }


def changed_names(names: Iterable[str], base: Mapping[str, float | None], head: Mapping[str, float | None]) -> set[str]:
    """Return the configurations that a review of two commits must look at, of some that both have.

    These are all times if one of them moved by what is listed, as how sure each must be depends on how many there are;
    and of numbers of which one is another all of its class, as some of them say what others mean.
    """
    by_class: dict[str, list[str]] = defaultdict(list)
    for name in names:
        by_class[TIMED if classify_benchmark(name) == TIMED else name.partition("(")[0].rpartition(".")[0]].append(name)
    return {
        name
        for where, each in by_class.items()
        if any(_is_other(base[name], head[name], AT_LEAST if where == TIMED else 0.0) for name in each)
        for name in each
    }


def _is_other(one: float | None, other: float | None, at_least: float) -> bool:
    if one is None or other is None:
        return True
    return one != other and max(one, other) >= (1 + at_least) * min(one, other)


def _groups(reviews: Sequence[Review]) -> list[dict[str, Any]]:
    """What fails, and then what changed by kernel and flags."""
    if not reviews:
        return []
    bases = {row.name: review.base.commit for review in reviews for row in review.rows}
    failing = [_failing(each, one.base.commit) for one in reviews for each in one.failures]
    rows = sorted((row for review in reviews for row in review.rows), key=Row.sort_key)
    times = Counter(row.kernel for row in rows if row.kind == TIMED)
    groups = group_rows(rows, reviews[0].arch, AT_LEAST)
    return [*failing, *({**_group(group, bases), "kernel_times": times[group.kernel]} for group in groups)]


def _group(group: ChangeGroup, bases: dict[str, str]) -> dict[str, Any]:
    changed = [
        row for row in group.times if row.judgement.verdict in (Verdict.SLOWER, Verdict.FASTER, Verdict.ACKNOWLEDGED)
    ]
    changed = changed or [*group.numbers] or [*group.times]
    largest = max(changed, key=lambda row: (row.judgement.verdict in RISES, row.size))
    timed, every = largest.kind == TIMED, (*group.times, *group.numbers)
    told = ", ".join(f"{group.counts[word]} {word}" for word in COUNTS[3:] if group.counts.get(word))
    accepted = [row for row in group.times or group.numbers if row.judgement.verdict is Verdict.ACKNOWLEDGED]
    evidence = sorted(group.evidence, key=lambda each: not each.startswith("machine code"))
    before, after = (text.format_quantity(side, largest.unit) for side in (largest.base, largest.head))
    return {
        "kernel": group.kernel,
        "flags": group.flags,
        **counted(group.counts),
        "timed": timed,
        "times": len(group.times),
        "mean": format_percent(group.ratio) if group.ratio else "",
        "configurations": format_counts(group) if timed else told,
        "size": min(largest.size, _LARGEST),
        "elsewhere": group.elsewhere,
        "verified": all(row.verified for row in every),
        "accepted": sorted({row.judgement.reason for row in accepted}),
        "evidence": evidence,
        "base": bases[largest.name],
        "largest": f"{largest.place}: {before} → {after}",
        "at": " ".join(filter(None, [largest.place, text.shorten_flags(largest.flags)])),
        "ratio": largest.judgement.ratio if timed else None,
        "of": {"benchmark": largest.benchmark, "params": dict(largest.params)},
        "picture": _picture(largest, group.times if timed else group.numbers),
    }


def _picture(largest: Row, rows: Iterable[Row]) -> dict[str, Any]:
    """Return before and after of the worst configuration and of those that differ from it along one axis alone."""
    alike = [row for row in rows if row.benchmark == largest.benchmark and row.flags == largest.flags]
    values = {axis: {row.params[axis] for row in alike} for axis in largest.params}
    axis = max(values, key=lambda each: len(values[each]), default="")
    shown = [row for row in alike if all(row.params[each] == largest.params[each] for each in values if each != axis)]
    rates = all(row.rates for row in shown)
    found = []
    for row in sorted(shown, key=lambda row: (_elements(row.params.get(axis, "")), row.name)):
        before, after = (each / 1e9 for each in row.rates) if rates and row.rates else (row.base, row.head)
        verdict = text.name_verdict(row.judgement.verdict, row.kind).lower()
        found.append({"place": row.params.get(axis, ""), "before": before, "after": after, "verdict": verdict})
    fixed = ", ".join(value for each, value in largest.params.items() if each not in (axis, "kernel") and value)
    unit = "GB/s" if rates else f"{largest.metric}{f' ({largest.unit})' if largest.unit else ''}"
    return {"axis": axis, "fixed": fixed, "unit": unit, "rows": found[-_ROWS:]}


def _elements(place: str) -> float:
    """How many elements a size has, such as "256x256"; 0 of what is none."""
    sides = place.split("x")
    return math.prod(map(float, sides)) if all(side.isdecimal() for side in sides) else 0.0


def _failing(failure: Failure, base: str) -> dict[str, Any]:
    """What fails of a kernel for one reason, as a group is told; it comes before all that became worse."""
    word, first = failure.verdict.value.lower(), failure.lones[0]
    return {
        **_UNTIMED,
        **counted({word: len(failure.lones)}),
        "kernel": failure.kernel,
        "configurations": f"{len(failure.lones)} {word}",
        "size": 0.0 if failure.verdict is Verdict.REPAIRED else _LARGEST,
        "verified": registry.is_verified(first.benchmark, first.params),
        "evidence": [failure.reason],
        "base": base,
        "of": {"benchmark": first.benchmark, "params": dict(first.params)},
        "picture": {"rows": []},
    }


def counted(counts: Mapping[str, int]) -> dict[str, Any]:
    """Return what is counted, and one word for it: what fails, or else that on times, where they changed."""
    own = {name: counts.get(name, 0) for name in COUNTS}
    for worse, better in (("broken", ""), ("failed", ""), ("slower", "faster"), ("rose", "fell")):
        if own[worse] or own.get(better):
            both = own[worse] and own.get(better)
            return {**own, "verdict": "mixed" if both else worse if own[worse] else better}
    words = ("undecided", "repaired", "acknowledged", "noted")
    return {**own, "verdict": next((word for word in words if own[word]), "same")}
