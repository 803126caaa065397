"""What publishing keeps: made once, and anew wherever something that it depends on is another."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from kernelwatch import home
from kernelwatch.show.site import kept
from kernelwatch.store import git
from kernelwatch.store.results import History
from tests import stored
from tests.commits import begin, commit


def _measured(root: Path, commits: Iterable[str], machine: str = "gpu") -> None:
    stored.write(root, {each: {stored.COUNT: {"one": 1.0}} for each in commits}, machine)


def _checked_out(root: Path) -> None:
    git.text(root, "checkout", "--quiet", "--detach", "HEAD^")


#: What is another, and whether a machine's reviews may be others then. HEAD^ is measured.
CHANGED: dict[str, tuple[Callable[[Path], object], bool]] = {
    "nothing": (lambda root: None, False),
    "a result": (lambda root: _measured(root, ["b" * 40]), True),
    "a result of another machine": (lambda root: _measured(root, ["b" * 40], "other"), False),
    "a record": (lambda root: (root / "results" / "gpu" / "runs.jsonl").touch(), True),
    "what is acknowledged": (lambda root: (root / "acknowledged.toml").touch(), True),
    "a setting": (lambda root: (root / "pyproject.toml").touch(), True),
    "a commit that is not measured": (commit, False),
    "a measured one is checked out": (_checked_out, True),
    "a text beside": (lambda root: (root / "README.md").touch(), False),
}


@pytest.mark.parametrize("what", CHANGED)
def test_state(what: str, tmp_path: Path) -> None:
    """All that a review depends on, and nothing else."""
    root = begin(tmp_path)
    _measured(root, [commit(root)])
    commit(root)

    def state() -> str:
        return kept.state(History("gpu", root), root)

    before = state()
    change, is_another = CHANGED[what]
    change(root)
    assert (state() != before) == is_another


@pytest.mark.parametrize("damage", [b"", b'[{"a": 1}, {"b', None])
def test_once(damage: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made once; what is torn, or cannot be kept, is made anew."""
    monkeypatch.setenv(home.CACHE, str(tmp_path))
    values = iter([{"b": [1.5]}, [2]])
    (tmp_path / "published").mkdir()
    fresh, old = (tmp_path / "published" / f"{name}.json" for name in ("fresh", "old"))
    for each in (fresh, old):
        each.touch()
    os.utime(old, (time.time() - 31 * 86_400,) * 2)
    assert [kept.once("a", lambda: next(values)) for _ in range(2)] == [{"b": [1.5]}] * 2
    assert (fresh.exists(), old.exists()) == (True, False)
    path = tmp_path / "published" / "a.json"
    path.unlink()
    path.mkdir() if damage is None else path.write_bytes(damage)
    assert kept.once("a", lambda: next(values)) == [2]
