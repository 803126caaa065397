"""The search for a time's culprit among six commits that an H200 measured. A stand-in for asv hands out its samples."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asv.util import write_json

from kernelwatch import mortal
from kernelwatch.instrument import machine
from kernelwatch.instrument.machine import Gpu
from kernelwatch.review.bisect import probe, search, times
from kernelwatch.review.bisect.commits import Commit, suspects
from kernelwatch.review.bisect.culprit import Culprit
from kernelwatch.review.bisect.judging import Timed
from kernelwatch.review.bisect.metric import matching
from kernelwatch.review.bisect.times import Times
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Judgement, Verdict
from kernelwatch.store import git
from tests.commits import begin, commit
from tests.culprits import searched
from tests.kernelwatch.review.test_bisect_commits import KERNEL

KEPT = Path(__file__).parents[2] / "data" / "six-commits-h200" / "af68bbb3"
COMMITS: dict[str, str] = json.loads((KEPT / "commits.json").read_text(encoding="utf-8"))
NAMES = {commit: name for name, commit in COMMITS.items()}
GOOD, *_, BAD = COMMITS.values()

MACHINE = "nvidia-h200"
METRIC = "Transpose time transpose_read_write_coalesced 4096x4096 float32 -Xptxas -O3"

#: What each commit launches: the third lost the padding.
LAUNCHED = dict(zip(COMMITS.values(), "AABBBB", strict=True))


class Asv:
    """Stands in for asv: it hands out what was measured of the commits that it is told, and notes these."""

    def __init__(self, root: Path) -> None:
        self.root, self.runs = root, list[list[str]]()

    def run(self, words: list[str], env: Mapping[str, str], input: str, **_: Any) -> None:
        """Keep the results of the commits, as asv with the plugin does."""
        commits = input.split()
        assert "--interleave-rounds" in words, "in turns"
        assert env[mortal.RUN] == str(os.getpid()), "it ends with the search"
        patterns = [word for place, word in enumerate(words) if words[place - 1] == "--bench"]
        name = "time_transpose.Transpose.time_back_to_back('transpose_read_write_coalesced', '4096x4096', 'float32', "
        assert any(re.search(pattern, f"{name}'-Xptxas -O3')") for pattern in patterns)
        self.runs.append([NAMES[commit] for commit in commits])
        _keep(self.root / "results", commits)


def _keep(folder: Path, commits: list[str]) -> None:
    """Copy what the H200 stored of some commits."""
    (folder / MACHINE).mkdir(parents=True, exist_ok=True)
    shutil.copy(KEPT / "results" / "benchmarks.json", folder)
    names = (
        "machine.json",
        "runs.jsonl",
        "cubins.jsonl",
        *(f"{commit[:8]}-virtualenv-py3.12.json" for commit in commits),
    )
    for name in names:
        shutil.copy(KEPT / "results" / MACHINE / name, folder / MACHINE)


@pytest.fixture
def asv(stands_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asv:
    """A project whose six commits git does not know, with good and bad stored, on a machine with the GPU."""
    write_json(str(tmp_path / "asv.conf.json"), {"version": 1, "project": "p", "repo": ".", "branches": ["main"]})
    _keep(tmp_path / "results", [GOOD, BAD])
    found = Asv(tmp_path)
    monkeypatch.setattr("kernelwatch.review.bisect.times.subprocess", SimpleNamespace(run=found.run))
    monkeypatch.setattr(times, "packages", lambda commits, _: {commit: commit for commit in commits})
    monkeypatch.setattr(search, "resolve", lambda given, *_: given)
    monkeypatch.setattr(search, "between", lambda *_: [Commit(each, each, NAMES[each]) for each in COMMITS.values()])
    monkeypatch.setattr(search, "suspects", partial(_suspects, stands_in))
    monkeypatch.setattr(machine, "gpu", lambda: Gpu("NVIDIA H200", "sm_80", None))  # what timed says: sm_90
    monkeypatch.setattr("kernelwatch.review.bisect.search.examine", _examined)
    monkeypatch.setattr(probe, "ask", lambda commit, task, asked, _: LAUNCHED[commit.hash] * (asked[2] == "sm_90"))
    return found


@pytest.fixture(scope="module")
def stands_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six commits that git searches in the place of those that were measured."""
    found = begin(tmp_path_factory.mktemp("stands_in"))
    for name in COMMITS:
        commit(found, {KERNEL: name})
    return found


def _suspects(stands_in: Path, commits: list[Commit], judged: Callable[[Commit], str], _: Path) -> list[Commit]:
    said = git.text(stands_in, "rev-list", "--reverse", "HEAD")
    others = [Commit(each, "") for each in said.split()][: len(commits)]
    measured = dict(zip(others, commits, strict=True))
    return [measured[each] for each in suspects(others, lambda each: judged(measured[each]), stands_in)]


def _examined(_: Any, before: Commit, commit: Commit, change: Row, root: Path) -> Any:
    return Culprit(commit.hash, "", change, [], "", [])


#: What each commit launches, none that does not build; the stored commits; whether a GPU is here; where the answers
#: come from, and the commits of which one is the culprit.
SEARCHES: dict[str, tuple[str, str, bool, set[str], list[int]]] = {
    "every launch is good's or bad's": ("AABBBB", "05", True, {"stored"}, [2]),
    "all are stored": ("ABCDEF", "012345", False, {"stored"}, [2]),
    "the same launch goes before a time of its own": ("AAABBB", "012345", False, {"stored"}, [3]),
    "measured in turns": ("ABCDEF", "05", True, {"measured"}, [2]),
    "neither stored nor a GPU": ("ABCDEF", "05", False, {"skipped"}, [1, 2, 3, 4, 5]),
    "two do not build": ("A  DEF", "05", True, {"skipped", "measured"}, [1, 2, 3]),
}


