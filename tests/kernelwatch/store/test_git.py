"""Git calls use the repository of a folder, whatever variables a caller's hook has set."""

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from kernelwatch.store import git
from ptxcount.gate import pins
from ptxcount.util import git_environment
from tests.commits import begin, commit

#: A program that calls git through asv, with the plugin. It prints HEAD and the number of escapes in a diff.
ASV = """
import sys
from asv.plugins.git import Git
from kernelwatch.runner import asv_plugin
asv_plugin.setup()
repository = Git(sys.argv[1], "mirror")
print(repository.get_hash_from_name("HEAD"), repository._run_git(["diff", "HEAD^"], cwd=sys.argv[1]).count("\\033"))
"""


@pytest.fixture
def repositories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str, Path]:
    """Return a repository, the newest commit in it, and another repository, which git's environment variables name."""
    theirs, own_repository = begin(tmp_path / "theirs"), begin(tmp_path / "own")
    commit(theirs, {"file": "theirs", "ptxcount.lock": '{"nvcc": "", "launches": {"theirs": {}}}'})
    commit(own_repository, {"file": "1\n", "ptxcount.lock": '{"nvcc": "", "launches": {"own": {}}}'})
    newest = commit(own_repository, {"file": "2\n"})
    git.text(own_repository, "config", "color.ui", "always")
    folders = {"DIR": ".git", "COMMON_DIR": ".git", "WORK_TREE": ""}
    for name, path in {**folders, "INDEX_FILE": ".git/index", "OBJECT_DIRECTORY": ".git/objects"}.items():
        monkeypatch.setenv(f"GIT_{name}", str(theirs / path))
    monkeypatch.setenv("GIT_NAMESPACE", "another")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'user.name=of the caller'")
    return own_repository, newest, theirs


def test_kernelwatch_uses_the_repository_of_the_folder(repositories: tuple[Path, str, Path]) -> None:
    """Outputs have no colours, options of the caller's `git -c` stay, and git asks for no password."""
    own_repository, newest, _ = repositories
    assert git.text(own_repository, "rev-parse", "HEAD", "--show-toplevel").split() == [newest, str(own_repository)]
    assert git.text(own_repository, "diff", "HEAD^").splitlines()[-2:] == ["-1", "+2"]
    assert git.text(own_repository, "config", "user.name") == "of the caller"
    prompt = git.text(own_repository, "-c", "alias.asks=!echo $GIT_TERMINAL_PROMPT", "asks")
    assert prompt == "0", "git may wait for a password"


@pytest.mark.parametrize(("words", "is_raised"), [("detected dubious ownership: safe.directory", True), ("", False)])
def test_try_text_raises_only_errors_about_the_owner(
    words: str, is_raised: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "git").write_text(f"#!/bin/sh\necho '{words}' >&2; exit 128\n")  # a git that fails
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(git.GitError, match=r"safe\.directory") if is_raised else nullcontext():
        assert git.try_text(tmp_path, "status") is None


def test_several_revisions_are_found_at_once(repositories: tuple[Path, str, Path]) -> None:
    """An unknown revision, a file and an option give None."""
    own_repository, newest, _ = repositories
    revisions = ("HEAD", "none", "HEAD:file", "--all", "HEAD")
    assert git.find_commits(own_repository, *revisions) == [newest, None, None, None, newest]


def test_ptxcount_uses_the_repository_of_its_folder(
    repositories: tuple[Path, str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repositories[0])
    assert pins.read_lock_at("HEAD^").launches == {"own": {}}


def test_asv_uses_the_repository_of_the_folder(repositories: tuple[Path, str, Path]) -> None:
    """The diffs of asv have no escape sequences."""
    own_repository, newest, _ = repositories
    words = [sys.executable, "-c", ASV, str(own_repository)]
    process = subprocess.run(words, capture_output=True, text=True, check=True, cwd=own_repository)
    assert process.stdout.split() == [newest, "0"]


def test_environment_is_idempotent(repositories: tuple[Path, str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is run in this environment makes the same one."""
    once = git_environment.make_environment()
    for name in os.environ.keys() - once.keys():
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", once["GIT_CONFIG_PARAMETERS"])
    assert git_environment.make_environment() == once
