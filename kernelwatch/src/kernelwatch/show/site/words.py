"""The filters of templates: links, numbers, and sentences about changes."""

import json
import math
import re
import uuid
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
from ptxcount.util.grammar import choose_form, count_noun

#: Verdict -> the sign that pages show with its word, for readers who cannot see colours.
SIGNS = {
    "slower": "▲", "faster": "▼", "mixed": "◆", "undecided": "?", "acknowledged": "✓",
    "rose": "△", "fell": "▽", "noted": "+", "same": "·", "broken": "✗", "failed": "✗", "repaired": "✔",
}  # fmt: skip

_Group = Mapping[str, Any]


def shorten_hash(commit: str) -> str:
    """Return the abbreviated hash of a commit."""
    return commit[:8]


def format_day(milliseconds: float) -> str:
    """Return the day of a time in milliseconds since 1970, such as "2026-11-21", in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).date().isoformat()


def format_moment(milliseconds: float) -> str:
    """Return a time in milliseconds since 1970 in the format of RFC 3339."""
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).isoformat()


def derive_uuid(project: str, commit: str = "") -> str:
    """Return the permanent UUID of a project's feed, or of its entry for a commit."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, project + commit))


def describe_age(column: Mapping[str, Any]) -> str:
    """Return a text such as "measured on 2026-11-21, 458 commits ago, 4 of which touch kernels".

    `column` is the value of `publisher.describe_column`.
    """
    distance = column["distance"]
    parts = [f"measured on {column['day']}" if column["day"] else "measured"]
    if distance is None:
        parts.append("not a known ancestor of HEAD")
    elif not distance["commits"]:
        parts.append("at HEAD")
    else:
        parts += [f"{count_noun(distance['commits'], 'commit')} ago", format_touching(distance["touching"])]
    return ", ".join(parts)


def format_touching(count: int) -> str:
    """Return a text such as "4 of which touch kernels"."""
    return f"{count or 'none'} of which {choose_form(count, 'touches', 'touch')} kernels"


def describe_branch(branch: str) -> str:
    """Return "on BRANCH" for a name in `CommitGraph.branches`, but "merged" and "unknown to git" as they are."""
    return branch if branch in (MERGED, UNKNOWN) else f"on {branch}"


def break_name(text: str) -> Markup:
    """Return a name as HTML that browsers may break after underscores."""
    return Markup(str(escape(text)).replace("_", "_<wbr>"))


def link_history(machine: str, configuration: Mapping[str, Any]) -> str:
    """Return the address of a configuration's graph on the page History."""
    parameters = {f"p-{axis}": value for axis, value in configuration["params"].items()}
    choices = {"machine": machine, "benchmark": configuration["benchmark"], **parameters}
    return f"history.html#{urlencode(choices, quote_via=quote)}"


def name_configuration(configuration: Mapping[str, Any]) -> str:
    """Return the values of a configuration's axes, except the kernel, as in "width 64, double, -O3"."""
    values = ((axis, value) for axis, value in configuration["params"].items() if axis != "kernel")
    return shorten_flags(", ".join(f"{axis} {value}" if value.isdecimal() else value for axis, value in values))


def format_number(value: float, digits: int = 4) -> str:
    """Format a number with at most `digits` significant digits; integers keep all digits."""
    if value == round(value):
        return f"{value:.0f}"
    return f"{float(f'{value:.{digits}g}'):.15g}"


def format_rate(value: float) -> str:
    """Format a rate or a share: integers from 100 on, three significant digits from 1 on, else one."""
    return f"{value:.0f}" if value >= 100 else format_number(value, 1 if value < 1 else 3)


def shorten_machines(machines: Iterable[str]) -> dict[str, str]:
    """Return machine -> its short name, or its full name if another machine has the same short name."""
    names = list(machines)
    short_names = {name: _shorten_machine(name) for name in names}
    uses = Counter(short_names.values())
    return {name: name if uses[short_name] > 1 else short_name for name, short_name in short_names.items()}


def _shorten_machine(machine: str) -> str:
    """Return the name of an NVIDIA GPU without vendor and memory, such as "H200"; other names of machines unchanged."""
    if machine.startswith("no-gpu-"):
        return "no GPU"
    match = re.fullmatch(r"(?:nvidia-)(?:geforce-)?([a-z0-9-]+?)(?:-\d+gb.*)?", machine)
    return match[1].replace("-", " ").upper() if match else machine


