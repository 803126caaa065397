"""What `check` found, as text and as files of other tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from .counting import Counted
from .diagnostics import CODES, Diagnostic

#: The version of the JSON; `check.schema.json` describes it.
VERSION = 2
_GITHUB = {"error": "error", "warning": "warning", "note": "notice"}


def _text(findings: Sequence[Diagnostic], counted: Sequence[Counted]) -> str:
    return "\n".join(map(str, findings))


def _github(findings: Sequence[Diagnostic], counted: Sequence[Counted]) -> str:
    return "\n".join(
        f"::{_GITHUB[each.level]} file={_escaped(each.file, ':,')},line={each.line},title={CODES[each.code]}::"
        + _escaped(f"{each.code} {each.text}")
        for each in findings
    )


def _escaped(text: str, more: str = "") -> str:
    for character in "%\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def _json(findings: Sequence[Diagnostic], counted: Sequence[Counted]) -> str:
    launches = [
        {
            "file": each.launch.file,
            "name": each.launch.label,
            "key": each.key,
            "totals": each.totals,
            "lines": each.lines,
        }
        for each in counted
    ]
    found = [{**asdict(each), "name": CODES[each.code]} for each in findings]
    return json.dumps({"version": VERSION, "findings": found, "launches": launches}, indent=1)


def _sarif(findings: Sequence[Diagnostic], counted: Sequence[Counted]) -> str:
    rules = [
        {"id": code, "name": CODES[code], "shortDescription": {"text": f"{code} {CODES[code].replace('-', ' ')}"}}
        for code in sorted({each.code for each in findings})
    ]
    driver = {"name": "ptxcount", "semanticVersion": version("ptxcount"), "rules": rules}
    return json.dumps(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{"tool": {"driver": driver}, "results": [_result(each) for each in findings]}],
        },
        indent=1,
    )


def _result(finding: Diagnostic) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": quote(finding.file)}, "region": {"startLine": finding.line}}
    return {
        "ruleId": finding.code,
        "level": finding.level,
        "message": {"text": finding.text},
        "locations": [{"physicalLocation": place}],
    }


FORMATS: dict[str, Callable[[Sequence[Diagnostic], Sequence[Counted]], str]] = {
    "text": _text,
    "json": _json,
    "sarif": _sarif,
    "github": _github,
}
