"""Limits on the costs of a launch, in its table, and of a source line."""

import math
import re
from collections.abc import Iterator
from typing import Any

from ..util.errors import LaunchError
from .counting import LaunchCounts
from .diagnostics import Diagnostic
from .directives import DirectiveError, Directives
from .launches import TableError

_RELATIVE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*x\s*ideal\s*")
#: A count of accesses in ``totals()``: space (empty for global memory) and kind, then the amount, as in load_sectors.
_COUNT = re.compile(r"((?:[a-z]+_)?(?:load|store|atomic|frame)_|constant_)(\w+)")
#: Counts allowed in a limit on a line -> the count that is their ideal, or empty.
_NAMES = {
    "sectors": "ideal_sectors", "lines": "ideal_lines", "wavefronts": "", "addresses": "", "bank_conflicts": "",
    "requests": "",
}  # fmt: skip
#: Counts that a limit on a line compares per request.
_PER_REQUEST = ("sectors", "lines", "wavefronts", "addresses")
#: Counts that a limit may name even if the launch has no such accesses; they are 0 then.
_PERHAPS = (
    "constant_requests", "constant_addresses",
    *(f"cluster_{kind}_{name}" for kind in ("load", "store", "atomic") for name in ("requests", "sectors")),
)  # fmt: skip


def check_all(counts: LaunchCounts, directives: Directives) -> list[Diagnostic]:
    """Return findings for exceeded limits: those in the launch's table, and those at the source lines it executes.

    Raises `DirectiveError` or `TableError` for an invalid limit.
    """
    try:
        return [*check_launch(counts), *check_lines(counts, directives)]
    except DirectiveError:
        raise
    except LaunchError as error:
        raise TableError(str(error), counts.launch.line) from None


def check_launch(counts: LaunchCounts) -> Iterator[Diagnostic]:
    """Yield a finding for each exceeded limit in the launch's table; raise `LaunchError` for an invalid limit.

    A limit names a count of ``totals()``, or ``bank_conflicts`` for all kinds, optionally with ``_per_request``.
    """
    totals = counts.totals | {name: counts.totals.get(name, 0) for name in _PERHAPS}
    totals["bank_conflicts"], all_requests = (
        sum(value for key, value in totals.items() if key.startswith("shared_") and key.endswith(name))
        for name in ("bank_conflicts", "requests")
    )
    for name, limit in counts.launch.limits.items():
        count, is_per_request = name.removesuffix("_per_request"), name.endswith("_per_request")
        match = _COUNT.fullmatch(count)
        prefix, amount = match.groups() if match else ("", count)
        if count not in totals or (is_per_request and not match and count != "bank_conflicts"):
            from difflib import get_close_matches  # noqa: PLC0415 - only an error needs it

            similar = get_close_matches(count, totals, 1)
            names = f"{', '.join(totals)} are allowed, for accesses also with _per_request"
            ending = "_per_request" if is_per_request else ""
            hint = f"did you mean {similar[0] + ending!r}?" if similar else names
            raise LaunchError(f"limit {name!r} names no count; {hint}")
        requests = (totals.get(f"{prefix}requests", all_requests) or 1) if is_per_request else 1
        places = [(row["file"], row["line"] or 1, *_sum_accesses(row, prefix, amount)) for row in counts.lines]
        ideal = sum(place[3] for place in places) if f"{prefix}ideal_{amount}" in totals else None
        value, allowed = (
            totals[count] / requests,
            _resolve_limit(name, limit, None if ideal is None else ideal / requests),
        )
        if value > allowed:  # reported at the line with the most, or with the largest excess over the ideal
            is_relative = isinstance(limit, str)
            text, file, line = f"{name} is {value:g}; at most {allowed:g} are allowed", counts.launch.file, 1
            if places and (match or count == "bank_conflicts"):
                file, line, amount_here, _, requests = max(places, key=lambda place: place[2] - is_relative * place[3])
                text += f"; at this line it is {amount_here / max(requests, 1):g}" if is_per_request else ""
            yield Diagnostic(file, line, "PC001", text, launch=counts.launch.label)


def _sum_accesses(row: dict[str, Any], prefix: str, amount: str) -> tuple[int, int, int]:
    """Return the sum of a count over a line's accesses, the sum of its ideal, and the sum of the requests."""
    accesses = [
        access
        for access in row["accesses"]
        if prefix in ("", f"{access['space']}_", f"{access['space']}_{access['kind']}_".removeprefix("global_"))
        and access.get(amount)
    ]
    ideal = sum(access.get(f"ideal_{amount}", 0) for access in accesses)
    return sum(access[amount] for access in accesses), ideal, sum(access.get("requests", 0) for access in accesses)


def _resolve_limit(name: str, limit: Any, ideal: float | None) -> float:
    match = _RELATIVE.fullmatch(limit) if isinstance(limit, str) else None
    if match and ideal is not None:
        return float(match[1]) * ideal
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not math.isfinite(limit):
        raise LaunchError(f"limit {name} is {limit!r}; give a finite number, or for sectors and lines '1.1 x ideal'")
    return float(limit)


def check_lines(counts: LaunchCounts, directives: Directives) -> Iterator[Diagnostic]:
    """Yield a finding for each limit in the source that an access of this launch exceeds.

    Of several accesses at a line, the worst is reported. Raises `DirectiveError` for a limit that names no count, or is
    relative to the ideal of a count without one.
    """
    for row in counts.lines:
        for limit in directives.find_limits(row["file"], row["line"]):
            name, ideal_name = limit.name, _NAMES.get(limit.name)
            if ideal_name is None:
                text = f"limit {name!r} names no count; allowed are {', '.join(_NAMES)}"
                raise DirectiveError(row["file"], row["line"], text)
            if limit.relative and not ideal_name:
                relative = " and ".join(count for count, ideal_count in _NAMES.items() if ideal_count)
                text = f"{name} have no ideal; give a number, or limit {relative} relative to the ideal"
                raise DirectiveError(row["file"], row["line"], text)
            accesses = [access for access in row["accesses"] if access.get("wavefronts" if "bank" in name else name)]
            directives.used_limits |= {limit} if accesses else set()
            costs = []
            for access in accesses:
                requests = access["requests"] if name in _PER_REQUEST else 1
                costs.append((access[name] / requests, access[ideal_name] / requests if limit.relative else 1.0))
            value, ideal = max(costs, key=lambda cost: cost[0] / cost[1] if cost[1] else 0, default=(0.0, 1.0))
            if ideal and value > limit.number * ideal:
                text = f"{name} are {value:g}; at most {limit.number * ideal:g} are allowed"
                yield Diagnostic(row["file"], row["line"], "PC002", text, launch=counts.launch.label)
