"""A short history with planted changes, compiled and counted for real."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernelwatch import command_line
from kernelwatch.project import ROOT
from kernelwatch.review import commands
from kernelwatch.review.bisect import probe
from kernelwatch.review.bisect.commits import Commit, described
from kernelwatch.review.bisect.judging import Step
from kernelwatch.store import git, rows
from tests import culprits
from tests.culprits import STEADY, History, searched


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Sixteen commits: one makes a copy misaligned, one does not build, and one is hungry where nothing builds."""
    found = culprits.build(tmp_path_factory.mktemp("history"), 13, ["misaligned"], 1)
    found.broken(1, inside="hungry")
    return found


def _ends(history: History) -> tuple[str, str]:
    return history.commits[0], history.commits[-1]


def test_found(history: History, tmp_path: Path) -> None:
    """The commit, what it changed, and the source lines; nothing is stored, and no checkout changes."""
    planted = culprits.PLANTED["misaligned"]
    before = history.repository.git("status", "--porcelain"), history.repository.git("rev-parse", "HEAD")
    code, found = searched(history.repository.path, planted.metric, *_ends(history))
    assert code == found["exit_code"] == 0
    culprit = found["culprit"]
    assert culprit["commit"] == history.planted["misaligned"]
    assert "subject  misaligned\n" in culprit["said"]
    assert f" {planted.file} | " in culprit["said"]
    assert culprit["change"]["judgement"]["verdict"] == "SLOWER"
    assert culprit["change"]["base"] == 4 < culprit["change"]["head"]
    assert [(each["is_after"], each["text"]) for each in culprit["lines"]] == [
        (False, "output[index + offset] = input[index + offset];"),
        (True, "output[index + offset] = input[index + offset];"),
    ]
    assert culprit["notes"] == []
    steps = found["steps"]
    assert len(steps) <= 4 < found["commits"] < 15
    assert {each["source"] for each in steps} <= {"built", "skipped"}
    assert before == (history.repository.git("status", "--porcelain"), history.repository.git("rev-parse", "HEAD"))
    assert not (history.repository.path / "results").exists()


def test_undecidable(history: History) -> None:
    """The change came in while nothing built: the commits of which one is the culprit, as `git bisect` has it."""
    good, bad = history.commits[-5], history.commits[-1]
    code, found = searched(history.repository.path, culprits.PLANTED["hungry"].metric, good, bad)
    assert code == found["exit_code"] == 125
    assert found["culprit"] is None
    assert found["suspects"] == history.commits[-3:]
    skipped = [each for each in found["steps"] if each["verdict"] == "skip"]
    assert {each["commit"] for each in skipped} == set(history.commits[-3:-1])
    assert all("#error" in each["reason"] for each in skipped)


def _stored(revision: str) -> Commit:
    return described([git.text(ROOT, "rev-parse", revision)], ROOT)[0]


@pytest.mark.history
@pytest.mark.parametrize("revision", ["f22cf79", "952ced2", "f30f4e4"])
def test_what_a_stored_commit_launches(revision: str) -> None:
    """Packages of every older contract can be asked, and timed: the same each time, and other flags are another."""
    commit = _stored(revision)
    params = {"kernel": "transpose_read_write_coalesced", "rows x columns": "256x256", "dtype": "float32"}
    asked = [
        ("time_transpose.Transpose.time_back_to_back", {**params, "flags": flags}, "sm_90")
        for flags in ("-Xptxas -O3", "-Xptxas -O3", "-Xptxas -O0")
    ]
    first, again, other = (probe.ask(commit, "launched", each, ROOT) for each in asked)
    assert first == again != other


@pytest.mark.history
@pytest.mark.parametrize("revision", ["952ced2", "f30f4e4"])
def test_what_a_stored_commit_counts(revision: str) -> None:
    """What was stored when it was measured, also of the kernel whose geometry depends on the dtype."""
    benchmark = "track_counted.Transpose.track_store_sectors"
    (path,) = (ROOT / "results" / "no-gpu-x86_64").glob(f"{revision}*.json")
    row = rows.read(json.loads(path.read_text(encoding="utf-8")), benchmark)
    stored = {params: value for params, value, _ in rows.each(row) if params[2] == "-Xptxas -O3"}
    asked = [(benchmark, dict(zip(("kernel", "dtype", "flags"), params, strict=True))) for params in stored]
    assert probe.ask(_stored(revision), "values", asked, ROOT) == [*stored.values()]


@contextmanager
def _bisection(history: History, good: str, bad: str) -> Iterator[Path]:
    """A bisection of the user's own."""
    begun = ("bisect", "start", "--no-checkout", "--first-parent", bad, good, "--", "gpu_kernels")
    history.repository.git(*begun)
    try:
        yield history.repository.path
    finally:
        history.repository.git("bisect", "reset")


def test_git_bisect_run(history: History) -> None:
    """The search is git's own, the judge is ours."""
    planted = culprits.PLANTED["misaligned"]
    place = history.commits.index(history.planted["misaligned"])
    with _bisection(history, history.commits[place - 2], history.commits[place + 1]):
        words = (sys.executable, "-m", "kernelwatch", "judge", planted.metric)
        found = history.repository.run("git", "bisect", "run", *words)
    assert found.returncode == 0, found.stdout + found.stderr
    assert f"{history.planted['misaligned']} is the first bad commit" in found.stdout
    assert re.search(r"^(good|bad): \d+, built$", found.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("registers", "METRIC means"),
        ("no_such_word", "names nothing that is measured"),
        (STEADY, "the same by the review's verdict"),
        ("--no-such-option", "usage: "),
    ],
)
def test_where_no_commit_can_be_judged(metric: str, said: str, history: History) -> None:
    """Any exit code below 128 would be a verdict."""
    with _bisection(history, history.commits[-3], history.commits[-1]):
        done = _judged(history, metric)
    assert (done.returncode, said in done.stderr) == (128, True)


def _judged(history: History, metric: str) -> subprocess.CompletedProcess[str]:
    return history.repository.run(sys.executable, "-m", "kernelwatch", "judge", metric)


@pytest.mark.parametrize(("verdict", "code"), [("good", 0), ("bad", 1), ("skip", 125), ("unforeseen", 128)])
def test_exit_codes(verdict: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As git bisect run takes them."""
    monkeypatch.setattr(commands, "judge_one", lambda *_: Step("c", verdict, "built", 1.0))
    assert command_line.main(["judge", "x"]) == code


def test_without_a_bisection(history: History) -> None:
    """It is said how to begin one."""
    done = _judged(history, "registers")
    assert (done.returncode, "git bisect start --no-checkout" in done.stderr) == (128, True)
