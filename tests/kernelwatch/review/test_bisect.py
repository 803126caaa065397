"""The search for a culprit without commits, compilers and GPUs: sides, METRIC, times, and what is printed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.instrument import machine
from kernelwatch.review import commands
from kernelwatch.review.bisect import report, times
from kernelwatch.review.bisect.commits import Commit
from kernelwatch.review.bisect.culprit import Culprit, Line, moved
from kernelwatch.review.bisect.judging import Step, side
from kernelwatch.review.bisect.metric import UnknownMetricError, configurations, matching
from kernelwatch.review.bisect.search import Search
from kernelwatch.review.bisect.times import command
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Judgement, Verdict, exact, ratio
from kernelwatch.suite import Kind
from tests.commits import begin, commit
from tests.stored import BASE, COUNT, HEAD, write

TIME = "time_transpose.Transpose.time_back_to_back(transpose_read_coalesced, 256x256, int8, -Xptxas -O3)"


def _row(base: float, head: float, verdict: str = "") -> Row:
    judgement = Judgement(Verdict(verdict), ratio(base, head), 0.01) if verdict else exact(base, head)
    return Row(TIME, "timed", "seconds", base, head, judgement)


@pytest.mark.parametrize(
    ("good", "value", "bad", "verdict"),
    [
        (4, 4, 8, "good"), (4, 8, 8, "bad"), (4, 2, 8, "good"), (4, 9, 8, "bad"), (0, 0, 5, "good"), (0, 5, 5, "bad"),
        (4, 5, 8, "good"), (4, 7, 8, "bad"),  # the nearer one decides; in the middle it is not yet bad
        (4, 6, 8, "good"),
        (8, 4, 4, "bad"), (8, 8, 4, "good"),  # an improvement is searched like a regression
    ],
)  # fmt: skip
def test_side_of_exact_numbers(good: float, value: float, bad: float, verdict: str) -> None:
    """Equal to one end, or nearer to it."""
    assert side(_row(good, value), _row(value, bad)) == verdict


@pytest.mark.parametrize(
    ("from_good", "to_bad", "verdict"),
    [
        ("SAME", "SLOWER", "good"), ("SLOWER", "SAME", "bad"), ("SLOWER", "FASTER", "bad"), ("SLOWER", "SLOWER", "bad"),
        ("SAME", "SAME", "skip"), ("UNDECIDED", "SAME", "skip"), ("SLOWER", "UNDECIDED", "skip"),
        ("ACKNOWLEDGED", "SAME", "bad"),  # accepted, and still the change that is searched
    ],
)  # fmt: skip
def test_side_by_verdicts(from_good: str, to_bad: str, verdict: str) -> None:
    """The review's word counts. A time of 1.9 between 1 and 2."""
    assert side(_row(1.0, 1.9, from_good), _row(1.9, 2.0, to_bad)) == verdict


@pytest.mark.parametrize(
    ("words", "count", "every"),
    [
        (TIME, 1, {"time"}),
        ("time transpose_read_coalesced 256x256 int8 back to back -O3", 0, set()),
        ("time transpose_read_coalesced 256x256 int8 -O3", 2, {"time"}),
        ("registers transpose_read_coalesced float32 -O3 sm_90", 1, {"registers"}),
        ("load sectors transpose_read_coalesced rows=1000 columns=700 float32 -Xptxas -O3", 1, {"load_sectors"}),
        ("load_sectors offset_copy offset=3 float32 -O3", 0, set()),
        ("load_sectors offset_copy offset=2 float32 -O3", 1, {"load_sectors"}),
        ("track_counted.OffsetCopy.track_load_sectors(int8, 0, -Xptxas -O3)", 1, {"load_sectors"}),
        ("spill_bytes -O0 sm_80", 95, {"spill_bytes"}),
    ],
)
def test_metric(words: str, count: int, every: set[str]) -> None:
    """By its stored name, or by words of it in any order; a left out word stands for all."""
    try:
        found = matching(words)
    except UnknownMetricError:
        found = []
    assert (len(found), {each.metric for each in found}) == (count, every)


