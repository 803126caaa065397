"""Results from elsewhere that are not as they should be: all of them are refused, with the place and the reason."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.accept import results, tree
from runner.accept.__main__ import accept
from runner.accept.strict import RefusedError
from tests.incoming import COMMITS, MACHINE, RESULT, RUN, arrived, changed, contents
from tests.stored import BASE, TIME


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """What came, and what is stored."""
    return arrived(tmp_path)


def field(name: str, value: Any) -> Callable[[Path], None]:
    """Another value of a field of the results."""
    return lambda folder: changed(folder / RESULT, lambda document: document.update({name: value}))


def column(name: str, value: Any, benchmark: str = TIME) -> Callable[[Path], None]:
    """Another value of a benchmark's column."""

    def change(document: Any) -> None:
        row = document["results"][benchmark]
        row += [None] * (len(results.COLUMNS) - len(row))
        row[list(results.COLUMNS).index(name)] = value

    return lambda folder: changed(folder / RESULT, change)


def text(name: str, written: str) -> Callable[[Path], object]:
    """Another text of a file."""
    return lambda folder: (folder / name).write_text(written, encoding="utf-8")


def cubins(**facts: Any) -> Callable[[Path], object]:
    """A line of hashes, right but for some facts."""
    right = {"commit": "b" * 40, "arch": "sm_90", "cubins": {"offset_copy, float32, -Xptxas -O3": "0" * 64}}
    return text(f"{MACHINE}/cubins.jsonl", json.dumps(right | facts) + "\n")


def run(**facts: Any) -> Callable[[Path], object]:
    """Another record of the run."""
    return text(f"{MACHINE}/runs.jsonl", json.dumps({**RUN, **facts}) + "\n")


