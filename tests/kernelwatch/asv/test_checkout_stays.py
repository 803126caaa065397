"""A checkout stays usable: runs change nothing that git tracks, a pull works, `make keep` moves what was measured."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
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
    assert "1 files and" in _done(repository, "make", "keep")
    assert "nothing to keep" in _done(repository, "make", "keep")
    kept = json.loads((stored / result.name).read_text())["results"]
    assert set(kept) == {"track_compiled.Compiled.track_registers", *document["results"]}
    assert set((stored / "runs.jsonl").read_text().splitlines()) >= {*local.splitlines(), *runs.splitlines()}


def test_files_that_an_earlier_version_changed(tmp_path: Path) -> None:
    """The commands of docs/run.md move them to where git does not look; what git has is as it was."""
    stored, local = tmp_path / "results" / "m", tmp_path / "results-local" / "m"
    names = ("changed.jsonl", "same.jsonl", "new.jsonl")
    stored.mkdir(parents=True)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    (tmp_path / ".gitignore").write_text("results-local/\n")
    for name in names[:2]:
        (stored / name).write_text("1\n")
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "as it is")):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    (stored / names[0]).write_text("1\n2\n")
    (stored / names[2]).write_text("3\n")
    _, begin, after = (ROOT / "docs" / "run.md").read_text(encoding="utf-8").partition("mkdir -p results-local")
    who = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["sh", "-euc", begin + after.partition("```")[0]], cwd=tmp_path, env=os.environ | who, check=True)
    assert not subprocess.run(["git", "status", "--porcelain"], cwd=tmp_path, capture_output=True, check=True).stdout
    assert {path.name: path.read_text() for path in local.iterdir()} == {names[0]: "1\n2\n", names[2]: "3\n"}
    assert {path.name: path.read_text() for path in stored.iterdir()} == dict.fromkeys(names[:2], "1\n")
