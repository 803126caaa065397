"""Results from elsewhere that are not as they should be: all of them are refused, with the place and the reason."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.store.accept import __main__ as accepting
from kernelwatch.store.accept import tree
from kernelwatch.store.accept.__main__ import accept
from kernelwatch.store.accept.models import Row
from kernelwatch.store.accept.refusal import RefusedError
from kernelwatch.store.results import History
from tests.incoming import COMMITS, MACHINE, RESULT, RUN, arrived, changed, contents
from tests.stored import BASE, COUNT, HEAD, TIME


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
        row += [None] * (len(Row.__struct_fields__) - len(row))
        row[list(Row.__struct_fields__).index(name)] = value

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


def twice(commit: str) -> Callable[[Path], None]:
    """Results of a commit in one more environment."""

    def do(folder: Path) -> None:
        other = folder / MACHINE / f"{commit[:8]}-other.json"
        shutil.copy(folder / MACHINE / f"{commit[:8]}-python3.11.json", other)
        changed(other, lambda document: document.update(env_name="other"))

    return do


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
    "long integer": (text(RESULT, "1" * 1000), "Expected `object`, got `int`"),
    "large number": (text(RESULT, "1e999"), "Expected `object`, got `float`"),
    "a list": (text(RESULT, "[]"), f"{RESULT}: Expected `object`, got `array`"),
    "another format": (field("version", 3), r"Expected `int` <= 2 - at `\$.version`"),
    "another commit": (field("commit_hash", BASE), "commit_hash is 'bbbb"),
    "another date": (field("date", 2), "date is 2, not 1"),
    "another environment": (field("env_name", "x"), "env_name is 'x', not 'python3.11'"),
    "another machine": (field("params", {"machine": "x"}), "params is {'machine': 'x'}, not {'machine': 'gpu'}"),
    "a number for a text": (
        field("params", {"machine": MACHINE, "cpu": 1}),
        r"Expected `str`, got `int` - at `\$.params\[...\]`",
    ),
    "variables": (field("env_vars", {"LD_PRELOAD": "x"}), "env_vars is .*LD_PRELOAD"),
    "other columns": (field("result_columns", ["result"]), "result_columns are not asv's"),
    "results no mapping": (field("results", []), "Expected `object`, got `array`"),
    "durations no numbers": (field("durations", {"a": "b"}), r"matching regex .* in `\$.durations`"),
    "text for a number": (
        column("result", ["<script>", 1.0]),
        rf"{TIME}': .* got `str` - at `\$\[0\]\[0\]`",
    ),
    "true for a number": (column("result", [True, 1.0]), "got `bool`"),
    "infinite": (column("result", [float("inf"), 1.0]), "Expected `bytes` of length <= 3"),
    "negative": (column("result", [-1.0, 1.0]), "Expected `float` > 0.0"),
    "too few": (column("result", [1.0]), "result has not one value for each of 2"),
    "too many": (column("result", [1.0] * 3), "result has not one value for each of 2"),
    "other parameters": (column("params", [["'one'", "'three'"]]), "params has values"),
    "another version": (column("version", "2"), "version is"),
    "no time": (column("started_at", "now"), "got `str`"),
    "NaN in a statistic": (column("stats_q_25", [float("nan"), 1.0]), "got `bytes`"),
    "NaN in samples": (column("samples", [[float("nan")], None]), "got `bytes`"),
    "text in samples": (column("samples", [["1"], None]), "got `str`"),
    "a profile": (column("profile", "eJw="), "Expected `null`, got `str`"),
    "too many columns": (
        lambda folder: changed(folder / RESULT, lambda document: document["results"][TIME].extend([None] * 99)),
        "Expected `array` of at most length 13",
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
    "record no mapping": (text(f"{MACHINE}/runs.jsonl", "[]\n"), "runs.jsonl, line 1: Expected `object`, got `array`"),
    "record without commits": (
        text(f"{MACHINE}/runs.jsonl", "{}\n"),
        "line 1: .* missing required field `commits`",
    ),
    "record of no hash": (run(commits=["main"]), r"matching regex .* - at `\$.commits\[0\]`"),
    "NaN in a record": (
        run(peak_bytes_per_second=float("nan")),
        "line 1: .*, got `bytes`",
    ),
    "text for a peak": (run(peak_bytes_per_second="1"), r"got `str` - at `\$.peak_bytes_per_second`"),
    "terminal command": (run(gpu="\x1b[2J"), r"matching regex .* - at `\$.gpu`"),
    "deep record": (run(before={"a": [[[[[1]]]]]}), "Object contains unknown field `a`"),
    "hashes of no commit": (cubins(commit="main"), r"cubins.jsonl, line 1: .* - at `\$.commit`"),
    "hashes without a commit": (cubins(commit=None), "cubins.jsonl, line 1: Expected `str`, got `null`"),
    "no architecture": (cubins(arch="<b>"), r"cubins.jsonl, line 1: .* - at `\$.arch`"),
    "hashes no mapping": (cubins(cubins=["x"]), "cubins.jsonl, line 1: Expected `object`, got `array`"),
    "no hash": (cubins(cubins={"x": "y"}), r"cubins.jsonl, line 1: .* - at `\$.cubins\[...\]`"),
    "a key that is no launch": (
        cubins(cubins={"a b c": "0" * 64}),
        "line 1: a key is no launch: 'a b c'",
    ),
    "an empty key": (cubins(cubins={"": "0" * 64}), "cubins.jsonl, line 1: a key is no launch: ''"),
    "code of no launch": (cubins(code={"a b=c": "0" * 64}), "cubins.jsonl, line 1: a key is no launch: 'a b=c'"),
    "no moment": (run(started="yesterday"), r"matching regex .* - at `\$.started`"),
    "an endless time": (column("result", [1e308, 1.0]), "Expected `float` < 100000.0"),
    "no time at all": (column("result", [0.0, 1.0]), "Expected `float` > 0.0"),
    "endless samples": (column("samples", [[1e308], None]), "Expected `float` < 100000.0"),
    "an endless interval": (column("stats_ci_99_b", [1e308, None]), "Expected `float` < 100000.0"),
    "an endless quartile": (column("stats_q_75", [float("inf"), None]), "got `bytes`"),
    "endless repeats": (column("stats_repeat", [1 << 62, None]), "Expected `int` <= "),
    "a broken number of repeats": (column("stats_number", [0.5, None]), "got `float`"),
    "an endless duration": (column("duration", 1e7), "Expected `float` < "),
    "a count beyond all": (column("result", [1e15, 4.0], COUNT), "Expected `float` < 1000000000000000.0"),
    "an endless step": (field("durations", {"<build>": 1e308}), "Expected `float` < "),
    "unknown key": (field("comment", ""), "unknown field `comment`"),
    "unknown parameter": (field("params", {"machine": MACHINE, "os": "Linux"}), "params is .*, not {'machine': 'gpu'}"),
    "long parameter": (field("params", {"machine": MACHINE, "os": "x" * 2000}), "params is .*, not {'machine': 'gpu'}"),
    "another python": (field("params", {"machine": MACHINE, "python": "3"}), "params is .*, not {.*'python': '3.11'}"),
    "markup": (field("params", {"machine": MACHINE, "os": "<img src=x>"}), "matching regex"),
    "look-alike letter": (field("env_name", "pyth\u043en3.11"), "matching regex"),
    "lone surrogate": (field("python", "\ud800"), "matching regex"),
    "lone surrogate for a number": (column("result", ["\ud800", 1.0]), "surrogates not allowed"),
    "line end": (field("python", "3.11\n"), "matching regex"),
    "control character": (field("requirements", {"x": "\x9b2J"}), "matching regex"),
    "requirement no text": (field("requirements", {"x": 1}), "got `int`"),
    "another environment of a commit": (
        lambda folder: (folder / RESULT).rename(folder / f"{MACHINE}/{BASE[:8]}-x.json"),
        "commit_hash is .*, not 'bbbb",
    ),
    "two environments of a commit": (twice(HEAD), "is a second environment of its commit, beside"),
    "a second environment of a stored commit": (twice(BASE), "is a second environment of its commit, beside"),
    "a list for a compiler": (run(nvcc=["a"]), r"got `array` - at `\$.nvcc`"),
    "the year 1": (run(started="0001-01-01T00:00:00+00:00"), r"- at `\$.started`"),
    "a month 13": (run(started="2026-13-01T00:00:00+00:00"), "line 1: "),
    "an end before the start": (run(ended="2026-01-01T00:00:00+00:00"), "it ended before it started"),
    "no commits": (run(commits=[]), r"of length >= 1 - at `\$.commits`"),
    "unknown fact": (run(comment="x"), "unknown field `comment`"),
    "unknown fact of a GPU": (run(after={"x": 1}), r"unknown field `x` - at `\$.after`"),
    "text for a clock": (run(before={"sm_clock_mhz": "fast"}), r"got `str` - at `\$.before.sm_clock_mhz`"),
    "endless peak": (run(peak_bytes_per_second=1e308), "Expected `float` < "),
    "repeated lines": (text(f"{MACHINE}/runs.jsonl", f"{json.dumps(RUN)}\n" * 2), "runs.jsonl, line 2: comes twice"),
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
    (lambda document: document.update({"<b>": {}}), "missing required field `name`"),
    (lambda document: document[TIME].update(name="x.y"), "is called otherwise inside"),
    (lambda document: document[TIME].update(code=1), r"got `int` - at `\$.code`"),
    (lambda document: document[TIME].update(type="peakmem"), "Invalid enum value 'peakmem'"),
    (lambda document: document[TIME].update(params=[[1]]), r"got `int` - at `\$.params\[0\]\[0\]`"),
    (lambda document: document[TIME].update(param_names=[]), "are not of one length"),
    (lambda document: document[TIME].update(version=None), r"got `null` - at `\$.version`"),
    (lambda document: document[TIME].update(timeout=float("inf")), r"got `bytes` - at `\$.timeout`"),
    (lambda document: document[TIME].update(params=[["1"] * 1000] * 2, param_names=["a", "b"]), "more than 100000"),
    (
        lambda document: document[TIME].update(params=[["1"] * 2] * 2, param_names=["case", "clock"]),
        r"time_back_to_back': has the axes \['case', 'clock'\]; stored, in the same version, are \['case'\]: give it",
    ),
    (lambda document: document[TIME].update(param_names=["clock"]), r"has the axes \['clock'\]; stored, .* \['case'\]"),
]


@pytest.mark.parametrize(("change", "message"), SUITES)
def test_refused_suite(change: Callable[[Any], object], message: str, folders: tuple[Path, Path]) -> None:
    """A list of benchmarks is data, too."""
    incoming, stored = folders
    changed(incoming / "benchmarks.json", change)
    with pytest.raises(RefusedError, match=message):
        accept(incoming, stored, MACHINE, COMMITS, new_suite=True)


def test_another_axis_in_another_version(folders: tuple[Path, Path]) -> None:
    """It begins a history of its own, and the stored one stays as it is."""
    incoming, stored = folders
    axes = {"version": "2", "params": [["1"] * 2] * 2, "param_names": ["case", "clock"]}
    changed(incoming / "benchmarks.json", lambda document: document[TIME].update(axes))
    changed(incoming / RESULT, lambda document: document["results"].pop(TIME))
    assert "2 files" in accept(incoming, stored, MACHINE, COMMITS, new_suite=True)


@pytest.mark.parametrize("new_suite", [True, False])
def test_small_files_that_expand(
    new_suite: bool, folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """20 benchmarks of 46 x 46 x 47 without values: 2 million configurations in 50 kB are refused, and not read."""
    incoming, stored = folders
    axes = [[f"'{place}'" for place in range(length)] for length in (46, 46, 47)]
    names = [f"{TIME}_{place}" for place in range(20)]

    def describe(document: Any) -> None:
        others = {"params": axes, "param_names": ["a", "b", "c"]}
        document |= {name: {**document[TIME], **others, "name": name} for name in names}

    changed(incoming / "benchmarks.json", describe)
    changed(incoming / RESULT, lambda document: document["results"].update({name: [None, axes, "1"] for name in names}))
    assert (incoming / RESULT).stat().st_size < 50_000
    if not new_suite:  # a repository that took the list before there was this limit
        shutil.copy(incoming / "benchmarks.json", stored)
    with pytest.raises(RefusedError, match=r"benchmarks\.json: has 19890\d\d configurations, more than 100000$"):
        accept(incoming, stored, MACHINE, COMMITS, new_suite=new_suite)
    shutil.copy(incoming / RESULT, stored / RESULT)
    assert History(MACHINE, stored.parent).commits() == [BASE]
    assert capsys.readouterr().err.startswith("gpu, cccccccc is left out: it: has 19890")


def test_the_results_of_all_commits_are_limited(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Many commits, each of which has few."""
    monkeypatch.setattr(accepting, "_MOST", 3)
    with pytest.raises(RefusedError, match=f"{RESULT}: and those before have more than 3 configurations"):
        accept(*folders, MACHINE, COMMITS)


@pytest.mark.parametrize(("written", "message"), [(None, "is missing"), ("[]", "Expected `object`, got `array`")])
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


def test_growth(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """What a record would have is limited as what comes is."""
    incoming, stored = folders
    with (stored / MACHINE / "runs.jsonl").open("a") as file:
        file.write("x" * 20_000)
    monkeypatch.setattr(tree, "LARGEST", 20_000)
    with pytest.raises(RefusedError, match=r"runs\.jsonl: would have more than 20000 bytes"):
        accept(incoming, stored, MACHINE, COMMITS)
