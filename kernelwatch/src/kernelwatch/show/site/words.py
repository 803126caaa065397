"""Changes in words and signs, as the templates of Overview, Regressions and the pages of commits have them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup, escape

from kernelwatch.review.verdict import percent

#: A verdict's sign beside its word: colour is never alone.
SIGNS = {
    "slower": "▲", "faster": "▼", "mixed": "◆", "undecided": "?", "acknowledged": "✓",
    "more": "△", "fewer": "▽", "noted": "+", "same": "·", "broken": "✗", "failed": "✗", "repaired": "✔",
}  # fmt: skip

_Group = Mapping[str, Any]

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


def rate(value: float) -> str:
    """A rate or a share, as a tile has it."""
    return f"{value:.0f}" if value >= 100 else number(value, 1 if value < 1 else 3)


def own(change: Mapping[str, Any]) -> list[Any]:
    """The groups that say something of the machine itself: what is compiled for other architectures comes elsewhere."""
    return [group for group in change["groups"] if not group["elsewhere"]]


def why(group: _Group, most: int | None = None) -> str:
    """What else changed, the first `most` of it, and which machine counted it where another did."""
    every = [f"{said} on {', '.join(archs)}" if archs else said for said, archs in group["evidence"]]
    shown = every[:most]
    more = [f"and {len(every) - len(shown)} more"] if len(shown) < len(every) else []
    said = ", ".join([*shown, *more]) or "nothing that was recorded"
    text = "; ".join([said, *(f"acknowledged: {reason}" for reason in group["accepted"])])
    return text if group["counted_on"] is None else f"{text} (counted on {group['counted_on']})"


def extent(state: Mapping[str, Any]) -> str:
    """How many of a kernel's configurations are what, where any changed."""
    return ", ".join(f"{state[word]} {word}" for word in SIGNS if state.get(word)) or "same"


def cell(state: Mapping[str, Any]) -> str:
    """A kernel's verdict at a commit: of times the mean change, of counts how many changed."""
    if state["verdict"] == "same":
        return SIGNS["same"]
    changed = sum(state[name] for name in ("more", "fewer", "acknowledged", "noted", "broken", "failed", "repaired"))
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
    every: list[Callable[..., Any]] = [short, day, breakable, number, rate, extent, why, cell, times, plural, named]
    every += [history, source, most_changed, most_cubins]
    return ((function.__name__, function) for function in every)
