"""The cached index of results, so that a review reads only its own commits."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.cli.compare import compare as main
from kernelwatch.review.thresholds import MIN_CHANGES
from kernelwatch.store import index, reading
from kernelwatch.store.results import History
from kernelwatch.workflow.load_review import load_thresholds
from tests.stored import COUNT, MACHINE, TIME, Suite, change_document, samples, write, write_lines

COMMITS = [f"{place:02x}" * 20 for place in range(1, 9)]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with eight commits, each with a time and a count. The cache is beside the project."""
    monkeypatch.setenv("KERNELWATCH_CACHE", str(tmp_path / "cache"))
    suite: Suite = {
        commit: {TIME: {"one": samples(1e-3, seed=place)}, COUNT: {"one": float(place)}}
        for place, commit in enumerate(COMMITS)
    }
    (tmp_path / "project").mkdir()
    return write(tmp_path / "project", suite)


def _files_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the first eight characters of the name of each file that is read."""
    read, content = list[str](), reading.read_content

    def read_recorded(path: Path) -> bytes:
        read.append(path.name[:8])
        return content(path)

    monkeypatch.setattr(reading, "read_content", read_recorded)
    return read


def test_review_reads_only_its_commits(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the index lacks a new commit, the review also reads this commit and its neighbours."""
    base, head = COMMITS[2], COMMITS[5]
    main([base, head], root)
    first = capsys.readouterr().out
    read = _files_read(monkeypatch)
    assert main([base, head], root) == 1
    assert capsys.readouterr().out == first
    # Only names of files of commits begin with two equal pairs.
    assert {name for name in read if name[:2] == name[2:4]} == {base[:8], head[:8]}
    write(root, {"a" * 40: {TIME: {"one": samples(1e-3)}, COUNT: {"one": 1.0}}})  # follows the first by date
    read.clear()
    main([base, head], root)
    neighbours = {COMMITS[0][:8], COMMITS[1][:8]}
    assert {name for name in read if name[:2] == name[2:4]} == {"a" * 8, base[:8], head[:8], *neighbours}


def _replace(path: Path) -> None:
    """Replace a file by one of another commit, with the same size and time."""
    status, other_path = path.stat(), path.with_name("other.json")
    other_path.write_text(path.read_text().replace(COMMITS[0], "d" * 40))
    os.utime(other_path, ns=(status.st_atime_ns, status.st_mtime_ns))
    other_path.replace(path)


#: Case -> change of the cache or of a commit's file between two readings, and the commits that are then read.
BETWEEN: dict[str, tuple[Callable[[Path, Path], object], list[str]]] = {
    "nothing": (lambda _, __: None, COMMITS),
    "the index is gone": (lambda cache, _: cache.unlink(), COMMITS),
    "the index is torn": (lambda cache, _: cache.write_bytes(cache.read_bytes()[:40]), COMMITS),
    "the index is of another form": (lambda cache, _: cache.write_bytes(b"\x81\xa1x\x01"), COMMITS),
    "a file is gone": (lambda _, file: file.unlink(), COMMITS[1:]),
    "a file is torn": (lambda _, file: file.write_bytes(b"{"), COMMITS[1:]),
    "a file is another, of the same time": (lambda _, file: _replace(file), [*COMMITS[1:], "d" * 40]),
}  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), BETWEEN.values(), ids=BETWEEN)
def test_stale_index_is_rebuilt(change: Callable[[Path, Path], object], expected: list[str], root: Path) -> None:
    """The commits come from the files, whatever the cache contains."""
    assert sorted(History(MACHINE, root).commit_dates()) == COMMITS
    (file,) = (root / "results" / MACHINE).glob(f"{COMMITS[0][:8]}-*.json")
    (cache,) = (root.parent / "cache" / "index").glob("*.msgpack")
    change(cache, file)
    for _ in range(2):
        assert sorted(History(MACHINE, root).commit_dates()) == sorted(expected)


def test_nan_in_texts_stays(root: Path) -> None:
    (file,) = (root / "results" / MACHINE).glob(f"{COMMITS[0][:8]}-*.json")
    variables = {"NaN": 'NaN, "NaN\\'}
    change_document(file, lambda document: document.update(env_vars=variables))
    assert index.list_results(file.parent)[file].variables == variables


def test_old_files_are_removed_once_a_day(root: Path) -> None:
    """Index files are old after 30 days."""
    folder = root.parent / "cache" / "index"
    folder.mkdir(parents=True)

    def list_left(commit: str, **days: float) -> list[str]:
        for name, age in days.items():
            (folder / f"{name}.msgpack").touch()
            os.utime(folder / f"{name}.msgpack", (time.time() - age * 86_400,) * 2)
        write(root, {commit: {COUNT: {"one": 1.0}}})
        History(MACHINE, root)
        return [name for name in days if (folder / f"{name}.msgpack").exists()]

    assert list_left("b" * 40, fresh=29, old=31) == ["fresh"]
    assert list_left("c" * 40, fresh=29, old=31) == ["fresh", "old"], "old files were removed twice on one day"
    for path in set(folder.iterdir()) - set(folder.glob("*.msgpack")):  # the mark of the last search
        os.utime(path, (time.time() - 90_000,) * 2)  # more than a day ago
    assert list_left("d" * 40, fresh=29, old=31) == ["fresh"]


def test_results_are_read_without_a_cache(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELWATCH_CACHE", os.devnull)
    assert sorted(History(MACHINE, root).commit_dates()) == COMMITS


def _thresholds(root: Path) -> list[float]:
    return [*load_thresholds(History(MACHINE, root), COMMITS[1], root).by_duration.values()]


def test_thresholds_follow_their_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cached thresholds are used until a file of the commits behind them is written."""
    names = [f"case{number}" for number in range(MIN_CHANGES)]
    monkeypatch.setattr("kernelwatch.suite.launch_facts.find_code_name", lambda *_: "k float32 -O3")
    commits = COMMITS[:2]
    seconds = dict(zip(commits, (1e-3, 1.0012e-3), strict=True))
    times: Suite = {commit: {TIME: dict.fromkeys(names, samples(seconds[commit]))} for commit in commits}
    folder = write(root, times) / "results" / MACHINE
    runs: list[dict[str, Any]] = [{"commits": [commit], "arch": "sm_90", "before": {"uuid": "A"}} for commit in commits]
    write_lines(folder / "runs.jsonl", *runs)
    assert _thresholds(root) == [0.01, 0.05], "thresholds narrowed without hashes of machine code"
    for commit in commits:
        line = {"commit": commit, "arch": "sm_90", "cubins": {"k float32 -O3": "a"}}
        write_lines(folder / f"{commit[:8]}-x.cubins.jsonl", line)
    assert _thresholds(root) == pytest.approx([0.003, 0.05])
    read = _files_read(monkeypatch)
    assert _thresholds(root) == pytest.approx([0.003, 0.05])
    assert not {commit[:8] for commit in commits}.intersection(read), "results were read again"
