"""A checkout stays usable: a run adds files to `results/` and changes none that git tracks, and a pull works."""

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
    """A clone whose `results/` have a commit of this machine, and a commit without results."""
    repository = Repository(tmp_path, SMALL_KERNELS[:1], SMALL_VALUES)
    (repository.path / ".gitignore").write_text("__pycache__/\n/.asv/\n/html/\nrun.lock\n*.egg-info/\n")
    repository.commit("as it is")
    _done(repository, sys.executable, "-m", "asv", "run", "--bench", "track_registers", "HEAD^!")
    repository.commit("its results")
    repository.git("clone", "--quiet", ".", "../upstream")
    repository.git("remote", "add", "origin", "../upstream")
    repository.git("fetch", "--quiet")
    repository.git("branch", "--quiet", "--set-upstream-to=origin/main")
    return repository


def _done(repository: Repository, *words: str) -> str:
    done = repository.make(*words[1:]) if words[0] == "make" else repository.run(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _new(repository: Repository) -> list[Path]:
    """The files that git does not track; it says of no other that it is another."""
    lines = repository.git("status", "--porcelain", "--untracked-files=all").splitlines()
    assert all(line.startswith("?? results/") for line in lines), lines
    return [repository.path / line.removeprefix("?? ") for line in lines]


def test_bench_and_pull(repository: Repository) -> None:
    """Upstream has the same commit measured, and results of the one before; all are read, by asv's commands, too."""
    _done(repository, "make", "bench", f"ARGS=--bench {REGISTERS}")
    head, before = repository.git("rev-parse", "HEAD", "HEAD^").split()
    result, *records = sorted(_new(repository), key=lambda path: path.suffix != ".json")
    assert result.name.startswith(head[:8])
    assert {path.name.removeprefix(result.stem) for path in records} == {".runs.jsonl", ".cubins.jsonl"}

    upstream = repository.path.parent / "upstream"
    document = json.loads(result.read_text())
    (row,) = document["results"].values()
    document["results"] = {SPILLS: [[0.0], *row[1:]]}
    theirs = upstream / "results" / result.parent.name / result.name.replace("Z.json", "1Z.json")
    theirs.write_text(json.dumps(document), encoding="utf-8")
    for words in (["add", "--all"], ["commit", "--quiet", "--message", "more"]):
        _done(repository, "git", "-C", str(upstream), *words)
    repository.git("pull", "--quiet", "--ff-only")

    (found,) = reading.iter_documents(result.parent, head)
    assert set(found.results) == {REGISTERS, SPILLS}
    for command in (["show", head], ["compare", before, head], ["publish"]):
        assert "track_registers" in _done(repository, sys.executable, "-m", "asv", *command) or command == ["publish"]
    (graph,) = (repository.path / "html" / "graphs").rglob(f"branch-main/**/{REGISTERS}.json")
    assert len(json.loads(graph.read_text())) == 2

    repository.git("add", "results")
    repository.git("commit", "--quiet", "--message", "kept")
    _done(repository, sys.executable, "-m", "asv", "run", "--bench", REGISTERS, f"{head}^!")
    (again,) = (path for path in _new(repository) if path.name.endswith(record.RUNS_FILE))
    assert again.name.startswith(head[:8])
    assert not [path for path in _new(repository) if path.suffix == ".json"], "the numbers are the same"
