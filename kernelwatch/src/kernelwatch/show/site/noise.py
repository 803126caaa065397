"""How far times differ on a machine when nothing has changed, its A/A result: rows of tables of the page Details."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from kernelwatch import suite
from kernelwatch.store.noise import TOO_NOISY, Entry, Noise
from kernelwatch.store.results import History

#: What tells one measurement from another of each fact, in characters.
_BRIEF = {"commit": 8, "date": 10, "uuid": 12}

#: Shares of the configurations that the summary shows.
_QUANTILES = {"median": 0.5, "90th percentile": 0.9, "largest": 1.0}

SUMMARY = (
    "benchmark", "configurations",
    *(f"{what}, {name}, %" for what in ("between processes", "threshold") for name in _QUANTILES), "too noisy",
)  # fmt: skip
ENTRIES = ("configuration", "µs", "between, %", "within, %", "threshold, %", "processes")
CHECKS = ("commit", "date", "measured again", "differing", "largest difference, %", "of")


def described(history: History) -> dict[str, Any]:
    """Return the facts of a machine's A/A result, and rows under SUMMARY, ENTRIES and CHECKS; shares in per cent."""
    noise = Noise(history.folder)
    entries = sorted(noise.entries(), key=lambda entry: -entry.threshold)
    return {
        "facts": [f"{name} {str(value)[: _BRIEF.get(name)]}" for name, value in noise.selftest.items()],
        "too_noisy": 100 * TOO_NOISY,
        "summary": list(_summary(entries)),
        "entries": [_row(history, entry) for entry in entries],
        "checks": [_check(run, check) for run in reversed(history.runs) for check in reversed(run.get("checks", ()))],
    }


def _summary(entries: Iterable[Entry]) -> Iterator[list[Any]]:
    """What differs by benchmark, and in how many of its configurations too much to tell."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.configuration.partition("(")[0], []).append(entry)
    for name, found in sorted(groups.items()):
        noisy = sum(entry.threshold >= TOO_NOISY for entry in found)
        shares = [_quantiles([getattr(entry, key) for entry in found]) for key in ("between", "threshold")]
        yield [name, len(found), *shares[0], *shares[1], noisy]


def _quantiles(shares: Iterable[float | None]) -> list[float | None]:
    known = sorted(share for share in shares if share is not None)
    return [_percent(known[math.ceil(part * len(known)) - 1]) if known else None for part in _QUANTILES.values()]


def _percent(share: float | None) -> float | None:
    return None if share is None else float(f"{100 * share:.3g}")


def _row(history: History, entry: Entry) -> list[Any]:
    benchmark, _, texts = entry.configuration.removesuffix(")").partition("(")
    known = benchmark in history.benchmarks("time")
    params = dict(zip(history.axes(benchmark), texts.split(", "), strict=False)) if known else {}
    unverified = known and not suite.verified(benchmark, params)
    shares = (entry.between, entry.within, entry.threshold)
    return [
        f"{entry.configuration}, not verified" if unverified else entry.configuration,
        None if entry.seconds is None else round(1e6 * entry.seconds, 2),
        *map(_percent, shares),
        entry.processes,
    ]


def _check(run: Any, check: Any) -> list[Any]:
    """Numbers that could be reused and were measured all the same: how many, and which differed most."""
    off = {one["configuration"]: (abs((one["ratio"] or math.inf) - 1), one["threshold"]) for one in check["checked"]}
    worst = max(off, key=lambda name: off[name][0])
    differing = sum(much > threshold for much, threshold in off.values())
    return [check["commit"][:8], run["started"][:10], len(off), differing, _percent(off[worst][0]), worst]
