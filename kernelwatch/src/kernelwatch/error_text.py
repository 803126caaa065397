"""Texts of errors as one printable line."""

import re

#: Errors of a compiler: with file and line, or without, for errors in options.
_ERRORS = (
    re.compile(r"\S+(?:\(\d+\)|:\d+)(?::\d+)?: (?:\w+ )?error\b.*"),
    re.compile(r"^ptxas \S+, line \d+; (?:fatal|error) *: .*", re.MULTILINE),
    re.compile(r"^(?:\S+: (?:fatal )?error|\w+ (?:fatal|error) *): .*", re.MULTILINE),
)

#: Numbers, in which errors of one cause differ.
_NUMBERS = re.compile(r"-?\d[\w.+-]*")

#: Maximum length of a shown error. A race has two places, with the paths of their files.
_MAX_LENGTH = 1000


def one_line(error: object) -> str:
    """Return a text as one printable line of at most _MAX_LENGTH characters."""
    text = "".join(character if character.isprintable() else " " for character in str(error))
    return " ".join(text.split())[:_MAX_LENGTH]


def first_error(text: str) -> str:
    """Return the first compiler error in a text, with its file and line if present; else the first line."""
    match = next(filter(None, (pattern.search(text) for pattern in _ERRORS)), None)
    return match[0] if match else one_line(next(iter(text.strip().splitlines()), ""))


def blank_numbers(text: str) -> str:
    """Return a text with 0 for each number, to group errors of one cause."""
    return _NUMBERS.sub("0", text)
