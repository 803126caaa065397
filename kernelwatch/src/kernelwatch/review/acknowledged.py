"""Acknowledged regressions: an entry has kernel, number and reason; see docs/review-a-change.md."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Reason, ReasonKind, Verdict
from kernelwatch.store.source_changes import Acknowledgement
from kernelwatch.suite.benchmark_names import TIMED

#: The `number` of an entry that accepts times.
_TIME = "time"


def select_entries(row: Row, acknowledgements: Iterable[Acknowledgement]) -> list[Acknowledgement]:
    """Return the acknowledgements that name this row's kernel and metric (or "time")."""
    return [entry for entry in acknowledgements if (entry.kernel, entry.number) == _name_kernel_and_number(row)]


def _name_kernel_and_number(row: Row) -> tuple[str, str]:
    return row.kernel, _TIME if row.kind == TIMED else row.metric


def list_unmatched(rows: Sequence[Row], acknowledgements: Iterable[Acknowledgement]) -> Iterator[str]:
    """Yield a note for each acknowledgement that names no row; if nothing was timed, ignore entries for times."""
    keys = set(map(_name_kernel_and_number, rows))
    is_timed = any(number == _TIME for _, number in keys)
    for entry in acknowledgements:
        if (entry.kernel, entry.number) not in keys and (is_timed or entry.number != _TIME):
            yield (
                f"acknowledged.toml accepts {entry.number!r} of {entry.kernel!r}, but the commits have no such number; "
                "write kernel and number as the review prints them"
            )


def accept_row(row: Row, acknowledgements: Iterable[Acknowledgement]) -> Row:
    """Return the row; ACKNOWLEDGED, with the reasons of the entries, if it became worse and entries accept it."""
    if row.judgement.verdict not in (Verdict.SLOWER, Verdict.TRADE):
        return row
    if not (entries := select_entries(row, acknowledgements)):
        return row
    reasons = tuple(Reason(ReasonKind.ACCEPTED, (entry.reason,)) for entry in entries)
    return replace(row, judgement=replace(row.judgement, verdict=Verdict.ACKNOWLEDGED, reasons=reasons))
