"""Limits on the costs of a launch, in its table, and of a source line."""

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..util.errors import LaunchError
from .counting import LaunchCounts
from .diagnostics import LIMIT, LINE_LIMIT, Diagnostic
from .directives import DirectiveError, Directives
from .launches import TableError

_RELATIVE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*x\s*ideal\s*")
#: A count of accesses in ``totals()``: a prefix of space (not for global memory) and kind, then the amount, as in
#: ``load_`` and ``sectors``, or ``shared_load_`` and ``wavefronts``.
_COUNT = re.compile(r"((?:[a-z]+_)?(?:load|store|atomic|frame)_|constant_)(\w+)")
#: Counts allowed in a limit on a line -> the name of their ideal, or empty.
_IDEALS = {
    "sectors": "ideal_sectors", "lines": "ideal_lines", "wavefronts": "", "addresses": "", "bank_conflicts": "",
    "requests": "",
}  # fmt: skip
#: Counts that a limit on a line compares per request.
_PER_REQUEST = ("sectors", "lines", "wavefronts", "addresses")
#: Counts that ``totals()`` lacks if the launch has no such accesses. A limit may name them: they are 0 then.
_OPTIONAL_COUNTS = (
    "constant_requests", "constant_addresses",
    *(f"cluster_{kind}_{name}" for kind in ("load", "store", "atomic") for name in ("requests", "sectors")),
)  # fmt: skip


def check_limits(counts: LaunchCounts, directives: Directives) -> list[Diagnostic]:
    """Return a finding for each exceeded limit, of the launch's table or at a source line with accesses.

    Raises `DirectiveError` or `TableError` for an invalid limit.
    """
    try:
        return [*check_launch(counts), *check_lines(counts, directives)]
    except DirectiveError:
        raise
    except LaunchError as error:
        raise TableError(str(error), counts.launch.line) from None


class _LineSum(NamedTuple):
    """A count, its ideal, and the requests, summed over those accesses of a source line that have the count."""

    file: str
    line: int
    amount: int
    ideal: int
    requests: int


def check_launch(counts: LaunchCounts) -> Iterator[Diagnostic]:
    """Yield a finding for each exceeded limit in the launch's table; raise `LaunchError` for an invalid limit.

    A limit names a count of ``totals()``, or ``bank_conflicts`` for those of all shared accesses. The suffix
    ``_per_request`` is allowed for counts of accesses.
    """
    totals = counts.totals | {name: counts.totals.get(name, 0) for name in _OPTIONAL_COUNTS}
    shared = {name: value for name, value in totals.items() if name.startswith("shared_")}
    shared_requests = sum(value for name, value in shared.items() if name.endswith("requests"))
    totals["bank_conflicts"] = sum(value for name, value in shared.items() if name.endswith("bank_conflicts"))
    for name, limit in counts.launch.limits.items():
        count, is_per_request = name.removesuffix("_per_request"), name.endswith("_per_request")
        match = _COUNT.fullmatch(count)
        is_of_accesses = match is not None or count == "bank_conflicts"
        prefix, amount = match.groups() if match else ("", count)
        if count not in totals or (is_per_request and not is_of_accesses):
            raise LaunchError(f"limit {name!r} names no count; {_suggest_limit(count, name, [*totals])}")
        requests = 1
        if is_per_request:
            requests = totals.get(f"{prefix}requests", shared_requests) or 1
        lines = [_sum_line(row, prefix, amount) for row in counts.lines]
        ideal = sum(line.ideal for line in lines) / requests if f"{prefix}ideal_{amount}" in totals else None
        value, allowed = totals[count] / requests, _resolve_limit(name, limit, ideal)
        if value <= allowed:
            continue
        text = f"{name} is {value:g}; at most {allowed:g} are allowed"
        file, line_number = counts.launch.file, 1
        if lines and is_of_accesses:
            is_relative = isinstance(limit, str)  # then report the line with the largest excess
            worst = max(lines, key=lambda line: line.amount - (line.ideal if is_relative else 0))
            file, line_number = worst.file, worst.line
            text += f"; at this line it is {worst.amount / max(worst.requests, 1):g}" if is_per_request else ""
        yield Diagnostic(file, line_number, LIMIT, text, launch=counts.launch.label)


def _suggest_limit(count: str, name: str, totals: list[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only an error needs it

    similar = get_close_matches(count, totals, 1)
    if similar:
        return f"did you mean {similar[0] + name.removeprefix(count)!r}?"
    return f"{', '.join(totals)} are allowed; counts of accesses may end in _per_request"


def _sum_line(row: dict[str, Any], prefix: str, amount: str) -> _LineSum:
    """Sum a count, its ideal and the requests over accesses of a source line.

    ``prefix`` chooses the accesses as in the keys of `totals`: ``shared_load_``, ``shared_``, or empty for all.
    """
    accesses = []
    for access in row["accesses"]:
        space, kind = access["space"], access["kind"]
        prefixes = ("", f"{space}_", f"{space}_{kind}_".removeprefix("global_"))
        if prefix in prefixes and access.get(amount):
            accesses.append(access)
    sums = (sum(access.get(name, 0) for access in accesses) for name in (amount, f"ideal_{amount}", "requests"))
    return _LineSum(row["file"], row["line"] or 1, *sums)


def _resolve_limit(name: str, limit: Any, ideal: float | None) -> float:
    match = _RELATIVE.fullmatch(limit) if isinstance(limit, str) else None
    if match and ideal is not None:
        return float(match[1]) * ideal
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not math.isfinite(limit):
        raise LaunchError(f"limit {name} is {limit!r}; give a finite number, or '1.1 x ideal' for sectors and lines")
    return float(limit)


def check_lines(counts: LaunchCounts, directives: Directives) -> Iterator[Diagnostic]:
    """Yield a finding, on the worst access, for each limit in the source that accesses of this launch exceed.

    Raises `DirectiveError` for a limit on an unknown count, or relative to an ideal that the count lacks.
    """
    for row in counts.lines:
        for limit in directives.find_limits(row["file"], row["line"]):
            name, ideal_name = limit.name, _IDEALS.get(limit.name)
            if ideal_name is None:
                text = f"limit {name!r} names no count; allowed are {', '.join(_IDEALS)}"
                raise DirectiveError(limit.file, limit.line, text)
            if limit.relative and not ideal_name:
                relative = " and ".join(count for count, ideal_count in _IDEALS.items() if ideal_count)
                text = f"{name} have no ideal; give a number, or limit {relative} relative to the ideal"
                raise DirectiveError(limit.file, limit.line, text)
            # A limit on bank conflicts also applies to an access to shared memory that has none.
            present_name = "wavefronts" if name == "bank_conflicts" else name
            accesses = [access for access in row["accesses"] if access.get(present_name)]
            if accesses:
                directives.used_limits.add(limit)
            worst_ratio, text = limit.number, ""
            for access in accesses:
                requests = access["requests"] if name in _PER_REQUEST else 1
                value, unit = access[name] / requests, access[ideal_name] / requests if limit.relative else 1.0
                if unit and value / unit > worst_ratio:
                    worst_ratio = value / unit
                    text = f"{name} are {value:g}; at most {limit.number * unit:g} are allowed"
            if text:
                yield Diagnostic(row["file"], row["line"], LINE_LIMIT, text, launch=counts.launch.label)
