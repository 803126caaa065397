"""What the search asks git: which commits can have moved a number, and what a reader wants to know of one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from kernelwatch.review.bisect.commits import Commit, between, packages, suspects
from kernelwatch.review.bisect.culprit import about
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


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Repository, list[Commit]]:
    """Eight commits that touch the package, with others between."""
    found = Repository(tmp_path_factory.mktemp("history"))
    hashes = [found.commit(file, str(number)) for number in range(8) for file in (KERNEL, BESIDE)]
    return found, between(hashes[0], hashes[-1], found.path)


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
    said = about(merge, repository.path)
    assert (said["subject"], said["files"], said["parents"][1]) == ("the branch", [KERNEL], branch[1])
    with pytest.raises(CannotCompareError, match=f"{branch[0][:8]} is no ancestor of {said['parents'][0][:8]}"):
        between(branch[0], said["parents"][0], repository.path)


def test_a_first_commit_has_files(repository: Repository) -> None:
    """Those that it brought; a name in any letters."""
    (repository.path / "ä b").write_text("", encoding="utf-8")
    said = about(repository.commit(KERNEL, "1"), repository.path)
    assert (said["parents"], said["files"], said["author"]) == ([], [KERNEL, "ä b"], "a@b <a@b>")


#: The first bad of eight commits that touch the package, and those that cannot be judged.
SEARCHES = [(culprit, ()) for culprit in range(1, 8)] + [
    (1, (2,)),
    (3, (2, 3)),
    (4, (3, 5)),
    (7, (6,)),
    (2, range(1, 7)),
]


@pytest.mark.parametrize(("culprit", "skipped"), SEARCHES)
def test_suspects(culprit: int, skipped: Sequence[int], history: tuple[Repository, list[Commit]]) -> None:
    """Those between the last good and the first bad that can be judged; only what touches the package is asked for."""
    repository, commits = history
    asked: list[int] = []

    def judged(commit: Commit) -> str:
        asked.append(commits.index(commit))
        return "skip" if asked[-1] in skipped else "bad" if asked[-1] >= culprit else "good"

    before = repository.git("for-each-ref"), repository.git("status", "--porcelain"), repository.git("worktree", "list")
    found = [commits.index(each) for each in suspects(commits, judged, repository.path)]
    known = [place for place in range(8) if place not in skipped]
    good, bad = (max(each for each in known if each < culprit), min(each for each in known if each >= culprit))
    assert found == list(range(good + 1, bad + 1))
    assert len(asked) == len(set(asked)) <= 3 + len(skipped)
    assert not {0, 7} & set(asked)
    after = repository.git("for-each-ref"), repository.git("status", "--porcelain"), repository.git("worktree", "list")
    assert before == after


def test_interrupted_beside_a_search_of_the_users(history: tuple[Repository, list[Commit]]) -> None:
    """Nothing is left of ours, and theirs goes on."""
    repository, commits = history
    repository.git("bisect", "start", "--no-checkout", commits[-1].hash, commits[0].hash)
    theirs = repository.git("for-each-ref"), repository.git("bisect", "log"), repository.git("worktree", "list")

    def interrupted(_: Commit) -> NoReturn:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        suspects(commits, interrupted, repository.path)
    assert theirs == (
        repository.git("for-each-ref"),
        repository.git("bisect", "log"),
        repository.git("worktree", "list"),
    )
    repository.git("bisect", "reset")
