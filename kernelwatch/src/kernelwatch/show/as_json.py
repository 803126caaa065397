"""The review as JSON for programs: everything, in strict JSON."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import msgspec

from kernelwatch.review.compare import Review
from kernelwatch.review.groups import group_rows
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict
from kernelwatch.store.points import KINDS
from kernelwatch.toolchain import releases as compilers

#: Bumped when a key changes its meaning or goes.
FORMAT = 5

#: What is told of the review as it is.
_TOLD = ("machine", "environment", "conclusion", "exit_code")


def render(review: Review, *others: Review) -> str:
    """Every configuration, the SAME ones too. Where a ratio is infinite, it is null."""
    document = {**_document(review), "others": list(map(_document, others))}
    written = json.dumps(msgspec.to_builtins(document))
    strict = json.loads(written, parse_constant=lambda _: None)  # JSON has no number for what is infinite
    return json.dumps(strict, indent=1, allow_nan=False) + "\n"


def _document(review: Review) -> dict[str, Any]:
    counts = Counter((row.kind, row.judgement.verdict) for row in review.rows)
    return {
        "format": FORMAT,
        **{name: getattr(review, name) for name in _TOLD},
        "noise": str(review.thresholds),
        "notes": review.notes,
        **review.lone,
        **{
            name: {"given": side.given, "commit": side.commit, "compiler": side.compiler or compilers.DEFAULT}
            for name, side in zip(("base", "head"), review.both, strict=True)
        },
        "totals": {kind: {verdict: counts[kind, verdict] for verdict in Verdict} for kind in KINDS},
        "peak_bytes_per_second": review.peak,
        "groups": [
            {"kernel": each.kernel, "flags": each.flags, "verdict": each.verdict, "ratio": each.ratio,
             **each.counts, "evidence": each.evidence, "elsewhere": each.elsewhere}
            for each in group_rows(review.rows, review.arch)
        ],
        "rows": [_row(row, review.peak) for row in review.rows],
    }  # fmt: skip


def describe_row(row: Row) -> dict[str, Any]:
    """Return a configuration as it is; the words on how it was timed stand in the pages alone."""
    document: dict[str, Any] = msgspec.to_builtins(row)
    return {name: value for name, value in document.items() if name != "conditions"}


def _row(row: Row, peak: float | None) -> dict[str, Any]:
    share = [rate / peak for rate in row.rates] if row.rates and peak else None
    told = {"configuration": row.name, **vars(row), **vars(row.judgement), "reason": row.judgement.reason}
    told |= {"bytes_per_second": row.rates, "share_of_peak": share}
    return {name: value for name, value in told.items() if name not in ("name", "judgement", "conditions")}
