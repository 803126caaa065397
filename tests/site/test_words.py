"""Texts on the pages of commits: sentences, verdicts and filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from kernelwatch.show.site import words
from kernelwatch.show.site.changes import COUNTS, summarize_counts
from kernelwatch.store.graph import MERGED, NO_BRANCH, UNKNOWN
from tests.stored import COUNT


def _group(**facts: Any) -> dict[str, Any]:
    timed = not facts.keys().isdisjoint(("slower", "faster"))
    group = {
        **dict.fromkeys(COUNTS, 0), "kernel": "k", "flags": "-O3", "base": "b", "elsewhere": False, "timed": timed,
        "evidence": ["registers +3.0 %"], "mean": "", "size": 1.0, "times": 4, "configurations": "2 rose",
        "of": {"benchmark": COUNT}, "machine": "gpu", "at": "64x64 -O3", "ratio": 1.044, "kernel_times": 4,
        "most": "registers 32 → 33", **facts,
    }  # fmt: skip
    return {**group, "verdict": summarize_counts(group)["verdict"]}


SLOWER = {"slower": 4, "mean": "+4.4 %"}

#: Case -> facts of groups, and the sentence on them.
SENTENCES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "nothing": ([], "Nothing changed."),
    "all times": ([SLOWER], "k is 4.4 % slower in the mean of 4 times; no other kernel changed."),
    "some times": ([{**SLOWER, "slower": 3}],
                   "k is slower in 3 of 4 times, at most +4.4 % at 64x64 -O3; no other kernel changed."),
    "both ways": ([{"slower": 1, "faster": 2, "mean": "-2 %"}],
                  "k is slower in 1, faster in 2 of 4 times, at most +4.4 % at 64x64 -O3; no other kernel changed."),
    "several sets of flags": (
        [
            {**SLOWER, "flags": "-O0", "kernel_times": 12},
            {"faster": 2, "ratio": 0.73, "mean": "-9 %", "kernel_times": 12},
            {"slower": 1, "ratio": 1.27, "at": "int8 -G", "flags": "-G", "mean": "+2 %", "kernel_times": 12},
        ],
        "k is slower in 5, faster in 2 of 12 times, at most +27 % at int8 -G; no other kernel changed.",
    ),
    "a set of flags of an unchanged kernel": (
        [{"slower": 0, "faster": 4, "ratio": 0.96, "at": "64x64 -O0", "mean": "-3.9 %", "kernel_times": 119}],
        "k is faster in 4 of 119 times, at most -4.0 % at 64x64 -O0; no other kernel changed.",
    ),
    "a number": ([{"rose": 2, "evidence": ["machine code changed", "registers +3.0 %"]}],
                 "k: registers +3.0 % with -O3, at most registers 32 → 33 at 64x64 -O3; no other kernel changed."),
    "what fails comes first": ([SLOWER, {"kernel": "l", "broken": 1}],
                               "l fails; k is 4.4 % slower in the mean of 4 times; no other kernel changed."),
    "the larger first": (
        [SLOWER, {**SLOWER, "kernel": "l", "mean": "+9 %", "size": 2.0}, {"kernel": "m", "fell": 1}],
        "l is 9 % slower in the mean of 4 times; k is 4.4 % slower in the mean of 4 times; 1 more kernel changed.",
    ),
    "times, which its own numbers explain": (
        [{"rose": 2, "size": 2.0}, {**SLOWER, "slower": 0, "faster": 4}, {"kernel": "l", "rose": 1}],
        "l: registers +3.0 % with -O3; k is 4.4 % faster in the mean of 4 times; no other kernel changed.",
    ),
    "counted numbers before compiled ones": (
        [
            {"rose": 1, "fell": 1, "of": {"benchmark": "track_compiled.C.track_spill_bytes"}},
            {"rose": 1, "evidence": ["sectors +9 %"]},
        ],
        "k: sectors +9 % with -O3; no other kernel changed.",
    ),
    "what is compiled for others": ([{"rose": 2, "elsewhere": True}], "Nothing changed."),
    "the worst of a kernel": (
        [
            {**SLOWER, "kernel": "l", "size": 3.0, "kernel_times": 8},
            {**SLOWER, "size": 2.0},
            {"kernel": "l", "faster": 1, "ratio": 0.9, "kernel_times": 8},
        ],
        "l is slower in 4, faster in 1 of 8 times, at most +4.4 % at 64x64 -O3; "
        "k is 4.4 % slower in the mean of 4 times; no other kernel changed.",
    ),
    "what decides nothing": ([{"noted": 3}, {"undecided": 1}, {"acknowledged": 1}], "Nothing changed."),
    "works again": ([{"repaired": 1}], "k works again; no other kernel changed."),
}  # fmt: skip


@pytest.mark.parametrize(("groups", "sentence"), SENTENCES.values(), ids=SENTENCES)
def test_sentence_names_the_worst_kernels(groups: list[dict[str, Any]], sentence: str) -> None:
    assert words.summarize_changes([{"base": "b", "groups": [_group(**facts) for facts in groups]}]) == sentence


#: Verdict of a group -> verdicts of its configurations, one text for each example.
COUNTED = {
    "slower": ["slower rose", "slower"],
    "faster": ["faster undecided"],
    "mixed": ["slower faster", "rose fell"],
    "rose": ["rose undecided"],
    "fell": ["fell acknowledged", "fell noted"],
    "undecided": ["undecided acknowledged"],
    "acknowledged": ["acknowledged noted"],
    "noted": ["noted"],
    "broken": ["broken slower"],
    "failed": ["failed faster"],
    "repaired": ["repaired noted"],
    "same": [""],
}


@pytest.mark.parametrize("word", COUNTED)
def test_verdict_on_a_group(word: str) -> None:
    assert {summarize_counts(Counter(words.split()))["verdict"] for words in COUNTED[word]} == {word}


BEHIND = {"commits": 458, "touching": 4}

FILTERS: list[tuple[Callable[[Any], object], object, object]] = [
    (words.describe_branch, "side", "on side"),
    (words.describe_branch, NO_BRANCH, "on no branch"),
    (words.describe_branch, UNKNOWN, "unknown to git"),
    (words.describe_branch, MERGED, "merged"),
    *(
        (words.describe_age, {"day": day, "distance": distance}, text)
        for day, distance, text in (
            ("2026-11-21", BEHIND, "measured on 2026-11-21, 458 commits ago, 4 of which touch kernels"),
            ("", {"commits": 1, "touching": 1}, "measured, 1 commit ago, 1 of which touches kernels"),
            ("", {"commits": 0, "touching": 0}, "measured, at HEAD"),
            ("", None, "measured, not a known ancestor of HEAD"),
        )
    ),
    (words.break_name, "<a_b>", "&lt;a_<wbr>b&gt;"),
    (words.shorten_machines, ["nvidia-h100-80gb-hbm3", "nvidia-geforce-rtx-4090"], ["H100", "RTX 4090"]),
    (words.shorten_machines, ["nvidia-a100-40gb", "nvidia-a100-80gb"], ["nvidia-a100-40gb", "nvidia-a100-80gb"]),
]


@pytest.mark.parametrize(("convert", "value", "expected"), FILTERS)
def test_filters_of_templates(convert: Callable[[Any], Any], value: Any, expected: Any) -> None:
    converted = convert(value)
    assert (list(converted.values()) if isinstance(converted, dict) else str(converted)) == expected
