"""How verdicts, numbers and names are written in the reports that people read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from kernelwatch.review import releases as compilers
from kernelwatch.review.comparison import Comparison
from kernelwatch.review.conclusion import Conclusion, doubts
from kernelwatch.review.differences import Difference, Form, changed
from kernelwatch.review.groups import Group
from kernelwatch.review.rows import Lone, Row
from kernelwatch.review.verdict import MORE, Verdict, percent, signed
from kernelwatch.store.results import EXACT, TIMED

#: Seconds from which on a unit is used, and its name.
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (0.0, "ns"))

#: A longer name is cut: names come from results, and none may fill a report.
_LONGEST_NAME = 240

#: What a reader calls a verdict on times, and on counted or compiled numbers.
_TIMED_WORDS = {Verdict.SLOW: "SLOWER", Verdict.FAST: "FASTER"}
_EXACT_WORDS = {Verdict.SLOW: "MORE", Verdict.FAST: "FEWER"}

HEADERS = ["verdict", "configuration", "base", "head", "ratio", "99 % interval", "copies", "GB/s", "% of peak", "why"]
ALIGN = ("left", "left", "right", "right", "right", "right", "right", "right", "right", "left")

GROUP_HEADERS = ["kernel", "flags", "time", "why (compiled, counted)", "configurations"]
GROUP_ALIGN = ("left", "left", "right", "left", "left")


def plain(name: object, longest: int = _LONGEST_NAME) -> str:
    """A name in one line that no terminal takes for a command."""
    shown = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in str(name))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def quantity(value: float, unit: str) -> str:
    """A value with a unit if that is of time; others are named by their benchmarks."""
    if unit != "seconds":
        return f"{value:.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:.4g}"
    least, name = next((row for row in _SECONDS if abs(value) >= row[0]), _SECONDS[-1])
    return f"{value / (least or 1e-9):.4g} {name}"


def word(verdict: Verdict, kind: str) -> str:
    """A verdict as a reader says it: SLOWER and FASTER are times, MORE and FEWER numbers."""
    return (_TIMED_WORDS if kind == TIMED else _EXACT_WORDS).get(verdict, verdict.value)


def cells(row: Row, peak: float | None) -> list[str]:
    """A row of the table under HEADERS; % of peak is head's."""
    judged = row.judgement
    rates = row.rates
    return [
        word(judged.verdict, row.kind),
        plain(row.name),
        quantity(row.base, row.unit),
        quantity(row.head, row.unit),
        "∞" if math.isinf(judged.ratio) else f"{judged.ratio:.3f}",
        "" if judged.interval is None else "{:.3f} to {:.3f}".format(*judged.interval),
        "" if row.copies is None else f"{row.copies.base:.3f} → {row.copies.head:.3f}",
        "" if rates is None else f"{rates[0] / 1e9:.0f} → {rates[1] / 1e9:.0f}",
        "" if rates is None or not peak else f"{100 * rates[1] / peak:.1f}",
        plain(judged.reason),
    ]


def group_cells(group: Group) -> list[str]:
    """A row of the table under GROUP_HEADERS."""
    return [
        plain(group.kernel),
        short_flags(group.flags),
        "" if group.ratio is None else percent(group.ratio),
        plain(", ".join(map(difference, group.evidence))),
        _configurations(group),
    ]


def difference(found: Difference) -> str:
    """What changed: "registers -10 %", "5 more instructions (1 of 2) on sm_90", "machine code changed"."""
    on = f" on {', '.join(found.archs)}" if found.archs else ""
    return " ".join(filter(None, name_and_figure(found))) + on


def name_and_figure(found: Difference) -> tuple[str, str]:
    """What changed, and by how much; the figure is empty where the name says it: "5 more instructions"."""
    part = "" if found.part is None else " ({} of {})".format(*found.part)
    first, *others = found.figures or (0.0,)
    if found.form is Form.STEP:
        named = found.metric.removesuffix("s") if abs(first) == 1 else found.metric
        return f"{abs(first):.0f} {'more' if first > 0 else 'fewer'} {named}{part}", ""
    if found.form in (Form.UNCHANGED, Form.OTHER):
        return f"{found.metric} {'changed' if found.form is Form.OTHER else 'unchanged'}{part}", ""
    if found.form is Form.VALUES:
        return found.metric, f"{first:.3g} -> {others[0]:.3g}{part}"
    return found.metric, " to ".join(map(signed, found.figures)) + part


