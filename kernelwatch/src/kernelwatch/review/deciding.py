"""Which numbers decide: times where there are times, else transactions, spills, and occupancy; docs/review.md."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from kernelwatch.review import occupancy
from kernelwatch.review.reasons import Reason, Why
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict
from kernelwatch.store.results import TIMED

#: What limits how many blocks fit on a multiprocessor: evidence, unless fewer do.
_RESOURCES = ("registers", "shared bytes")

#: Evidence, whatever its size: more of them may be faster.
_EVIDENCE = ("instructions",)

#: Kernel, dtype and flags: machine code, on one architecture.
_Code = tuple[str, str, str]


def weigh(rows: Sequence[Row], arch: str | None, limits: Mapping[str, float] = MappingProxyType({})) -> Iterator[Row]:
    """Yield the rows; of numbers that rose, those that do not decide are NOTED, or a TRADE beside faster times.

    Parameters
    ----------
    rows : sequence of Row
        All of a comparison.
    arch : str or None
        The architecture of the GPU that timed. Where its times are no faster, what was compiled for others decides.
    limits : mapping of str to float, optional
        The ratio of head to base, by metric, beyond which evidence decides where there are no times.
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