def list_own_groups(change: Mapping[str, Any]) -> list[Any]:
    """Return a change's groups, except those of machine code for other architectures than the machine's."""
    return [group for group in change["groups"] if not group["elsewhere"]]


#: Verdict on a group that sentences mention -> its rank, worst first: failures, worse, better, repaired.
_RANKS = {
    "broken": 0, "failed": 0, "slower": 1, "mixed": 1, "rose": 1, "faster": 2, "fell": 2, "repaired": 3,
}  # fmt: skip


def list_regressions(changes: Iterable[Mapping[str, Any]]) -> list[_Group]:
    """Return the groups of `list_own_groups` that became worse, worst first."""
    worse = ("broken", "slower", "mixed", "rose")
    groups = (group for change in changes for group in list_own_groups(change) if group["verdict"] in worse)
    return sorted(groups, key=_rank_group)


def select_worst_groups(changes: Iterable[Mapping[str, Any]]) -> list[_Group]:
    """Return the worst group of each changed kernel, the worst kernel first.

    If times of the kernel changed, its other groups do not count, except failures. Of groups that became slower, the
    worst has the largest change, whether or not some of its times became faster.
    """
    groups = [group for change in changes for group in list_own_groups(change) if group["verdict"] in _RANKS]
    timed_kernels, groups_by_kernel = {group["kernel"] for group in groups if group["timed"]}, dict[str, list[_Group]]()
    for group in sorted(groups, key=_rank_group):
        if group["timed"] or group["kernel"] not in timed_kernels or group["verdict"] in ("broken", "failed"):
            groups_by_kernel.setdefault(group["kernel"], []).append(group)
    return [
        min(kernel_groups, key=lambda group: (*_rank_group(group)[:3], -group["size"]))
        for kernel_groups in groups_by_kernel.values()
    ]


def _rank_group(group: _Group) -> tuple[int, bool, bool, int, float]:
    verdict, is_compiled = group["verdict"], find_kind(group["of"]["benchmark"]) is Kind.COMPILED
    return _RANKS[verdict], not group["timed"], is_compiled, list(_RANKS).index(verdict), -group["size"]


def summarize_changes(changes: Sequence[Mapping[str, Any]]) -> str:
    """Summarize a commit's changes on all machines in one line."""
    if not any(change["base"] for change in changes):
        return "Not compared: no ancestor has the same configurations."
    worst_groups = select_worst_groups(changes)
    if not worst_groups:
        return "Nothing changed."
    groups = [group for change in changes for group in list_own_groups(change)]
    phrases = [_describe_kernel(group, groups) for group in worst_groups[:2]]
    further = len(worst_groups) - len(phrases)
    phrases.append(f"{count_noun(further, 'more kernel')} changed" if further else "no other kernel changed")
    return f"{'; '.join(phrases)}."


def describe_span(changes: Iterable[Mapping[str, Any]]) -> str:
    """Return a sentence on the commits that may have made the worst change; empty for a single commit."""
    shown = list(changes)
    for group in select_worst_groups(shown)[:1]:
        (change,) = (change for change in shown if change["machine"] == group["machine"])
        between = change["between"][group["base"]]
        if span := format_span(between["count"], group["base"]):
            return f"Made {span}, {format_touching(between['touching_count'])}."
    return ""


def format_span(count: int, base: str) -> str:
    """Return a text such as "in one of 3 commits since 1234abcd"; empty for a single commit."""
    return f"in one of {count} commits since {shorten_hash(base)}" if count > 1 else ""


def _describe_kernel(group: _Group, groups: Iterable[_Group]) -> str:
    """Return a phrase on a kernel's changes. `group` is its worst group; `groups` are all groups of the commit."""
    kernel, word = group["kernel"], group["verdict"]
    if word in ("broken", "failed", "repaired"):
        return f"{kernel} {'works again' if word == 'repaired' else 'fails'}"
    if group["timed"]:
        peers = [peer for peer in groups if peer["timed"] and _machine_and_kernel(peer) == _machine_and_kernel(group)]
        if times := _describe_changed_times(group, peers):
            return f"{kernel} is {times}"
    facts = [fact for fact in group["evidence"] if not fact.startswith("machine code")][: 2 if word == "mixed" else 1]
    flags = f" with {shorten_flags(group['flags'])}" if group["flags"] not in ("", ANY_FLAGS) else ""
    most = f", at most {group['most']} at {group['at']}" if group["rose"] + group["fell"] > 1 else ""
    peers = [peer for peer in groups if _machine_and_kernel(peer) == _machine_and_kernel(group)]
    others = ", but other numbers fell" if word == "rose" and any(peer["verdict"] == "fell" for peer in peers) else ""
    return f"{kernel}: {', '.join(facts) or group['configurations']}{flags}{most}{others}"


