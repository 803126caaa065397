"""A review as text: what a terminal prints, and what a comment or a job's summary holds in a fence."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from kernelwatch.review.compare import Review
from kernelwatch.review.conclusion import doubts
from kernelwatch.review.groups import Group, changed, group_rows
from kernelwatch.review.pairing import ONLY_BASE, ONLY_HEAD
from kernelwatch.review.rows import Lone, Row
from kernelwatch.review.verdict import RISES, Verdict, percent
from kernelwatch.show.terminal import table, wrapped
from kernelwatch.show.text import conclusion_word, plain, quantity, short_flags, word
from kernelwatch.store.points import EXACT, TIMED

#: Of the table by kernel and flags.
HEADERS = ["kernel", "flags", "time", "why (compiled, counted)", "configurations"]

#: Characters that a comment may have on GitHub.
LIMIT = 65_536

#: Kernels that a line names, undecided times that are listed, and characters that are told of why something fails.
_NAMED, _FEW, _LONGEST = 8, 3, 1000

#: What stands for lines that have no room in a comment.
_LEFT_OUT = "{} more lines are left out: a comment has no more room.\n"

#: In which a line tells verdicts.
_ORDER = (Verdict.SLOWER, Verdict.FASTER, Verdict.SAME, Verdict.UNDECIDED, Verdict.ACKNOWLEDGED)


def render(review: Review, at_least: float = 0.0, *, every: bool = False) -> str:
    """Return the verdict, the largest changes, and what changed by kernel and flags, in lines of 100 columns.

    Parameters
    ----------
    review : Review
        The two commits.
    at_least : float
        The relative change from which on one is listed.
    every : bool
        Whether each configuration that changed is listed, too.
    """
    return "".join(f"{line}\n" for told in _lines(review, at_least, every) for line in wrapped(told))


def fenced(text: str, limit: int = LIMIT) -> str:
    """Return Markdown that shows a text unchanged: so many characters at most, and how many lines are left out."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    room = limit - 2 * len(fence) - len(_LEFT_OUT) - 12
    kept = text if len(text) <= room else text[:room].rpartition("\n")[0] + "\n"
    left = text.count("\n", len(kept))
    return "\n".join([fence, kept + _LEFT_OUT.format(left) * bool(left) + fence, ""])


def _lines(review: Review, at_least: float, every: bool) -> Iterator[str]:
    """All that is told, in lines of any length."""
    rows, differing = review.rows, changed(review.rows)
    listed, timed = changed(rows, at_least), any(row.kind == TIMED for row in rows)
    yield _verdict(review)
    yield from (f"{each.verdict.value}: {plain(each, _LONGEST)}" for each in review.failures[:_NAMED])
    if more := review.failures[_NAMED:]:
        yield f"{len(more)} more kernels and reasons; --format json has them"
    yield "; ".join(_counts(review)) or "no configuration has a value in both"
    yield from (f"Largest: {each}" for each in _largest(listed))
    yield from (f"Trade: {each}" for each in _trades(rows))
    accepted = Counter(row.judgement.reason for row in rows if row.judgement.verdict is Verdict.ACKNOWLEDGED)
    for reason, count in accepted.most_common():
        yield f"Acknowledged: {count} configuration{'s' * (count != 1)}: {plain(reason)}"
    if of_groups := [_cells(group) for group in group_rows(rows, review.arch, at_least)]:
        yield from table(HEADERS, of_groups, every=every)
    small = len(differing) - len(listed)
    less = f"; {small} changed by less than {100 * at_least:g} % (--at-least)" if small else ""
    yield f"Not listed: {len(rows) - len(differing)} that are the same{less}."
    unmeasured, gone = _split_unmeasured(review.lone[ONLY_BASE])
    for what, lone in (
        ("not measured in head, which was measured in part", unmeasured),
        ("gone from head", gone),
        ("new in head", review.lone[ONLY_HEAD]),
    ):
        if lone:
            yield f"{len(lone)} configurations are {what}: {_kernels(lone)}{'' if every else '; --all says why'}"
        found = Counter((each.benchmark, each.reason) for each in lone)
        for (benchmark, reason), count in found.most_common() if every else ():
            yield f"  {count} of {plain(benchmark)}: {plain(reason)}"
    notes = [*review.notes]
    notes += ["nothing was timed: the verdict is that of counted and compiled numbers"] * bool(rows and not timed)
    if unverified := sorted({plain(row.kernel) for row in differing if not row.verified}):
        notes.append(f"not verified, since no reference= says what they write: {_few(unverified)}")
    if review.conclusion is Verdict.UNDECIDED:
        notes += (f"no verdict: {each}" for each in doubts(rows))
    yield from (f"Note: {plain(note)}" for note in (*notes, *_undecided(review)))
    for row in differing if every else ():
        yield f"{word(row.judgement.verdict, row.kind):9}{plain(row.name)}"
        yield f"{'':9}{'; '.join(_known(row, review.peak))}"
    times = f"Time: geometric mean of head over base, over sizes and dtypes; the same up to {review.thresholds}. "
    yield times * timed + "Counted and compiled numbers are the same only if equal. Lower is better."


