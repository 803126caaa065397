"""A search as JSON for programs: everything, in strict JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from kernelwatch.review.bisect.culprit import Culprit
from kernelwatch.review.bisect.search import Search
from kernelwatch.review.rows import Row

#: Bumped when a key changes its meaning or goes.
FORMAT = 1


def render(search: Search) -> str:
    """Return the search; a ratio that is infinite is null."""
    document = {
        "format": FORMAT,
        "metric": search.metric,
        "matched": search.matched,
        "good": search.good,
        "bad": search.bad,
        "exit_code": search.exit_code,
        "reason": search.reason,
        "change": search.row and _row(search.row),
        "culprit": search.culprit and _culprit(search.culprit),
        "suspects": [each.hash for each in search.suspects],
        "commits": {"between": search.total, "touching": len(search.commits) - 1},
        "steps": [
            {
                "commit": step.commit.hash,
                "verdict": step.verdict,
                "source": step.source.value,
                "value": step.value,
                "reason": step.reason,
            }
            for step in search.steps
        ],
        "seconds": round(search.seconds, 3),
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _row(row: Row) -> dict[str, Any]:
    ratio = row.judgement.ratio
    return {
        "configuration": row.name,
        "kind": row.kind,
        "unit": row.unit,
        "verdict": row.judgement.verdict.value,
        "before": row.base,
        "after": row.head,
        "ratio": ratio if math.isfinite(ratio) else None,
    }


def _culprit(culprit: Culprit) -> dict[str, Any]:
    return {
        **asdict(culprit.description),
        "change": _row(culprit.row),
        "cubins": [asdict(each) for each in culprit.cubins],
        "cubins_compared": culprit.compared,
        "counted": culprit.counted,
        "lines": [asdict(each) for each in culprit.lines],
        "notes": culprit.notes,
    }