def _machine_and_kernel(group: _Group) -> tuple[str, str]:
    return group["machine"], group["kernel"]


def _describe_changed_times(group: _Group, peers: Sequence[_Group]) -> str:
    """Return a phrase on the changed times of a kernel's groups; `group` is the worst of them. Empty without any."""
    word = group["verdict"]
    counts = {verdict: sum(peer[verdict] for peer in peers) for verdict in ("slower", "faster")}
    changed = sum(counts.values())
    if counts.get(word) and group["times"] == group["kernel_times"] == changed:
        mean = f" in the mean of {group['times']} times" if group["times"] > 1 else ""
        return f"{group['mean'].lstrip('+-')} {word}{mean}"
    if not changed:
        return ""
    parts = ", ".join(f"{verdict} in {count}" for verdict, count in counts.items() if count)
    largest = max(peers, key=lambda peer: (peer["ratio"] > 1, abs(math.log(peer["ratio"]))))  # slower ones first
    most = f"at most {format_percent(largest['ratio'])} at {largest['at']}"
    return f"{parts} of {count_noun(group['kernel_times'], 'time')}, {most}"


def format_difference(row: Mapping[str, Any]) -> str:
    """Format the relative change of a picture's row; empty if a value is 0."""
    return format_percent(row["after"] / row["before"]) if row["before"] and row["after"] else ""


def is_deciding(group: _Group) -> bool:
    """Return whether a group's verdict may decide the review."""
    return group["verdict"] in (*_RANKS, "undecided", "acknowledged") and not group["elsewhere"]


def list_verdicts(changes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the different verdicts on a commit's groups, except "noted", in the order of SIGNS."""
    verdicts = {group["verdict"] for change in changes for group in list_own_groups(change)}
    return [word for word in SIGNS if word in verdicts - {"noted"}]


def encode_groups(changes: Iterable[Mapping[str, Any]]) -> str:
    """Return machine, kernel and verdict of `list_own_groups` as JSON, for the filters of the page Commits."""
    return json.dumps(
        [
            [change["machine"], group["kernel"], group["verdict"]]
            for change in changes
            for group in list_own_groups(change)
        ]
    )


def format_share(value: float) -> str:
    """Format a share in per cent."""
    return f"{format_rate(100 * value)} %"


def format_amount(value: float, unit: str) -> str:
    """Format a number of the page Overview. Its unit is "s", "copies" or "sectors"."""
    if unit == "s":
        return format_quantity(value, "seconds")
    return f"{value:,.0f} {unit}" if unit == "sectors" else f"{format_rate(value)} {unit}"


def place_points(series: Sequence[tuple[str, float]]) -> list[tuple[str, float, float]]:
    """Return a sparkline's points (commit, x, y), in pixels.

    The height spans at least a fifth of the mean of the least and the greatest value: small changes look small.
    """
    width, height, edge = 128, 36, 6  # as in index.html
    values = [value for _, value in series]
    middle, last = (max(values) + min(values)) / 2, len(series) - 1
    scale = (height - 2 * edge) / (max(max(values) - min(values), abs(middle) / 5) or 1)
    across = [edge + place * (width - 2 * edge) / last if last else width / 2 for place in range(len(series))]
    return [
        (commit, round(x, 1), round(height / 2 - (value - middle) * scale, 1))
        for x, (commit, value) in zip(across, series, strict=True)
    ]


def explain_group(group: _Group) -> str:
    """Return the evidence and the acknowledgements of a group, as one line."""
    accepted = [f"acknowledged: {reason}" for reason in group["accepted"]]
    return "; ".join([", ".join(group["evidence"]) or "no recorded cause", *accepted])
