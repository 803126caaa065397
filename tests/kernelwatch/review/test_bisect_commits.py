"""What the search asks git: which commits can have moved a number, and what a reader wants to know of one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from kernelwatch.review.bisect.commits import Commit, between, packages, suspects
from kernelwatch.review.bisect.culprit import about
from kernelwatch.review.commits import CannotCompareError
from kernelwatch.store import git
from tests.commits import begin, commit

KERNEL, BESIDE = "gpu_kernels/kernel.cu", "README.md"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """An empty one."""
    return begin(tmp_path)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Commit]]:
    """Eight commits that touch the package, with others between."""
    found = begin(tmp_path_factory.mktemp("history"))
    hashes = [commit(found, {file: str(number)}) for number in range(8) for file in (KERNEL, BESIDE)]
    return found, between(hashes[0], hashes[-1], found)


def test_commits_that_touch_the_package(repository: Path) -> None:
    """Oldest first, behind good; what is beside the package is left out; equal packages are known as such."""
    without = commit(repository, {BESIDE: "0"})
    good, *others = [
        commit(repository, {file: content}, f"{file}: {content}")
        for file, content in ((KERNEL, "1"), (BESIDE, "2"), (KERNEL, "3"), (BESIDE, "4"), (KERNEL, "1"), (BESIDE, "5"))
    ]
    found = between(good, others[-1], repository)
    assert [each.hash for each in found] == [good, others[1], others[3]]
    assert [each.subject for each in found] == [f"{KERNEL}: 1", f"{KERNEL}: 3", f"{KERNEL}: 1"]
    assert found[0].package == found[2].package != found[1].package
    known = packages([others[-1], without, "0" * 40], repository)
    assert list(known.values()) == [found[2].package, "", ""]
    assert between(good, good, repository) == found[:1]


def test_first_parents(repository: Path) -> None:
    """Of a merge, the branch's commits are not looked at; the files are those that the merge brought."""
    good = commit(repository, {KERNEL: "1"})
    git.text(repository, "checkout", "--quiet", "-b", "branch")
    branch = [commit(repository, {KERNEL: "2"}), commit(repository, {KERNEL: "3"})]
    git.text(repository, "checkout", "--quiet", "main")
    commit(repository, {BESIDE: "4"})
    git.text(repository, "merge", "--quiet", "--no-ff", "--message", "the branch", "branch")
    merge = git.text(repository, "rev-parse", "HEAD")
    assert [each.hash for each in between(good, merge, repository)] == [good, merge]
    said = about(merge, repository)
    assert "subject  the branch" in said
    assert f" {KERNEL} | 2 +-" in said
    parent = git.text(repository, "rev-parse", "HEAD^1")
    with pytest.raises(CannotCompareError, match=f"{branch[0][:8]} is no ancestor of {parent[:8]}"):
        between(branch[0], parent, repository)


def test_a_first_commit_has_files(repository: Path) -> None:
    """Those that it brought; a name in any letters."""
    said = about(commit(repository, {KERNEL: "1", "ä b": ""}), repository)
    assert said.startswith("author   n <e>\ndate     20")
    assert re.findall(r"^ (.*?) +\|", said, re.MULTILINE) == [KERNEL, "ä b"]


def _seen(repository: Path) -> list[str]:
    return [
        git.text(repository, *words) for words in (["for-each-ref"], ["status", "--porcelain"], ["worktree", "list"])
    ]


#: The first bad of eight commits that touch the package, and those that cannot be judged.
SEARCHES = [(culprit, ()) for culprit in range(1, 8)] + [
    (1, (2,)),
    (3, (2, 3)),
    (4, (3, 5)),
    (7, (6,)),
    (2, range(1, 7)),
]


@pytest.mark.parametrize(("culprit", "skipped"), SEARCHES)
def test_suspects(culprit: int, skipped: Sequence[int], history: tuple[Path, list[Commit]]) -> None:
    """Those between the last good and the first bad that can be judged; only what touches the package is asked for."""
    repository, commits = history
    asked: list[int] = []

    def judged(each: Commit) -> str:
        asked.append(commits.index(each))
        return "skip" if asked[-1] in skipped else "bad" if asked[-1] >= culprit else "good"

    before = _seen(repository)
    found = [commits.index(each) for each in suspects(commits, judged, repository)]
    known = [place for place in range(8) if place not in skipped]
    good, bad = (max(each for each in known if each < culprit), min(each for each in known if each >= culprit))
    assert found == list(range(good + 1, bad + 1))
    assert len(asked) == len(set(asked)) <= 3 + len(skipped)
    assert not {0, 7} & set(asked)
    assert before == _seen(repository)


def test_interrupted_beside_a_search_of_the_users(history: tuple[Path, list[Commit]]) -> None:
    """Nothing is left of ours, and theirs goes on."""
    repository, commits = history
    git.text(repository, "bisect", "start", "--no-checkout", commits[-1].hash, commits[0].hash)
    theirs = _seen(repository), git.text(repository, "bisect", "log")

    def interrupted(_: Commit) -> NoReturn:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        suspects(commits, interrupted, repository)
    assert theirs == (_seen(repository), git.text(repository, "bisect", "log"))
    git.text(repository, "bisect", "reset")


def test_in_a_hook_of_another_repository(
    history: tuple[Path, list[Commit]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search is in ours; theirs is in none, whatever git has told its hook."""
    repository, commits = history
    theirs = begin(tmp_path)
    commit(theirs)
    for name, path in (("GIT_DIR", ".git"), ("GIT_INDEX_FILE", ".git/index"), ("GIT_WORK_TREE", ".")):
        monkeypatch.setenv(name, str(theirs / path))
    assert suspects(commits, lambda _: "bad", repository) == [commits[1]]
    assert not list(theirs.glob(".git/BISECT*"))
