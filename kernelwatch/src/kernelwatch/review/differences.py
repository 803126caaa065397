"""What changed in exact numbers and in the machine code, in a few words: "5 more instructions", "registers -10 %"."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, geometric_mean

from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict, change, percent


def changed(rows: Iterable[Row], at_least: float) -> tuple[Row, ...]:
    """The rows that changed by a relative change or more."""
    return tuple(
        row for row in rows if row.judgement.verdict is not Verdict.SAME and change(row.judgement.ratio) >= at_least
    )


def differences(rows: Sequence[Row], at_least: float, *, named: bool = False) -> Iterator[str]:
    """What changed in exact numbers, a text a metric; of architectures where they differ, or are to be named."""
    metrics: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        metrics[row.metric].append(row)
    for metric, all_of_it in sorted(metrics.items(), key=_largest):
        by_arch: dict[str | None, list[Row]] = defaultdict(list)
        for row in all_of_it:
            by_arch[row.arch].append(row)
        texts: dict[str, list[str]] = defaultdict(list)
        for arch, each in sorted(by_arch.items(), key=lambda item: item[0] or ""):
            if found := changed(each, at_least):
                part = "" if len(found) == len(each) else f" ({len(found)} of {len(each)})"
                texts[_difference(metric, found) + part].append(arch or "")
        for text, archs in texts.items():
            alike = len(archs) == len(by_arch) and not named
            yield text if alike else f"{text} on {', '.join(archs)}"


def _largest(metric: tuple[str, list[Row]]) -> float:
    """Sort key: the metric with the largest change first."""
    return -max(row.size for row in metric[1])


def _difference(metric: str, changed: Sequence[Row]) -> str:
    """By how much a metric changed: as a number if it is the same whole one everywhere, else as a mean in per cent."""
    steps = {round(row.head - row.base, 6) for row in changed}
    ratios = [row.judgement.ratio for row in changed]
    if len(steps) == 1 and (step := steps.pop()).is_integer() and step:
        named = metric.removesuffix("s") if abs(step) == 1 else metric
        return f"{abs(step):.0f} {'more' if step > 0 else 'fewer'} {named}"
    if not all(0 < ratio < math.inf for ratio in ratios):
        return f"{metric} {fmean(row.base for row in changed):.3g} -> {fmean(row.head for row in changed):.3g}"
    if min(ratios) < 1 < max(ratios):
        return f"{metric} {percent(min(ratios))} to {percent(max(ratios))}"
    return f"{metric} {percent(geometric_mean(ratios))}"


def machine_code(rows: Iterable[Row]) -> Iterator[str]:
    """Whether the machine code of times and counted numbers changed, for some dtypes; nothing where no run said."""
    said = (row for row in rows if row.code_unchanged is not None and row.arch is None)
    known = {row.params.get("dtype"): row.code_unchanged for row in said}
    states = Counter(known.values())
    if states[False]:
        yield "machine code changed" + (f" ({states[False]} of {len(known)})" if states[True] else "")
    elif states[True]:
        yield "machine code unchanged"