def swap(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    """Something else in a file's place."""

    def do(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return do


def huge(path: Path) -> None:
    """A tebibyte that takes no room."""
    path.touch()
    os.truncate(path, 1 << 40)


#: What is wrong -> how it came to be, and what is said of it.
HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "link to a file": (swap(RESULT, lambda path: path.symlink_to("/etc/passwd")), f"{RESULT}: is a link"),
    "link to a folder": (swap("other", lambda path: path.symlink_to("/etc")), "other: is a link"),
    "pipe": (swap(RESULT, os.mkfifo), f"{RESULT}: is a link or a device"),
    "huge file": (
        swap(RESULT, huge),
        f"{RESULT}: has 1099511627776",
    ),
    "folder too deep": (lambda folder: (folder / "a/b").mkdir(parents=True), "a/b: is a folder"),
    "blank in a name": (text("a b", ""), "'a b': is no name"),
    "line end in a name": (text("a\n::error::b", ""), re.escape(r"'a\n::error::b': is no name")),
    "hidden file": (text(f"{MACHINE}/.git", ""), "gpu/.git': is no name"),
    "no JSON": (text(RESULT, "{"), "is not the JSON expected"),
    "no UTF-8": (lambda folder: (folder / RESULT).write_bytes(b"\xff"), "is not UTF-8"),
    "nested": (text(RESULT, "[" * 100_000), "is nested too deeply"),
    "a key twice": (text(RESULT, '{"a": 1, "a": 2}'), "a key comes twice"),
    "long integer": (text(RESULT, "1" * 1000), "more than 64 bits"),
    "large number": (text(RESULT, "1e999"), "a number is too large"),
    "a list": (text(RESULT, "[]"), f"{RESULT}: is no mapping"),
    "another format": (field("version", 3), "has version 3"),
    "another commit": (field("commit_hash", BASE), "commit_hash is 'bbbb"),
    "another date": (field("date", 2), "date is 2, not 1"),
    "another environment": (field("env_name", "x"), "env_name is 'x', not 'python3.11'"),
    "another machine": (field("params", {"machine": "x"}), "machine is 'x', the known machine's is 'gpu'"),
    "a number for a text": (field("params", {"machine": MACHINE, "cpu": 1}), "params is missing or not as expected"),
    "variables": (field("env_vars", {"LD_PRELOAD": "x"}), "env_vars is"),
    "other columns": (field("result_columns", ["result"]), "result_columns is"),
    "results no mapping": (field("results", []), "results is"),
    "durations no numbers": (field("durations", {"a": "b"}), "durations is"),
    "text for a number": (column("result", ["<script>", 1.0]), f"{TIME}': result is not as expected"),
    "true for a number": (column("result", [True, 1.0]), "result is"),
    "infinite": (column("result", [float("inf"), 1.0]), "result is"),
    "negative": (column("result", [-1.0, 1.0]), "result is"),
    "too few": (column("result", [1.0]), "result is"),
    "too many": (column("result", [1.0] * 3), "result is"),
    "other parameters": (column("params", [["'one'", "'three'"]]), "params is"),
    "another version": (column("version", "2"), "version is"),
    "no time": (column("started_at", "now"), "started_at is"),
    "NaN in a statistic": (column("stats_q_25", [float("nan"), 1.0]), "stats_q_25 is"),
    "NaN in samples": (column("samples", [[float("nan")], None]), "samples is"),
    "text in samples": (column("samples", [["1"], None]), "samples is"),
    "a profile": (column("profile", "eJw="), "profile is"),
    "too many columns": (
        lambda folder: changed(folder / RESULT, lambda document: document["results"][TIME].extend([None] * 99)),
        "has too many columns",
    ),
    "unknown benchmark": (
        lambda folder: changed(folder / RESULT, lambda document: document["results"].update({"x.y": []})),
        "'x.y': is no benchmark",
    ),
    "machine changed": (
        text(f"{MACHINE}/machine.json", '{"machine": "gpu", "version": 1, "gpu": "x"}'),
        "is not as it is known",
    ),
    "machine missing": (lambda folder: (folder / MACHINE / "machine.json").unlink(), "is not as it is known"),
    "record no mapping": (text(f"{MACHINE}/runs.jsonl", "[]\n"), "runs.jsonl, line 1: is no mapping"),
    "record without commits": (text(f"{MACHINE}/runs.jsonl", "{}\n"), "line 1: commits is missing"),
    "record of no hash": (run(commits=["main"]), "commits is missing or not as expected"),
    "NaN in a record": (run(peak_bytes_per_second=float("nan")), "line 1: 'nan' is neither"),
    "text for a peak": (run(peak_bytes_per_second="1"), "peak_bytes_per_second is"),
    "terminal command": (run(gpu="\x1b[2J"), "neither a finite number nor a text of one line"),
    "deep record": (run(before={"a": [[[[[1]]]]]}), "nested too deeply"),
    "hashes of no commit": (cubins(commit="main"), "cubins.jsonl, line 1: commit is missing or not as expected"),
    "hashes without a commit": (cubins(commit=None), "cubins.jsonl, line 1: commit is missing or not as expected"),
    "no architecture": (cubins(arch="<b>"), "cubins.jsonl, line 1: arch is missing or not as expected"),
    "hashes no mapping": (cubins(cubins=["x"]), "cubins.jsonl, line 1: cubins is missing or not as expected"),
    "no hash": (cubins(cubins={"x": "y"}), "cubins.jsonl, line 1: cubins is missing or not as expected"),
    "no moment": (run(started="yesterday"), "started is missing or not as expected"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_refused(what: str, folders: tuple[Path, Path]) -> None:
    """One error with its place, and nothing is taken."""
    incoming, stored = folders
    before = contents(stored)
    HOSTILE[what][0](incoming)
    with pytest.raises(RefusedError, match=HOSTILE[what][1]):
        accept(incoming, stored, MACHINE, COMMITS)
    assert contents(stored) == before


@pytest.mark.parametrize("machine", ["unknown", "../gpu", "", ".", "gpu/../gpu"])
def test_unknown_machine(machine: str, folders: tuple[Path, Path]) -> None:
    """Only a machine that is stored already, whose name is no path."""
    with pytest.raises(RefusedError, match="is no known machine"):
        accept(*folders, machine, COMMITS)


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("/etc"), Path.touch, lambda path: None])
def test_no_results_at_all(make: Callable[[Path], object], folders: tuple[Path, Path], tmp_path: Path) -> None:
    """Nothing came, or something else than a folder, or one without the machine."""
    make(tmp_path / "came")
    with pytest.raises(RefusedError, match=r"came: is no folder|machine.json: is not as it is known"):
        accept(tmp_path / "came", folders[1], MACHINE, COMMITS)


#: What is wrong with a list of benchmarks that would be taken, and what is said of it.
SUITES: list[tuple[Callable[[Any], object], str]] = [
    (lambda document: document.update(version=1), "has version 1"),
    (lambda document: document.update({"<b>": {}}), "is no benchmark's name"),
    (lambda document: document[TIME].update(name="x.y"), "is called otherwise inside"),
    (lambda document: document[TIME].update(code=1), "has no source"),
    (lambda document: document[TIME].update(type="peakmem"), "is of type 'peakmem'"),
    (lambda document: document[TIME].update(params=[[1]]), "axes that are no lists of texts"),
    (lambda document: document[TIME].update(param_names=[]), "axes that are no lists of texts"),
    (lambda document: document[TIME].update(version=None), "has no version"),
    (lambda document: document[TIME].update(timeout=float("inf")), "neither a finite number"),
    (lambda document: document[TIME].update(params=[["1"] * 1000] * 2, param_names=["a", "b"]), "more than 100000"),
]


@pytest.mark.parametrize(("change", "message"), SUITES)
def test_refused_suite(change: Callable[[Any], object], message: str, folders: tuple[Path, Path]) -> None:
    """A list of benchmarks is data, too."""
    incoming, stored = folders
    changed(incoming / "benchmarks.json", change)
    with pytest.raises(RefusedError, match=message):
        accept(incoming, stored, MACHINE, COMMITS, new_suite=True)


@pytest.mark.parametrize(("written", "message"), [(None, "is missing"), ("[]", "is no mapping")])
def test_no_suite(written: str | None, message: str, folders: tuple[Path, Path]) -> None:
    """Without a list of benchmarks nothing can be checked."""
    path = folders[0] / "benchmarks.json"
    path.unlink()
    if written is not None:
        path.write_text(written, encoding="utf-8")
    with pytest.raises(RefusedError, match=message):
        accept(*folders, MACHINE, COMMITS, new_suite=True)


@pytest.mark.parametrize(
    ("limit", "message"), [("MOST", "more than 1 files"), ("LARGEST_IN_ALL", "bytes, more than 1")]
)
def test_too_much(limit: str, message: str, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small files are as much as a large one."""
    monkeypatch.setattr(tree, limit, 1)
    with pytest.raises(RefusedError, match=message):
        accept(*folders, MACHINE, COMMITS)
