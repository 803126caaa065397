"""The comparison as JSON for programs: everything, in strict JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from kernelwatch.review.comparison import Comparison
from kernelwatch.review.groups import Group, groups
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict
from kernelwatch.show.text import difference
from kernelwatch.store.results import KINDS
from kernelwatch.toolchain import releases as compilers

#: Bumped when a key changes its meaning or goes.
FORMAT = 3

#: What is told of a group's times and numbers.
_COUNTS = ("slower", "faster", "same", "undecided", "acknowledged", "more", "fewer")


def render(comparison: Comparison) -> str:
    """Every configuration, the SAME ones too. Where a ratio is infinite, it is null."""
    written = json.dumps(_document(comparison))
    strict = json.loads(written, parse_constant=lambda _: None)  # JSON has no number for what is infinite
    return json.dumps(strict, indent=1, allow_nan=False) + "\n"


def _document(comparison: Comparison) -> dict[str, Any]:
    sides = {name: getattr(comparison, name) for name in ("base", "head")}
    return {
        "format": FORMAT,
        "machine": comparison.machine,
        **{
            name: {"given": side.given, "commit": side.commit, "compiler": side.compiler or compilers.DEFAULT}
            for name, side in sides.items()
        },
        "choice": comparison.choice,
        "conclusion": comparison.conclusion.value,
        "exit_code": comparison.exit_code,
        "totals": {kind: {verdict.value: comparison.count(verdict, kind) for verdict in Verdict} for kind in KINDS},
        "peak_bytes_per_second": comparison.peak,
        "noise": comparison.noise,
        "notes": comparison.notes,
        "groups": [_group(group) for group in groups(comparison)],
        "rows": [_row(row, comparison.peak) for row in comparison.rows],
        **{key: [asdict(lone) for lone in getattr(comparison, key)] for key in ("broken", "only_base", "only_head")},
    }


def _group(group: Group) -> dict[str, Any]:
    return {
        **_of(group, "kernel", "flags"),
        "verdict": group.verdict.value,
        "ratio": group.ratio,
        **{count: group.counts[count] for count in _COUNTS},
        "evidence": list(map(difference, group.evidence)),
        "elsewhere": group.elsewhere,
    }


def _row(row: Row, peak: float | None) -> dict[str, Any]:
    return {
        "configuration": row.name,
        **_of(row, "kind", "unit"),
        "verdict": row.judgement.verdict.value,
        **_of(row, "base", "head"),
        **_of(row.judgement, "ratio", "interval", "p", "threshold", "could_be", "reason"),
        "verified": row.verified,
        "copies": row.copies and [row.copies.base, row.copies.head],
        "bytes_per_second": row.rates,
        "share_of_peak": [rate / peak for rate in row.rates] if row.rates and peak else None,
    }


def _of(thing: object, *names: str) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in names}
