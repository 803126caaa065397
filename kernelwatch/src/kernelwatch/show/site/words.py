"""Changes in words and signs, as the templates of Overview and of commits have them."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup, escape

from kernelwatch.review.groups import ANY_FLAGS
from kernelwatch.review.verdict import format_percent
from kernelwatch.show.text import format_quantity, shorten_flags
from kernelwatch.store.graph import MERGED, UNKNOWN
from kernelwatch.suite.benchmark_names import Kind, find_kind

#: A verdict's sign beside its word: colour is never alone.
SIGNS = {
    "slower": "▲", "faster": "▼", "mixed": "◆", "undecided": "?", "acknowledged": "✓",
    "rose": "△", "fell": "▽", "noted": "+", "same": "·", "broken": "✗", "failed": "✗", "repaired": "✔",
}  # fmt: skip

_Group = Mapping[str, Any]


def shorten_hash(commit: str) -> str:
    """A commit's first digits."""
    return commit[:8]


def format_day(milliseconds: float) -> str:
    """The day of a time in milliseconds since 1970."""
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).date().isoformat()


def describe_age(column: Mapping[str, Any]) -> str:
    """Say when a column was measured: "measured on 2026-11-21, 458 commits ago, 4 of which touch kernels"."""
    distance = column["distance"]
    parts = [f"measured on {column['day']}" if column["day"] else "measured"]
    if distance is None:
        parts.append("not an ancestor that git knows")
    elif not distance["commits"]:
        parts.append("at HEAD")
    else:
        touching = f"{distance['touching'] or 'none'} of which touch{'es' * (distance['touching'] == 1)} kernels"
        parts += [f"{plural(distance['commits'], 'commit')} ago", touching]
    return ", ".join(parts)


def describe_branch(branch: str) -> str:
    """Say where a commit is that the published line lacks: "on side", "merged", "on no branch", "unknown to git"."""
    return branch if branch in (MERGED, UNKNOWN) else f"on {branch}"


def break_name(text: str) -> Markup:
    """A long name: a line may end after an underscore."""
    return Markup(str(escape(text)).replace("_", "_<wbr>"))


def link_history(machine: str, configuration: Mapping[str, Any]) -> str:
    """Where the graph of a configuration is."""
    parameters = {f"p-{axis}": value for axis, value in configuration["params"].items()}
    choices = {"machine": machine, "benchmark": configuration["benchmark"], **parameters}
    return f"history.html#{urlencode(choices, quote_via=quote)}"


def format_number(value: float, digits: int = 4) -> str:
    """A number with so many digits, and none that say nothing; a whole one, such as a count, with all."""
    if value == round(value):
        return f"{value:.0f}"
    return f"{float(f'{value:.{digits}g}'):.15g}"


def format_rate(value: float) -> str:
    """A rate or a share, in few digits."""
    return f"{value:.0f}" if value >= 100 else format_number(value, 1 if value < 1 else 3)


def shorten_machines(machines: Iterable[str]) -> dict[str, str]:
    """Machines, those of most worth first, by name: how they are called where there is little room."""
    names = list(machines)
    short_names = {name: _shorten_machine(name) for name in names}
    uses = Counter(short_names.values())
    return {name: name if uses[short_name] > 1 else short_name for name, short_name in short_names.items()}


def _shorten_machine(machine: str) -> str:
    """The GPU's name without its maker's and its memory's; "no GPU" where there is none."""
    if machine.startswith("no-gpu-"):
        return "no GPU"
    match = re.fullmatch(r"(?:nvidia-)(?:geforce-)?([a-z0-9-]+?)(?:-\d+gb.*)?", machine)
    return match[1].replace("-", " ").upper() if match else machine


def list_own_groups(change: Mapping[str, Any]) -> list[Any]:
    """The groups that say something of the machine itself: what is compiled for other architectures comes elsewhere."""
    return [group for group in change["groups"] if not group["elsewhere"]]


#: Verdicts that a sentence tells, the worst first.
_WORDS = ("broken", "failed", "slower", "mixed", "rose", "faster", "fell", "repaired")


def select_worst_groups(changes: Iterable[Mapping[str, Any]]) -> list[_Group]:
    """The worst group of each kernel that changed, the worst kernel first; numbers of one whose times did explain."""
    groups = [group for change in changes for group in list_own_groups(change) if group["verdict"] in _WORDS]
    timed_kernels, worst_groups = {group["kernel"] for group in groups if group["timed"]}, dict[str, _Group]()
    for group in sorted(groups, key=_rank_group):
        if group["timed"] or group["kernel"] not in timed_kernels or group["verdict"] in ("broken", "failed"):
            worst_groups.setdefault(group["kernel"], group)
    return list(worst_groups.values())


def _rank_group(group: _Group) -> tuple[int, bool, bool, float]:
    """By verdict; times before what is counted, and that before what the compiler made; then by size."""
    is_compiled = find_kind(group["of"]["benchmark"]) is Kind.COMPILED
    return _WORDS.index(group["verdict"]), not group["timed"], is_compiled, -group["size"]


