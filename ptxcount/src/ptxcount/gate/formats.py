"""Findings of `check` as text, and in formats of other tools."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from .counting import LaunchCounts
from .diagnostics import CODES, Diagnostic

#: Version of the JSON format, which `check.schema.json` describes.
VERSION = 3
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
