"""The end of `make bench`, from this repository's own results of a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwatch.instrument import skip_reasons
from kernelwatch.show import summary
from kernelwatch.store import git
from kernelwatch.store.results import History
from tests.stored import BASE, COUNT, TIME, write

HEAD = "740a7872b13f3fc74408f59cea51df6a85d996d9"


@pytest.mark.history
def test_summary(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict against the nearest measured ancestor; what was skipped; which page and command show more.

    Each commit of a run is told its own, and what no commit will have in one line.
    """
    history, never = (
        History("nvidia-h200"),
        f"{skip_reasons.NOT_SUPPORTED}addition has no int8; it has float32, float64",
    )
    told = (("f" * 40, "another's", 5), (HEAD, "its own", 2), (HEAD, never, 1))
    noted = [{"commit": each, "benchmark": "b", "reason": why, "configurations": n} for each, why, n in told]
    text, head = git.text, [HEAD]

    def _text(folder: Path, *words: str, **how: float | None) -> str:
        return head[0] if words == ("rev-parse", "HEAD") else text(folder, *words, timeout=how.get("timeout"))

    monkeypatch.setattr(summary, "History", lambda *_: history)
    monkeypatch.setattr(git, "text", _text)
    never = "Skipped: 1 configurations: kernels are not meant for these dtypes"
    for skipped, said in (([], ["Skipped: nothing"]), (noted, ["Skipped: 2 configurations: its own", never])):
        monkeypatch.setattr(history, "run_of", lambda *_, skipped=skipped: {"skipped": skipped})
        assert summary.main() == 0
        first, whole, *others, page, tables = capsys.readouterr().out.splitlines()
        assert first == "TRADE  98a96e03 -> 740a7872 (1 commit), nvidia-h200"
        assert whole.strip() == "all of it: kernelwatch compare 98a96e03 740a7872 --machine nvidia-h200"
        assert (others, page[:31]) == (said, "Look at: html/watch/index.html;")
        assert tables.strip() == "tables of them: asv show 740a7872 --machine nvidia-h200"
    head[0] = "0" * 40
    assert summary.main() == 1
    assert capsys.readouterr().err.startswith("no results of 00000000 on nvidia-h200; run: asv run ")


def test_what_fails_where_nothing_is_compared(tmp_path: Path) -> None:
    """The first measured commit has no other to be compared with; what fails there is named all the same."""
    history = History("gpu", write(tmp_path, {BASE: {COUNT: {"one": None, "two": 4.0}, TIME: {"one": None}}}))
    assert summary.verdict(history, BASE) == (
        f"Compared with nothing: gpu has results of no ancestor. FAILED: {TIME}, {COUNT}"
    )
