"""What an experiment says of itself."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from experiments import facts
from kernelwatch.instrument import machine
from kernelwatch.project import ROOT

GPU = machine.Gpu("NVIDIA X1", "sm_90", 1.0)


def _git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=x", "-c", "user.email=x@y.z")
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize(
    ("file", "suffix"), [(None, ""), ("code.py", "-dirty"), ("results/x.json", ""), ("docs/x.jsonl", "")]
)
def test_commit(file: str | None, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told, and whether files differ from it; what measuring writes does not count."""
    names = ["code.py", "results/x.json", "docs/x.jsonl"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-qm", "one")
    if file is not None:
        (tmp_path / file).write_text("2")
    monkeypatch.setattr(facts, "ROOT", tmp_path)
    monkeypatch.setattr(machine, "volatile", lambda: {"driver": "1.2", "uuid": "GPU-1", "other": 3})
    monkeypatch.setattr(machine, "nvcc_release", lambda: "13.0")
    known = facts.now(GPU)
    assert known["commit"] == _git(tmp_path, "rev-parse", "--short=8", "HEAD") + suffix
    assert "other" not in known
    assert facts.sentence(known) == (
        f"NVIDIA X1 (GPU-1), driver 1.2, nvcc 13.0, commit {known['commit']}, {known['date'][:10]}"
    )


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside a repository, and without git, an experiment runs all the same."""
    monkeypatch.setattr(facts, "ROOT", tmp_path)
    assert facts._commit() is None
    monkeypatch.setattr(facts, "ROOT", ROOT)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert facts._commit() is None
    known = {"gpu": "X", "uuid": "GPU-1", "driver": "1", "nvcc": "2", "commit": None, "date": "2026-01-02T03:04:05"}
    assert facts.sentence(known) == "X (GPU-1), driver 1, nvcc 2, commit unknown, 2026-01-02"


@pytest.mark.parametrize("first", [{"facts": {"gpu": "X"}}, {"gpu": "X"}])
def test_read(first: dict[str, object], tmp_path: Path) -> None:
    """Facts stand in the first line, under a name or alone; the rest are entries."""
    path = tmp_path / "x.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (first, {"name": "one"}, {"name": "two"})))
    assert facts.read(path) == ({"gpu": "X"}, [{"name": "one"}, {"name": "two"}])


def test_nothing_to_read(tmp_path: Path) -> None:
    """A file that is missing is named."""
    with pytest.raises(ValueError, match=r"nowhere\.jsonl holds nothing; measure first"):
        facts.read(tmp_path / "nowhere.jsonl")
