"""Numbers with their nouns, and words that depend on the number."""

from __future__ import annotations


def choose_form(number: int, singular: str, plural: str) -> str:
    """Return ``singular`` for the number 1, else ``plural``: (2, "is", "are") -> "are"."""
    return singular if number == 1 else plural


def count_noun(number: int, noun: str) -> str:
    """Return a number and its noun, such as "1 commit", "2 commits" or "2 launches"."""
    return f"{number} {noun}{choose_form(number, '', 'es' if noun.endswith('ch') else 's')}"
