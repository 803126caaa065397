"""Which numbers decide, the verdict on a whole comparison, and its exit code; docs/review.md has the rules."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from kernelwatch.review import occupancy
from kernelwatch.review.occupancy import Launched
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Reason, Verdict, Why
from kernelwatch.store.points import TIMED
from kernelwatch.suite.metrics import ARCH, RATIOS, TOTALS
from ptxcount.util.architectures import MULTIPROCESSORS

#: What limits how many blocks fit on a multiprocessor: evidence, unless fewer do.
_RESOURCES = ("registers", "shared bytes")

#: The frame in local memory, which the counted architecture's compiler may need less of than the PTX has.
_FRAME = "stack bytes"

#: What a counted number may be, by the name that `Row.metric` has.
_RATIOS, _TOTALS = (frozenset(name.replace("_", " ") for name in each) for each in (RATIOS, TOTALS))

#: What ptxas makes of neighbouring accesses to shared memory. Where only the PTX has them apart, it stays as it was.
_MERGED = "merged wavefronts"

#: The numbers of other blocks' shared memory.
_OF_CLUSTERS = ("cluster sectors", "cluster requests")

#: The number of constant memory that decides.
_ADDRESSES = "constant addresses"

#: What else both commits have of a row's launch and machine code, by metric.
_Beside = Mapping[object, Mapping[str, Row]]


def weigh(
    rows: Sequence[Row],
    arch: str | None,
    limits: Mapping[str, float] = MappingProxyType({}),
    launched: Callable[[Row], Launched] = lambda _: (None, None),
) -> Iterator[Row]:
    """Yield the rows; of numbers that rose, those that do not decide are NOTED, or a TRADE beside faster times.

    `arch` is that of the GPU that timed: where its times are no faster, what was compiled for others decides. Where
    there are no times, evidence decides beyond `limits`, ratios of head to base by metric. `launched` returns the
    blocks with which base and head launch a compiled kernel.
    """
    times: dict[object, Counter[Verdict]] = defaultdict(Counter)
    beside: defaultdict[object, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        if row.kind != TIMED:
            beside[row.launch if row.arch is None else (row.code, row.arch)][row.metric] = row
        elif row.judgement.verdict is not Verdict.UNDECIDED:
            times[row.code][row.judgement.verdict] += 1
    for row in rows:
        if row.kind == TIMED or not row.judgement.is_change:
            yield row
            continue
        decides, why = _alone(row, beside, limits, launched)
        found = times[row.code]
        told = ", ".join(f"{found[each]} {each.value.lower()}" for each in _TOLD if found[each])
        verdict = row.judgement.verdict
        if verdict is Verdict.FASTER:
            against = decides and found[Verdict.SLOWER] and not found[Verdict.FASTER]
            told, why = told if against else "", None
        elif decides and found[Verdict.FASTER] and not found[Verdict.SLOWER]:
            verdict = Verdict.TRADE
        elif found and row.arch in (None, arch):
            verdict, why = Verdict.NOTED, None
        else:
            verdict = Verdict.SLOWER if decides else Verdict.NOTED
        reasons = (Reason(Why.TIMES, (told,)) if told else None, why)
        judged = replace(row.judgement, verdict=verdict, reasons=tuple(each for each in reasons if each is not None))
        yield replace(row, judgement=judged, decides=decides)


#: Of times, in which order they are told beside a number.
_TOLD = (Verdict.SLOWER, Verdict.FASTER, Verdict.SAME)


def _alone(
    row: Row, beside: _Beside, limits: Mapping[str, float], launched: Callable[[Row], Launched]
) -> tuple[bool, Reason | None]:
    """Whether a number that changed decides where there are no times, and why."""
    if row.judgement.ratio > limits.get(row.metric, math.inf):
        return True, Reason(Why.BEYOND, (limits[row.metric],))
    if row.metric in _RESOURCES:
        return _by_fit(row, beside[row.code, row.arch], launched(row))
    counted = beside[row.launch] if row.arch is None else {}
    moved = [(each.base, each.head) for each in counted.values() if each.is_moved]
    frame = beside.get((row.code, ARCH), {}).get(_FRAME)
    fewer_moved = any(head < base for base, head in moved) and all(head <= base for base, head in moved)
    evidence = {
        Why.INSTRUCTIONS: row.metric == "instructions",
        Why.TOTALS: row.metric in _RATIOS and not _TOTALS.isdisjoint(counted),
        Why.SECTORS: (row.metric == "requests" and any(base != head for base, head in moved))
        or (row.metric == "cluster requests" and "cluster sectors" in counted),
        Why.MERGED: row.metric == "wavefronts" and _MERGED in counted,
        Why.FIRST_SHARED: row.metric in ("wavefronts", _MERGED, *_OF_CLUSTERS) and not row.base and fewer_moved,
        Why.ADDRESSES: row.metric == "constant requests" and _ADDRESSES in counted,
        Why.FIRST_UNIFORM: row.metric == _ADDRESSES
        and not row.base
        and row.head == _head(counted, "constant requests")
        and fewer_moved,
        Why.IN_REGISTERS: row.metric.startswith("local ") and frame is not None and frame.head == 0,
    }
    why = next((Reason(why) for why, holds in evidence.items() if holds), None)
    return why is None, why


def _head(rows: Mapping[str, Row], metric: str) -> float | None:
    return rows[metric].head if metric in rows else None


def _by_fit(row: Row, resources: Mapping[str, Row], launched: Launched) -> tuple[bool, Reason]:
    """Whether it is for this number that fewer threads fit on a multiprocessor if it rose, or more if it fell."""

    def fitting(*metrics: str) -> tuple[int, ...]:
        """As many in base and in head as some numbers allow."""
        found = []
        for block, side in zip(launched, ("base", "head"), strict=True):
            threads, dynamic = block or (0, 0)
            values = {name: int(getattr(resources[name], side)) for name in resources.keys() & metrics}
            registers, shared = (values.get(name, 0) for name in _RESOURCES)
            shared += dynamic * (_RESOURCES[1] in metrics)
            found.append(threads * occupancy.blocks(row.arch or "", threads, registers, shared))
        return tuple(found)

    if None in launched or row.arch not in MULTIPROCESSORS:
        return True, Reason(Why.UNKNOWN_FIT)
    pairs = fitting(row.metric), fitting(*_RESOURCES)
    before, after = pairs[1]
    if all(new < old if row.head > row.base else new > old for old, new in pairs):
        return True, Reason(Why.OTHER_FIT, (after, before))
    return False, Reason(Why.SAME_FIT, (after, before))


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
    deciding = times or (row for row in rows if row.decides)
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
