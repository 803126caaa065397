"""Regressions that were accepted: what an entry covers, how the review shows it, and which files are refused."""

from __future__ import annotations

import html
import subprocess
from pathlib import Path

import pytest

from benchmarks import ROOT
from report.compare import acknowledged
from report.compare.__main__ import main
from report.compare.acknowledged import Acknowledged
from report.compare.verdict import Judgement, Verdict
from tests.stored import BASE, HEAD, TIME, pair, reviewed, samples, write

REASON = "any height needs a check"
ENTRY = f'''[[regression]]
commit = "{HEAD}"
configurations = ["{TIME}(one)"]
up_to = 1.1
reason = "{REASON}"
'''


def acknowledge(root: Path, text: str = ENTRY) -> None:
    """Write the file."""
    (root / acknowledged.FILE).write_text(text, encoding="utf-8")


#: What the file says, head's time in base's, and the verdict on it.
CASES: dict[str, tuple[str, float, str]] = {
    "as named": (ENTRY, 1.05, "ACKNOWLEDGED"),
    "just as much": (ENTRY, 1.1, "ACKNOWLEDGED"),
    "more than was accepted": (ENTRY, 1.102, "SLOW"),
    "any text": (ENTRY.replace(TIME, "time_*.X*"), 1.05, "ACKNOWLEDGED"),
    "the second pattern": (ENTRY.replace('["', '["none", "'), 1.05, "ACKNOWLEDGED"),
    "another configuration": (ENTRY.replace("(one)", "(two)"), 1.05, "SLOW"),
    "another commit": (ENTRY.replace(HEAD, "d" * 40), 1.05, "SLOW"),
    "the commit before": (ENTRY.replace(HEAD, BASE), 1.05, "SLOW"),
    "two of one commit": (ENTRY + ENTRY, 1.15, "ACKNOWLEDGED"),
    "faster": (ENTRY, 0.9, "FAST"),
    "the same": (ENTRY, 1.0, "SAME"),
    "no entry": ("", 1.05, "SLOW"),
}


@pytest.mark.parametrize(("text", "ratio", "verdict"), CASES.values(), ids=CASES)
def test_verdict(text: str, ratio: float, verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An acknowledged regression is none for the exit code, and stays in the report with its reason."""
    write(tmp_path, pair(samples(1e-3), samples(ratio * 1e-3)))
    acknowledge(tmp_path, text)
    code, found = reviewed(tmp_path, capsys)
    (row,) = found["rows"]
    assert (row["verdict"], code) == (verdict, int(verdict == "SLOW"))
    assert found["totals"]["timed"][verdict] == 1
    assert (REASON in row["reason"]) is (verdict == "ACKNOWLEDGED")
    assert sum(group["acknowledged"] for group in found["groups"]) == int(verdict == "ACKNOWLEDGED")


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_nothing_is_hidden(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict, the count, the reason and the commit, and the kernel's row."""
    write(tmp_path, pair(samples(1e-3), samples(1.05e-3)))
    acknowledge(tmp_path)
    assert main([BASE, HEAD, "--format", form], tmp_path) == 0
    said = html.unescape(capsys.readouterr().out)
    assert "NO REGRESSION" in said
    assert "1 acknowledged" in said
    assert f"1 configuration: {REASON} (cccccccc)" in said
    assert "1 of 1 acknowledged" in said
    assert "Not listed: 0 that are the same" in said


def test_another_regression_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside an acknowledged one, and it alone is the largest change."""
    base, head = ({"one": samples(1e-3), "two": samples(1e-3)}, {"one": samples(1.09e-3), "two": samples(1.02e-3)})
    write(tmp_path, {BASE: {TIME: {**base}}, HEAD: {TIME: {**head}}})
    acknowledge(tmp_path)
    assert main([BASE, HEAD], tmp_path) == 1
    assert "Largest: time_x.X.time_back_to_back 2.0 % slower" in capsys.readouterr().out


def _git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def test_it_counts_where_the_commit_lies_between(tmp_path: Path) -> None:
    """By git: not before base, not after head, not on another branch; several between accept their product."""
    _git(tmp_path, "init", "--quiet")
    person = ("-c", "user.name=n", "-c", "user.email=e")
    commits = []
    for message in "abcd":
        _git(tmp_path, *person, "commit", "--quiet", "--allow-empty", "--message", message)
        commits.append(_git(tmp_path, "rev-parse", "HEAD"))
    a, b, c, d = commits
    acknowledge(tmp_path, "".join(ENTRY.replace(HEAD, each) for each in (b, c)))
    #: base, head, ratio -> whether it is acknowledged.
    expected = {
        (a, b, 1.1): True,
        (a, d, 1.1): True,
        (b, c, 1.1): True,
        (a, b, 1.2): False,
        (a, d, 1.2): True,
        (a, d, 1.22): False,
        (c, d, 1.05): False,
        (d, a, 1.05): False,
        (b, b, 1.05): False,
    }
    for (base, head, ratio), wanted in expected.items():
        found = Acknowledged(tmp_path, base, head).weigh(Judgement(Verdict.SLOW, ratio), f"{TIME}(one)")
        assert (found.verdict is Verdict.ACKNOWLEDGED) is wanted, (base, head, ratio)


#: What is wrong with the file, and what is said.
BAD: dict[str, tuple[str, str]] = {
    "no TOML": ("[[regression", "Expected"),
    "not UTF-8": ("\udcff", "utf-8"),
    "unknown table": (ENTRY.replace("regression]]", "regressions]]"), "unknown field `regressions`"),
    "unknown key": (ENTRY + "who = 1\n", "unknown field `who`"),
    "short hash": (ENTRY.replace(HEAD, "c" * 8), "regression[0].commit"),
    "no configuration": (ENTRY.replace(f'"{TIME}(one)"', ""), "regression[0].configurations"),
    "another wildcard": (ENTRY.replace("(one)", "(on?)"), "regression[0].configurations[0]"),
    "empty pattern": (ENTRY.replace(f"{TIME}(one)", ""), "regression[0].configurations[0]"),
    "no ratio": (ENTRY.replace("up_to = 1.1\n", ""), "missing required field `up_to`"),
    "a ratio of a speed-up": (ENTRY.replace("1.1", "0.9"), "regression[0].up_to"),
    "no reason": (ENTRY.replace(REASON, ""), "regression[0].reason"),
    "two lines": (ENTRY.replace("height", "height\\n"), "regression[0].reason"),
    "the second entry": (ENTRY + ENTRY.replace("1.1", '"a"'), "regression[1].up_to"),
}


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD)
def test_bad_file(text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that says where, and no verdict."""
    write(tmp_path, pair(samples(1e-3), samples(1.05e-3)))
    (tmp_path / acknowledged.FILE).write_bytes(text.encode(errors="surrogateescape"))
    assert main([BASE, HEAD], tmp_path) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"cannot compare: {tmp_path / acknowledged.FILE}: ")
    assert said in error
    assert error.count("\n") == 1


def test_the_projects_own_file() -> None:
    """It is readable, and names commits of this repository."""
    for entry in acknowledged.read(ROOT):
        assert _git(ROOT, "cat-file", "-t", entry.commit) == "commit"
