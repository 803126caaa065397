"""Findings of `check` as text, and in formats of other tools; changes of `compare` as Markdown."""

import json
from collections.abc import Callable, Iterator, Sequence
from textwrap import indent
from typing import Any

from ..cli.options import plain
from ..util.grammar import count_noun
from .counting import LaunchCounts
from .diagnostics import CODES, Diagnostic
from .pins import Change, Lock, iter_changes

#: Version of the JSON format, which `check.schema.json` describes.
VERSION = 3
#: Maximum number of changes that `compare` lists.
_MAX_LISTED = 200
_GITHUB = {"error": "error", "warning": "warning", "note": "notice"}


def _format_github(findings: Sequence[Diagnostic], launch_counts: Sequence[LaunchCounts]) -> str:
    lines = []
    for finding in findings:
        place = f"file={_escape(finding.file, ':,')},line={finding.line}"
        text = _escape(f"{finding.code} {finding.text}")
        lines.append(f"::{_GITHUB[finding.level]} {place},title={CODES[finding.code]}::{text}")
    return "\n".join(lines)


def _escape(text: str, extra: str = "") -> str:
    """Escape percent signs, line ends and the ``extra`` characters as GitHub's workflow commands require: % -> %25."""
    for character in "%\n" + extra:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def _format_json(findings: Sequence[Diagnostic], launch_counts: Sequence[LaunchCounts]) -> str:
    launches = []
    for counts in launch_counts:
        names = {"file": counts.launch.file, "name": counts.launch.label, "key": counts.key}
        launches.append({**names, "totals": counts.totals, "lines": counts.lines})
    named_findings = [{**finding._asdict(), "name": CODES[finding.code]} for finding in findings]
    return json.dumps({"version": VERSION, "findings": named_findings, "launches": launches}, indent=1)


def _format_sarif(findings: Sequence[Diagnostic], launch_counts: Sequence[LaunchCounts]) -> str:
    from importlib.metadata import version  # noqa: PLC0415 - which takes as long as a check without it

    rules = [
        {"id": code, "name": CODES[code], "shortDescription": {"text": f"{code} {CODES[code].replace('-', ' ')}"}}
        for code in sorted({finding.code for finding in findings})
    ]
    driver = {"name": "ptxcount", "semanticVersion": version("ptxcount"), "rules": rules}
    return json.dumps(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{"tool": {"driver": driver}, "results": [_make_sarif_result(finding) for finding in findings]}],
        },
        indent=1,
    )


def _make_sarif_result(finding: Diagnostic) -> dict[str, Any]:
    from urllib.parse import quote  # noqa: PLC0415 - as above

    place = {"artifactLocation": {"uri": quote(finding.file)}, "region": {"startLine": finding.line}}
    return {
        "ruleId": finding.code,
        "level": finding.level,
        "message": {"text": finding.text},
        "locations": [{"physicalLocation": place}],
    }


#: Formatters of findings and counts, by the value of ``--format``.
FORMATS: dict[str, Callable[[Sequence[Diagnostic], Sequence[LaunchCounts]], str]] = {
    "text": lambda findings, launch_counts: "\n".join(map(str, findings)),
    "json": _format_json,
    "sarif": _format_sarif,
    "github": _format_github,
}


def format_markdown(
    launch_counts: Sequence[LaunchCounts], failures: Sequence[Diagnostic], lock: Lock, release: str
) -> str:
    """Format the changes since a lock file as Markdown: a title, and a code block.

    The block lists launches that failed, are new or, if none failed, gone; then changed counts, by relative rise.
    ``release`` is the release of the current nvcc; empty without nvcc.
    """
    failed = [f"{failure.launch or failure.file}: {failure.message}" for failure in dict.fromkeys(failures)]
    same_count, new = 0, list[str]()
    changed: list[tuple[LaunchCounts, Change]] = []
    for counts in launch_counts:
        pinned_lines = lock.find_launch(counts)
        if pinned_lines is None:
            new.append(counts.launch.label)
            continue
        changes = [*iter_changes(counts.lines, pinned_lines)]
        changed += [(counts, change) for change in changes]
        if not changes:
            same_count += 1
    changed.sort(key=lambda changed_count: changed_count[1].before / max(changed_count[1].now, 1))
    lists = {"not counted": failed, "new": sorted(new)}
    if not failed:  # a missing launch may be a failed one
        lists["gone"] = lock.list_removed(launch_counts)
    title = [_describe_lines([change for _, change in changed])] if changed else []
    title += [f"{len(names)} {category}" for category, names in lists.items() if names]
    lines = [f"{same_count} of {len(launch_counts) + len(failures)} launches kept their counts."]
    if lock.nvcc not in ("", release):
        lines.append(f"The compiler was nvcc {lock.nvcc} before, and is {release or 'none'} now.")
    lines += [f"{category}: {name}" for category, names in lists.items() for name in names]
    for counts, change in changed[:_MAX_LISTED]:
        lines += _format_change(counts, change)
    if len(changed) > _MAX_LISTED:
        lines.append(f"and {len(changed) - _MAX_LISTED} more")
    body = indent("\n".join(map(plain, lines)), " " * 4)
    return f"### Memory transactions: {', '.join(title) or 'same'}\n\n{body}"


def _describe_lines(changes: Sequence[Change]) -> str:
    """Count the source lines with a count that rose, and those with one that fell: "2 lines rose, 1 fell"."""
    rising = {(change.file, change.line) for change in changes if change.now > change.before}
    falling = {(change.file, change.line) for change in changes if change.now < change.before}
    return f"{count_noun(len(rising), 'line')} rose, {len(falling)} fell"


def _format_change(counts: LaunchCounts, change: Change) -> Iterator[str]:
    """Yield a line on a changed count; then the text of the source line, unless lines were edited."""
    share = "new"
    if change.before:
        percentage = float(f"{100 * (change.now / change.before - 1):.2g}")
        share = f"{percentage:+,.15g} %"
    yield f"{counts.launch.label}: {change.file}:{change.line}: {change} ({share})"
    texts = [row["text"] for row in counts.lines if (row["file"], row["line"]) == (change.file, change.line)]
    yield from (f"    {text.strip()}" for text in texts if text and not change.places)
