"""What publishing keeps: made once, and anew wherever something that it depends on is another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kernelwatch import home
from kernelwatch.show.site import kept
from tests.commits import begin, commit

#: What is another, and whether reviews may be others then.
CHANGED: dict[str, tuple[Callable[[Path], object], bool]] = {
    "nothing": (lambda root: None, False),
    "a result": (lambda root: (root / "results" / "gpu" / "1.json").write_text("{}"), True),
    "a record": (lambda root: (root / "results" / "gpu" / "runs.jsonl").touch(), True),
    "what is acknowledged": (lambda root: (root / "acknowledged.toml").touch(), True),
    "a setting": (lambda root: (root / "pyproject.toml").touch(), True),
    "a commit": (commit, True),
    "a text beside": (lambda root: (root / "README.md").touch(), False),
}


@pytest.mark.parametrize("what", CHANGED)
def test_state(what: str, tmp_path: Path) -> None:
    """All that a review depends on, and nothing else."""
    root = begin(tmp_path)
    (root / "results" / "gpu").mkdir(parents=True)
    (root / "results" / "gpu" / "1.json").touch()
    commit(root)
    before = kept.state(root / "results", root)
    change, is_another = CHANGED[what]
    change(root)
    assert (kept.state(root / "results", root) != before) == is_another


@pytest.mark.parametrize("damage", [b"", b'[{"a": 1}, {"b', None])
def test_once(damage: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made once; what is torn, or cannot be kept, is made anew."""
    monkeypatch.setenv(home.CACHE, str(tmp_path))
    values = iter([{"b": [1.5]}, [2]])
    assert [kept.once(["a"], lambda: next(values)) for _ in range(2)] == [{"b": [1.5]}] * 2
    (path,) = (tmp_path / "published").glob("*.json")
    path.unlink()
    path.mkdir() if damage is None else path.write_bytes(damage)
    assert kept.once(["a"], lambda: next(values)) == [2]