def headline(review: Review) -> str:
    """Return the verdict, and how many configurations were judged how, if any changed."""
    told = [_verdict(review), *(["; ".join(_counts(review))] if changed(review.rows) else [])]
    return "\n".join(line for each in told for line in wrapped(each))


def _verdict(review: Review) -> str:
    """The verdict on both commits, and where they were measured."""
    distance = f" ({review.distance})" if review.distance else ""
    said = conclusion_word(review.conclusion, is_timed=any(row.kind == TIMED for row in review.rows))
    return f"{said}  {_sides(review)}{distance}, {plain(review.place)}"


def _sides(review: Review) -> str:
    """What was given for base and for head, with the commits' hashes where that does not begin so."""
    if review.is_of_compilers:
        given = " -> ".join(f"nvcc of CUDA {each.given}" for each in review.both)
        return f"{given} at {review.head.commit[:8]}"
    return " -> ".join(
        each.given[:8] if each.commit.startswith(each.given or "-") else f"{plain(each.given)} ({each.commit[:8]})"
        for each in review.both
    )


def _counts(review: Review) -> Iterator[str]:
    """How many configurations were judged, and how; of how many cubins, which not every number shows."""
    for what, kinds in (("time", (TIMED,)), ("counted and compiled number", (*EXACT.values(),))):
        counts = Counter(row.judgement.verdict for row in review.rows if row.kind in kinds)
        if total := counts.total():
            deciding, counts[Verdict.SLOWER] = counts[Verdict.SLOWER], sum(counts[each] for each in RISES)
            judged = _listed({word(verdict, kinds[0]).lower(): counts[verdict] for verdict in _ORDER})
            if deciding != counts[Verdict.SLOWER]:
                judged = judged.replace(" rose", f" rose ({deciding or 'none'} decide{'s' * (deciding < 2)})")
            yield f"{total} {what}{'s' * (total > 1)}: {judged}"
    told = {row.name.partition("(")[2]: row.code_unchanged for row in review.rows if row.arch}
    known = [unchanged for unchanged in told.values() if unchanged is not None]
    if review.is_of_compilers and known:
        yield f"machine code differs in {known.count(False)} of {len(known)} cubins"


def _largest(listed: Sequence[Row]) -> Iterator[str]:
    """The largest change to the worse and to the better: of times, or of numbers where no time changed."""
    rows = [row for row in listed if row.judgement.is_change and row.decides]
    times = [row for row in rows if row.kind == TIMED]
    for verdict in (Verdict.SLOWER, Verdict.FASTER):
        if found := [row for row in times or rows if row.judgement.verdict is verdict]:
            # What lost or won the most time, and the same kernel's largest change in per cent.
            most = max(found, key=lambda row: abs(row.head - row.base) if times else row.size)
            steepest = max((row for row in found if row.kernel == most.kernel), key=lambda row: row.size)
            yield f"{_change(most)}; {_amount(steepest)}" if most is not steepest else _change(most)


def _trades(rows: Sequence[Row]) -> Iterator[str]:
    """The numbers that rose beside faster times, or fell beside slower ones, a line a kernel and number."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        fell = row.kind != TIMED and row.judgement.verdict is Verdict.FASTER and row.judgement.reasons
        if row.judgement.verdict is Verdict.TRADE or fell:
            found.setdefault((row.kernel, row.metric), []).append(row)
    for each in found.values():
        most = max(each, key=lambda row: row.size)
        more = f", and {len(each) - 1} more" if len(each) > 1 else ""
        yield f"{_change(most)}{more}; {most.judgement.reason}"


def _change(row: Row) -> str:
    """One configuration's change: "k 27 % faster at 12800x12800 float32 -O3 (1073 µs -> 783 µs)"."""
    return f"{plain(row.kernel)} {_amount(row)}"


