"""What publishing keeps: the same as an empty cache gives, and made anew wherever something it is made from changed."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from asv.config import Config
from asv.graph import Graph
from asv.step_detect import detect_steps

from kernelwatch.project import ROOT
from kernelwatch.review import acknowledged
from kernelwatch.show.site import changes, kept, made_from, steps
from kernelwatch.store import noise, record
from kernelwatch.store.results import History
from tests.stored import BASE, HEAD, TIME, Suite, samples, write

LAST = "d" * 40
GPU = "gpu"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv(kept.FOLDER, str(tmp_path / "kept"))
    return tmp_path / "kept"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three commits, of which each differs from the one before; and the record of a run of each."""
    (tmp_path / "stored").mkdir()
    seconds = {BASE: 1.0, HEAD: 2.0, LAST: 1.0}
    suite: Suite = {commit: {TIME: {"one": samples(each)}} for commit, each in seconds.items()}
    write(tmp_path / "stored", suite)
    (tmp_path / "stored" / "acknowledged.toml").touch()
    for name in (record.FILE, record.CUBINS_FILE, record.FINGERPRINTS_FILE, noise.FILE):
        (tmp_path / "stored" / "results" / GPU / name).touch()
    return tmp_path / "stored"


def published(root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[str]]:
    """The changes of all commits, and the commits whose review was made for it."""
    made: list[str] = []
    change = changes._change

    def noted(history: History, task: Any) -> dict[str, Any]:
        made.append(task.head)
        return change(history, task)

    with monkeypatch.context() as patched:
        patched.setattr(changes, "_change", noted)
        return list(changes.changes(History(GPU, root))), made


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
    "a threshold": (append(noise.FILE, {"configuration": f"{TIME}(one)", "threshold": 2}), [HEAD, LAST]),
    "what is acknowledged": (text("acknowledged.toml"), [HEAD, LAST]),
    "the benchmarks": (text("results/benchmarks.json"), [HEAD, LAST]),
}


