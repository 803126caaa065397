"""A review as strict JSON for programs, with all its configurations."""

import json
from collections import Counter
from typing import Any

import msgspec
from msgspec.structs import asdict

from kernelwatch.review.commit_review import Review
from kernelwatch.review.groups import group_rows
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict
from kernelwatch.suite.benchmark_names import KINDS
from kernelwatch.toolchain import releases as compilers

#: Version of the format. Raise it if the meaning of a key changes or a key is removed.
FORMAT = 5

#: Fields of the review that are written unchanged.
_REVIEW_KEYS = ("machine", "environment", "conclusion", "exit_code")


def render_json(review: Review, *more_reviews: Review) -> str:
    """Return reviews as JSON, the first at the top level, the further ones as the list "others".

    All configurations are listed, unchanged ones, too. An infinite ratio is null.
    """
    document = {**_describe_review(review), "others": list(map(_describe_review, more_reviews))}
    encoded = json.dumps(msgspec.to_builtins(document))
    strict = json.loads(encoded, parse_constant=lambda _: None)  # JSON has no infinity
    return json.dumps(strict, indent=1, allow_nan=False) + "\n"


def _describe_review(review: Review) -> dict[str, Any]:
    counts = Counter((row.kind, row.judgement.verdict) for row in review.rows)
    return {
        "format": FORMAT,
        **{name: getattr(review, name) for name in _REVIEW_KEYS},
        "noise": str(review.thresholds),
        "notes": review.notes,
        **review.unpaired,
        **{
            name: {"given": side.label, "commit": side.commit, "compiler": side.compiler or compilers.DEFAULT}
            for name, side in zip(("base", "head"), review.base_and_head, strict=True)
        },
        "totals": {kind: {verdict: counts[kind, verdict] for verdict in Verdict} for kind in KINDS},
        "peak_bytes_per_second": review.peak,
        "groups": [
            {"kernel": group.kernel, "flags": group.flags, "verdict": group.verdict, "ratio": group.ratio,
             **group.counts, "evidence": group.evidence, "elsewhere": group.elsewhere}
            for group in group_rows(review.rows, review.arch)
        ],
        "rows": [_describe_comparison(row, review.peak) for row in review.rows],
    }  # fmt: skip


def describe_row(row: Row) -> dict[str, Any]:
    """Return the fields of a row except `conditions`, which follow from its benchmark."""
    document: dict[str, Any] = msgspec.to_builtins(row)
    del document["conditions"]
    return document


def _describe_comparison(row: Row, peak: float | None) -> dict[str, Any]:
    share = [rate / peak for rate in row.rates] if row.rates and peak else None
    fields = {"configuration": row.name, **asdict(row), **asdict(row.judgement), "reason": row.judgement.reason}
    fields |= {"bytes_per_second": row.rates, "share_of_peak": share}
    return {name: value for name, value in fields.items() if name not in ("name", "judgement", "conditions")}
