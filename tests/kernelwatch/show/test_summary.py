"""The end of `make bench`, from this repository's own results of a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from asv.results import Results

from kernelwatch.instrument import skips
from kernelwatch.review.consecutive import failing
from kernelwatch.show import summary
from kernelwatch.store import git
from kernelwatch.store.results import History
from tests.stored import BASE, COUNT, TIME, write


def _measured() -> tuple[History, Results]:
    history = History("nvidia-h200")
    results = history.commit("740a7872b13f3fc74408f59cea51df6a85d996d9")
    assert results is not None
    return history, results


def test_verdict_first(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Then in three lines what was skipped, and which page and command show more."""
    history, results = _measured()
    first, _, tables = summary.lines(history, results)
    told = "tables of them: asv show 740a7872 --machine nvidia-h200"
    assert (first, tables.strip()) == ("Skipped: nothing", told)
    monkeypatch.setattr(summary, "History", lambda *_: history)
    monkeypatch.setattr(git, "text", lambda *_: results.commit_hash)
    monkeypatch.setattr(summary, "verdict", lambda *_: "THE VERDICT")
    assert summary.main() == 0
    assert capsys.readouterr().out == "\n".join(["THE VERDICT", *summary.lines(history, results), ""])
    monkeypatch.setattr(git, "text", lambda *_: "0" * 40)
    assert summary.main() == 1
    assert capsys.readouterr().err.startswith("no results of 00000000 on nvidia-h200; run: asv run ")


@pytest.mark.history
@pytest.mark.parametrize(
    ("head", "begins"),
    [
        ("f22cf79", "Compared with nothing: nvidia-h200 has results of no ancestor."),
        ("740a787", "TRADE  98a96e03 -> 740a7872 (1 commit), nvidia-h200\n"),
    ],
    ids=["nothing earlier", "the nearest that was measured"],
)
def test_ends_with_the_verdict(head: str, begins: str) -> None:
    """Of the review against the nearest measured ancestor."""
    history = History("nvidia-h200")
    results = history.commit(head)
    assert results is not None
    told = summary.verdict(history, results.commit_hash)
    assert told.startswith(begins)
    assert ("compare 98a96e03 740a7872 --machine nvidia-h200" in told) == (head == "740a787")


def test_skips(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each commit of a run is told its own, and nothing of what no commit will have."""
    history, results = _measured()
    never = f"{skips.NEVER}addition has no int8; it has float32, float64"
    noted = [
        {"commit": commit, "benchmark": "b", "reason": reason, "configurations": count}
        for commit, reason, count in (
            ("f" * 40, "another's", 5),
            (results.commit_hash, "its own", 2),
            (results.commit_hash, never, 1),
        )
    ]
    monkeypatch.setattr(history, "run_of", lambda *_: {"skipped": noted})
    told = [line for line in summary.lines(history, results) if line.startswith("Skipped: ")]
    assert told == ["Skipped: 2 configurations: its own"]


def test_what_fails_where_nothing_is_compared(tmp_path: Path) -> None:
    """The first measured commit has no other to be compared with; what fails there is named all the same."""
    history = History("gpu", write(tmp_path, {BASE: {COUNT: {"one": None, "two": 4.0}, TIME: {"one": None}}}))
    assert failing(history, BASE) == [TIME, COUNT]
    assert summary.verdict(history, BASE).endswith(f"no ancestor. FAILED: {TIME}, {COUNT}")
