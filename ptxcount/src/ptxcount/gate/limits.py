"""Limits on the costs of a launch, in its table, and of a source line."""

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..util.errors import LaunchError
from .counting import LaunchCounts
from .diagnostics import Diagnostic
from .directives import DirectiveError, Directives
from .launches import TableError

_RELATIVE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*x\s*ideal\s*")
#: A count of accesses in ``totals()``: a prefix of space (not for global memory) and kind, then the amount, as in
#: ``load_`` and ``sectors``, or ``shared_load_`` and ``wavefronts``.
_COUNT = re.compile(r"((?:[a-z]+_)?(?:load|store|atomic|frame)_|constant_)(\w+)")
#: Counts allowed in a limit on a line -> the count that is their ideal, or empty.
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
    """Return findings for exceeded limits: in the launch's table, and at the source lines that the launch executes.

    Raises `DirectiveError` or `TableError` for an invalid limit.
    """
    try:
        return [*check_launch(counts), *check_lines(counts, directives)]
    except DirectiveError:
        raise
    except LaunchError as error:
        raise TableError(str(error), counts.launch.line) from None


class _LineSum(NamedTuple):
    """A count of a source line, the ideal count, and the requests: sums over the line's accesses with this count."""

    file: str
    line: int
    amount: int
    ideal: int
    requests: int


def check_launch(counts: LaunchCounts) -> Iterator[Diagnostic]:
    """Yield a finding for each exceeded limit in the launch's table; raise `LaunchError` for an invalid limit.

    A limit names a count of ``totals()``, or ``bank_conflicts`` for all kinds. A count of accesses may have the suffix
    ``_per_request``.
    """
    totals = counts.totals | {name: counts.totals.get(name, 0) for name in _OPTIONAL_COUNTS}
    totals["bank_conflicts"], shared_requests = (
        sum(value for key, value in totals.items() if key.startswith("shared_") and key.endswith(name))
        for name in ("bank_conflicts", "requests")
    )
    for name, limit in counts.launch.limits.items():
        count, is_per_request = name.removesuffix("_per_request"), name.endswith("_per_request")
        match = _COUNT.fullmatch(count)
        is_of_accesses = match is not None or count == "bank_conflicts"
        prefix, amount = match.groups() if match else ("", count)
        if count not in totals or (is_per_request and not is_of_accesses):
            from difflib import get_close_matches  # noqa: PLC0415 - only an error needs it

            similar = get_close_matches(count, totals, 1)
            names = f"{', '.join(totals)} are allowed, for accesses also with _per_request"
            ending = "_per_request" if is_per_request else ""
            hint = f"did you mean {similar[0] + ending!r}?" if similar else names
            raise LaunchError(f"limit {name!r} names no count; {hint}")
        requests = (totals.get(f"{prefix}requests", shared_requests) or 1) if is_per_request else 1
        lines = [_sum_line(row, prefix, amount) for row in counts.lines]
        ideal = sum(line.ideal for line in lines) / requests if f"{prefix}ideal_{amount}" in totals else None
        value, allowed = totals[count] / requests, _resolve_limit(name, limit, ideal)
        if value <= allowed:
            continue
        text = f"{name} is {value:g}; at most {allowed:g} are allowed"
        file, line_number = counts.launch.file, 1
        if lines and is_of_accesses:  # report the line with the most, or with the largest excess over the ideal
            is_relative = isinstance(limit, str)
            worst = max(lines, key=lambda line: line.amount - (line.ideal if is_relative else 0))
            file, line_number = worst.file, worst.line
            text += f"; at this line it is {worst.amount / max(worst.requests, 1):g}" if is_per_request else ""
        yield Diagnostic(file, line_number, "PC001", text, launch=counts.launch.label)


def _sum_line(row: dict[str, Any], prefix: str, amount: str) -> _LineSum:
    """Sum up a count of a source line, such as ``sectors`` of the accesses with the prefix ``shared_load_``."""
    accesses = [
        access
        for access in row["accesses"]
        if prefix in ("", f"{access['space']}_", f"{access['space']}_{access['kind']}_".removeprefix("global_"))
        and access.get(amount)
    ]
    sums = (sum(access.get(name, 0) for access in accesses) for name in (amount, f"ideal_{amount}", "requests"))
    return _LineSum(row["file"], row["line"] or 1, *sums)


def _resolve_limit(name: str, limit: Any, ideal: float | None) -> float:
    """Return a limit as a number: 1.5, or for "1.1 x ideal" 1.1 times the ideal. Raise `LaunchError` for others."""
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
            directives.used_limits |= {limit} if accesses else set()
            worst_ratio, text = limit.number, ""
            for access in accesses:
                requests = access["requests"] if name in _PER_REQUEST else 1
                value, unit = access[name] / requests, access[ideal_name] / requests if limit.relative else 1.0
                if unit and value / unit > worst_ratio:
                    worst_ratio = value / unit
                    text = f"{name} are {value:g}; at most {limit.number * unit:g} are allowed"
            if text:
                yield Diagnostic(row["file"], row["line"], "PC002", text, launch=counts.launch.label)
