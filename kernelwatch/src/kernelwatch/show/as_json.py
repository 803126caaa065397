"""The comparison as JSON for programs: everything, in strict JSON."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from kernelwatch.review.comparison import Comparison
from kernelwatch.review.groups import Group, groups
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict
from kernelwatch.show.text import difference
from kernelwatch.store.results import KINDS
from kernelwatch.toolchain import releases as compilers

#: Bumped when a key changes its meaning or goes.
FORMAT = 4

#: What is told of a group's times and numbers.
_COUNTS = ("slower", "faster", "same", "undecided", "acknowledged", "more", "fewer")


def render(comparison: Comparison, *others: Comparison) -> str:
    """Every configuration, the SAME ones too. Where a ratio is infinite, it is null."""
    document = {**_document(comparison), "others": list(map(_document, others))}
    written = json.dumps(msgspec.to_builtins(document))
    strict = json.loads(written, parse_constant=lambda _: None)  # JSON has no number for what is infinite
    return json.dumps(strict, indent=1, allow_nan=False) + "\n"


def _document(comparison: Comparison) -> dict[str, Any]:
    return {
        "format": FORMAT,
        **_of(comparison, "machine"),
        **{
            name: {**_of(side, "given", "commit"), "compiler": side.compiler or compilers.DEFAULT}
            for name, side in zip(("base", "head"), comparison.both, strict=True)
        },
        **_of(comparison, "environment", "conclusion", "exit_code"),
        "totals": {kind: {verdict.value: comparison.count(verdict, kind) for verdict in Verdict} for kind in KINDS},
        "peak_bytes_per_second": comparison.peak,
        **_of(comparison, "noise", "notes"),
        "groups": [_group(group) for group in groups(comparison)],
        "rows": [_row(row, comparison.peak) for row in comparison.rows],
        **_of(comparison, "broken", "failed", "repaired", "only_base", "only_head"),
    }


def _group(group: Group) -> dict[str, Any]:
    return {
        **_of(group, "kernel", "flags", "verdict", "ratio"),
        **{count: group.counts[count] for count in _COUNTS},
        "evidence": list(map(difference, group.evidence)),
        **_of(group, "elsewhere"),
    }


def _row(row: Row, peak: float | None) -> dict[str, Any]:
    return {
        "configuration": row.name,
        **_of(row, "kind", "unit", "base", "head", "verified"),
        **_of(row.judgement, "verdict", "ratio", "interval", "p", "threshold", "could_be", "reason"),
        "copies": row.copies and [row.copies.base, row.copies.head],
        "bytes_per_second": row.rates,
        "share_of_peak": [rate / peak for rate in row.rates] if row.rates and peak else None,
    }


def _of(thing: object, *names: str) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in names}
