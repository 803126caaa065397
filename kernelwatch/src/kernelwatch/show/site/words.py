"""Changes in words and signs, as the templates of Overview, Regressions and the pages of commits have them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup, escape

#: Between a number and its unit: no line ends there.
NARROW = "\u202f"

#: A verdict's sign beside its word: colour is never alone.
SIGNS = {
    "slower": "▲", "faster": "▼", "mixed": "◆", "undecided": "?", "acknowledged": "✓",
    "more": "△", "fewer": "▽", "noted": "+", "same": "·",
}  # fmt: skip

_Group = Mapping[str, Any]

_ACCESSES = re.compile(r"(load|store) (sectors|lines)")
_REPOSITORY = re.compile(r"(https://git(?:hub|lab)\.com/.+?/)(?:-/)?commits?/")


def short(commit: str) -> str:
    """A commit's first digits."""
    return commit[:8]


def day(milliseconds: float) -> str:
    """The day of a time in milliseconds since 1970."""
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).date().isoformat()


def breakable(text: str) -> Markup:
    """A long name: a line may end after an underscore."""
    return Markup(str(escape(text)).replace("_", "_<wbr>"))


def address(page: str, **choices: str) -> str:
    """Where a page of charts is with some choices made."""
    return f"{page}.html#{urlencode(choices, quote_via=quote)}"


def history(machine: str, one: Mapping[str, Any]) -> str:
    """Where the graph of a configuration is."""
    picked = {f"p-{axis}": value for axis, value in one["params"].items()}
    return address("history", machine=machine, benchmark=one["benchmark"], **picked)


def lines(machine: str, benchmark: str) -> str:
    """Where the graph of a benchmark is, with a line for each value of its first axis, its kernels."""
    return address("history", machine=machine, benchmark=benchmark, **{"p-kernel": "all, a line each"})


def rows(found: Mapping[str, Sequence[Any]]) -> list[list[Any]]:
    """The rows of a table, by what stands first in each."""
    return [[name, *cells] for name, cells in found.items()]


def source(commit_url: str | None, change: Mapping[str, Any], kernel: str) -> str:
    """Where a kernel's source is to be read: at a public repository of a known kind; empty elsewhere."""
    found = _REPOSITORY.fullmatch(commit_url or "")
    place = change["lines"][kernel]
    return f"{found[1]}blob/{change['head']}/{place['file']}#L{place['line']}" if found else ""


def named(axis: str, value: str) -> str:
    """A value of an axis, with its name where it is a number."""
    return f"{axis} {value}" if value.isdecimal() else value


def number(value: float, digits: int = 4) -> str:
    """A number with so many digits, and none that say nothing."""
    return f"{float(f'{value:.{digits}g}'):.15g}"


def percent(ratio: float) -> str:
    """A ratio of times as a change: "+4.4 %"."""
    change = 100 * (ratio - 1)
    size = abs(change)
    return f"{'−' if change < 0 else '+'}{size:.{1 if size < 9.95 else 0}f}{NARROW}%"


def rate(value: float) -> str:
    """A rate or a share, as a tile has it."""
    return f"{value:.0f}" if value >= 100 else number(value, 1 if value < 1 else 3)


