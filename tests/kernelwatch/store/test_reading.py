"""Reading of results: invalid files and lines are reported and left out. All others are read."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.config.project_root import ROOT
from kernelwatch.store import models, reading, record
from kernelwatch.store.folders import list_machines
from kernelwatch.store.results import History
from tests.stored import BASE, COUNT, HEAD, MACHINE, RUN, TIME, change_document, find_results, write, write_lines

RESULT = f"{MACHINE}/{HEAD[:8]}-python3.11.json"


@pytest.fixture(autouse=True)
def forget_reports() -> None:
    reading.report_omission.cache_clear()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of results: two commits of a machine, and a run record."""
    suite: Any = {
        commit: {TIME: {"one": [seconds] * 40, "two": None}, COUNT: {"one": 4.0, "two": float("nan")}}
        for commit, seconds in ((BASE, 1.25), (HEAD, 2.0))  # a longer file, and a shorter one
    }
    return write_lines(write(tmp_path, suite) / "results" / MACHINE / record.RUNS_FILE, RUN).parent


def _set(document: Any, column: str, value: Any) -> None:
    row = document["results"][TIME]
    row += [None] * (len(document["result_columns"]) - len(row))
    row[document["result_columns"].index(column)] = value


def _expand(document: Any) -> None:
    """Add rows that describe two million configurations (20 * 46 * 46 * 47) in 50 kB."""
    axes = [[str(place) for place in range(length)] for length in (46, 46, 47)]
    document["results"] |= {f"{TIME}_{place}": [None, axes, "1"] for place in range(20)}


#: Fault of a document -> function that makes it or the content, and the message.
WRONG: dict[str, tuple[Callable[[Any], object] | bytes, str]] = {
    "no results": (lambda document: document.pop("results"), "missing required field `results`"),
    "results that are a list": (lambda document: document.update(results=[]), "Expected `object`, got `array`"),
    "no hash": (lambda document: document.update(commit_hash="main"), "commit_hash"),
    "another format": (lambda document: document.update(version=3), "version"),
    "other columns": (lambda document: document.update(result_columns=["result"]),
                      "result_columns is ['result']; asv has ['result', 'params',"),
    "a date before 1970": (lambda document: document.update(date=-1), "date"),
    "text for a number": (lambda document: _set(document, "result", ["x", 1.0]), "Expected `float | null`, got `str`"),
    "a number for a text": (lambda document: _set(document, "params", [[1, 2]]), "Expected `str`, got `int`"),
    "too few values": (lambda document: _set(document, "result", [1.0]), "result has 1 values for 2 configurations"),
    "too many samples": (lambda document: _set(document, "samples", [[1.0]] * 3),
                         "samples has 3 values for 2 configurations"),
    "half a letter": (lambda document: document.update({"\ud800": 1}), "surrogates not allowed"),
    "a long text": (lambda document: _set(document, "version", "x" * 10_001), "length <= 10000"),
    "small and huge": (_expand, "at most 100000 are allowed"),
    "empty": (b"", ""), "half": (b'{"results": {', ""), "no text": (b"\xff", ""), "no object": (b"[]", ""),
    "deep": (b"[" * 100_000, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_invalid_file_is_left_out(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file is reported once, with the reason. The other commit is read, and no file changes."""
    change, message = WRONG[name]
    (folder / RESULT).write_bytes(change) if isinstance(change, bytes) else change_document(folder / RESULT, change)
    contents_before = (folder / RESULT).read_bytes()
    for _ in range(2):
        assert History(MACHINE, folder.parent).list_commits() == [BASE]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"left out: {folder / RESULT}: ")
    assert message in line
    assert (folder / RESULT).read_bytes() == contents_before


def test_limit_on_the_size_of_a_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of the largest size is read. With one byte less allowed, the longer file is left out."""
    size = max(path.stat().st_size for path in folder.glob("*/????????-*.json"))
    for largest, count in ((size, 2), (size - 1, 1)):
        monkeypatch.setattr(reading, "LARGEST", largest)
        reading.report_omission.cache_clear()
        assert len(History(MACHINE, folder.parent).list_commits()) == count
    assert f"has {size} bytes; at most {size - 1} are read" in capsys.readouterr().err


@pytest.mark.parametrize(("last", "fits"), [(1_000, True), (1_001, False)])
def test_limit_on_configurations_of_a_commit(last: int, fits: bool) -> None:
    """The limit is 100000 for all benchmarks of a commit, here 99 x 1000 and `last`."""
    axes = [[["x"] * 99, ["y"] * 1_000], [["z"] * last]]
    with nullcontext() if fits else pytest.raises(ValueError, match="at most 100000 are allowed"):
        assert models.count_configurations(*axes) == models.MAX_CONFIGURATIONS


DEEP = json.dumps(RUN).encode()[:-1] + b', "host": {"x": ' + b"[" * 100_000


@pytest.mark.parametrize("line", [b"{", b"[]", b"{}", b"\xff", DEEP, json.dumps(RUN | {"nvcc": []}).encode()])
def test_invalid_line_is_left_out(line: bytes, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / MACHINE / record.RUNS_FILE
    contents = path.read_bytes()
    path.write_bytes(contents + line + b"\n\n" + contents)
    assert record.read_records(folder, MACHINE) == [RUN, RUN]
    assert capsys.readouterr().err.startswith(f"left out: {path}, line 2: ")


def test_record_lines_are_sorted_by_time(folder: Path) -> None:
    older = {**RUN, "started": "2026-01-01T03:04:05+00:00"}
    write_lines(folder / MACHINE / f"{HEAD[:8]}-py.{record.RUNS_FILE}", older)
    assert record.read_records(folder, MACHINE) == [older, RUN]


def test_values_follow_the_current_axes(folder: Path) -> None:
    """An axis was reordered, and has a new value."""
    axis = {"params": [["'two'", "'new'", "'one'"]]}
    change_document(folder / reading.BENCHMARKS_FILE, lambda document: document[TIME].update(axis))
    history, results = find_results(folder.parent, HEAD)
    assert history.list_values(results, TIME) == [None, None, 2.0]


@pytest.mark.parametrize("name", list_machines(ROOT / "results"))
def test_all_stored_files_are_valid(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ROOT / "results" / name
    documents = [document for _, _, document in reading.iter_files(folder)]
    paths = [path for path in reading.list_paths(folder, suffix=".json") if "-" in path.name]
    other_compilers = reading.list_paths(folder / reading.COMPILERS_FOLDER)
    assert len(documents) == len([*paths, *other_compilers]) > 1, "files were left out"
    identities = [(document.commit_hash, document.env_name) for document in reading.iter_documents(folder)]
    assert sorted(identities) == sorted({(document.commit_hash, document.env_name) for document in documents})
    for file in record.RECORDS:
        lines = [line for path in record.list_record_paths(folder, file) for line in path.read_bytes().splitlines()]
        assert len(record.read_records(folder.parent, name, file)) == len(lines)
    assert capsys.readouterr().err == ""