@pytest.mark.parametrize(("launched", "kept", "gpu", "sources", "suspects"), SEARCHES.values(), ids=SEARCHES)
def test_search(
    launched: str, kept: str, gpu: bool, sources: set[str], suspects: list[int], asv: Asv,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Equal machine code first, then what is stored, and a GPU last: good, candidate and bad in turns."""
    every = list(COMMITS.values())

    def ask(commit: Commit, *_: Any) -> str:
        if not (found := launched[every.index(commit.hash)].strip()):
            raise probe.PackageError("nvcc failed")
        return found

    monkeypatch.setattr(probe, "ask", ask)
    _keep(asv.root / "results", [every[int(place)] for place in kept])
    if not gpu:
        monkeypatch.setattr(machine, "gpu", lambda: None)
    before = sorted((asv.root / "results" / MACHINE).iterdir())
    code, found = searched(asv.root, METRIC, GOOD, BAD)
    assert {each["source"] for each in found["steps"]} == sources
    assert found["suspects"] == [every[place] for place in suspects]
    assert code == (0 if len(suspects) == 1 else 125)
    assert (found["culprit"] or {}).get("commit") == (found["suspects"][0] if len(suspects) == 1 else None)
    assert code or found["culprit"]["change"]["judgement"]["verdict"] == "SLOWER"
    assert len(asv.runs) == sum(each["source"] == "measured" for each in found["steps"]) <= 3
    assert all((first, last) == ("as it is", "aligned again") for first, _, last in asv.runs)
    assert sorted((asv.root / "results" / MACHINE).iterdir()) == before, "results are only read"


def test_a_launch_is_measured_once(asv: Asv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second commit that launches the same is on the same side."""
    commits = [Commit(each, each) for each in COMMITS.values()]
    monkeypatch.setattr(probe, "ask", lambda commit, *_: "ABCCEF"[commits.index(commit)])
    (wanted,) = matching(METRIC)
    row: Any = None
    judge = Timed(wanted, row, Times(tmp_path), commits, tmp_path)
    assert [judge.step(commits[place]).source for place in (2, 3)] == ["measured", "stored"]
    assert asv.runs == [["as it is", "no padding", "aligned again"]]


def test_the_largest_change_is_searched(asv: Asv) -> None:
    """Of three that became slower, by 38, 41 and 79 %."""
    code, found = searched(asv.root, "time transpose_read_write_coalesced float32 -Xptxas -O3", GOOD, BAD)
    assert code == 0
    assert found["change"]["name"].startswith("time_transpose.TransposeInL2.")
    assert round(found["change"]["judgement"]["ratio"], 2) == 1.79


def test_ends_that_are_not_stored(asv: Asv) -> None:
    """They are measured first, in turns; what launches the same as one of them has its time."""
    shutil.rmtree(asv.root / "results")
    code, found = searched(asv.root, METRIC, GOOD, BAD)
    assert (code, found["culprit"]["commit"]) == (0, COMMITS["no padding"])
    assert asv.runs == [["as it is", "aligned again"]]


def test_no_difference(asv: Asv, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The same by the review's verdict: nothing is looked at; nor where times and numbers are meant."""
    ends = [COMMITS["as it is"], COMMITS["another text"]]
    _keep(asv.root / "results", ends)
    monkeypatch.setattr(search, "between", lambda *_: [Commit(each, each) for each in ends])
    code, found = searched(asv.root, METRIC, *ends)
    assert (code, found["steps"], asv.runs) == (1, [], [])
    assert found["reason"] == "the same by the review's verdict (numbers compared: 1)"
    assert searched(asv.root, "transpose_read_write_coalesced float32", *ends)[0] == 2
    assert "METRIC means times and other numbers" in capsys.readouterr().err


def test_the_kernel_is_not_to_blame(asv: Asv, monkeypatch: pytest.MonkeyPatch) -> None:
    """The times differ, but both ends launch the same."""
    monkeypatch.setattr(probe, "ask", lambda *_: "A")
    code, found = searched(asv.root, METRIC, GOOD, BAD)
    assert (code, found["steps"], asv.runs) == (1, [], [])
    assert "same machine code" in found["reason"]


@pytest.mark.parametrize("confirmed", [None, Verdict.SAME, Verdict.UNDECIDED])
def test_no_single_commit(confirmed: Verdict | None, asv: Asv, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one left does not differ from its parent: a drift, or noise. It is not called the culprit."""
    row = confirmed and Row("", "timed", "seconds", 1, 1, Judgement(confirmed, 1.0))
    asked: list[str] = []

    def reviewed(_: Timed, *both: Commit) -> Row | None:
        asked.extend(each.subject for each in both)
        return row

    monkeypatch.setattr(Timed, "row", reviewed)
    code, found = searched(asv.root, METRIC, GOOD, BAD)
    assert (code, found["culprit"], found["suspects"]) == (125, None, [COMMITS["no padding"]])
    assert asked == ["another text", "no padding"]
    assert "is the last one left" in found["reason"]
