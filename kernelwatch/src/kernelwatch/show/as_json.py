"""The comparison as JSON for programs: everything, in strict JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from kernelwatch.review.commits import Side
from kernelwatch.review.comparison import Comparison
from kernelwatch.review.groups import Group, groups
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict
from kernelwatch.show.text import difference
from kernelwatch.store.results import KINDS
from kernelwatch.toolchain import releases as compilers

#: Bumped when a key changes its meaning or goes.
FORMAT = 2


def render(comparison: Comparison) -> str:
    """Every configuration, the SAME ones too. Where a ratio is infinite, it is null."""
    return json.dumps(_document(comparison), indent=1, allow_nan=False) + "\n"


def _document(comparison: Comparison) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "machine": comparison.machine,
        "base": _side(comparison.base),
        "head": _side(comparison.head),
        "choice": comparison.choice,
        "conclusion": comparison.conclusion.value,
        "exit_code": comparison.exit_code,
        "totals": {kind: {verdict.value: comparison.count(verdict, kind) for verdict in Verdict} for kind in KINDS},
        "peak_bytes_per_second": _finite(comparison.peak),
        "noise": comparison.noise,
        "notes": comparison.notes,
        "groups": [_group(group) for group in groups(comparison)],
        "rows": [_row(row, comparison.peak) for row in comparison.rows],
        **{key: [asdict(lone) for lone in getattr(comparison, key)] for key in ("broken", "only_base", "only_head")},
    }


def _side(side: Side) -> dict[str, Any]:
    return {"given": side.given, "commit": side.commit, "compiler": side.compiler or compilers.DEFAULT}


def _group(group: Group) -> dict[str, Any]:
    counts = ("slower", "faster", "same", "undecided", "acknowledged", "more", "fewer")
    return {
        "kernel": group.kernel,
        "flags": group.flags,
        "verdict": group.verdict.value,
        "ratio": group.ratio,
        **{count: group.counts[count] for count in counts},
        "evidence": list(map(difference, group.evidence)),
        "elsewhere": group.elsewhere,
    }


def _row(row: Row, peak: float | None) -> dict[str, Any]:
    judged = row.judgement
    rates = [_finite(rate) for rate in row.rates or ()] or None
    return {
        "configuration": row.name,
        "kind": row.kind,
        "unit": row.unit,
        "verdict": judged.verdict.value,
        "base": row.base,
        "head": row.head,
        "ratio": _finite(judged.ratio),
        "interval": None if judged.interval is None else [_finite(end) for end in judged.interval],
        "p": _finite(judged.p),
        "threshold": judged.threshold,
        "could_be": judged.could_be,
        "reason": judged.reason,
        "copies": None if row.copies is None else [row.copies.base, row.copies.head],
        "bytes_per_second": rates,
        "share_of_peak": None if rates is None or not peak else [_finite(rate and rate / peak) for rate in rates],
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
