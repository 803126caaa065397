"""Nouns and verbs that agree with a number."""

from __future__ import annotations

import pytest

from ptxcount.util.grammar import choose_form, count_noun


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "count", "0 counts are"),
        (1, "launch", "1 launch is"),
        (2, "launch", "2 launches are"),
        (2, "more time", "2 more times are"),
    ],
)
def test_noun_agrees_with_number(number: int, noun: str, text: str) -> None:
    assert f"{count_noun(number, noun)} {choose_form(number, 'is', 'are')}" == text