def quantity(value: float, unit: str) -> str:
    """A value as people write it; seconds with the unit that fits."""
    if unit != "seconds":
        return number(value)
    least, name = next((each for each in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")) if value >= each[0]), (1e-9, "ns"))
    return f"{number(value / least)}{NARROW}{name}"


def own(change: Mapping[str, Any]) -> list[Any]:
    """The groups that say something of the machine itself: what is compiled for other architectures comes elsewhere."""
    return [group for group in change["groups"] if not group["elsewhere"]]


def extent(group: _Group) -> str:
    """How many configurations changed, and by how much: "4 of 35 slower (mean +6.1 %), 1 faster (−19 %)"."""

    def mean(name: str) -> str:
        ratio = group.get({"slower": "slowdown", "faster": "speedup"}.get(name, ""))
        return "" if ratio is None else f" ({'mean ' if group[name] > 1 else ''}{percent(ratio)})"

    names = ("slower", "faster", "undecided", "acknowledged")
    if group["times"] and any(group[name] for name in names):
        found = [name for name in names if group[name]]
        of = [f" of {group['times']}", *[""] * len(found)]
        return ", ".join(f"{group[name]}{part} {name}{mean(name)}" for name, part in zip(found, of, strict=False))
    return ", ".join(f"{group[name]} {name}" for name in ("more", "fewer", "acknowledged", "noted") if group[name])


def largest(group: _Group) -> str:
    """The configuration that changed most, with both values."""
    one = group["largest"]
    where = " ".join(named(*each) for each in one["params"].items() if each[0] not in ("kernel", "flags"))
    return f"{where}: {quantity(one['base'], one['unit'])} →\u00a0{quantity(one['head'], one['unit'])}"


def why(group: _Group, most: int | None = None) -> str:
    """What else changed, the first `most` of it, and which machine counted it where another did."""
    every = _reasons(group)
    shown = every[:most]
    more = [f"and {len(every) - len(shown)} more"] if len(shown) < len(every) else []
    said = ", ".join([*shown, *more]) or "nothing that was recorded"
    text = "; ".join([said, *(f"acknowledged: {reason}" for reason in group["accepted"])])
    return text if group["counted_on"] is None else f"{text} (counted on {group['counted_on']})"


def _reasons(group: _Group) -> list[str]:
    """The machine code, then what rose, then what fell; of a change to the better, what fell comes first.

    Numbers that changed alike are told once.
    """
    alike: dict[str, list[str]] = {}
    rises: dict[str, bool] = {}
    for one in group["evidence"]:
        on = f" on {', '.join(one['archs'])}" if one["archs"] else ""
        written = re.sub(r"(^| )-(?=\d)", r"\1−", one["figure"].replace("->", "→")).replace(" %", f"{NARROW}%")
        key = f"{written}{on}" if one["figure"] else ""
        alike.setdefault(key, []).append(one["name"] if key else f"{one['name']}{on}")
        rises.setdefault(key, one["rises"])
    plain = alike.pop("", [])
    better = group["verdict"] in ("faster", "fewer")
    figures = sorted(alike, key=lambda figure: rises[figure] == better)
    return [*reversed(plain), *(f"{_named(alike[figure])} {figure}" for figure in figures)]


def _named(names: list[str]) -> str:
    """The lines and sectors of loads and stores, where all changed alike, in few words."""
    found = [_ACCESSES.fullmatch(name) for name in names]
    text = ", ".join(names)
    if len(names) > 1 and all(found):
        kinds, units = (sorted({each[part] for each in found if each}) for part in (1, 2))
        if len(kinds) * len(units) == len(names):
            text = f"{' and '.join(reversed(units))} of {' and '.join(f'{kind}s' for kind in kinds)}"
    return re.sub(r"\blines\b", "cache lines", text)


def cell(state: Mapping[str, Any]) -> str:
    """A kernel's verdict at a commit: of times the mean change, of counts how many changed."""
    if state["verdict"] == "same":
        return SIGNS["same"]
    changed = sum(state[name] for name in ("more", "fewer", "acknowledged", "noted"))
    text = percent(state["ratio"]) if state["slower"] + state["faster"] else str(changed)
    return f"{SIGNS[state['verdict']]} {text}"


def times(change: Mapping[str, Any] | None) -> str:
    """How many of a machine's times changed with a commit."""
    if change is None or not change["judged"]:
        return "none taken"
    words = ("slower", "faster", "undecided")
    counts = {word: sum(state[word] for state in change["kernels"].values()) for word in words}
    changed = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return f"of {change['judged']}: {changed or 'all the same'}"


def most_changed(changes: Sequence[Mapping[str, Any]]) -> list[str]:
    """The kernels of some changes: first those whose verdict was not "same" at most commits, then by name."""
    changed: Counter[str] = Counter()
    for change in changes:
        changed.update({kernel: state["verdict"] != "same" for kernel, state in change["kernels"].items()})
    return sorted(changed, key=lambda kernel: (-changed[kernel], kernel))


def most_cubins(changes: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The change that tells of most cubins; None where none tells of any."""
    return max((each for each in changes if each["cubins"]), key=lambda each: len(each["cubins"]), default=None)


def plural(count: int, one: str, several: str = "") -> str:
    """A count and what is counted."""
    return f"{count} {one if count == 1 else several or f'{one}s'}"


def filters() -> Iterable[tuple[str, Callable[..., Any]]]:
    """The names by which templates know these functions."""
    every: list[Callable[..., Any]] = [
        short,
        day,
        breakable,
        number,
        rate,
        extent,
        largest,
        why,
        cell,
        times,
        plural,
        named,
    ]
    every += [history, lines, rows, source, most_changed, most_cubins]
    return ((function.__name__, function) for function in every)
