"""Regressions that were accepted: what an entry covers, when it counts, how the review shows it, what is refused."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from kernelwatch.project import ROOT
from kernelwatch.review import acknowledged
from kernelwatch.review.acknowledged import Acknowledged
from kernelwatch.review.commands import compare as main
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Judgement, Verdict
from kernelwatch.store import git
from tests.commits import begin, commit, own
from tests.stored import BASE, HEAD, TIME, pair, reviewed, samples, write

REASON = "any height needs a check"
ENTRY = f'''[[regression]]
commit = "{HEAD}"
configurations = ["{TIME}(one)"]
up_to = 1.1
reason = "{REASON}"
'''

#: As a pull request has it.
NAMED = f'''[[regression]]
kernel = "transpose_tile"
number = "time"
reason = "{REASON}"
'''


def acknowledge(root: Path, text: str = ENTRY) -> None:
    """Write the file."""
    (root / acknowledged.FILE).write_text(text, encoding="utf-8")


#: What the file says, head's time in base's, and the verdict on it.
CASES: dict[str, tuple[str, float, str]] = {
    "as named": (ENTRY, 1.05, "ACKNOWLEDGED"),
    "just as much, as it is printed": (ENTRY, 1.1004, "ACKNOWLEDGED"),
    "more than was accepted": (ENTRY, 1.102, "SLOWER"),
    "another configuration": (ENTRY.replace("(one)", "(two)"), 1.05, "SLOWER"),
    "another commit": (ENTRY.replace(HEAD, "d" * 40), 1.05, "SLOWER"),
    "the commit before": (ENTRY.replace(HEAD, BASE), 1.05, "SLOWER"),
    "two of one commit": (ENTRY + ENTRY, 1.15, "ACKNOWLEDGED"),
    "faster": (ENTRY, 0.9, "FASTER"),
    "the same": (ENTRY, 1.0, "SAME"),
    "no entry": ("", 1.05, "SLOWER"),
}


@pytest.mark.parametrize(("text", "ratio", "verdict"), CASES.values(), ids=CASES)
def test_verdict(text: str, ratio: float, verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An acknowledged regression is none for the exit code, and stays in the report with its reason."""
    write(tmp_path, pair(samples(1e-3), samples(ratio * 1e-3)))
    acknowledge(tmp_path, text)
    code, found = reviewed(tmp_path, capsys)
    (row,) = found["rows"]
    assert (row["verdict"], code) == (verdict, int(verdict == "SLOWER"))
    assert found["totals"]["timed"][verdict] == 1
    assert (REASON in row["reason"]) is (verdict == "ACKNOWLEDGED")
    assert sum(group["acknowledged"] for group in found["groups"]) == int(verdict == "ACKNOWLEDGED")


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_nothing_is_hidden(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict, the count, the reason and the commit, the kernel's row; another regression is one all the same."""
    write(tmp_path, pair(samples(1e-3), samples(1.05e-3)))
    acknowledge(tmp_path)
    assert main([BASE, HEAD, "--format", form], tmp_path) == 0
    said = html.unescape(capsys.readouterr().out)
    assert "ACKNOWLEDGED" in said
    assert "1 acknowledged" in said
    assert f"1 configuration: {REASON} (cccccccc)" in said
    assert "1 of 1 acknowledged" in said
    assert "Not listed: 0 that are the same" in said
    base, head = ({"one": samples(1e-3), "two": samples(1e-3)}, {"one": samples(1.09e-3), "two": samples(1.02e-3)})
    write(tmp_path, {BASE: {TIME: {**base}}, HEAD: {TIME: {**head}}})
    assert main([BASE, HEAD, "--format", form], tmp_path) == 1
    assert re.search("Largest.* 2.0 % slower", html.unescape(capsys.readouterr().out))


def test_it_counts_where_the_commit_lies_between(tmp_path: Path) -> None:
    """By git: not before base, not after head, not on another branch; several between accept their product."""
    begin(tmp_path)
    a, b, c, d = (commit(tmp_path) for _ in range(4))
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
        judged = Acknowledged(tmp_path, base, head).row(_worse(f"{TIME}(one)", TIME, ratio=ratio)).judgement
        assert (judged.verdict is Verdict.ACKNOWLEDGED) is wanted, (base, head, ratio)


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
    "a ratio of a speed-up": (ENTRY.replace("1.1", "0.9"), "regression[0].up_to"),
    "no reason": (ENTRY.replace(REASON, ""), "regression[0].reason"),
    "two lines": (ENTRY.replace("height", "height\\n"), "regression[0].reason"),
    "neither kernel nor commit": (ENTRY.replace(f'commit = "{HEAD}"\n', ""), "name `kernel` and `number`, or else"),
    "every kernel": (NAMED.replace("transpose_tile", "*"), "name `kernel` and `number`, or else"),
    "every number": (NAMED.replace("time", "*"), "name `kernel` and `number`, or else"),
    "every configuration of a commit": (ENTRY.replace(f"{TIME}(one)", "*"), "name `kernel` and `number`, or else"),
    "too many patterns": (ENTRY.replace('["', '["x", ' + '"x", ' * 20 + '"'), "regression[0].configurations"),
    "too many entries": (ENTRY * 201, "regression"),
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


@pytest.mark.history
def test_the_projects_own_file() -> None:
    """It is readable, and names commits of this repository."""
    for entry in acknowledged.read(ROOT):
        assert entry.commit is None or git.text(ROOT, "cat-file", "-t", entry.commit) == "commit"


#: What an entry names of the kernel k, the number, the configuration; whether it covers "spill bytes" of `b.B.x(one)`.
COVERED: dict[str, tuple[str, bool]] = {
    "kernel and number": ('kernel = "k"\nnumber = "spill bytes"', True),
    "kernels": ('kernel = "k*"\nnumber = "spill bytes"', True),
    "numbers": ('kernel = "k"\nnumber = "spill*"', True),
    "another kernel": ('kernel = "l"\nnumber = "spill bytes"', False),
    "the beginning of a kernel's name": ('kernel = "k2"\nnumber = "spill bytes"', False),
    "another number": ('kernel = "k"\nnumber = "registers"', False),
    "the end of a number's name": ('kernel = "k"\nnumber = "bytes"', False),
    "a time": ('kernel = "k"\nnumber = "time"', False),
    "some configurations": ('kernel = "k"\nnumber = "spill bytes"\nconfigurations = ["x", "*(one)"]', True),
    "other configurations": ('kernel = "k"\nnumber = "spill bytes"\nconfigurations = ["*(two)"]', False),
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit."""
    commit(begin(tmp_path))
    return tmp_path


def _commit(root: Path, text: str | None) -> str:
    """A commit whose file says so; None leaves the file alone."""
    return commit(root, {} if text is None else {acknowledged.FILE: text})


def _worse(name: str, kernel: str, number: str = "time", ratio: float = 1.2, said: str = "SLOWER") -> Row:
    """A time or a number of a kernel that became worse."""
    kind, metric = ("timed", "time_x") if number == "time" else ("compiled", f"track_{number.replace(' ', '_')}")
    judgement = Judgement(Verdict(said), ratio)
    return Row(name, kind, "", 1.0, ratio, judgement, benchmark=f"b.B.{metric}", kernel=kernel)


def _accepts(
    root: Path, base: str, head: str, kernel: str = "transpose_tile", number: str = "time", said: str = "SLOWER"
) -> bool:
    worse = _worse("b.B.x(one)", kernel, number, said=said)
    found = Acknowledged(root, base, head).row(worse).judgement
    assert (found.reason == REASON) is (found.verdict is Verdict.ACKNOWLEDGED)
    return found.verdict is Verdict.ACKNOWLEDGED


@pytest.mark.parametrize(("named", "expected"), COVERED.values(), ids=COVERED)
def test_what_an_entry_names(named: str, expected: bool, repository: Path) -> None:
    """Kernel and number, and perhaps configurations."""
    base = git.text(repository, "rev-parse", "HEAD")
    head = _commit(repository, f'[[regression]]\n{named}\nreason = "{REASON}"\n')
    for verdict in ("SLOWER", "TRADE"):  # then --trade none lets it pass
        assert _accepts(repository, base, head, "k", "spill bytes", said=verdict) is expected


def test_an_entry_counts_where_it_is_new(repository: Path) -> None:
    """It accepts what came with it, and nothing later, until another is added; a change of the hash does not matter."""
    a = git.text(repository, "rev-parse", "HEAD")
    b = _commit(repository, NAMED)
    c = _commit(repository, None)
    d = _commit(repository, NAMED + NAMED)
    e = _commit(repository, "")
    git.text(repository, "checkout", "--quiet", "-b", "squashed", a)
    squashed = _commit(repository, NAMED)
    after = _commit(repository, None)
    expected = {
        (a, b): True,
        (a, c): True,  # neighbours that were measured need not be neighbours in git
        (b, c): False,
        (c, d): True,  # a second one
        (d, e): False,
        (c, e): False,
        (a, e): False,  # gone again
        (b, a): False,
        (a, squashed): True,
        (squashed, after): False,
    }
    assert {pair: _accepts(repository, *pair) for pair in expected} == expected


def test_where_an_entry_is_read(repository: Path) -> None:
    """In the folder for the commit that is checked out: measure, review, write the entry, review again.

    Nothing is accepted where git cannot say what is new.
    """
    a = git.text(repository, "rev-parse", "HEAD")
    b, c = _commit(repository, None), _commit(repository, None)
    acknowledge(repository, NAMED)
    assert _accepts(repository, b, c)
    assert not _accepts(repository, a, b)
    assert not _accepts(repository, "d" * 40, c)
    assert not _accepts(repository, c, "d" * 40)


@pytest.mark.parametrize(
    ("text", "said"),
    [("[[regression", "Expected"), (NAMED + "# " + "x" * 65536, "65536 are allowed"), ("a = " + "[" * 9999, "")],
    ids=["no TOML", "large", "deep"],
)
def test_a_bad_file_of_a_commit(text: str, said: str, repository: Path) -> None:
    """Of base or of head: nothing is accepted, and why is told; pages of the history are made all the same."""
    a = git.text(repository, "rev-parse", "HEAD")
    b = _commit(repository, text)
    c = _commit(repository, NAMED)
    for base, head in ((a, b), (b, c)):
        found = Acknowledged(repository, base, head)
        git.text(repository, "checkout", "--quiet", "--detach", a)
        worse = _worse("b.B.x(one)", "transpose_tile")
        assert found.row(worse) is worse
        (problem,) = found.problems
        assert problem.startswith(f"{b[:8]}:{acknowledged.FILE}")
        assert said in problem
        assert problem.endswith("none of its entries counts")


def test_the_file_of_a_pull_request(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Main is checked out, as where a comment is written: the fork's file is read as git fetched it."""
    fork, main_ = tmp_path_factory.mktemp("fork"), tmp_path_factory.mktemp("main")
    git.text(fork.parent, "clone", "--quiet", str(repository), str(fork))
    own(fork)
    text = NAMED.replace("transpose_tile", TIME)
    head = _commit(fork, text)
    git.text(main_.parent, "clone", "--quiet", str(repository), str(main_))
    git.text(main_, "fetch", "--quiet", "--no-tags", str(fork), head)
    base = git.text(main_, "rev-parse", "HEAD")
    write(main_, {base: {TIME: {"one": samples(1e-3)}}, head: {TIME: {"one": samples(1.05e-3)}}})
    assert main([base, head], main_) == 0
    assert not (main_ / acknowledged.FILE).exists()
    assert main([base, head, "--format", "markdown"], main_) == 0