def _amount(row: Row) -> str:
    if row.kind == TIMED:
        much = f"{percent(row.judgement.ratio).lstrip('+-')} {row.judgement.verdict.value.lower()}"
    else:
        much = f"{'more' if row.head > row.base else 'fewer'} {row.metric}"
    return f"{much} at {_where(row)} ({', '.join([_values(row), *_unverified(row)])})"


def _values(row: Row) -> str:
    return f"{quantity(row.base, row.unit)} -> {quantity(row.head, row.unit)}"


def _where(row: Row) -> str:
    return plain(" ".join(filter(None, [row.place, short_flags(row.flags)])))


def _unverified(*rows: Row) -> list[str]:
    """What is said beside numbers of a kernel that has no reference; nothing beside others."""
    return [] if all(row.verified for row in rows) else ["not verified"]


def _cells(group: Group) -> list[str]:
    """A row of the table under HEADERS."""
    return [
        plain(group.kernel),
        short_flags(group.flags),
        "" if group.ratio is None else percent(group.ratio),
        plain(", ".join([*group.evidence, *_unverified(*group.times, *group.numbers)])),
        configurations(group),
    ]


def configurations(group: Group) -> str:
    """How many of its times are what, or of its numbers where it has none."""
    names = ("slower", "faster", "undecided") if group.times else ("rose", "fell", "noted")
    counts = {name: group.counts[name] for name in (*names, "acknowledged") if group.counts[name]}
    if group.times and len(counts) == 1:
        ((name, count),) = counts.items()
        return f"{count} of {len(group.times)} {name}"
    return _listed(counts or {"same": group.counts["same"]})


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def _kernels(lone: Sequence[Lone]) -> str:
    """The kernels of configurations, most configurations first."""
    found = Counter(plain(each.kernel or each.benchmark) for each in lone).most_common()
    return _few([f"{name} ({count})" for name, count in found])


def _split_unmeasured(lone: Sequence[Lone]) -> tuple[list[Lone], list[Lone]]:
    """Return the configurations that a run in part left out, and those that the commit no longer has."""
    left_out = {f"{absence} in head" for absence in ("not run", "without a value")}
    unmeasured = [each for each in lone if each.reason in left_out]
    return unmeasured, [each for each in lone if each.reason not in left_out]


def _few(kernels: Sequence[str]) -> str:
    left = len(kernels) - _NAMED
    return ", ".join(kernels[:_NAMED]) + (f" and {left} more kernels" if left > 0 else "")


def _known(row: Row, peak: float | None) -> Iterator[str]:
    """What is known of a configuration; % of peak is head's."""
    judged, rates = row.judgement, row.rates
    yield _values(row)
    yield f"ratio {judged.ratio:.3f}".replace("inf", "∞")
    if judged.interval:
        yield "99 % interval {:.3f} to {:.3f}".format(*judged.interval)
    if row.copies:
        yield "copies {:.3f} → {:.3f}".format(*row.copies)
    if rates:
        yield f"GB/s {rates[0] / 1e9:.0f} → {rates[1] / 1e9:.0f}"
    if rates and peak:
        yield f"% of peak {100 * rates[1] / peak:.1f}"
    if why := [*_unverified(row), *map(str, judged.reasons)]:
        yield plain("; ".join(why))


def _undecided(review: Review) -> Iterator[str]:
    """What undecided times could be, the slowest first, and what decides them."""
    rows = [row for row in review.rows if row.judgement.verdict is Verdict.UNDECIDED]
    if rows:
        how = "measure again" if review.is_of_compilers else "measure both in turns"
        are = "times are" if len(rows) > 1 else "time is"
        yield f"{len(rows)} {are} undecided; to decide them {how}: {review.again}"
    rows.sort(key=lambda row: -(row.judgement.could_be or (0.0, math.inf))[1])
    for row in rows[:_FEW]:
        known = row.judgement.could_be
        could = "anything" if known is None else " to ".join(map(percent, known))
        changed_by = f"{percent(row.judgement.ratio)}, could be {could}"
        yield f"undecided: {plain(row.kernel)} at {_where(row)}: {changed_by}: {row.judgement.reason}"
    if len(rows) > _FEW:
        yield f"undecided: {len(rows) - _FEW} more times; --all says why"