def short_flags(flags: str) -> str:
    """The flags of nvcc without the words that pass them on."""
    return plain(flags).replace("-Xptxas ", "")


def _configurations(group: Group) -> str:
    """How many of its times are what, or of its numbers where it has none."""
    if not group.times:
        return _listed({name: group.counts[name] for name in ("more", "fewer", "acknowledged")})
    counts = {name: group.counts[name] for name in ("slower", "faster", "undecided", "acknowledged")}
    found = {name: count for name, count in counts.items() if count}
    if len(found) != 1:
        return _listed(found) or f"{group.counts['same']} same"
    ((name, count),) = found.items()
    return f"{count} of {len(group.times)} {name}"


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def sides(comparison: Comparison) -> list[str]:
    """What was given for base and for head, with the commits' hashes where that does not begin so."""
    if comparison.is_of_compilers:
        given = [f"nvcc of CUDA {each.given}" for each in (comparison.base, comparison.head)]
        return [given[0], f"{given[1]} at {comparison.head.commit[:8]}"]
    return [
        each.given[:8] if each.commit.startswith(each.given or "-") else f"{plain(each.given)} ({each.commit[:8]})"
        for each in (comparison.base, comparison.head)
    ]


def counts(comparison: Comparison) -> str:
    """How many configurations were judged, and how."""
    times = {verdict: comparison.count(verdict, TIMED) for verdict in Verdict}
    numbers = {verdict: sum(comparison.count(verdict, kind) for kind in EXACT.values()) for verdict in Verdict}
    deciding, rose = numbers[Verdict.SLOW], sum(numbers.pop(verdict) for verdict in MORE)
    numbers[Verdict.SLOW] = rose
    found = []
    for what, kind, each in (("times", TIMED, times), ("counted and compiled numbers", "", numbers)):
        if total := sum(each.values()):
            named = {word(verdict, kind).lower(): each.get(verdict, 0) for verdict in _ORDER}
            if not kind and rose != deciding:
                named = {f"more ({deciding or 'none'} decide{'s' * (deciding < 2)})": named.pop("more"), **named}
            found.append(f"{total} {what if total > 1 else what.removesuffix('s')}: {_listed(named)}")
    if comparison.is_of_compilers and (differing := compilers.differing(comparison.rows)):
        found.append(differing)
    if comparison.broken:
        found.append(f"{len(comparison.broken)} configurations fail in head and did not in base")
    return "; ".join(found) or "no configuration is in both"


#: In which a line tells them.
_ORDER = (Verdict.SLOW, Verdict.FAST, Verdict.SAME, Verdict.UNDECIDED, Verdict.ACKNOWLEDGED)


def largest(comparison: Comparison, at_least: float) -> Iterator[str]:
    """The largest change to the worse and to the better: of times, or of numbers where no time changed."""
    rows = [row for row in changed(comparison.rows, at_least) if row.judgement.is_change]
    times = [row for row in rows if row.kind == TIMED]
    for verdict in (Verdict.SLOW, Verdict.FAST):
        found = [row for row in times or rows if row.judgement.verdict is verdict]
        if found and times:
            # What lost or won the most time, and the same kernel's largest change in per cent.
            most = max(found, key=lambda row: abs(row.head - row.base))
            steepest = max((row for row in found if row.kernel == most.kernel), key=lambda row: row.size)
            yield _change(most) if most is steepest else f"{_change(most)}; {_amount(steepest)}"
        elif found:
            yield _change(max(found, key=lambda row: row.size))


def _change(row: Row) -> str:
    """One configuration's change: "k 27 % faster at 12800x12800 float32 -O3 (1073 µs -> 783 µs)"."""
    return f"{plain(row.kernel)} {_amount(row)}"


def _amount(row: Row) -> str:
    told = "more" if row.judgement.verdict is Verdict.TRADE else word(row.judgement.verdict, row.kind).lower()
    much = f"{percent(row.judgement.ratio).lstrip('+-')} {told}" if row.kind == TIMED else f"{told} {row.metric}"
    return f"{much} at {_where(row)} ({quantity(row.base, row.unit)} -> {quantity(row.head, row.unit)})"


def _where(row: Row) -> str:
    return plain(" ".join(filter(None, [row.place, short_flags(row.flags)])))


