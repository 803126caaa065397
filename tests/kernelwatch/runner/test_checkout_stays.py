"""A checkout stays usable: runs change nothing that git tracks, a pull works, `make keep` moves what was measured."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from kernelwatch.project import ROOT
from kernelwatch.store import folders
from tests.incoming import changed
from tests.repository import SMALL_KERNELS, SMALL_VALUES, Repository

REGISTERS = "ARGS=--bench track_registers"


@pytest.fixture
def repository(tmp_path: Path, environments: Path) -> Repository:
    """A clone whose `results/` know this machine, written as the workflows do, and a commit without results."""
    repository = Repository(tmp_path, SMALL_KERNELS[:1], SMALL_VALUES, environments)
    shutil.copy(ROOT / ".gitignore", repository.path)
    repository.commit("as it is")
    run = (sys.executable, "-m", "asv", "run", "--bench", "track_registers", "HEAD^!")
    _done(repository, "env", f"{folders.RESULTS}=results", *run)
    repository.share_environments()
    assert not repository.results.exists()
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


def _machine(folder: Path) -> Path:
    (found,) = (path.parent for path in folder.glob("*/machine.json"))
    return found


def test_bench_pull_keep(repository: Repository) -> None:
    """Upstream changes the very files that a run adds to, and has the same commit measured."""
    _done(repository, "make", "bench", REGISTERS)
    assert not repository.git("status", "--porcelain")
    here, stored = _machine(repository.results), _machine(repository.path / "results")
    assert here.name == stored.name
    head = repository.git("rev-parse", "HEAD")
    (result,) = here.glob("*-*.json")
    assert result.name.startswith(head[:8])
    _done(repository, "make", "history", REGISTERS, "COMMITS=2")
    assert len((here / "runs.jsonl").read_text().splitlines()) == 1, "both commits have results, one in each place"

    upstream = repository.path.parent / "upstream"
    theirs = _machine(upstream / "results")
    document = json.loads(result.read_text())
    (row,) = document["results"].values()
    document["results"] = {"track_compiled.Compiled.track_spill_bytes": row}
    (theirs / result.name).write_text(json.dumps(document), encoding="utf-8")
    runs = (theirs / "runs.jsonl").read_text()
    (theirs / "runs.jsonl").write_text(runs + runs.replace('"started": "20', '"started": "21'), encoding="utf-8")
    changed(upstream / "results" / "benchmarks.json", lambda _: None)  # its layout
    _done(repository, "git", "-C", str(upstream), "add", "--all")
    _done(repository, "git", "-C", str(upstream), "commit", "--quiet", "--message", "more")
    repository.git("pull", "--quiet", "--ff-only")

    local = (here / "runs.jsonl").read_text()
    assert "1 commits taken" in _done(repository, "make", "keep")
    assert "nothing to keep" in _done(repository, "make", "keep")
    kept = json.loads((stored / result.name).read_text())["results"]
    assert set(kept) == {"track_compiled.Compiled.track_registers", *document["results"]}
    assert set((stored / "runs.jsonl").read_text().splitlines()) >= {*local.splitlines(), *runs.splitlines()}
