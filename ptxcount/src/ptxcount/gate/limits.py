"""Limits on the costs of a launch, in its table, and of a source line."""

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..util.errors import LaunchError
from .counting import LaunchCounts
from .diagnostics import LIMIT, LINE_LIMIT, Diagnostic
from .directives import DirectiveError, Directives, LineLimit
from .launches import TableError

_RELATIVE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*x\s*ideal\s*")
#: A count of accesses: a prefix of space (not for global memory) and kind (not for constant memory), then the amount,
#: as in ``load_`` and ``sectors``, or ``shared_load_`` and ``wavefronts``.
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
    *(f"{space}_{kind}_{name}" for space in ("local", "texture", "surface", "bulk", "cluster")
      for kind in ("load", "store", "atomic") for name in ("requests", "sectors", "useful_bytes")),
    *(f"cluster_{kind}_ideal_sectors" for kind in ("load", "store", "atomic")),
    *(f"{space}_atomic_together" for space in ("local", "texture", "surface", "bulk", "cluster")),
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
    """A count, its ideal, and the requests, each a sum over accesses of a source line."""

    file: str
    line: int
    amount: int
    ideal: int
    requests: int


def check_launch(counts: LaunchCounts) -> Iterator[Diagnostic]:
    """Yield a finding for each exceeded limit in the launch's table; raise `LaunchError` for an invalid limit.

    A limit names a count of `LaunchCounts.totals`, or ``bank_conflicts`` for those of all shared accesses. The suffix
    ``_per_request`` is allowed for counts of accesses that have requests.
    """
    totals = counts.totals | {name: counts.totals.get(name, 0) for name in _OPTIONAL_COUNTS}
    totals["bank_conflicts"] = _sum_shared(totals, "bank_conflicts")
    for name, limit in counts.launch.limits.items():
        count = name.removesuffix("_per_request")
        if count not in totals:
            raise LaunchError(f"limit {name!r} names no count; {_suggest_limit(count, name, [*totals])}")
        match = _COUNT.fullmatch(count)
        prefix, amount = match.groups() if match else ("", count)
        divisor = 1 if count == name else _count_requests(name, prefix, totals)
        lines = [_sum_line(row, prefix, amount) for row in counts.lines]
        ideal = sum(line.ideal for line in lines) / divisor if f"{prefix}ideal_{amount}" in totals else None
        value, allowed = totals[count] / divisor, _resolve_limit(name, limit, ideal)
        if value <= allowed:
            continue
        text, place = f"{name} is {value:g}; {_format_maximum(allowed)}", (counts.launch.file, 1)
        if lines and (match or count == "bank_conflicts"):  # a count of accesses
            worst = max(lines, key=lambda line: line.amount - (line.ideal if isinstance(limit, str) else 0))
            place = worst.file, worst.line
            text += f"; at this line it is {worst.amount / max(worst.requests, 1):g}" if count != name else ""
        yield Diagnostic(*place, LIMIT, text, launch=counts.launch.label)


def _count_requests(name: str, prefix: str, totals: dict[str, int]) -> int:
    """Return the requests of a limit ``name`` that ends in ``_per_request``, at least 1."""
    if name == "bank_conflicts_per_request":
        return max(_sum_shared(totals, "requests"), 1)
    if f"{prefix}requests" not in totals:
        count = name.removesuffix("_per_request")
        raise LaunchError(f"limit {name!r}: {count} has no value per request; remove _per_request")
    return max(totals[f"{prefix}requests"], 1)


def _sum_shared(totals: dict[str, int], amount: str) -> int:
    return sum(value for name, value in totals.items() if name.startswith("shared_") and name.endswith(amount))


def _suggest_limit(count: str, name: str, totals: list[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only an error needs it

    similar = get_close_matches(count, totals, 1)
    if similar:
        return f"did you mean {similar[0] + name.removeprefix(count)!r}?"
    return f"allowed are {', '.join(totals)}; counts of accesses may end in _per_request"


def _sum_line(row: dict[str, Any], prefix: str, amount: str) -> _LineSum:
    """Sum a count, its ideal and the requests over those accesses of a source line that have the count.

    ``prefix`` selects accesses: ``load_`` loads of global memory, ``shared_load_`` loads of shared memory,
    ``constant_`` all accesses to constant memory, and an empty prefix all accesses.
    """
    accesses = []
    for access in row["accesses"]:
        space, kind = access["space"], access["kind"]
        prefixes = ("", f"{space}_", f"{space}_{kind}_".removeprefix("global_"))
        if prefix in prefixes and access.get(amount):
            accesses.append(access)
    names = (amount, f"ideal_{amount}", "requests")
    count, ideal, requests = (sum(access.get(name, 0) for access in accesses) for name in names)
    return _LineSum(row["file"], row["line"] or 1, count, ideal, requests)


def _resolve_limit(name: str, limit: Any, ideal: float | None) -> float:
    match = _RELATIVE.fullmatch(limit) if isinstance(limit, str) else None
    if match and ideal is not None:
        return float(match[1]) * ideal
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not math.isfinite(limit):
        raise LaunchError(f"limit {name} is {limit!r}; give a finite number, or '1.1 x ideal' for sectors and lines")
    return float(limit)


def check_lines(counts: LaunchCounts, directives: Directives) -> Iterator[Diagnostic]:
    """Yield a finding for each limit in the source that an access of this launch exceeds.

    A limit relative to the ideal applies only to accesses that have an ideal; those to local memory have none. Raises
    `DirectiveError` for a limit on an unknown count, or relative to an ideal that the count never has.
    """
    for row in counts.lines:
        for limit in directives.find_limits(row["file"], row["line"]):
            ideal_name = _find_ideal(limit)
            # A limit on bank conflicts also applies to an access to shared memory that has none.
            present_name = "wavefronts" if limit.name == "bank_conflicts" else limit.name
            accesses = [access for access in row["accesses"] if access.get(present_name)]
            if limit.relative:
                accesses = [access for access in accesses if access[ideal_name]]
            if accesses:
                directives.used_limits.add(limit)
            if text := _describe_excess(limit, ideal_name, accesses):
                yield Diagnostic(row["file"], row["line"], LINE_LIMIT, text, launch=counts.launch.label)


def _find_ideal(limit: LineLimit) -> str:
    """Return the name of the ideal of a limit's count, or ""; raise `DirectiveError` for an invalid limit."""
    name, ideal_name = limit.name, _IDEALS.get(limit.name)
    if ideal_name is None:
        text = f"limit {name!r} names no count; allowed are {', '.join(_IDEALS)}"
        raise DirectiveError(limit.file, limit.line, text)
    if limit.relative and not ideal_name:
        relative = " and ".join(count for count, ideal_count in _IDEALS.items() if ideal_count)
        text = f"{name} have no ideal; give a number, or limit {relative} relative to the ideal"
        raise DirectiveError(limit.file, limit.line, text)
    return ideal_name


def _format_maximum(number: float) -> str:
    return f"at most {number:g} {'is' if number == 1 else 'are'} allowed"


def _describe_excess(limit: LineLimit, ideal_name: str, accesses: list[dict[str, Any]]) -> str:
    worst_ratio, text = limit.number, ""
    for access in accesses:
        requests, unit_text = (access["requests"], " per request") if limit.name in _PER_REQUEST else (1, "")
        value = access[limit.name] / requests
        unit = access[ideal_name] / requests if limit.relative else 1.0
        if value / unit > worst_ratio:
            worst_ratio = value / unit
            text = f"{limit.name}{unit_text} are {value:g}; {_format_maximum(limit.number * unit)}"
    return text
