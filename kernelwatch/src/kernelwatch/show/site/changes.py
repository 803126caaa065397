"""The review's verdicts on every measured commit, folded by kernel and flags: what Overview and its neighbours show."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kernelwatch import suite
from kernelwatch.kernel import Launch
from kernelwatch.review import consecutive
from kernelwatch.review.comparison import Comparison
from kernelwatch.review.groups import Group, groups, mean
from kernelwatch.review.noise import noise
from kernelwatch.review.rows import Failure, Row
from kernelwatch.review.verdict import MORE, Verdict, percent
from kernelwatch.show import text
from kernelwatch.show.report import configurations
from kernelwatch.show.site import commits, kept
from kernelwatch.store.cubins import Cubins
from kernelwatch.store.results import TIMED, History

#: The relative change from which on something is listed; verdicts do not depend on it.
AT_LEAST = 0.01

#: What is counted of a group's configurations.
COUNTS = ("slower", "faster", "undecided", "more", "fewer", "acknowledged", "noted", "broken", "failed", "repaired")

#: Verdicts on a time that is another one.
_JUDGED = (Verdict.SLOWER, Verdict.FASTER)
_CHANGES = (*_JUDGED, Verdict.ACKNOWLEDGED)


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
    beside = [history.compiler, Cubins(history.folder, history.compiler).archs, str(noise(history))]

    def measured(commit: str) -> consecutive.Measured:
        made: consecutive.Measured = reviews.of([commit], "states", lambda: consecutive.measured(history, commit))
        return made

    for step in consecutive.steps(history, measured):
        shared = [[*where, sorted(names)] for where, names in step.shared.items()]
        every = [step.head, step.previous, *(base for base, _ in step.shared)]
        yield reviews.of(every, [*beside, step.new, shared], functools.partial(_change, history, repo, step))


def _change(history: History, repo: Any, step: consecutive.Step) -> dict[str, Any]:
    told = [note for comparison in step.comparisons for note in comparison.notes]
    folded = _folded(step.comparisons)
    # git is asked only where something changed: a history has many commits that changed nothing.
    bases = {folded["base"], *(group["base"] for group in folded["groups"])} if folded["groups"] else ()
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
        return {"base": None, "arch": None, "groups": [], "kernels": {}, "judged": 0}
    bases = {row.name: comparison.base.commit for comparison in comparisons for row in comparison.rows}
    failing = [_failing(each, one.base.commit) for one in comparisons for each in one.failures]
    every = [*bases.values(), *(one["base"] for one in failing)]
    rows = sorted((row for comparison in comparisons for row in comparison.rows), key=Row.badness)
    whole = dataclasses.replace(comparisons[0], rows=rows)
    found = groups(whole, AT_LEAST)
    return {
        "base": Counter(every).most_common(1)[0][0] if every else None,
        "arch": whole.arch,
        "groups": [*failing, *(_group(group, bases) for group in found)],
        "kernels": _kernels(rows, [group for group in found if not group.elsewhere], failing),
        "judged": sum(row.kind == TIMED for row in rows),
    }


def _group(group: Group, bases: dict[str, str]) -> dict[str, Any]:
    changed = [row for row in group.times if row.judgement.verdict in _CHANGES] or [*group.numbers] or [*group.times]
    largest = max(changed, key=lambda row: (row.judgement.verdict in MORE, row.size))
    timed, every = largest.kind == TIMED, (*group.times, *group.numbers)
    means = [mean(row for row in group.times if row.judgement.verdict is each) for each in _JUDGED]
    told = ", ".join(f"{group.counts[word]} {word}" for word in COUNTS[3:] if group.counts.get(word))
    values = [text.quantity(value, largest.unit) for value in (largest.base, largest.head)]
    # The machine code first.
    evidence = sorted(group.evidence, key=lambda each: not each.change.startswith("machine code"))
    return {
        "kernel": group.kernel,
        "flags": group.flags,
        **_counted(group.counts),
        "timed": timed,
        "means": ", ".join(percent(ratio) for ratio in means if ratio),
        "configurations": configurations(group) if timed else told,
        "cost": _cost(group.times if timed else group.numbers),
        "elsewhere": group.elsewhere,
        "verified": all(row.verified for row in every),
        "accepted": sorted({row.judgement.reason for row in group.times or group.numbers if _is_accepted(row)}),
        "evidence": [[str(each._replace(archs=())), list(each.archs)] for each in evidence],
        "base": bases[largest.name],
        "largest": f"{largest.place}: {' → '.join(values)}",
        "of": {"benchmark": largest.benchmark, "params": dict(largest.params)},
    }


def _failing(failure: Failure, base: str) -> dict[str, Any]:
    """What fails of a kernel for one reason, as a group is told; it comes before all that became worse."""
    word, first = failure.verdict.value.lower(), failure.lones[0]
    return {
        "kernel": failure.kernel,
        "flags": "",
        **_counted({word: len(failure.lones)}),
        "timed": False,
        "means": "",
        "configurations": f"{len(failure.lones)} {word}",
        "cost": 0.0 if failure.verdict is Verdict.REPAIRED else math.log(10),
        "elsewhere": False,
        "verified": suite.verified(first.benchmark, first.params),
        "accepted": [],
        "evidence": [[failure.reason, []]],
        "base": base,
        "largest": "",
        "of": {"benchmark": first.benchmark, "params": dict(first.params)},
    }


def _counted(counts: Mapping[str, int]) -> dict[str, Any]:
    """What is counted, and one word for it: what fails, or else that on times, where they changed."""
    own = {name: counts.get(name, 0) for name in COUNTS}
    if fails := next((word for word in ("broken", "failed") if own[word]), None):
        return {**own, "verdict": fails}
    for worse, better in (("slower", "faster"), ("more", "fewer")):
        if own[worse] or own[better]:
            return {**own, "verdict": "mixed" if own[worse] and own[better] else worse if own[worse] else better}
    words = ("undecided", "repaired", "acknowledged", "noted")
    return {**own, "verdict": next((word for word in words if own[word]), "same")}


def _is_accepted(row: Row) -> bool:
    return row.judgement.verdict is Verdict.ACKNOWLEDGED


def _cost(rows: Sequence[Row]) -> float:
    """How much the rows that became worse add to the mean of all: what regressions are sorted by. At most 10 a row."""
    worse = (row for row in rows if row.judgement.verdict in (Verdict.SLOWER, Verdict.TRADE))
    return sum(min(row.size, math.log(10)) for row in worse) / len(rows) if rows else 0.0


def _kernels(
    rows: Iterable[Row], found: Iterable[Group], failing: Iterable[Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """The state of each kernel: how many of its configurations changed or fail, and the mean of its times."""
    every: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        every[row.kernel].append(row)
    changed: dict[str, Counter[str]] = defaultdict(Counter)
    for kernel, counts in (*((one.kernel, one.counts) for one in found), *((one["kernel"], one) for one in failing)):
        every[kernel]  # what fails everywhere has no row
        changed[kernel].update({name: counts.get(name, 0) for name in COUNTS})
    return {
        kernel: {
            **_counted(changed[kernel]),
            "verified": all(row.verified for row in of_it),
            "times": sum(row.kind == TIMED for row in of_it),
            "ratio": mean(row for row in of_it if row.kind == TIMED),
        }
        for kernel, of_it in every.items()
    }


def _cubins(cubins: Cubins, base: str, head: str) -> list[dict[str, Any]]:
    """Of each kernel and architecture, how many cubins differ between two commits, of how many that both have."""
    counted: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for arch in cubins.archs:
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
