"""Cached commits of the site: a commit is read again only if an input of its review changes."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.config import cache_dir
from kernelwatch.store import git
from kernelwatch.store.index import digest_code
from kernelwatch.store.results import History
from kernelwatch.workflow import commit_cache
from tests import stored
from tests.commits import begin, commit


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a project of three commits, of which two are measured, with an empty cache."""
    monkeypatch.setenv(cache_dir.CACHE, str(tmp_path / "cache"))
    root = begin(tmp_path / "project")
    _store_results(root, commit(root), commit(root))
    commit(root)
    yield root
    digest_code.cache_clear()


def _store_results(root: Path, *commits: str, machine: str = "gpu") -> None:
    stored.write(root, {commit: {stored.COUNT: {"one": 1.0}} for commit in commits}, machine)


def _write_record(root: Path, index: int, text: str = "") -> None:
    """Write a run record of the commit at an index, or one for all commits if the index is -1."""
    name = f"{History('gpu', root).list_commits()[index][:8]}-x.runs.jsonl" if index >= 0 else "runs.jsonl"
    (root / "results" / "gpu" / name).write_text(text)


def _write_hashes(root: Path) -> None:
    """Write a file of another machine for the second commit's hashes of machine code."""
    stored.write_lines(root / "results" / "other" / f"{History('gpu', root).list_commits()[1][:8]}-x.cubins.jsonl")


def _add_benchmark(root: Path) -> None:
    (root / "benchmarks").mkdir()
    (root / "benchmarks" / "a.py").touch()
    digest_code.cache_clear()


#: Case -> change, and whether the keys of the first and of the second commit change.
CHANGED: dict[str, tuple[Callable[[Path], object], list[bool]]] = {
    "nothing": (lambda root: None, [False, False]),
    "a result of the second": (lambda root: _write_record(root, 1), [False, True]),
    "a result of the first": (lambda root: _write_record(root, 0), [True, True]),
    "a record that both share": (lambda root: _write_record(root, -1), [True, True]),
    "one more commit": (lambda root: _store_results(root, git.text(root, "rev-parse", "HEAD")), [False, False]),
    "a result of another machine": (lambda root: _store_results(root, "b" * 40, machine="other"), [False, False]),
    "hashes of another machine": (_write_hashes, [False, True]),
    "what is acknowledged elsewhere": (lambda root: (root / "acknowledged.toml").touch(), [False, False]),
    "a setting": (lambda root: (root / "pyproject.toml").touch(), [True, True]),
    "the code": (_add_benchmark, [True, True]),
    "a commit that is not measured": (commit, [False, False]),
    "a text beside": (lambda root: (root / "README.md").touch(), [False, False]),
}


@pytest.mark.parametrize("change_name", CHANGED)
def test_key_depends_on_inputs_of_the_review(change_name: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs of earlier commits count, too; nothing else does."""
    monkeypatch.setattr("kernelwatch.config.settings.ROOT", root)
    keys = commit_cache.compute_keys(History("gpu", root), root)
    change, is_changed = CHANGED[change_name]
    change(root)
    changed_keys = commit_cache.compute_keys(History("gpu", root), root)
    assert [changed_keys[commit] != keys[commit] for commit in keys] == is_changed


def test_key_depends_on_uncommitted_acknowledgements(root: Path) -> None:
    """Only the key of the commit that is checked out changes."""
    git.text(root, "checkout", "--quiet", "--detach", "HEAD^")
    history = History("gpu", root)
    first, second = commit_cache.compute_keys(history, root).items()
    (root / "acknowledged.toml").write_text("#")
    changed_keys = commit_cache.compute_keys(history, root)
    assert (changed_keys[first[0]] == first[1], changed_keys[second[0]] == second[1]) == (True, False)


def test_key_of_an_unknown_commit_depends_on_its_results(root: Path) -> None:
    """Git may lack a commit that was rebased, or that a shallow clone does not have."""
    unknown = "d" * 40
    _store_results(root, unknown)
    keys = commit_cache.compute_keys(History("gpu", root), root)
    (root / "results" / "gpu" / f"{unknown[:8]}-x.runs.jsonl").touch()
    changed_keys = commit_cache.compute_keys(History("gpu", root), root)
    assert [commit for commit in keys if changed_keys[commit] != keys[commit]] == [unknown]


@pytest.mark.parametrize("damage", [b"", b"\x81\xa1a", None])
def test_cached_commits_are_not_read_again(damage: bytes | None, root: Path, tmp_path: Path) -> None:
    """The history may grow. With a damaged or unwritable cache, all commits are read again."""
    read = list[str]()

    def read_commit(commit: str) -> dict[str, Any]:
        read.append(commit)
        return {"commit": (commit, 1.5)}

    def load_commits() -> dict[str, dict[str, Any]]:
        return commit_cache.load_values_by_commit("name", History("gpu", root), dict[str, Any], read_commit, root)

    commits = History("gpu", root).list_commits()
    for _ in range(2):
        assert load_commits() == {commit_hash: {"commit": [commit_hash, 1.5]} for commit_hash in commits}
    assert read == commits
    (path,) = (tmp_path / "cache" / "index").glob("*-name.msgpack")
    head = git.text(root, "rev-parse", "HEAD")
    _store_results(root, head)
    assert len(load_commits()) == 3
    assert read == [*commits, head]
    path.unlink()
    path.mkdir() if damage is None else path.write_bytes(damage)
    load_commits()
    assert read == [*commits, head, *commits, head]


def test_processes_read_many_commits(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_cache, "MIN_PARALLEL", 2)

    def read_commit(commit: str) -> tuple[str, int]:
        return commit, os.getpid()

    history = History("gpu", root)
    values = commit_cache.load_values_by_commit("name", history, tuple[str, int], read_commit, root)
    assert [commit for commit, _ in values.values()] == list(values) == history.list_commits()
    assert os.getpid() not in {process for _, process in values.values()}
