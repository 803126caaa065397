"""A worker's clone, whatever checkout the repository is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernelwatch.fleet import clone
from kernelwatch.store import git


@pytest.mark.parametrize("checkout", ["the repository", "a clone", "a clone of one commit"])
def test_clone(tmp_path: Path, checkout: str) -> None:
    """It has the commit, and a branch main for asv; a second source replaces it, asv's environments stay."""
    folder = tmp_path / "origin"
    folder.mkdir()
    who = ("-c", "user.name=n", "-c", "user.email=e")
    git.text(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "file").write_text("one")
    git.text(folder, "add", "file")
    git.text(folder, *who, "commit", "--quiet", "--message=one")
    git.text(folder, "tag", "v1")
    git.text(folder, "branch", "other")
    if checkout != "the repository":
        origin, folder = folder, tmp_path / "checkout"
        subprocess.run(["git", "clone", "--quiet", str(origin), str(folder)], check=True)
        assert "origin/HEAD" in git.text(folder, "branch", "--all"), "what a clone of GitHub's has"
    if checkout == "a clone of one commit":
        git.text(folder, "checkout", "--quiet", "--detach")
    source = clone.bundled(folder)
    found = clone.at(source, tmp_path / "worker" / "clone")
    assert (found / "file").read_text() == "one"
    assert git.text(found, "rev-parse", "HEAD", "main") == f"{source.head}\n{source.head}"
    (found / ".asv").mkdir()
    (folder / "file").write_text("two")
    git.text(folder, *who, "commit", "--quiet", "--all", "--message=two")
    assert clone.at(clone.bundled(folder), found) == found
    assert (found / "file").read_text() == "two"
    assert (found / ".asv").exists()


def test_git_says_why(tmp_path: Path) -> None:
    """An error holds git's own words."""
    with pytest.raises(RuntimeError, match="not a git repository"):
        git.text(tmp_path, "status")
