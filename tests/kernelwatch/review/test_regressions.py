"""Which regressions stand, which commit brought them, and what the issue says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kernelwatch.review import issue
from kernelwatch.review.commands import regressions as main
from kernelwatch.review.consecutive import consecutive
from kernelwatch.review.regressions import standing
from kernelwatch.store import git
from kernelwatch.store.results import History
from ptxcount.gate.markdown import LIMIT
from tests.commits import begin, commit
from tests.stored import COUNT, TIME, Outcome, samples, write

COMMITS = [letter * 40 for letter in "abcde"]
A, B, C, D, E = COMMITS


def stands(root: Path) -> list[tuple[str, str, float]]:
    """Base, head and ratio of what stands."""
    history = History("gpu", root)
    found = standing("gpu", consecutive(history))
    return [(each.base, each.head, round(row.judgement.ratio, 2)) for each in found for row in each.rows]


#: A number or a time over the commits, None where it was not measured, and what stands.
HISTORIES: dict[str, tuple[list[float | None], list[tuple[str, str, float]]]] = {
    "nothing": ([10, 10, 10], []),
    "a regression": ([10, 12, 12], [(A, B, 1.2)]),
    "mended": ([10, 12, 10], []),
    "better than before": ([10, 12, 9], []),
    "mended in part": ([10, 12, 11], [(A, B, 1.2)]),
    "mended in steps": ([10, 12, 11, 10], []),
    "twice, newest first": ([10, 12, 15], [(B, C, 1.25), (A, B, 1.2)]),
    "the second is mended": ([10, 12, 15, 12], [(A, B, 1.2)]),
    "both are mended": ([10, 12, 15, 10], []),
    "again": ([10, 12, 10, 12], [(C, D, 1.2)]),
    "not measured in between": ([10, None, 12, None, 12], [(A, C, 1.2)]),
    "mended by one that was not the next": ([10, 12, None, 10], []),
    "a speed-up is lost in part": ([10, 5, 8], [(B, C, 1.6)]),
}


@pytest.mark.parametrize("benchmark", [TIME, COUNT])
@pytest.mark.parametrize(("values", "expected"), HISTORIES.values(), ids=HISTORIES)
def test_standing(
    values: list[float | None], expected: list[tuple[str, str, float]], benchmark: str, tmp_path: Path
) -> None:
    """Until a later commit takes it back; a time within its threshold, a number wholly."""
    timed = benchmark == TIME
    write(
        tmp_path,
        {
            commit: {benchmark: {"one": samples(value / 1e4, seed=place) if timed else value}} if value else {}
            for place, (commit, value) in enumerate(zip(COMMITS, values, strict=False))
        },
    )
    assert stands(tmp_path) == expected


#: A number over the commits, None where it failed, and between which commits what stands came.
FAILING: dict[str, tuple[list[Outcome], list[tuple[str, str]], list[tuple[str, str]]]] = {
    "broken": ([10, None], [], [(A, B)]),
    "broken for long": ([10, None, None], [], [(A, B)]),
    "repaired": ([10, None, 10], [], []),
    "repaired, and worse than before it broke": ([10, None, 12], [(A, C)], []),
    "worse, then broken": ([10, 12, None], [(A, B)], [(B, C)]),
    "broken twice": ([10, None, 10, None], [], [(C, D)]),
    "broken from the first": ([None, None, 10], [], []),
}


@pytest.mark.parametrize(("values", "worse", "broken"), FAILING.values(), ids=FAILING)
def test_what_fails_stands(
    values: list[Outcome], worse: list[tuple[str, str]], broken: list[tuple[str, str]], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Until it is right again; what became worse meanwhile is seen. One line a kernel, not one a metric."""
    names = (COUNT, "track_counted.X.track_instructions")
    write(
        tmp_path,
        {each: {name: {"one": value} for name in names} for each, value in zip(COMMITS, values, strict=False)},
    )
    found = standing("gpu", consecutive(History("gpu", tmp_path)))
    assert [(each.base, each.head) for each in found if each.rows] == worse
    assert [(each.base, each.head) for each in found if each.broken] == broken
    assert main([], tmp_path) == 0
    told = capsys.readouterr().out
    assert (told.count("### "), "No regression stands" in told) == (len(found), not found)
    assert told.count("BROKEN: 1 count failed in head alone") == 2 * len(broken)  # two benchmarks, thus two kernels


