"""The review's verdicts on every measured commit, folded by kernel and flags: what Overview and its neighbours show."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import geometric_mean
from typing import Any

from kernelwatch.kernel import Launch
from kernelwatch.review import consecutive
from kernelwatch.review.comparison import Comparison
from kernelwatch.review.groups import Difference, Group, groups
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import MORE, Verdict
from kernelwatch.show import text
from kernelwatch.show.site import commits, kept
from kernelwatch.store.cubins import Cubins
from kernelwatch.store.results import TIMED, History

#: The relative change from which on something is listed; verdicts do not depend on it.
AT_LEAST = 0.01

#: What is counted of a group's configurations.
COUNTS = ("slower", "faster", "undecided", "more", "fewer", "acknowledged", "noted")

#: Verdicts on a time that is another one.
_CHANGES = (Verdict.SLOWER, Verdict.ACKNOWLEDGED, Verdict.FASTER)


def changes(history: History, repo: Any, reviews: kept.Kept) -> Iterator[dict[str, Any]]:
    """Yield what changed with each commit of a machine, oldest first; what was worked out before is not again.

    Parameters
    ----------
    history : History
        The stored results of the machine.
    repo : asv.plugins.git.Git
        The repository.
    reviews : Kept
        The reviews of the machine.
    """
    beside = [history.compiler, Cubins(history.folder, history.compiler).archs()]

    def measured(commit: str) -> set[str]:
        return set(reviews.of([commit], "measured", lambda: sorted(consecutive.measured(history, commit))))

    for task in consecutive.tasks(history.commits(), measured):
        shared = {base: sorted(names) for base, names in task.shared.items()}
        every = [task.head, task.previous, *shared]
        yield reviews.of(every, [*beside, task.new, shared], functools.partial(_change, history, repo, task))


def _change(history: History, repo: Any, task: consecutive.Task) -> dict[str, Any]:
    step = consecutive.step(history, task)
    told = [note for comparison in step.comparisons for note in comparison.notes]
    folded = _folded(step.comparisons)
    bases = {folded["base"] or step.previous, *(group["base"] for group in folded["groups"])}
    return {
        "machine": history.machine,
        "head": step.head,
        "previous": step.previous,
        "new": step.new,
        "notes": list(dict.fromkeys((*step.notes, *told))),
        "cubins": _cubins(Cubins(history.folder), step.previous, step.head),
        "lines": commits.lines(repo, step.head, sorted({group["kernel"] for group in folded["groups"]})),
        "between": {base: commits.between(repo, base, step.head) for base in sorted(bases)},
        **folded,
    }


def _folded(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """What changed by kernel and flags, and the state of each kernel."""
    if not comparisons:
        return {"base": None, "arch": None, "groups": [], "kernels": {}, "broken": [], "judged": 0}
    bases = {row.name: comparison.base.commit for comparison in comparisons for row in comparison.rows}
    rows = sorted((row for comparison in comparisons for row in comparison.rows), key=Row.badness)
    whole = dataclasses.replace(comparisons[0], rows=rows)
    found = groups(whole, AT_LEAST)
    return {
        "base": Counter(bases.values()).most_common(1)[0][0] if bases else None,
        "arch": whole.arch,
        "groups": [_group(group, bases) for group in found],
        "kernels": _kernels(rows, [group for group in found if not group.elsewhere]),
        "broken": [lone.name for lone in comparisons[0].broken],
        "judged": sum(row.kind == TIMED for row in rows),
    }


def _group(group: Group, bases: dict[str, str]) -> dict[str, Any]:
    changed = [row for row in group.times if row.judgement.verdict in _CHANGES] or [*group.numbers] or [*group.times]
    largest = max(changed, key=lambda row: (row.judgement.verdict in MORE, row.size))
    timed = largest.kind == TIMED
    return {
        "kernel": group.kernel,
        "flags": group.flags,
        "verdict": _verdict(**{name: group.counts[name] for name in COUNTS}),
        "ratio": group.ratio if timed else None,
        "slowdown": _mean(group.times, Verdict.SLOWER),
        "speedup": _mean(group.times, Verdict.FASTER),
        "cost": _cost(group.times if timed else group.numbers),
        **{name: group.counts[name] for name in COUNTS},
        "elsewhere": group.elsewhere,
        "verified": all(row.verified for row in (*group.times, *group.numbers)),
        "accepted": sorted({row.judgement.reason for row in group.times or group.numbers if _is_accepted(row)}),
        "times": len(group.times) if timed else 0,
        "evidence": list(map(_evidence, group.evidence)),
        "base": bases[largest.name],
        "largest": {
            "benchmark": largest.benchmark,
            "params": dict(largest.params),
            "base": largest.base,
            "head": largest.head,
            "unit": largest.unit,
            "ratio": largest.judgement.ratio,
        },
    }


def _evidence(found: Difference) -> dict[str, Any]:
    name, figure = text.name_and_figure(found)
    return {"name": name, "figure": figure, "rises": found.rises, "archs": list(found.archs)}


def _is_accepted(row: Row) -> bool:
    return row.judgement.verdict is Verdict.ACKNOWLEDGED


def _verdict(slower: int, faster: int, undecided: int, more: int, fewer: int, acknowledged: int, noted: int) -> str:
    """One word for a group: that on its times, where they changed."""
    for worse, better, words in ((slower, faster, ("slower", "faster")), (more, fewer, ("more", "fewer"))):
        if worse or better:
            return "mixed" if worse and better else words[0] if worse else words[1]
    rest = {"undecided": undecided, "acknowledged": acknowledged, "noted": noted}
    return next((word for word, count in rest.items() if count), "same")


def _mean(rows: Iterable[Row], verdict: Verdict) -> float | None:
    """Geometric mean of head over base of the rows with a verdict."""
    ratios = [row.judgement.ratio for row in rows if row.judgement.verdict is verdict]
    return geometric_mean(ratios) if ratios and all(0 < ratio < math.inf for ratio in ratios) else None


def _cost(rows: Sequence[Row]) -> float:
    """How much the rows that became worse add to the mean of all: what regressions are sorted by. At most 10 a row."""
    worse = (row for row in rows if row.judgement.verdict in (Verdict.SLOWER, Verdict.TRADE))
    return sum(min(row.size, math.log(10)) for row in worse) / len(rows) if rows else 0.0


def _kernels(rows: Iterable[Row], found: Iterable[Group]) -> dict[str, dict[str, Any]]:
    """The state of each measured kernel: how many of its configurations changed, and the mean of its times."""
    every: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        every[row.kernel].append(row)
    changed: dict[str, Counter[str]] = defaultdict(Counter)
    for group in found:
        for name in COUNTS:
            changed[group.kernel][name] += group.counts[name]
    shown = {}
    for kernel, of_it in every.items():
        ratios = [row.judgement.ratio for row in of_it if row.kind == TIMED and 0 < row.judgement.ratio < math.inf]
        counts = {name: changed[kernel][name] for name in COUNTS}
        shown[kernel] = {
            **counts,
            "verdict": _verdict(**counts),
            "verified": all(row.verified for row in of_it),
            "times": sum(row.kind == TIMED for row in of_it),
            "ratio": geometric_mean(ratios) if ratios else None,
        }
    return shown


def _cubins(cubins: Cubins, base: str, head: str) -> list[dict[str, Any]]:
    """Of each kernel and architecture, how many cubins differ between two commits, of how many that both have."""
    counted: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for arch in cubins.archs():
        for name, runs in cubins.runs([base, head], arch).items():
            hashes = dict(runs)
            if hashes.get(0) and hashes.get(1, "both"):
                tally = counted[Launch.parse(name).kernel, arch]
                tally[0] += 1 in hashes
                tally[1] += 1
    return [
        {"kernel": kernel, "arch": arch, "changed": changed, "of": every}
        for (kernel, arch), (changed, every) in sorted(counted.items())
    ]