@pytest.mark.parametrize("what", CHANGED)
def test_made_anew_where_something_is_another(
    what: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And then what is kept is what an empty cache gives."""
    change, expected = CHANGED[what]
    first, made = published(root, monkeypatch)
    assert made == [HEAD, LAST]
    assert [group["verdict"] for each in first for group in each["groups"]] == ["slower", "faster"]
    change(root)
    again, made = published(root, monkeypatch)
    assert made == expected
    monkeypatch.setenv(kept.FOLDER, str(tmp_path / "empty"))
    assert published(root, monkeypatch)[0] == again
    assert (again == first) == (what != "a threshold")


def test_another_commit_is_checked_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the commit that is checked out, the acknowledgements in the folder count: its reviews are made anew."""
    published(root, monkeypatch)
    monkeypatch.setattr(made_from, "_head", lambda _: LAST)
    assert published(root, monkeypatch)[1] == [LAST]


def test_acknowledgements_lie_beside_what_is_stored(root: Path, tmp_path: Path) -> None:
    """Not beside the folder that unites stored and local results, which lies where anybody may write."""
    (tmp_path / "acknowledged.toml").write_text("nonsense")
    (tmp_path / "united").symlink_to(root / "results")
    config = Config.load(str(root / "asv.conf.json"))
    config.results_dir, config.stored_results_dir = str(tmp_path / "united"), str(root / "results")
    assert acknowledged.beside(History(GPU, config=config).results) == root


def test_the_code_of_the_review_counts(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that the module imports, however deep, and what is measured and counts; no tests, no other page."""
    here = tmp_path / "here"
    for name in ("kernelwatch", "benchmarks"):
        shutil.copytree(ROOT / name, here / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(made_from, "ROOT", here)

    def code() -> str:
        made_from.code.cache_clear()
        return made_from.code(changes.__name__)

    first = code()
    for name, counts in (
        ("kernelwatch/src/kernelwatch/review/timed.py", True),
        ("kernelwatch/src/kernelwatch/review/__init__.py", True),
        ("kernelwatch/src/kernelwatch/store/noise.py", True),
        ("kernelwatch/src/kernelwatch/asv/suite.py", True),
        ("kernelwatch/src/kernelwatch/show/site/tiles.py", False),
        ("kernelwatch/src/kernelwatch/fleet/engine.py", False),
    ):
        source = (here / name).read_text()
        (here / name).write_text(f"{source}\n#")
        assert (code() != first) == counts, name
        (here / name).write_text(source)
    made_from.code.cache_clear()


@pytest.mark.parametrize("damage", [b"", b"x", b"0" * 64 + b"\n[]", None])
def test_damaged_entries_are_made_anew(damage: bytes | None, folder: Path) -> None:
    """Cut off, changed or a folder in the place: the value is right, and kept where that can be."""
    name = kept.key("a", 1.5, None)
    assert kept.of(name, lambda: {"a": [1, 2.5, float("nan")]}) == {"a": [1, 2.5, None]}
    (path,) = folder.glob("*/*")
    path.unlink()
    if damage is None:
        path.mkdir()
    else:
        path.write_bytes(damage)
    assert kept.read(name) is None
    assert kept.of(name, lambda: [7]) == [7]
    assert kept.of(name, lambda: [8]) == ([8] if damage is None else [7])


def test_two_at_once(folder: Path) -> None:
    """Whoever reads finds a whole entry or none, and nothing unfinished is left."""
    name, values = kept.key("b"), [list(range(place, 5000)) for place in range(4)]
    found: list[Any] = []

    def work(value: list[int]) -> None:
        for _ in range(50):
            kept.write(name, value)
            found.append(kept.read(name))

    threads = [threading.Thread(target=work, args=(value,)) for value in values]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 200
    assert all(each in values for each in found)
    assert [path.name for path in folder.glob("*/*")] == [name]


def test_what_no_site_needs_goes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After DAYS without being read."""
    for part in ("old", "read"):
        kept.write(kept.key(part), part)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 86_400 * (kept.DAYS - 1))
    assert kept.read(kept.key("read")) == "read"
    monkeypatch.setattr(time, "time", lambda: now + 86_400 * (kept.DAYS + 0.5))
    kept.tidy()
    assert [path.name for path in folder.glob("*/*")] == [kept.key("read")]


SERIES: dict[str, Sequence[Sequence[float | None]]] = {
    "a step": [[1.0] * 20 + [2.0] * 20],
    "several": [[1.0] * 10 + [3.0] * 10, [None] * 5 + [2.0] * 15],
    "nothing": [[None] * 5, [None] * 5],
}


@pytest.mark.parametrize("what", SERIES)
def test_steps_are_asvs(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found once, the same afterwards; found anew where a point is another."""
    searched: list[int] = []

    def search(values: Any, weights: Any) -> Any:
        searched.append(len(values))
        return detect_steps(values, weights)

    monkeypatch.setattr("asv.graph.step_detect.detect_steps", search)

    def graph(last: float | None = None) -> Any:
        made = Graph("x", {})
        for revision, values in enumerate(zip(*SERIES[what], strict=True)):
            made.add_data_point(revision, list(values), [1.0] * len(values))
        if last is not None:
            made.add_data_point(99, [last] * len(SERIES[what]), [1.0] * len(SERIES[what]))
        made.detect_steps()
        return made.get_steps()

    plain = graph()
    with steps.known():
        searched.clear()
        assert graph() == plain
        first = len(searched)
        assert graph() == plain
        assert len(searched) == first
        again = graph(last=9.0)
        assert len(searched) == first + len(SERIES[what])
    assert graph(last=9.0) == again


def test_equal_series_are_searched_once() -> None:
    """By a pool, as asv has one: each series of a graph has its steps."""
    with steps.known(), ThreadPool(1) as pool:
        asked = Mock(wraps=pool.apply_async)
        pool.apply_async = asked  # type: ignore[method-assign]
        made = Graph("x", {})
        for revision in range(20):
            made.add_data_point(revision, [1.0, 2.0 + revision // 10, 1.0], [1.0] * 3)
        made.detect_steps(pool)
        one, step, other = made.get_steps()
    assert asked.call_count == 2
    assert one == other == [(0, 20, 1.0, 1.0, 0.0)]
    assert [each[2] for each in step] == [2.0, 3.0]