def test_words_are_of_the_suite() -> None:
    """A whole name is the words of one configuration alone, of every benchmark; without a kind, any but controls."""
    last = {each.benchmark: each.name for each in configurations()}
    assert [[each.name for each in matching(name)] for name in last.values()] == [[name] for name in last.values()]
    kinds = {Kind.TIMED, Kind.COUNTED, Kind.COMPILED}
    assert {each.kind for each in matching("transpose_write_coalesced -O0")} == kinds
    assert {each.kind for each in configurations()} == kinds


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("load_sector transpose_read_coalesced", "'load_sector' names nothing that is measured; the nearest words are"),
        ("registers transpose_red_coalesced", "transpose_read_coalesced"),
        ("qqqq", "the metrics are time, load_sectors"),
        ("", "METRIC is empty; give words of a configuration"),
        ("registers transpose_serial int8 rows=40", "no configuration has all of registers, transpose_serial"),
    ],
)
def test_unknown_metric(words: str, told: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The message names what is allowed, and the exit code is that of a question which cannot be asked."""
    assert commands.bisect([words, "good"], tmp_path) == 2
    said = capsys.readouterr().err
    assert said.startswith("cannot search: ")
    assert told in said


def test_commits_without_a_package(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They have none of the numbers, and why is told."""
    begin(tmp_path)
    ends = [commit(tmp_path, {"README.md": text}) for text in "ab"]
    assert commands.bisect(["registers transpose_read_coalesced float32 -O3", *ends], tmp_path) == 2
    assert re.search(r"no number of \S+\(.*\) in common: it has no gpu_kernels$", capsys.readouterr().err.strip())


def test_what_asv_is_told_measures_one_configuration_and_its_copies() -> None:
    """Of all that asv knows, by the names that it matches."""
    words = command(matching(TIME))
    patterns = [word for place, word in enumerate(words) if words[place - 1] == "--bench"]
    chosen = set()
    for each in configurations():
        quoted = ", ".join(value if value.isdigit() else repr(value) for value in each.params.values())
        names = (each.benchmark, f"track_control.{each.benchmark.split('.')[1]}.track_copy_ratio")
        chosen |= {f"{one}({quoted})" for one in names if any(re.search(p, f"{one}({quoted})") for p in patterns)}
    params = "('transpose_read_coalesced', '256x256', 'int8', '-Xptxas -O3')"
    benchmarks = ("time_transpose.Transpose.time_back_to_back", "track_control.Transpose.track_copy_ratio")
    assert chosen == {f"{benchmark}{params}" for benchmark in benchmarks}
    assert {"--interleave-rounds", "--record-samples", "HASHFILE:-"} < set(words)


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("x4", "x4", ""),
        ("x4", "x8", "-x4 +x8"),
        ("x4", "renamed4", ""),
        ("x4 y4", "y4 x8", "-x4 +x8"),
        ("x4 x4", "x4", "-x4"),
    ],
)
def test_lines_whose_cost_moved(before: str, after: str, found: str) -> None:
    """Those of the same text are paired first, then those of the same cost: a new name is no new cost."""
    sides = (
        [Line(n > 0, 1, each[:-1], (each[-1],)) for each in side.split()] for n, side in enumerate((before, after))
    )
    assert " ".join(f"{'-+'[each.is_after]}{each.text}{each.costs[0]}" for each in moved(*sides)) == found


def _search(**more: Any) -> Search:
    subjects = {"b" * 40: "A subject of many words, " * 8}
    return Search("words", "a" * 40, "b" * 40, 3, 1, subjects=subjects, **more)


def _found() -> Search:
    lines = [Line(False, 1, "input[" + "i * " * 40 + "1]", ("load: 32.00 sectors a request, ideal 4.00",))]
    said = "author   A\n" * 20
    culprit = Culprit("b" * 40, said, _row(0, 32), lines, "kernel rows=3", ["a note"])
    return _search(change=_row(0, 32), culprit=culprit, steps=[Step("b" * 40, "bad", "built", 32.0)])


@pytest.mark.parametrize(
    ("search", "code", "begins"),
    [
        (_search(reason="10 compared, and all are the same"), 1, "NO DIFFERENCE"),
        (_search(change=_row(1, 2), reason="1 is left", suspects=["b" * 40]), 125, "UNDECIDABLE"),
        (_found(), 0, "FOUND"),
    ],
)
def test_printed(search: Search, code: int, begins: str) -> None:
    """The outcome comes first, no line is wider than 100 columns, and the JSON is strict."""
    shown = report.text(search)
    assert shown.startswith(begins)
    assert max(map(len, shown.splitlines())) <= 100
    document = json.loads(report.as_json(search), parse_constant=pytest.fail)
    assert search.exit_code == document["exit_code"] == code
    changes = [each["change"] for each in (document, document["culprit"]) if each and each["change"]]
    assert [each["judgement"]["ratio"] for each in changes] == {1: [], 125: [2.0], 0: [None, None]}[code], (
        "32 of 0 is no ratio"
    )


def test_whose_results_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the only machine with a GPU that has both; of a commit without any, those of the very same package."""
    monkeypatch.setattr(machine, "gpu", lambda: None)
    known = {BASE: "a", HEAD: "b", "d" * 40: "b"}
    monkeypatch.setattr(times, "packages", lambda commits, _: {commit: known[commit] for commit in commits})
    for name in ("gpu", f"{machine.NO_GPU}-x86_64"):
        write(tmp_path, {commit: {COUNT: {"one": 4.0}} for commit in known}, name)
    write(tmp_path, {BASE: {COUNT: {"one": 4.0}}}, "half")
    stored = times.Times(tmp_path)
    stored.choose(None, Commit(BASE, "a"), Commit(HEAD, "b"))
    assert (stored.machine, stored.can_measure) == ("gpu", False)
    asked = (Commit("e" * 40, "b"), Commit("d" * 40, "b"), Commit("e" * 40, "c"), Commit("e" * 40, ""))
    assert [stored.stored(each) for each in asked] == [[HEAD, "d" * 40], ["d" * 40, HEAD], [], []]
