"""Regressions that were accepted: kernel, number and reason of an acknowledgement; docs/review-a-change.md."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Reason, ReasonKind, Verdict
from kernelwatch.store.source_changes import Acknowledgement
from kernelwatch.suite.benchmark_names import TIMED


def select_entries(row: Row, acknowledgements: Iterable[Acknowledgement]) -> list[Acknowledgement]:
    """Return the acknowledgements that name a row's kernel and number."""
    names = row.kernel, "time" if row.kind == TIMED else row.metric
    return [entry for entry in acknowledgements if (entry.kernel, entry.number) == names]


def accept_row(row: Row, acknowledgements: Iterable[Acknowledgement]) -> Row:
    """Return the row; the judgement of an acknowledged regression becomes ACKNOWLEDGED, with the reason."""
    if row.judgement.verdict not in (Verdict.SLOWER, Verdict.TRADE):
        return row
    if not (entries := select_entries(row, acknowledgements)):
        return row
    reasons = tuple(Reason(ReasonKind.ACCEPTED, (entry.reason,)) for entry in entries)
    return replace(row, judgement=replace(row.judgement, verdict=Verdict.ACKNOWLEDGED, reasons=reasons))