def acknowledged(comparison: Comparison) -> Iterator[str]:
    """What became worse and was accepted: how many configurations, and why."""
    found = Counter(row.judgement.reason for row in comparison.rows if row.judgement.verdict is Verdict.ACKNOWLEDGED)
    for reason, count in found.most_common():
        yield f"{count} configuration{'s' * (count != 1)}: {plain(reason)}"


#: Rows that a list shows.
_FEW = 3


def _undecided(comparison: Comparison) -> Iterator[str]:
    """The times that are undecided and by how much they could have changed, those that could be slowest first."""
    rows = [row for row in comparison.rows if row.judgement.verdict is Verdict.UNDECIDED]
    rows.sort(key=lambda row: -(row.judgement.could_be or (0.0, math.inf))[1])
    for row in rows[:_FEW]:
        known = row.judgement.could_be
        could = "anything" if known is None else " to ".join(map(percent, known))
        yield f"undecided: {plain(row.kernel)} at {_where(row)}: {percent(row.judgement.ratio)}, could be {could}"
    if len(rows) > _FEW:
        yield f"undecided: {len(rows) - _FEW} more times"


def trades(comparison: Comparison) -> Iterator[str]:
    """The numbers that rose beside faster times, a line a kernel and number: the largest, and how many more."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in comparison.rows:
        if row.judgement.verdict is Verdict.TRADE:
            found.setdefault((row.kernel, row.metric), []).append(row)
    for rows in found.values():
        most = max(rows, key=lambda row: row.size)
        more = f", and {len(rows) - 1} more" if len(rows) > 1 else ""
        yield f"{_change(most)}{more}; {most.judgement.reason}"


#: What is told of some rows, in this order, by its title.
TOLD: dict[str, Callable[[Comparison], Iterator[str]]] = {"Trade": trades, "Acknowledged": acknowledged}


def failing(comparison: Comparison) -> str:
    """Which kernels fail that did not; empty if none does."""
    return _kernels(comparison.broken)


def _kernels(lone: Sequence[Lone]) -> str:
    """The kernels of configurations, most configurations first."""
    found = Counter(plain(each.kernel or each.benchmark) for each in lone).most_common()
    named = [f"{name} ({count})" for name, count in found[:_NAMED]]
    return ", ".join(named) + (f" and {len(found) - _NAMED} more kernels" if len(found) > _NAMED else "")


#: Kernels that a line names.
_NAMED = 8


#: How many configurations of which benchmark, and why the other commit lacks them.
Aside = tuple[int, str, str]


def asides(comparison: Comparison) -> Iterator[tuple[str, str, list[Aside]]]:
    """What only one commit has: a title, the kernels, and the benchmarks, most configurations first."""
    for what, lone in (("gone from head", comparison.only_base), ("new in head", comparison.only_head)):
        if lone:
            yield f"{len(lone)} configurations are {what}", _kernels(lone), list(_counted(lone))


def _counted(lone: list[Lone]) -> Iterator[Aside]:
    for (benchmark, reason), count in Counter((each.benchmark, each.reason) for each in lone).most_common():
        yield count, benchmark, reason


def folded(comparison: Comparison, at_least: float) -> str:
    """The line that stands for everything that is not listed."""
    small = len(comparison.changed) - len(changed(comparison.rows, at_least))
    less = f"; {small} changed by less than {100 * at_least:g} % (--at-least)" if small else ""
    return f"Not listed: {comparison.count(Verdict.SAME)} that are the same{less}."


def notes(comparison: Comparison) -> list[str]:
    """What to know, and what to do."""
    told = list(comparison.notes)
    if comparison.conclusion is Conclusion.COULD_NOT_JUDGE:
        told += [f"no verdict: {each}" for each in doubts(comparison.rows)]
    if undecided := list(_undecided(comparison)):
        again = (
            f"measure both in turns: make measure BASE={comparison.base.commit[:8]} HEAD={comparison.head.commit[:8]}"
        )
        if comparison.is_of_compilers:
            again = f"measure again: {compilers.again(comparison.head)}"
        count = comparison.count(Verdict.UNDECIDED)
        told += [
            f"{count} {'times are' if count > 1 else 'time is'} undecided; --all says why; to decide them {again}",
            *undecided,
        ]
    return told


def legend(comparison: Comparison) -> str:
    """What the verdicts rest on, in a sentence or two."""
    return (
        "Time: geometric mean of head over base, over sizes and dtypes. Times are the same up to "
        f"{comparison.noise}; counted and compiled numbers only if equal. Lower is better."
    )
