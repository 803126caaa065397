"""Texts on the pages: sentences, verdicts and filters; sums in Overview's cells."""

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kernelwatch.show.site import words
from kernelwatch.show.site.changes import COUNTS, summarize_counts
from kernelwatch.show.site.measured import MeasuredCommit
from kernelwatch.show.site.overview import ShownMachine, _SummaryConfiguration
from kernelwatch.show.site.packed import pack_numbers
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

SENTENCES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "nothing": ([], "Nothing changed."),
    "all times": ([SLOWER], "k is 4.4 % slower in the mean of 4 times; no other kernel changed."),
    "1": ([{"slower": 1, "mean": "+4 %", "times": 1, "kernel_times": 1}], "k is 4 % slower; no other kernel changed."),
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
    "numbers that rose and fell": ([{"rose": 1}, {"fell": 2}, {"kernel": "l", "fell": 1, "evidence": ["sectors -9 %"]}],
                                   "k: registers +3.0 % with -O3, but other numbers fell; l: sectors -9 % with -O3; "
                                   "no other kernel changed."),
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
    """The two kernels that changed most are named, the others counted."""
    assert words.summarize_changes([{"base": "b", "groups": [_group(**facts) for facts in groups]}]) == sentence


def test_largest_slowdown_is_shown_although_others_are_faster() -> None:
    """The worst group, whose picture a page shows, has the slowdown that the sentence names."""
    slower = _group(**SLOWER, flags="-O0", kernel_times=12)
    mixed = _group(slower=3, faster=1, size=2.0, ratio=1.075, at="int8 -O3", kernel_times=12)
    changes = [{"base": "b", "groups": [slower, mixed]}]
    assert words.select_worst_groups(changes) == [mixed]
    assert "at most +7.5 % at int8 -O3" in words.summarize_changes(changes)


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
    """Failures decide, then times, then numbers; else the first of undecided, repaired, acknowledged and noted."""
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
    """Filters describe branches and ages, escape names, and shorten machines."""
    converted = convert(value)
    assert (list(converted.values()) if isinstance(converted, dict) else str(converted)) == expected


#: Case, values of three metrics at three commits (None: not measured, "": without the metric), and the sums by commit.
SUMS: list[tuple[str, list[list[Any]], dict[str, float]]] = [
    ("all are there", [[1, 2, 0], [1, 3, 0], [2, 3, 0]], {"a": 3, "b": 4, "c": 5}),
    ("a metric came later, and is 0", [[1, 2, ""], [1, 3, ""], [2, 3, 0]], {"a": 3, "b": 4, "c": 5}),
    ("a metric was never counted", [[1, 2, ""], [1, 3, ""], [2, 3, ""]], {"a": 3, "b": 4, "c": 5}),
    ("a metric came later, and is not 0", [[1, 2, ""], [1, 3, ""], [2, 3, 4]], {"c": 9}),
    ("one is not measured", [[1, None, 0], [1, 3, 0], ["", "", ""]], {"b": 4}),
    ("all are 0", [[0, 0, 0], ["", "", ""], [0, 0, 0]], {"a": 0, "c": 0}),
]


@pytest.mark.parametrize(("values", "expected"), [row[1:] for row in SUMS], ids=[row[0] for row in SUMS])
def test_sum_needs_all_metrics(values: list[list[Any]], expected: dict[str, float]) -> None:
    """A metric that is 0 everywhere else may be missing."""
    graph = SimpleNamespace(line=["a", "b", "c"])
    history: Any = SimpleNamespace(find_axes=lambda _: {"w": ["1", "2"]}, get_type=lambda _: "track", graph=graph)
    measured = {}
    for commit, numbers in zip("abc", values, strict=True):
        counted = {name: number for name, number in zip("LSC", numbers, strict=True) if number != ""}
        texts = {name: pack_numbers([None, value], is_time=False, digits=None) for name, value in counted.items()}
        measured[commit] = MeasuredCommit(texts)
    machine = ShownMachine(history, measured)
    assert dict(machine.sum_series({"w": "2"}, *"LSC")) == expected


def test_cluster_sectors_are_not_summed() -> None:
    sweep: Any = SimpleNamespace(name="X", shared=True)
    benchmarks = _SummaryConfiguration("", sweep, {}).sector_benchmarks
    assert benchmarks == [f"track_counted.X.track_sectors_{kind}" for kind in ("loaded", "stored", "of_atomics")]


SPANS = [
    (1, 1, ""),
    (2, 0, "Made in one of 2 commits since bbbbbbbb, none of which touch kernels."),
    (40, 1, "Made in one of 40 commits since bbbbbbbb, 1 of which touches kernels."),
    (522, 5, "Made in one of 522 commits since bbbbbbbb, 5 of which touch kernels."),
]


@pytest.mark.parametrize(("count", "touching", "text"), SPANS)
def test_change_over_several_commits_is_said(count: int, touching: int, text: str) -> None:
    group = {
        "machine": "gpu", "kernel": "k", "verdict": "slower", "timed": True, "size": 1.0, "elsewhere": False,
        "base": "b" * 40, "of": {"benchmark": "time_a.A.time_x", "params": {}},
    }  # fmt: skip
    between = {"b" * 40: {"count": count, "touching_count": touching, "touching": [{}] * min(touching, 1)}}
    changes: Any = [{"machine": "other", "groups": []}, {"machine": "gpu", "groups": [group], "between": between}]
    assert words.describe_span(changes) == text
    assert words.describe_span(changes[:1]) == ""