def summarize_changes(changes: Sequence[Mapping[str, Any]]) -> str:
    """What a commit changed on all machines, in a line."""
    if not any(change["base"] for change in changes):
        return "Nothing to compare it with: no ancestor measured the same."
    worst_groups = select_worst_groups(changes)
    if not worst_groups:
        return "Nothing changed."
    groups = [group for change in changes for group in list_own_groups(change)]
    phrases = [_describe_group(group, [peer for peer in groups if _is_same_kernel(peer, group)]) for group in worst_groups[:2]]
    remaining = len(worst_groups) - len(phrases)
    return "; ".join([*phrases, f"{plural(remaining, 'more kernel')} changed" if remaining else "no other kernel changed"]) + "."


def _is_same_kernel(left: _Group, right: _Group) -> bool:
    return (left["machine"], left["kernel"], left["timed"]) == (right["machine"], right["kernel"], right["timed"])


def _describe_group(group: _Group, peers: Sequence[_Group]) -> str:
    """Say what changed of a kernel, of whose groups this is the worst; `alike` are all sets of flags on its machine."""
    kernel, word = group["kernel"], group["verdict"]
    if word in ("broken", "failed", "repaired"):
        return f"{kernel} {'works again' if word == 'repaired' else 'fails'}"
    sums = {verdict: sum(peer[verdict] for peer in peers) for verdict in ("slower", "faster")}
    counts = {verdict: count for verdict, count in sums.items() if count}
    if group["timed"] and group["times"] == group["kernel_times"] == sum(counts.values()) and word in counts:
        return f"{kernel} is {group['mean'].lstrip('+-')} {word} in the mean of {plural(group['times'], 'time')}"
    if group["timed"] and counts:
        parts = ", ".join(f"{verdict} in {count}" for verdict, count in counts.items())
        return f"{kernel} is {parts} of {plural(group['kernel_times'], 'time')}, {_describe_largest(peers)}"
    facts = [fact for fact in group["evidence"] if not fact.startswith("machine code")][: 2 if word == "mixed" else 1]
    flags = f" with {shorten_flags(group['flags'])}" if group["flags"] not in ("", ANY_FLAGS) else ""
    return f"{kernel}: {', '.join(facts) or group['configurations']}{flags}"


def _describe_largest(groups: Sequence[_Group]) -> str:
    """Return the largest change to the worse, or else to the better, with its configuration."""
    largest = max(groups, key=lambda group: (group["ratio"] > 1, abs(math.log(group["ratio"]))))
    return f"at most {format_percent(largest['ratio'])} at {largest['at']}"


def format_difference(row: Mapping[str, Any]) -> str:
    """By how much a number of a picture changed."""
    return format_percent(row["after"] / row["before"]) if row["before"] and row["after"] else ""


def is_deciding(group: _Group) -> bool:
    """Whether a group's verdict is one that counts."""
    return group["verdict"] in (*_WORDS, "undecided", "acknowledged") and not group["elsewhere"]


def list_verdicts(changes: Iterable[Mapping[str, Any]]) -> list[str]:
    """The verdicts of a commit on all machines, each once, in the order of their signs."""
    verdicts = {group["verdict"] for change in changes for group in list_own_groups(change)}
    return [word for word in SIGNS if word in verdicts - {"noted"}]


def encode_groups(changes: Iterable[Mapping[str, Any]]) -> str:
    """What a commit's row can be filtered by: machine, kernel and verdict of each group, as JSON."""
    return json.dumps([[change["machine"], group["kernel"], group["verdict"]] for change in changes for group in list_own_groups(change)])


def format_share(value: float) -> str:
    """A share in per cent."""
    return f"{format_rate(100 * value)} %"


def format_amount(value: float, unit: str) -> str:
    """A number of Overview with its unit."""
    if unit == "s":
        return format_quantity(value, "seconds")
    return f"{value:,.0f} {unit}" if unit == "sectors" else f"{format_rate(value)} {unit}"


def place_points(series: Sequence[tuple[str, float]], width: int = 128, height: int = 36) -> list[tuple[str, float, float]]:
    """Where a sparkline's points lie: commit, across and down. Its height is a fifth of the value, or the range."""
    values = [value for _, value in series]
    middle, last, edge = (max(values) + min(values)) / 2, len(series) - 1, 6
    scale = (height - 2 * edge) / (max(max(values) - min(values), abs(middle) / 5) or 1)
    return [
        (
            commit,
            round(edge + place * (width - 2 * edge) / last if last else width / 2, 1),
            round(height / 2 - (value - middle) * scale, 1),
        )
        for place, (commit, value) in enumerate(series)
    ]


def explain_group(group: _Group) -> str:
    """What else changed."""
    accepted = [f"acknowledged: {reason}" for reason in group["accepted"]]
    return "; ".join([", ".join(group["evidence"]) or "nothing that was recorded", *accepted])


def plural(count: int, one: str) -> str:
    """A count and what is counted."""
    return f"{count} {one if count == 1 else f'{one}s'}"
