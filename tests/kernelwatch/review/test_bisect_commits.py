"""What the search asks git: which commits can have moved a number, and what a reader wants to know of one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kernelwatch.review.bisect.commits import between, describe, merge_base, packages
from kernelwatch.review.bisect.search import commits_between
from kernelwatch.review.commits import CannotCompareError


class Repository:
    """A repository of two files: one of the package, one beside it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "gpu_kernels").mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str) -> str:
        """Run git."""
        who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        done = subprocess.run(["git", *words], cwd=self.path, env=os.environ | who, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, file: str, content: str) -> str:
        """Write a file and commit it."""
        (self.path / file).write_text(content, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", f"{file}: {content}")
        return self.git("rev-parse", "HEAD")


KERNEL, BESIDE = "gpu_kernels/kernel.cu", "README.md"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """An empty one."""
    return Repository(tmp_path)


def test_commits_that_touch_the_package(repository: Repository) -> None:
    """Oldest first, behind good; what is beside the package is left out; equal packages are known as such."""
    without = repository.commit(BESIDE, "0")
    good, *others = [
        repository.commit(file, content)
        for file, content in ((KERNEL, "1"), (BESIDE, "2"), (KERNEL, "3"), (BESIDE, "4"), (KERNEL, "1"), (BESIDE, "5"))
    ]
    found = between(good, others[-1], repository.path)
    assert [each.hash for each in found] == [good, others[1], others[3]]
    assert [each.subject for each in found] == [f"{KERNEL}: 1", f"{KERNEL}: 3", f"{KERNEL}: 1"]
    assert found[0].package == found[2].package != found[1].package
    assert commits_between(good, others[-1], repository.path) == 5
    known = packages([others[-1], without, "0" * 40], repository.path)
    assert list(known.values()) == [found[2].package, "", ""]
    assert between(good, good, repository.path) == found[:1]


def test_first_parents(repository: Repository) -> None:
    """Of a merge, the branch's commits are not looked at; the files are those that the merge brought."""
    good = repository.commit(KERNEL, "1")
    repository.git("checkout", "--quiet", "-b", "branch")
    branch = [repository.commit(KERNEL, "2"), repository.commit(KERNEL, "3")]
    repository.git("checkout", "--quiet", "main")
    repository.commit(BESIDE, "4")
    repository.git("merge", "--quiet", "--no-ff", "--message", "the branch", "branch")
    merge = repository.git("rev-parse", "HEAD")
    assert [each.hash for each in between(good, merge, repository.path)] == [good, merge]
    said = describe(merge, repository.path)
    assert (said.subject, said.files, said.parents[1]) == ("the branch", [KERNEL], branch[1])
    assert merge_base(said.parents[0], said.parents[1], repository.path) == good
    with pytest.raises(CannotCompareError, match=f"{branch[0][:8]} is no ancestor of {said.parents[0][:8]}"):
        between(branch[0], said.parents[0], repository.path)


def test_a_first_commit_has_files(repository: Repository) -> None:
    """Those that it brought; a name in any letters."""
    (repository.path / "ä b").write_text("", encoding="utf-8")
    said = describe(repository.commit(KERNEL, "1"), repository.path)
    assert (said.parents, said.files, said.author) == ([], [KERNEL, "ä b"], "a@b <a@b>")
