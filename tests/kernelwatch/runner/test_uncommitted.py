"""Warnings of uncommitted files, which the measured commit lacks, or which the run imports."""

from pathlib import Path

import pytest
from asv.console import log

from kernelwatch.config import settings
from kernelwatch.runner import uncommitted
from kernelwatch.store import git
from tests import commits

WITHOUT = "HEAD is measured without these uncommitted changes: "
AS_THEY_ARE = "these uncommitted changes are used: "


@pytest.mark.parametrize(
    ("package", "changes", "expected"),
    [
        ("", [], []),
        ("", ["a.cu", "new.cuh", "new.txt", "results/new.json", "results/benchmarks.json", ".asv/project/a.cu"],
         [f"{WITHOUT}a.cu, new.cuh"]),
        ("", ["benchmarks/a.py"], [f"{AS_THEY_ARE}benchmarks/a.py"]),
        ("", ["benchmarks/new.py", "benchmarks/__pycache__/new.pyc"], [f"{AS_THEY_ARE}benchmarks/new.py"]),
        ("imaging", ["a.cu", "tests/new.py", "imaging/a new.py"], [f"{WITHOUT}a.cu, imaging/a new.py"]),
        ("elsewhere", ["src/elsewhere/new.cu"], [f"{WITHOUT}src/elsewhere/new.cu"]),
        ("", [f"{name}.cu" for name in "abcdefghij"],
         [f"{WITHOUT}a.cu, b.cu, c.cu, d.cu, e.cu, f.cu, g.cu, h.cu and 2 more"]),
    ],
)  # fmt: skip
def test_uncommitted_files_are_named(
    package: str, changes: list[str], expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of HEAD names the files that HEAD lacks. Any run names the ones that it imports."""
    files = ("a.cu", "benchmarks/a.py", "imaging/a.py", "results/benchmarks.json")
    commit = commits.commit(commits.begin(tmp_path), dict.fromkeys(files, "1"))
    for module in (uncommitted, settings):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(settings, "package_name", lambda: package)
    warnings = list[str]()
    monkeypatch.setattr(log, "warning", warnings.append)
    for name in changes:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("2")
    imported = uncommitted.warn_of_changes(["0" * 40, commit], Path("results"))
    assert imported == [
        name for text in expected if text.startswith(AS_THEY_ARE) for name in text[len(AS_THEY_ARE) :].split(", ")
    ]
    assert warnings == expected
    warnings.clear()
    uncommitted.warn_of_changes(["0" * 40], tmp_path / "results")
    assert warnings == [text for text in expected if text.startswith(AS_THEY_ARE)]


def test_no_warning_without_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside a repository, nothing is raised either: the run itself raises git's error."""
    monkeypatch.setattr(uncommitted, "ROOT", tmp_path)
    assert git.try_text(tmp_path, "rev-parse", "HEAD") is None
    warnings = list[str]()
    monkeypatch.setattr(log, "warning", warnings.append)
    assert uncommitted.warn_of_changes(["0" * 40], tmp_path / "results") == []
    assert warnings == []
