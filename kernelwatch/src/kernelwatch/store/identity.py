"""Which runs the stored numbers of a benchmark are of.

asv keeps no key of its files that it does not know, so a result cannot name its run. The record of a run holds when asv
began with each benchmark, to the millisecond, and asv stores the same moment with the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any


def wrote(runs: Iterable[dict[str, Any]], commit: str, benchmark: str, began: float) -> list[dict[str, Any]]:
    """Return the runs whose numbers are stored of a benchmark at a commit, oldest first.

    They are several if later ones selected some configurations.

    Parameters
    ----------
    runs : iterable of mapping
        The machine's records, oldest first.
    commit, benchmark : str
        Whose numbers are asked about.
    began : float
        When asv began with the benchmark, in milliseconds, as it is stored with them: which run wrote them last.
    """
    found = [run for run in runs if commit in run["commits"] and _measured(run, commit, benchmark, began)]
    last = [place for place, run in enumerate(found) if run.get("began", {}).get(commit, {}).get(benchmark) == began]
    if not last:
        return [run for run in found if "began" not in run]
    whole = [place for place in range(last[-1] + 1) if not _some(found[place], benchmark)]
    if whole[-1:] == last[-1:]:
        return [found[last[-1]]]
    first = whole[-1] if whole else 0
    return [found[first], *(run for run in found[first + 1 :] if _some(run, benchmark))]


def _measured(run: Mapping[str, Any], commit: str, benchmark: str, began: float) -> bool:
    if run.get("selected") and benchmark not in run["selected"]:
        return False  # a shard began with it for its control only
    if "began" in run:
        return benchmark in run["began"].get(commit, {})
    return bool(run.get("selected")) or during(run, began)


def during(run: Mapping[str, Any], began: float) -> bool:
    """Whether a moment, in milliseconds, lies within a run of before 2026-11-23, whose record has whole seconds."""
    if not {"started", "ended"} <= set(run):
        return True
    first, last = (datetime.fromisoformat(run[name]).timestamp() for name in ("started", "ended"))
    return first - 1 <= began / 1000 <= last + 1


def selects(run: Mapping[str, Any], benchmark: str, params: str) -> bool:
    """Whether a run that measured a benchmark measured that configuration of it, as reports print its parameters."""
    some = _some(run, benchmark)
    return not some or any(text.replace("'", "") == params for text in some)


def _some(run: Mapping[str, Any], benchmark: str) -> list[str]:
    """The configurations that a run selected of a benchmark; none if it selected all."""
    found: list[str] = run.get("selected", {}).get(benchmark, [])
    return found
