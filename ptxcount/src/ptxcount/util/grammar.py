"""Numbers with their nouns, words that depend on the number, and lists of choices."""

from __future__ import annotations

from collections.abc import Iterable


def choose_form(number: int, singular: str, plural: str) -> str:
    """Return ``singular`` for the number 1, else ``plural``: (2, "is", "are") -> "are"."""
    return singular if number == 1 else plural


def join_choices(choices: Iterable[object]) -> str:
    """Join at least one choice: (1, 2, 4) -> "1, 2 or 4"."""
    *others, last = map(str, choices)
    return f"{', '.join(others)} or {last}" if others else last


def count_noun(number: int, noun: str) -> str:
    """Return a number and its noun, such as "1 commit", "2 commits" or "2 launches"."""
    return f"{number} {noun}{choose_form(number, '', 'es' if noun.endswith('ch') else 's')}"
