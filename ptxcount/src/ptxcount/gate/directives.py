"""Directives in the source: ``// ptxcount: sectors <= 4``, ``// ptxcount: ignore[bank-conflict] tile is read once``.

A directive applies to its line. On a line without code, it applies to the next line that is neither empty nor a
``//`` comment. Other comments hold no directives.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..util.errors import LaunchError
from .counting import LaunchCounts, format_path
from .diagnostics import CODES, DIRECTIVE, Diagnostic

_DIRECTIVE = re.compile(r"//\s*ptxcount:\s*(.*?)\s*$")
_NO_CODE = re.compile(r"\s*(//|$)")
_LIMIT = re.compile(r"(\w+)\s*<=\s*(\d+(?:\.\d+)?)(\s*x\s*ideal)?")
_WAIVER = re.compile(r"ignore\[([^\]]*)\]\s*(.*)")
_NAMES = {name: code for code, name in CODES.items()} | {code: code for code in CODES}


class DirectiveError(LaunchError):
    """An invalid directive in a source, at ``line`` of ``file``."""

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(message)
        self.file, self.line = file, line


class LineLimit(NamedTuple):
    """Limit on a count of a source line, such as ``sectors``; ``line`` is the line of the directive.

    If ``relative``, ``number`` is a multiple of the ideal count.
    """

    file: str
    line: int
    name: str
    number: float
    relative: bool


class Waiver(NamedTuple):
    """A directive that suppresses findings with these codes at ``target_line``.

    ``words`` are the codes as spelled in the source, such as ``bank-conflict``. ``line`` is the line of the directive.
    """

    file: str
    line: int
    target_line: int
    codes: tuple[str, ...]
    words: tuple[str, ...]
    reason: str


class Directives:
    """The directives in the files of launches.

    `check_lines` adds to ``used_limits`` the limits that it compares an access with. Creation raises `DirectiveError`
    for an invalid directive.
    """

    def __init__(self, folder: Path, launch_counts: Iterable[LaunchCounts]) -> None:
        self.used_limits: set[LineLimit] = set()
        self._waivers: list[Waiver] = []
        self._limits: dict[tuple[str, int], list[LineLimit]] = {}
        files = (file for counts in launch_counts for file in (counts.launch.file, *counts.files))
        for path in dict.fromkeys((folder / file).resolve() for file in files):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            self._read_file(format_path(path, folder), lines)

    def find_limits(self, file: str, line: int | None) -> list[LineLimit]:
        """Return the limits that apply to a line."""
        return self._limits.get((file, line or 0), [])

    def iter_unused_limits(self) -> Iterator[Diagnostic]:
        """Yield a finding for each limit that no access was compared with."""
        for limits in self._limits.values():
            for limit in limits:
                if limit not in self.used_limits:
                    shown = f"{limit.name} <= {limit.number:g}{' x ideal' if limit.relative else ''}"
                    text = f"{shown} has no effect: no launch has such accesses at its line"
                    text += "; move or remove the limit, or add a launch"
                    yield Diagnostic(limit.file, limit.line, DIRECTIVE, text)

    def apply_waivers(
        self, findings: Iterable[Diagnostic], *, counted_lines: set[tuple[str, int]]
    ) -> Iterator[Diagnostic]:
        """Yield the findings without a waiver; then a finding on each waiver without a reason, or with an unused code.

        An unused code is reported only on ``counted_lines``: elsewhere, its launch may have failed.
        """
        used_codes: set[tuple[Waiver, str]] = set()
        for finding in findings:
            place = finding.file, finding.line
            at_line = [waiver for waiver in self._waivers if (waiver.file, waiver.target_line) == place]
            used = {(waiver, finding.code) for waiver in at_line if finding.code in waiver.codes}
            used_codes |= used
            if not used:
                yield finding
        for waiver in self._waivers:
            words = zip(waiver.codes, waiver.words, strict=True)
            unused_words = [word for code, word in words if (waiver, code) not in used_codes]
            text = ""
            if not waiver.reason:
                text = f"ignore[{', '.join(waiver.words)}] has no reason; write the reason after the bracket"
            elif unused_words and (waiver.file, waiver.target_line) in counted_lines:
                text = f"ignore[{', '.join(unused_words)}] matches no finding any more; remove it"
            if text:
                yield Diagnostic(waiver.file, waiver.line, DIRECTIVE, text)

    def _read_file(self, file: str, lines: list[str]) -> None:
        for number, text in enumerate(lines, 1):
            match = _DIRECTIVE.search(text)
            if match is None:
                continue
            code_lines = (n for n in range(number, len(lines) + 1) if not _NO_CODE.match(lines[n - 1]))
            target_line = next(code_lines, number)
            if waiver := _WAIVER.fullmatch(match[1]):
                words = tuple(word.strip() for word in waiver[1].split(","))
                codes = _find_waiver_codes(words, file, number)
                self._waivers.append(Waiver(file, number, target_line, codes, words, waiver[2]))
                continue
            for word in match[1].split(","):
                limit = _LIMIT.fullmatch(word.strip())
                if limit is None:
                    example = 'write, for example, "sectors <= 4" or "ignore[bank-conflict] reason"'
                    raise DirectiveError(file, number, f"{word.strip()!r} is no directive; {example}")
                line_limit = LineLimit(file, number, limit[1], float(limit[2]), bool(limit[3]))
                self._limits.setdefault((file, target_line), []).append(line_limit)


def _find_waiver_codes(words: tuple[str, ...], file: str, line: int) -> tuple[str, ...]:
    for word in words:
        if word not in _NAMES:
            names = ", ".join(CODES.values())
            raise DirectiveError(file, line, f"ignore[{word}] names no finding; allowed are {names}, and their codes")
    return tuple(_NAMES[word] for word in words)
