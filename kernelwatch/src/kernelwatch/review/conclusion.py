"""Which numbers decide, the verdict on a whole comparison, and its exit code; docs/review.md has the rules."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from kernelwatch.review import occupancy
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Reason, Verdict, Why
from kernelwatch.store.results import TIMED

#: What limits how many blocks fit on a multiprocessor: evidence, unless fewer do.
_RESOURCES = ("registers", "shared bytes")

#: Evidence, whatever its size: more of them may be faster.
_EVIDENCE = ("instructions",)

#: Kernel, dtype and flags: machine code, on one architecture.
_Code = tuple[str, str, str]


def weigh(rows: Sequence[Row], arch: str | None, limits: Mapping[str, float] = MappingProxyType({})) -> Iterator[Row]:
    """Yield the rows; of numbers that rose, those that do not decide are NOTED, or a TRADE beside faster times.

    `arch` is that of the GPU that timed: where its times are no faster, what was compiled for others decides. Where
    there are no times, evidence decides beyond `limits`, ratios of head to base by metric.
    """
    times: dict[_Code, Counter[Verdict]] = defaultdict(Counter)
    for row in rows:
        if row.kind == TIMED and row.judgement.verdict is not Verdict.UNDECIDED:
            times[_code(row)][row.judgement.verdict] += 1
    resources = {(_code(row), row.arch, row.metric): row for row in rows if row.metric in _RESOURCES}
    for row in rows:
        if row.kind == TIMED or row.judgement.verdict is not Verdict.SLOWER:
            yield row
            continue
        decides, why = _alone(row, resources, limits)
        found = times[_code(row)]
        told = ", ".join(f"{found[each]} {word}" for each, word in _WORDS.items() if found[each])
        if decides and found[Verdict.FASTER] and not found[Verdict.SLOWER]:
            verdict = Verdict.TRADE
        elif found and row.arch in (None, arch):
            verdict, why = Verdict.NOTED, None
        else:
            verdict = Verdict.SLOWER if decides else Verdict.NOTED
        beside = Reason(Why.TIMES, (told,)) if told else None
        reasons = tuple(each for each in (beside, why) if each is not None)
        yield row.judged(replace(row.judgement, verdict=verdict, reasons=reasons))


def is_evidence(row: Row) -> bool:
    """Whether it is a number that decides nothing by itself, or only by how many blocks fit."""
    return row.metric in (*_RESOURCES, *_EVIDENCE)


_WORDS = {Verdict.SLOWER: "slower", Verdict.FASTER: "faster", Verdict.SAME: "same"}


def _code(row: Row) -> _Code:
    return row.kernel, row.params.get("dtype", ""), row.flags


def _alone(
    row: Row, resources: Mapping[tuple[_Code, str | None, str], Row], limits: Mapping[str, float]
) -> tuple[bool, Reason | None]:
    """Whether a number that rose decides where there are no times, and why."""
    if row.judgement.ratio > limits.get(row.metric, math.inf):
        return True, Reason(Why.BEYOND, (limits[row.metric],))
    if row.metric in _EVIDENCE:
        return False, Reason(Why.INSTRUCTIONS)
    if row.metric not in _RESOURCES:
        return True, None
    launched = occupancy.launched(row.kernel, row.params.get("dtype", ""))
    arch = row.arch or ""
    if launched is None or arch not in occupancy.MULTIPROCESSORS:
        return True, Reason(Why.UNKNOWN_BLOCKS)
    threads, dynamic = launched
    base = {metric: found.base for metric in _RESOURCES if (found := resources.get((_code(row), row.arch, metric)))}

    def fitting(values: Mapping[str, float]) -> int:
        registers, shared = (int(values.get(metric, 0)) for metric in _RESOURCES)
        return occupancy.blocks(arch, threads, registers, shared + dynamic)

    before, after = fitting(base), fitting({**base, row.metric: row.head})
    if after < before:
        return True, Reason(Why.FEWER_BLOCKS, (after, before))
    return False, Reason(Why.AS_MANY_BLOCKS, (after,))


#: Of all times, so many may be undecided and could be slower: two runs of one commit exceed the thresholds so often.
OF_ALL = 1 / 100

#: Of the times of a kernel and its flags, so many: more, and what speaks for the kernel is not enough.
OF_A_KERNEL = 1 / 10

#: What may become worse in a TRADE that passes: nothing, numbers beside faster times, or anything.
TRADES = NONE, NUMBERS, ALL = "none", "numbers", "all"


def conclude(rows: Sequence[Row], failing: Collection[Verdict] = ()) -> Verdict:
    """Return the verdict: that of the worst row, but that few undecided ones do not count, nor what is noted.

    `failing` has the verdicts on configurations that fail in head, in both, or in base.
    """
    found = {row.judgement.verdict for row in rows} | {*failing}
    rules = {
        Verdict.BROKEN: Verdict.BROKEN in found,
        Verdict.TRADE: Verdict.SLOWER in found and is_better(rows),
        Verdict.SLOWER: Verdict.SLOWER in found,
        Verdict.FAILED: Verdict.FAILED in found,
        Verdict.UNDECIDED: not found or any(doubts(rows)),
    }
    left = (each for each in (Verdict.TRADE, Verdict.ACKNOWLEDGED, Verdict.REPAIRED) if each in found)
    better = Verdict.FASTER if is_better(rows) else Verdict.SAME
    return next((verdict for verdict, holds in rules.items() if holds), next(left, better))


def is_better(rows: Sequence[Row]) -> bool:
    """Whether a time is faster; where nothing was timed, whether a number fell that is more than evidence."""
    times = [row for row in rows if row.kind == TIMED]
    deciding = times or (row for row in rows if not is_evidence(row))
    return any(row.judgement.verdict is Verdict.FASTER for row in deciding)


def exit_code(found: Verdict, rows: Sequence[Row], trade: str) -> int:
    """Return 0: it passes; 1: it became worse; 2: it could not be judged. `trade` is one of TRADES."""
    if found is Verdict.TRADE:
        worse = ALL if any(row.judgement.verdict is Verdict.SLOWER for row in rows) else NUMBERS
        return int(TRADES.index(worse) > TRADES.index(trade))
    return {Verdict.BROKEN: 1, Verdict.SLOWER: 1, Verdict.FAILED: 2, Verdict.UNDECIDED: 2}.get(found, 0)


def doubts(rows: Sequence[Row]) -> Iterator[str]:
    """Why undecided times could turn the verdict, a sentence each; none if they could not."""
    times = [row for row in rows if row.kind == TIMED]
    kernels: dict[str, list[Row]] = defaultdict(list)
    for row in times:
        kernels[f"{row.kernel} {row.flags}".strip()].append(row)
    for whose, of_it, most in (
        ("all", times, OF_ALL),
        *((name, of_it, OF_A_KERNEL) for name, of_it in kernels.items()),
    ):
        count = sum(row.judgement.could_be_slower for row in of_it)
        if count > most * len(of_it):
            yield f"{count} of {len(of_it)} times of {whose} are undecided and could be slower"
