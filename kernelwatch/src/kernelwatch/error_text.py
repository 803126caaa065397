"""Texts of errors, as one line that a terminal can show."""

from __future__ import annotations

import re

#: What a compiler says of a place: a file and a line, and an error there.
_PLACED = re.compile(r"\S+(?:\(\d+\)|:\d+)(?::\d+)?: (?:\w+ )?error\b.*")

#: Characters of an error's text that are shown: a race has two places, with the paths of their files.
_SHOWN = 1000


def one_line(error: object) -> str:
    """Return an error's text as one line that a terminal can show."""
    text = "".join(character if character.isprintable() else " " for character in str(error))
    return " ".join(text.split())[:_SHOWN]


def first_error(text: str) -> str:
    """Return the first error of a compiler in a text, with its file and line; else the text's first line."""
    placed = _PLACED.search(text)
    return placed[0] if placed else one_line(next(iter(text.strip().splitlines()), ""))


def count_noun(number: int, noun: str) -> str:
    """Return a number and its noun, such as "1 commit" or "2 commits"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
