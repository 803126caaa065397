"""What publishing keeps: a commit's review is made once, and anew wherever something that it depends on is another."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelwatch.config import cache_dir
from kernelwatch.show.site import kept
from kernelwatch.store import git
from kernelwatch.store.index import digest_code
from kernelwatch.store.results import History
from tests import stored
from tests.commits import begin, commit


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Three commits of which two are measured, the first and the second, and a cache."""
    monkeypatch.setenv(cache_dir.CACHE, str(tmp_path / "cache"))
    root = begin(tmp_path / "project")
    _measured(root, commit(root), commit(root))
    commit(root)
    yield root
    digest_code.cache_clear()


def _measured(root: Path, *commits: str, machine: str = "gpu") -> None:
    stored.write(root, {each: {stored.COUNT: {"one": 1.0}} for each in commits}, machine)


def _record(root: Path, place: int, text: str = "") -> None:
    """Write a record of the commit of that place, or without a place of all."""
    name = f"{History('gpu', root).list_commits()[place][:8]}-x.runs.jsonl" if place >= 0 else "runs.jsonl"
    (root / "results" / "gpu" / name).write_text(text)


def _library(root: Path) -> None:
    (root / "benchmarks").mkdir()
    (root / "benchmarks" / "a.py").touch()
    digest_code.cache_clear()


#: What is another, and whose reviews may be others then: the first's, the second's.
CHANGED: dict[str, tuple[Callable[[Path], object], list[bool]]] = {
    "nothing": (lambda root: None, [False, False]),
    "a result of the second": (lambda root: _record(root, 1), [False, True]),
    "a result of the first": (lambda root: _record(root, 0), [True, True]),
    "a record that both share": (lambda root: _record(root, -1), [True, True]),
    "one more commit": (lambda root: _measured(root, git.text(root, "rev-parse", "HEAD")), [False, False]),
    "a result of another machine": (lambda root: _measured(root, "b" * 40, machine="other"), [False, False]),
    "what is acknowledged elsewhere": (lambda root: (root / "acknowledged.toml").touch(), [False, False]),
    "a setting": (lambda root: (root / "pyproject.toml").touch(), [True, True]),
    "the code": (_library, [True, True]),
    "a commit that is not measured": (commit, [False, False]),
    "a text beside": (lambda root: (root / "README.md").touch(), [False, False]),
}


@pytest.mark.parametrize("what", CHANGED)
def test_keys(what: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a review depends on, and nothing else: no later commit, but all before it."""
    monkeypatch.setattr("kernelwatch.config.settings.ROOT", root)
    before = kept.compute_keys(History("gpu", root), root)
    change, are_others = CHANGED[what]
    change(root)
    after = kept.compute_keys(History("gpu", root), root)
    assert [after[each] != before[each] for each in before] == are_others


def test_what_is_acknowledged(root: Path) -> None:
    """The file that lies in the folder counts for the commit that is checked out."""
    git.text(root, "checkout", "--quiet", "--detach", "HEAD^")
    history = History("gpu", root)
    first, second = kept.compute_keys(history, root).items()
    (root / "acknowledged.toml").write_text("#")
    again = kept.compute_keys(history, root)
    assert (again[first[0]] == first[1], again[second[0]] == second[1]) == (True, False)


@pytest.mark.parametrize("damage", [b"", b'[{"a": 1}, {"b', None])
def test_reviews(damage: bytes | None, root: Path, tmp_path: Path) -> None:
    """Made once, also of a history that grows; what is torn, or cannot be kept, is made anew."""
    folder, asked = tmp_path / "cache" / "published", list[str]()

    def review(commit: str) -> object:
        asked.append(commit)
        return {"commit": (commit, 1.5)}

    folder.mkdir(parents=True)
    for name, age in (("fresh", 0), ("old", 31)):
        (folder / f"{name}.json").touch()
        os.utime(folder / f"{name}.json", (time.time() - age * 86_400,) * 2)
    commits = History("gpu", root).list_commits()
    for _ in range(2):
        assert kept.load_reviews(History("gpu", root), review, root) == [{"commit": [each, 1.5]} for each in commits]
    assert asked == commits
    (path,) = set(folder.iterdir()) - {folder / "fresh.json"}
    head = git.text(root, "rev-parse", "HEAD")
    _measured(root, head)
    assert len(kept.load_reviews(History("gpu", root), review, root)) == 3
    assert asked == [*commits, head]
    path.unlink()
    path.mkdir() if damage is None else path.write_bytes(damage)
    kept.load_reviews(History("gpu", root), review, root)
    assert asked == [*commits, head, *commits, head]
