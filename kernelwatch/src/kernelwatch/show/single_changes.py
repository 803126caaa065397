"""Texts about single configurations of a review: the largest changes, trades, undecided times, and facts."""

import math
from collections.abc import Iterator, Sequence

from kernelwatch.review.commit_review import Review
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import ReasonKind, Verdict, format_percent
from kernelwatch.show.text import format_quantity, shorten_flags
from kernelwatch.suite.benchmark_names import TIMED
from ptxcount.cli.options import plain
from ptxcount.util.grammar import choose_form, count_noun

#: Maximum number of undecided times to list.
_MAX_UNDECIDED = 3


def iter_largest(listed: Sequence[Row]) -> Iterator[str]:
    """Yield a line about the largest changes to the worse, and one about the largest to the better.

    For times, these are the largest absolute change, and the largest relative change of the same kernel. If no time
    changed, it is the largest relative change of a deciding number.
    """
    rows = [row for row in listed if row.judgement.is_change and row.decides]
    times = [row for row in rows if row.kind == TIMED]
    for verdict in (Verdict.SLOWER, Verdict.FASTER):
        if candidates := [row for row in times or rows if row.judgement.verdict is verdict]:
            most = max(candidates, key=lambda row: abs(row.head - row.base) if times else row.size)
            steepest = max((row for row in candidates if row.kernel == most.kernel), key=lambda row: row.size)
            yield _format_change(most) + (f"; {_format_amount(steepest)}" if steepest is not most else "")


def iter_trades(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for each kernel and metric that rose while times became faster, or fell while they became slower."""
    by_number: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        # A number that fell has reasons only if times became slower.
        is_contradicted = row.kind != TIMED and row.judgement.verdict is Verdict.FASTER and row.judgement.reasons
        if row.judgement.verdict is Verdict.TRADE or is_contradicted:
            by_number.setdefault((row.kernel, row.metric), []).append(row)
    for trade_rows in by_number.values():
        most = max(trade_rows, key=lambda row: row.size)
        further = f", and {len(trade_rows) - 1} more" if len(trade_rows) > 1 else ""
        yield f"{_format_change(most)}{further}; {most.judgement.reason}"


def iter_facts(row: Row, peak: float | None) -> Iterator[str]:
    """Yield facts about a configuration. `peak` is the theoretical bandwidth in bytes per second, if known."""
    judged, rates = row.judgement, row.rates
    yield _format_values(row)
    yield f"ratio {judged.ratio:.3f}".replace("inf", "∞")
    if judged.interval:
        yield "99 % interval {:.3f} to {:.3f}".format(*judged.interval)
    if row.copies:
        yield "copies {:.3f} → {:.3f}".format(*row.copies)
    if rates:
        yield f"GB/s {rates[0] / 1e9:.0f} → {rates[1] / 1e9:.0f}"
    if rates and peak:
        yield f"% of peak {100 * rates[1] / peak:.1f}"
    if why := [*note_unverified(row), *map(str, judged.reasons)]:
        yield plain("; ".join(why))


def iter_undecided(review: Review) -> Iterator[str]:
    """Yield a command that measures the undecided times again, and the ranges of the _MAX_UNDECIDED worst."""
    rows = [row for row in review.rows if row.judgement.verdict is Verdict.UNDECIDED]
    if rows:
        how = "measure again" if review.is_of_compilers else "measure both interleaved"
        are, them = choose_form(len(rows), "is", "are"), choose_form(len(rows), "it", "them")
        yield f"{count_noun(len(rows), 'time')} {are} undecided; to decide {them}, {how}: {review.measure_command}"
    rows.sort(key=lambda row: row.judgement.could_be[1] if row.judgement.could_be else math.inf, reverse=True)
    for row in rows[:_MAX_UNDECIDED]:
        bounds = row.judgement.could_be
        could = "anything" if bounds is None else " to ".join(dict.fromkeys(map(format_percent, bounds)))
        if any(reason.why is ReasonKind.CHANCE for reason in row.judgement.reasons):
            could += " (without correction)"
        changed_by = f"{format_percent(row.judgement.ratio)}, could be {could}"
        yield f"undecided: {plain(row.kernel)} at {_format_place(row)}: {changed_by}: {row.judgement.reason}"
    if len(rows) > _MAX_UNDECIDED:
        yield f"undecided: {count_noun(len(rows) - _MAX_UNDECIDED, 'more time')}; --all says why"


def _format_change(row: Row) -> str:
    return f"{plain(row.kernel)} {_format_amount(row)}"


def _format_amount(row: Row) -> str:
    """Return a text such as "27 % faster at 12800x12800 float32 -O3 (1073 µs -> 783 µs)"."""
    if row.kind == TIMED:
        much = f"{format_percent(row.judgement.ratio).lstrip('+-')} {row.judgement.verdict.value.lower()}"
    else:
        much = f"{'more' if row.head > row.base else 'fewer'} {row.metric}"
    return f"{much} at {_format_place(row)} ({', '.join([_format_values(row), *note_unverified(row)])})"


def _format_values(row: Row) -> str:
    return f"{format_quantity(row.base, row.unit)} -> {format_quantity(row.head, row.unit)}"


def _format_place(row: Row) -> str:
    return plain(" ".join(filter(None, [row.parameters_text, shorten_flags(row.flags)])))


def note_unverified(*rows: Row) -> list[str]:
    """Return a list with "not verified" if some row is not verified; else an empty list."""
    return [] if all(row.verified for row in rows) else ["not verified"]
