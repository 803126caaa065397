"""The summary at the end of `make bench`."""

from pathlib import Path

import pytest

from kernelwatch.cli import summary
from kernelwatch.config.project_root import ROOT
from kernelwatch.instrument import skip_reasons
from kernelwatch.show import report
from kernelwatch.store import git
from kernelwatch.store.results import History
from tests.commits import begin, commit
from tests.stored import BASE, COUNT, TIME, change_document, review_stored, write
from tests.stored import HEAD as HEAD_MADE

HEAD = "740a7872b13f3fc74408f59cea51df6a85d996d9"


@pytest.mark.history
def test_summary_has_verdict_skips_and_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips of combinations that no commit supports are not listed. Without results, the summary fails."""
    history = History("nvidia-h200", ROOT)
    never = f"{skip_reasons.NOT_SUPPORTED}addition has no int8; it has float32, float64"
    fields = ("benchmark", "commit", "reason", "configurations")
    skips = (("b", "f" * 40, "another's", 5), ("b", HEAD, "its own", 2), ("b", HEAD, never, 1))
    noted = [dict(zip(fields, skip, strict=True)) for skip in skips]
    text, head = git.text, [HEAD]

    def _text(folder: Path, *words: str) -> str:
        return head[0] if words == ("rev-parse", "HEAD") else text(folder, *words)

    monkeypatch.setattr(summary, "History", lambda *_: history)
    monkeypatch.setattr(git, "text", _text)
    for skipped, expected in (([], ["Skipped: nothing"]), (noted, ["Skipped: 2 configurations: its own"])):
        monkeypatch.setattr(history, "find_last_run", lambda *_, skipped=skipped: {"skipped": skipped})
        output, failed = summary.summarize(history.machine)
        assert not failed
        lines = output.splitlines()
        assert [line for line in lines if line.startswith("Skipped")] == expected
        first, *counts, details, page, tables = (line for line in lines if not line.startswith("Skipped"))
        assert "".join(counts).startswith("669 times: 326 slower, 38 faster, 304 same, 1 undecided; 1725 counted and")
        assert first == "TRADE  98a96e03 -> 740a7872 (1 commit), nvidia-h200"
        assert details.strip() == "details: kernelwatch compare 98a96e03 740a7872 --machine nvidia-h200"
        assert page.startswith("Results: html/watch/index.html;")
        assert tables.strip() == "tables: asv show 740a7872 --machine nvidia-h200"
    head[0] = "0" * 40
    output, failed = summary.summarize(history.machine)
    assert output.startswith("no results of 00000000 on nvidia-h200; run: asv run ")
    assert failed


def test_summary_without_ancestor_names_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The website is that of asv.conf.json. The machine's name is quoted."""
    write(tmp_path, {BASE: {COUNT: {"one": None, "two": 4.0}, TIME: {"one": None}}}, machine="my gpu")
    change_document(tmp_path / "asv.conf.json", lambda document: document.update(html_dir="public"))
    monkeypatch.setattr(summary, "ROOT", tmp_path)
    history = History("my gpu", tmp_path)
    assert summary.render_verdict(history, BASE) == (
        f"Not compared: my gpu has no results of an ancestor. FAILED: {TIME}, {COUNT}"
    )
    *_, website, tables = summary.iter_lines(history, history.load_environments(BASE).popitem()[1])
    assert website.startswith("Results: public/watch/index.html; ")
    assert tables.endswith(" --machine 'my gpu'")


def test_summary_says_how_to_deepen_a_shallow_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = begin(tmp_path / "whole")
    first, second = commit(root), commit(root)
    clone = tmp_path / "clone"
    git.text(tmp_path, "clone", "--quiet", "--depth=1", root.as_uri(), str(clone))
    write(clone, {first: {COUNT: {"one": 2.0}}, second: {COUNT: {"one": 4.0}}})
    monkeypatch.setattr(summary, "ROOT", clone)
    assert summary.render_verdict(History("gpu", clone), second) == (
        "Not compared: gpu has no results of an ancestor. "
        "This clone is shallow, so git knows few ancestors; run: git fetch --unshallow"
    )


CHANGES = [
    ("track_instructions", 4.0, 5.0, ["SAME", "20 counted and compiled numbers: 20 rose (none decides)"]),
    ("track_sectors", 4.0, 5.0, ["WORSE", "20 counted and compiled numbers: 20 rose"]),
    ("track_sectors", 5.0, 4.0, ["BETTER", "20 counted and compiled numbers: 20 fell"]),
    ("track_sectors", 4.0, 4.0, ["SAME"]),
]


@pytest.mark.parametrize(("benchmark", "base", "head", "lines"), CHANGES)
def test_headline_counts_changes(benchmark: str, base: float, head: float, lines: list[str], tmp_path: Path) -> None:
    name, cases = f"track_counted.X.{benchmark}", [str(n) for n in range(20)]
    write(tmp_path, {BASE: {name: dict.fromkeys(cases, base)}, HEAD_MADE: {name: dict.fromkeys(cases, head)}})
    first, *further = report.render_headline(review_stored(tmp_path)).splitlines()
    assert [first.partition(" ")[0], *further] == lines