def test_a_branch_is_no_predecessor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a branch won and does not bring is not lost by the next commit of main; drifts follow main alone, too."""
    commits = [commit(begin(tmp_path)), commit(tmp_path)]
    git.text(tmp_path, "checkout", "--quiet", "-b", "feature")
    faster = commit(tmp_path)
    git.text(tmp_path, "checkout", "--quiet", "main")
    docs = commit(tmp_path, message="docs only")
    order = [*commits, faster, docs]
    values = (8.0, 8.0, 1.0, 8.0)
    write(tmp_path, {each: {COUNT: {"one": value}} for each, value in zip(order, values, strict=True)})
    steps = list(consecutive(History("gpu", tmp_path)))
    assert [(step.previous, step.head) for step in steps] == [(commits[0], commits[1]), (commits[1], docs)]
    assert stands(tmp_path) == []
    git.text(tmp_path, "update-ref", "-d", "refs/heads/feature")
    write(tmp_path, {"e" * 40: {COUNT: {"one": 1.0}}, docs: {COUNT: {"one": 8.0}}})
    assert main([], tmp_path) == 0
    assert "left out: eeeeeeee, which git does not know here" in capsys.readouterr().err


def test_an_entry_ends_with_its_commit(project: tuple[Path, list[str]]) -> None:
    """What came with or before the entry does not stand; what came later does, though the file still has it."""
    root, commits = project
    entry = f'[[regression]]\nkernel = "{COUNT}"\nnumber = "sectors"\nreason = "accepted"\n'
    accepted, later = commit(root, {"acknowledged.toml": entry}), commit(root)
    assert [head for _, head, _ in stands(root)] == [commits[4], commits[1]]
    write(root, {accepted: {COUNT: {"one": 20.0}}, later: {COUNT: {"one": 25.0}}})
    assert stands(root) == [(accepted, later, 1.25)]


def test_a_time_is_not_mended_by_another_gpu(tmp_path: Path) -> None:
    """A change that two GPUs may make is no change: what was told before stands."""
    write(tmp_path, {commit: {TIME: {"one": samples(1e-3 * ratio)}} for commit, ratio in ((A, 1), (B, 1.05), (C, 1.0))})
    runs = [{"commits": [commit], "before": {"uuid": uuid}} for commit, uuid in ((A, "x"), (B, "x"), (C, "y"))]
    (tmp_path / "results" / "gpu" / "runs.jsonl").write_text("".join(f"{json.dumps(run)}\n" for run in runs))
    assert stands(tmp_path) == [(A, B, 1.05)]


def test_an_undecided_time_mends_nothing(tmp_path: Path) -> None:
    """A time of which nobody can tell whether it changed, here one without samples, leaves what was told before."""
    write(tmp_path, {A: {TIME: {"one": samples(1e-3)}}, B: {TIME: {"one": samples(1.05e-3)}}, C: {TIME: {"one": 1e-3}}})
    assert stands(tmp_path) == [(A, B, 1.05)]


@pytest.fixture
def project(tmp_path: Path) -> tuple[Path, list[str]]:
    """A repository of five commits, of which the first, the second and the last are measured, each slower."""
    begin(tmp_path, author="A @person")
    commits = [commit(tmp_path, message=f"change {number} <b>") for number in range(5)]
    values = {commits[0]: 10.0, commits[1]: 12.0, commits[4]: 15.0}
    write(tmp_path, {each: {COUNT: {"one": value}} for each, value in values.items()})
    return tmp_path, commits


def test_issue(project: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    """The commit by name where it is known, else both ends; names are no markup, and nobody is mentioned."""
    root, commits = project
    assert main([], root) == 0
    text = capsys.readouterr().out
    headings = re.findall("^### (.*)", text, re.MULTILINE)
    ends = [f"<code>{commits[place][:8]}</code>" for place in (1, 4)]
    assert headings == [f"Between {ends[0]} and {ends[1]} on <code>gpu</code>", f"{ends[0]} on <code>gpu</code>"]
    assert "One of 3 commits; the last is “change 4 " in text
    assert "“change 1 &#60;b&#62;”, by A &#64;&#8288;person" in text
    assert "| 12 | 15 | &#43;25 % |" in text.replace("+", "&#43;")
    assert f"kernelwatch compare {commits[1][:8]} {commits[4][:8]} --machine gpu" in text
    bisect = f"kernelwatch bisect &#39;{COUNT}(one)&#39; {commits[1][:8]} {commits[4][:8]} --machine gpu"
    assert bisect in text.replace("&#8288;", "")
    assert text.count("kernelwatch bisect") == 1


def test_no_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The text says so."""
    write(tmp_path, {A: {COUNT: {"one": 1.0}}, B: {COUNT: {"one": 1.0}}})
    assert main([], tmp_path) == 0
    assert capsys.readouterr().out == "No regression stands: each was mended or acknowledged.\n"


def test_a_long_issue_fits(tmp_path: Path) -> None:
    """However many regressions and rows there are, and whatever names hold."""
    names = [f"track_counted.X{number}{'x' * 100}.track_sectors" for number in range(60)]
    commits = [f"{number:02x}" * 20 for number in range(1, 13)]
    write(tmp_path, {commit: {name: {"@" * 230: 1.0 + age} for name in names} for age, commit in enumerate(commits)})
    found = standing("gpu", consecutive(History("gpu", tmp_path)))
    text = issue.render(found, tmp_path)
    assert len(found) == 11
    assert len(text) <= LIMIT
    assert re.search(r"\*\*\d+ more rows\*\* are left out", text)
    assert f"**{11 - issue._TOLD} more** are on the page Regressions" in text
    assert text.count("### ") == issue._TOLD
