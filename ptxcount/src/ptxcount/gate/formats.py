"""What `check` found, as text and as files of other tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any
from xml.etree import ElementTree

from .counting import Counted
from .findings import CODES, Finding

#: The version of the JSON; `check.schema.json` describes it.
VERSION = 1
_GITHUB = {"error": "error", "warning": "warning", "note": "notice"}


def _text(findings: Sequence[Finding], counted: Sequence[Counted]) -> str:
    return "\n".join(map(str, findings))


def _github(findings: Sequence[Finding], counted: Sequence[Counted]) -> str:
    return "\n".join(
        f"::{_GITHUB[each.level]} file={_escaped(each.file, ':,')},line={each.line},title={CODES[each.code]}::"
        + _escaped(f"{each.code} {each.message}")
        for each in findings
    )


def _escaped(text: str, more: str = "") -> str:
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def _json(findings: Sequence[Finding], counted: Sequence[Counted]) -> str:
    launches = [{name: getattr(each, name) for name in ("file", "key", "totals", "lines")} for each in counted]
    found = [{**asdict(each), "name": CODES[each.code]} for each in findings]
    return json.dumps({"version": VERSION, "findings": found, "launches": launches}, indent=1)


def _sarif(findings: Sequence[Finding], counted: Sequence[Counted]) -> str:
    codes = sorted({each.code for each in findings})
    rules = [{"id": code, "name": CODES[code], "shortDescription": {"text": _words(code)}} for code in codes]
    driver = {"name": "ptxcount", "semanticVersion": version("ptxcount"), "rules": rules}
    return json.dumps(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{"tool": {"driver": driver}, "results": [_result(each, codes) for each in findings]}],
        },
        indent=1,
    )


def _result(finding: Finding, codes: list[str]) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": finding.file}, "region": {"startLine": finding.line}}
    return {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": finding.level,
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": place}],
    }


def _junit(findings: Sequence[Finding], counted: Sequence[Counted]) -> str:
    """A test case for each launch that holds, and for each finding; those that do not fail are its output."""
    failing = [each for each in findings if each.level == "error"]
    held = [each for each in counted if not any(each.key in one.message for one in failing)]
    suite = ElementTree.Element("testsuite", name="ptxcount", tests=str(len(held) + len(findings)))
    suite.set("failures", str(len(failing)))
    for one in held:
        ElementTree.SubElement(suite, "testcase", classname=one.file, name=one.key)
    for each in findings:
        case = ElementTree.SubElement(suite, "testcase", classname=each.file, name=f"{_words(each.code)}:{each.line}")
        if each.level == "error":
            ElementTree.SubElement(case, "failure", message=each.message).text = str(each)
        else:
            ElementTree.SubElement(case, "system-out").text = str(each)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def _words(code: str) -> str:
    return f"{code} {CODES[code].replace('-', ' ')}"


FORMATS: dict[str, Callable[[Sequence[Finding], Sequence[Counted]], str]] = {
    "text": _text, "json": _json, "sarif": _sarif, "github": _github, "junit": _junit,
}  # fmt: skip
