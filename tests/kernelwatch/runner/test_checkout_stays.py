"""A run only adds files to `results/`, so that the checkout stays clean and can pull."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kernelwatch.store import reading, record
from tests.repository import SMALL_KERNELS, SMALL_VALUES, Repository

REGISTERS = "track_compiled.Compiled.track_registers"
SPILLS = REGISTERS.replace("registers", "spill_bytes")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Return a repository with an upstream clone. The repository's second commit has the results of the first."""
    repository = Repository(tmp_path, SMALL_KERNELS[:1], SMALL_VALUES)
    (repository.path / ".gitignore").write_text("__pycache__/\n/.asv/\n/html/\nrun.lock\n*.egg-info/\n")
    repository.commit("as it is")
    _run_successfully(repository, sys.executable, "-m", "asv", "run", "--bench", "track_registers", "HEAD^!")
    repository.commit("its results")
    repository.git("clone", "--quiet", ".", "../upstream")
    repository.git("remote", "add", "origin", "../upstream")
    repository.git("fetch", "--quiet")
    repository.git("branch", "--quiet", "--set-upstream-to=origin/main")
    return repository


def _run_successfully(repository: Repository, *words: str) -> str:
    done = repository.make(*words[1:]) if words[0] == "make" else repository.run(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _list_untracked(repository: Repository) -> list[Path]:
    lines = repository.git("status", "--porcelain", "--untracked-files=all").splitlines()
    assert all(line.startswith("?? results/") for line in lines), lines
    return [repository.path / line.removeprefix("?? ") for line in lines]


def test_results_survive_a_pull(repository: Repository) -> None:
    _run_successfully(repository, "make", "bench", f"ARGS=--bench {REGISTERS}")
    head, base = repository.git("rev-parse", "HEAD", "HEAD^").split()
    result, *records = sorted(_list_untracked(repository), key=lambda path: path.suffix != ".json")
    assert result.name.startswith(head[:8])
    assert {path.name.removeprefix(result.stem) for path in records} == {".runs.jsonl", ".cubins.jsonl"}

    upstream = repository.path.parent / "upstream"
    document = json.loads(result.read_text())
    (row,) = document["results"].values()
    document["results"] = {SPILLS: [[0.0], *row[1:]]}
    upstream_file = upstream / "results" / result.parent.name / result.name.replace("Z.json", "1Z.json")
    upstream_file.write_text(json.dumps(document), encoding="utf-8")
    for words in (["add", "--all"], ["commit", "--quiet", "--message", "more"]):
        _run_successfully(repository, "git", "-C", str(upstream), *words)
    repository.git("pull", "--quiet", "--ff-only")

    (merged,) = reading.iter_documents(result.parent, head)
    assert set(merged.results) == {REGISTERS, SPILLS}
    for command in (["show", head], ["compare", base, head]):
        assert "track_registers" in _run_successfully(repository, sys.executable, "-m", "asv", *command)
    _run_successfully(repository, sys.executable, "-m", "asv", "publish")
    (graph,) = (repository.path / "html" / "graphs").rglob(f"branch-main/**/{REGISTERS}.json")
    assert len(json.loads(graph.read_text())) == 2

    repository.git("add", "results")
    repository.git("commit", "--quiet", "--message", "kept")
    _run_successfully(repository, sys.executable, "-m", "asv", "run", "--bench", REGISTERS, f"{head}^!")
    (again,) = (path for path in _list_untracked(repository) if path.name.endswith(record.RUNS_FILE))
    assert again.name.startswith(head[:8])
    assert not [path for path in _list_untracked(repository) if path.suffix == ".json"], (
        "equal numbers were stored again"
    )
