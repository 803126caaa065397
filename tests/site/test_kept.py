"""What publishing keeps: the same as an empty cache gives, and made anew wherever something it is made from changed."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asv.config import Config

from kernelwatch import home
from kernelwatch.show.site import changes, commits, kept, machine
from kernelwatch.store import record
from kernelwatch.store.results import History
from tests.stored import BASE, HEAD, TIME, Suite, samples, write

LAST = "d" * 40
GPU = "gpu"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv(home.CACHE, str(tmp_path / "kept"))
    return tmp_path / "kept" / "published"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three commits, of which each differs from the one before; and the record of a run of each."""
    (tmp_path / "stored").mkdir()
    seconds = {BASE: 1.0, HEAD: 2.0, LAST: 1.0}
    suite: Suite = {commit: {TIME: {"one": samples(each)}} for commit, each in seconds.items()}
    write(tmp_path / "stored", suite)
    (tmp_path / "stored" / "acknowledged.toml").touch()
    for name in (record.FILE, record.CUBINS_FILE, record.FINGERPRINTS_FILE):
        (tmp_path / "stored" / "results" / GPU / name).touch()
    return tmp_path / "stored"


def published(root: Path, monkeypatch: pytest.MonkeyPatch, head: str = "") -> tuple[list[Any], list[str]]:
    """The changes of all commits, and the commits whose review was made for it."""
    made: list[str] = []
    change = changes._change

    def noted(history: History, repo: Any, task: Any) -> dict[str, Any]:
        made.append(task.head)
        return change(history, repo, task)

    with monkeypatch.context() as patched:
        patched.setattr(changes, "_change", noted)
        patched.setattr(commits, "_git", lambda repo, *words: head if words[0] == "rev-parse" else "")
        history = History(GPU, root)
        reviews = kept.Kept(history.folder, (), head)
        return list(changes.changes(history, None, reviews)), made


def told(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """All that is told of the machine."""
    config = Config.load(str(root / "asv.conf.json"))
    config.results_dir = str(root / "results")
    with monkeypatch.context() as patched:
        patched.setattr(commits, "_git", lambda repo, *words: "")
        return machine.Machine(GPU, config).told(None, (), {TIME: 0})


def append(name: str, line: dict[str, Any]) -> Callable[[Path], object]:
    """A line more of a record."""

    def do(root: Path) -> None:
        with (root / "results" / GPU / name).open("a") as file:
            file.write(f"{json.dumps(line)}\n")

    return do


def text(name: str) -> Callable[[Path], object]:
    """A file that is another text, and means the same."""
    return lambda root: (root / name).write_text((root / name).read_text() + "\n")


def result(commit: str) -> str:
    """The file of a commit's results."""
    return f"results/{GPU}/{commit[:8]}-python3.11.json"


_RUN = {"commits": [LAST], "started": "2026-01-02T03:04:05+00:00", "ended": "2026-01-02T03:05:05+00:00"}
_PRINTS: dict[str, Any] = {"commit": HEAD, "nvcc": None, "fingerprints": {}, "reused": {}}

#: What is another -> the commits whose reviews are made anew.
CHANGED: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "nothing": (lambda root: None, []),
    "results of the last commit": (text(result(LAST)), [LAST]),
    "results of one in between": (text(result(HEAD)), [HEAD, LAST]),
    "a run of the last commit": (append(record.FILE, _RUN), [HEAD, LAST]),  # and no run had a compiler before
    "hashes of the first": (append(record.CUBINS_FILE, {"commit": BASE, "arch": "sm_90", "cubins": {}}), [HEAD]),
    "numbers taken over": (append(record.FINGERPRINTS_FILE, _PRINTS), [HEAD, LAST]),
    "what is acknowledged": (text("acknowledged.toml"), [HEAD, LAST]),
    "the benchmarks": (text("results/benchmarks.json"), [HEAD, LAST]),
}


@pytest.mark.parametrize("what", CHANGED)
def test_made_anew_where_something_is_another(
    what: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And then what is kept is what an empty cache gives."""
    change, expected = CHANGED[what]
    told(root, monkeypatch)
    monkeypatch.setenv(home.CACHE, str(tmp_path / "parts"))
    first, made = published(root, monkeypatch)
    assert made == [HEAD, LAST]
    assert [group["verdict"] for each in first for group in each["groups"]] == ["slower", "faster"]
    change(root)
    again, made = published(root, monkeypatch)
    assert made == expected
    monkeypatch.setenv(home.CACHE, str(tmp_path / "kept"))
    whole = told(root, monkeypatch)
    assert whole["changes"] == again
    monkeypatch.setenv(home.CACHE, str(tmp_path / "empty"))
    assert published(root, monkeypatch)[0] == again
    assert told(root, monkeypatch) == whole
    assert again == first


def test_another_commit_is_checked_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the commit that is checked out, the acknowledgements in the folder count: its reviews are made anew."""
    published(root, monkeypatch)
    assert published(root, monkeypatch, head=LAST)[1] == [LAST]


def test_the_code_counts(tmp_path: Path) -> None:
    """All Python of the library, the suite and the kernels; no test."""
    for name in (*kept._CODE, "tests"):
        (tmp_path / name).mkdir(parents=True)
        before = kept.code.__wrapped__(tmp_path)
        (tmp_path / name / "one.py").touch()
        assert (kept.code.__wrapped__(tmp_path) != before) == (name != "tests"), name


def test_the_installed_library_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a project that has no copy of it, as anybody's: another release may review otherwise."""
    library = tmp_path / "site-packages" / "kernelwatch"
    library.mkdir(parents=True)
    monkeypatch.setattr(kept, "_LIBRARY", library)
    before = kept.code.__wrapped__(tmp_path / "project")
    (library / "one.py").touch()
    assert kept.code.__wrapped__(tmp_path / "project") != before


@pytest.mark.parametrize("damage", [b"", b"x", b'[{"a": 1}, {"b', None])
def test_damaged_entries_are_made_anew(
    damage: bytes | None, root: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off, changed or a folder in the place: the value is right, and kept where that can be."""
    first, _ = published(root, monkeypatch)
    path = next(path for path in sorted(folder.glob("*")) if b'"head"' in path.read_bytes())
    path.unlink()
    if damage is None:
        path.mkdir()
    else:
        path.write_bytes(damage)
    again, made = published(root, monkeypatch)
    assert (again, len(made)) == (first, 1)
    assert len(published(root, monkeypatch)[1]) == (1 if damage is None else 0)


def test_two_at_once(root: Path, folder: Path) -> None:
    """Whoever reads finds a whole entry or none, and nothing unfinished is left."""
    folder_of, found = root / "results" / GPU, list[Any]()
    one = kept.Kept(folder_of, (), "")

    def work() -> None:
        found.extend(one.of([BASE], each % 5, lambda: list(range(5000))) for each in range(50))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [list(range(5000))] * 200
    assert {path.suffix for path in folder.glob("*")} == {".json"}
    assert len(list(folder.glob("*"))) == 5


def test_what_no_site_needs_goes(root: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After DAYS without being read."""
    published(root, monkeypatch)
    long_ago = time.time() - 86_400 * (kept.DAYS + 0.5)
    for path in (first := sorted(folder.glob("*"))):
        os.utime(path, (long_ago, long_ago))
    first[0].touch()
    kept.tidy()
    assert sorted(folder.glob("*")) == first[:1]
