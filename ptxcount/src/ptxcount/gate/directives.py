"""Directives in the source: ``// ptxcount: sectors <= 4``, ``// ptxcount: ignore[bank-conflict] tile is read once``.

A directive applies to its line. On a line without code, it applies to the next line of code.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..util.errors import LaunchError
from .diagnostics import CODES, Diagnostic

_DIRECTIVE = re.compile(r"//\s*ptxcount:\s*(.*?)\s*$")
_LIMIT = re.compile(r"(\w+)\s*<=\s*(\d+(?:\.\d+)?)(\s*x\s*ideal)?")
_WAIVER = re.compile(r"ignore\[([^\]]*)\]\s*(.*)")
_NAMES = {**{name: code for code, name in CODES.items()}, **{code: code for code in CODES}}


class DirectiveError(LaunchError):
    """An invalid directive in a source, at ``line`` of ``file``."""

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(message)
        self.file, self.line = file, line


class LineLimit(NamedTuple):
    """Limit on a count of a source line. If ``relative``, ``number`` is a multiple of the ideal count."""

    file: str
    line: int
    name: str
    number: float
    relative: bool


class Waiver(NamedTuple):
    """A waiver: it suppresses findings with these codes at the line ``holds_for``.

    ``words`` are the codes as spelled in the source. ``line`` is the waiver's own line.
    """

    file: str
    line: int
    holds_for: int
    codes: tuple[str, ...]
    words: tuple[str, ...]
    reason: str


class Directives:
    """The directives of files. ``used_limits`` are those that an access was compared with."""

    def __init__(self, folder: Path, files: Iterable[str]) -> None:
        self.used_limits: set[LineLimit] = set()
        self._waivers: list[Waiver] = []
        self._limits: dict[tuple[str, int], list[LineLimit]] = {}
        for file in dict.fromkeys(files):
            self._read_file(file, (folder / file).read_text(encoding="utf-8", errors="replace").splitlines())

    def find_limits(self, file: str, line: int | None) -> list[LineLimit]:
        """Return the limits that apply to a line."""
        return self._limits.get((file, line or 0), [])

    def find_unbound(self) -> Iterator[Diagnostic]:
        """Yield a finding for each limit that matches no counted access."""
        for limit in (limit for limits in self._limits.values() for limit in limits if limit not in self.used_limits):
            text = f"{limit.name} <= {limit.number:g} has no effect: no counted access of that kind is at its line"
            yield Diagnostic(limit.file, limit.line, "PC007", text)

    def apply_waivers(
        self, findings: Iterable[Diagnostic], *, counted_lines: set[tuple[str, int]]
    ) -> Iterator[Diagnostic]:
        """Yield the findings without a waiver; then findings on waivers that match no finding or lack a reason.

        A waiver for a line that is not in ``counted_lines`` is not reported as unmatched.
        """
        used_waivers = set()
        for finding in findings:
            place = (finding.file, finding.line)
            waivers = {
                (waiver, finding.code)
                for waiver in self._waivers
                if (waiver.file, waiver.holds_for) == place and finding.code in waiver.codes
            }
            used_waivers |= waivers
            if not waivers:
                yield finding
        for waiver in self._waivers:
            words = zip(waiver.codes, waiver.words, strict=True)
            useless = [word for code, word in words if (waiver, code) not in used_waivers]
            if not waiver.reason:
                yield Diagnostic(waiver.file, waiver.line, "PC007", "a waiver needs a reason: ignore[...] reason")
            elif useless and (waiver.file, waiver.holds_for) in counted_lines:
                yield Diagnostic(
                    waiver.file,
                    waiver.line,
                    "PC007",
                    f"ignore[{', '.join(useless)}] matches no finding any more; remove it",
                )

    def _read_file(self, file: str, lines: list[str]) -> None:
        for number, text in enumerate(lines, 1):
            match = _DIRECTIVE.search(text)
            if match is None:
                continue
            code = (n for n in range(number, len(lines) + 1) if not lines[n - 1].lstrip().startswith("//"))
            holds_for = next(code, number)
            waiver = _WAIVER.fullmatch(match[1])
            if waiver:
                words = tuple(word.strip() for word in waiver[1].split(","))
                codes = _find_waiver_codes(words, file, number)
                self._waivers.append(Waiver(file, number, holds_for, codes, words, waiver[2]))
                continue
            for word in match[1].split(","):
                limit = _LIMIT.fullmatch(word.strip())
                if limit is None:
                    examples = '"sectors <= 4" or "ignore[bank-conflict] reason"'
                    raise DirectiveError(file, number, f"{word!r} is no limit; write, for example, {examples}")
                line_limit = LineLimit(file, number, limit[1], float(limit[2]), bool(limit[3]))
                self._limits.setdefault((file, holds_for), []).append(line_limit)


def _find_waiver_codes(words: tuple[str, ...], file: str, line: int) -> tuple[str, ...]:
    unknown = [word for word in words if word not in _NAMES]
    if unknown:
        names = ", ".join(CODES.values())
        raise DirectiveError(file, line, f"ignore[{unknown[0]}] names no finding; allowed are {names}, and their codes")
    return tuple(_NAMES[word] for word in words)
