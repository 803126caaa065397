"""Results from elsewhere that are not as they should be: all of them are refused, with the place and the reason."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.store.accept import checks
from kernelwatch.store.accept.command import accept
from kernelwatch.store.accept.refusal import RefusedError
from kernelwatch.store.models import Row
from kernelwatch.store.results import History
from tests.incoming import COMMITS, MACHINE, RESULT, RUN, arrived, changed, contents
from tests.stored import BASE, COUNT, HEAD, TIME


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """What came, and what is stored."""
    return arrived(tmp_path)


def _file(name: str, written: str | bytes) -> Callable[[Path], object]:
    """Another text of a file."""
    content = written if isinstance(written, bytes) else written.encode()
    return lambda folder: (folder / name).write_bytes(content)


def _swap(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    """Something else in a file's place."""

    def do(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return do


def _huge(path: Path) -> None:
    """A tebibyte that takes no room."""
    path.touch()
    os.truncate(path, 1 << 40)


def _result(change: Callable[[Any], object]) -> Callable[[Path], None]:
    return lambda folder: changed(folder / RESULT, change)


def _twice(commit: str) -> Callable[[Path], None]:
    """Results of a commit in one more environment."""

    def do(folder: Path) -> None:
        other = folder / MACHINE / f"{commit[:8]}-other.json"
        shutil.copy(folder / MACHINE / f"{commit[:8]}-python3.11.json", other)
        changed(other, lambda document: document.update(env_name="other"))

    return do


def _linked(folder: Path) -> None:
    """The machine's folder, in another place."""
    (folder / MACHINE).rename(folder / "other")
    (folder / MACHINE).symlink_to("other")


#: What is wrong with the files, and what is said of it.
FILES: list[tuple[Callable[[Path], object], str]] = [
    (_swap(RESULT, lambda path: path.symlink_to("/etc/passwd")), f"{RESULT}: is a link"),
    (_swap("benchmarks.json", lambda path: path.symlink_to("/etc/passwd")), "benchmarks.json: is a link"),
    (_linked, f"{MACHINE}: is no folder"),
    (_swap(RESULT, os.mkfifo), f"{RESULT}: is a link or a device"),
    (_swap(RESULT, _huge), f"{RESULT}: has 1099511627776"),
    (lambda folder: (folder / f"{MACHINE}/cubins.jsonl").mkdir(), "cubins.jsonl: is a link or a device"),
    (_file(RESULT, "{"), "is not JSON"),
    (_file(RESULT, b"\xff"), "is not JSON"),
    (_file(RESULT, "[" * 100_000), "is not JSON: maximum recursion"),
    (_file(RESULT, "1" * 1000), "Expected `object`, got `int`"),
    (_result(lambda document: document["results"][TIME][0].__setitem__(0, "\ud800")), "surrogates not allowed"),
    (_result(lambda document: document["results"][TIME].extend([None] * 99)), "`array` of at most length 13"),
    (_result(lambda document: document["results"].update({"x.y": []})), "'x.y': is no benchmark"),
    (_file(f"{MACHINE}/machine.json", '{"machine": "gpu", "version": 1, "gpu": "x"}'), "is not as it is known"),
    (lambda folder: (folder / MACHINE / "machine.json").unlink(), "is not as it is known"),
    (_file(f"{MACHINE}/runs.jsonl", "[]\n"), "runs.jsonl, line 1: Expected `object`, got `array`"),
    (_file(f"{MACHINE}/runs.jsonl", "{}\n"), "line 1: .* missing required field `commits`"),
    (lambda folder: (folder / RESULT).rename(folder / f"{MACHINE}/{BASE[:8]}-x.json"), "commit_hash is .*, not 'bbbb"),
    (_twice(HEAD), "is a second environment of its commit, beside"),
    (_twice(BASE), "is a second environment of its commit, beside"),
]

NAN, INFINITE, HASH = float("nan"), float("inf"), "0" * 64

#: Values that a field of the results may not have.
FIELDS: dict[str, list[Any]] = {
    "version": [3],
    "commit_hash": [BASE],
    "date": [2],
    "env_name": ["x", "pyth\u043en3.11"],
    "params": [
        {"machine": MACHINE, **more}
        for more in (
            *({"machine": "x"}, {"cpu": 1}, {"os": "Linux"}, {"os": "x" * 2000}),
            *({"python": "3"}, {"os": "<img src=x>"}),
        )
    ],
    "env_vars": [{"LD_PRELOAD": "x"}],
    "result_columns": [["result"]],
    "results": [[]],
    "durations": [{"a": "b"}, {"<build>": 1e308}],
    "python": ["\ud800", "3.11\n"],
    "requirements": [{"x": "\x9b2J"}, {"x": 1}],
    "comment": [""],
}
#: The same of a column of a time.
COLUMNS: dict[str, list[Any]] = {
    "result": [
        *([value, 1.0] for value in ("<script>", True, INFINITE, -1.0, 1e308, 0.0)),
        *([1.0], [1.0] * 3),
    ],
    "params": [[["'one'", "'three'"]]],
    "version": ["2"],
    "started_at": ["now"],
    "duration": [1e7],
    "stats_ci_99_b": [[1e308, None]],
    "stats_q_25": [[NAN, 1.0]],
    "stats_q_75": [[INFINITE, None]],
    "stats_number": [[0.5, None]],
    "stats_repeat": [[1 << 62, None]],
    "samples": [[[value], None] for value in (NAN, "1", 1e308)],
    "profile": ["eJw="],
}
#: The same of the record of a run, and of a line of hashes.
RECORD: dict[str, list[Any]] = {
    "commits": [["main"], []],
    "peak_bytes_per_second": [NAN, "1", 1e308],
    "gpu": ["\x1b[2J"],
    "before": [{"a": [[[[[1]]]]]}, {"<b>": 1}, {"uuid": "<b>"}],
    "after": [{"x": {"y": 1}}, {"throttle_reasons": ["<b>"]}, {"throttle_reasons": [NAN]}],
    "started": ["yesterday", "0001-01-01T00:00:00+00:00"],
    "ended": [1],
    "nvcc": [["a"]],
    "comment": ["x"],
}
CUBINS: dict[str, list[Any]] = {
    "commit": ["main", None],
    "arch": ["<b>"],
    "cubins": [["x"], {"x": "y"}, {"a b c": HASH}, {"": HASH}],
    "code": [{"a b=c": HASH}],
}
LINE = {"commit": BASE, "arch": "sm_90", "cubins": {"offset_copy, float32, -Xptxas -O3": HASH}}


def _column(name: str, value: Any, benchmark: str = TIME) -> Callable[[Path], None]:
    """Another value of a benchmark's column."""

    def change(document: Any) -> None:
        row = document["results"][benchmark]
        row += [None] * (len(Row.__struct_fields__) - len(row))
        row[list(Row.__struct_fields__).index(name)] = value

    return _result(change)


def _field(name: str, value: Any) -> Callable[[Path], None]:
    return _result(lambda document: document.update({name: value}))


def _each(table: dict[str, list[Any]]) -> list[tuple[str, Any]]:
    return [(name, value) for name, values in table.items() for value in values]


HOSTILE = [
    *FILES,
    *((_field(name, value), f"{RESULT}: .*{name}|{RESULT}: .* matching regex") for name, value in _each(FIELDS)),
    *((_column(name, value), f"{RESULT}: '{TIME}'") for name, value in _each(COLUMNS)),
    (_column("result", [1e15, 4.0], COUNT), f"{RESULT}: '{COUNT}'"),
    *(
        (_file(f"{MACHINE}/{file}", json.dumps({**right, name: value}) + "\n"), f"{file}, line 1: ")
        for file, right, table in (("runs.jsonl", RUN, RECORD), ("cubins.jsonl", LINE, CUBINS))
        for name, value in _each(table)
    ),
]


@pytest.mark.parametrize(("change", "message"), HOSTILE)
def test_refused(change: Callable[[Path], object], message: str, folders: tuple[Path, Path]) -> None:
    """One error with its place, and nothing is taken."""
    incoming, stored = folders
    before = contents(stored)
    change(incoming)
    with pytest.raises(RefusedError, match=message):
        accept(incoming, stored, MACHINE, COMMITS)
    assert contents(stored) == before


@pytest.mark.parametrize("machine", ["unknown", "../gpu", "", "gpu/../gpu"])
def test_unknown_machine(machine: str, folders: tuple[Path, Path]) -> None:
    """Only a machine that is stored already, whose name is no path."""
    with pytest.raises(RefusedError, match="is no known machine"):
        accept(*folders, machine, COMMITS)


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("/etc"), lambda path: None])
def test_no_results_at_all(make: Callable[[Path], object], folders: tuple[Path, Path], tmp_path: Path) -> None:
    """Nothing came, or something else than a folder, or one without the machine."""
    make(tmp_path / "came")
    with pytest.raises(RefusedError, match=r"came(/gpu)?: is no folder"):
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


@pytest.mark.parametrize(("written", "message"), [(None, "is missing"), ("[]", "Expected `object`, got `array`")])
def test_no_suite(written: str | None, message: str, folders: tuple[Path, Path]) -> None:
    """Without a list of benchmarks nothing can be checked."""
    path = folders[0] / "benchmarks.json"
    path.unlink()
    if written is not None:
        path.write_text(written, encoding="utf-8")
    with pytest.raises(RefusedError, match=message):
        accept(*folders, MACHINE, COMMITS, new_suite=True)


def test_too_much(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """What a record would have counts, too."""
    with (folders[1] / MACHINE / "runs.jsonl").open("a") as file:
        file.write("x" * 20_000)
    monkeypatch.setattr(checks, "LARGEST", 20_000)
    with pytest.raises(RefusedError, match=r"runs\.jsonl: would have more than 20000 bytes"):
        accept(*folders, MACHINE, COMMITS)


@pytest.mark.parametrize("machine", ["..", ".git", "a/b", "a b"])
def test_a_name_that_is_no_machines(machine: str, folders: tuple[Path, Path]) -> None:
    """Also where a machine may be new."""
    with pytest.raises(RefusedError, match="is no name of a machine"):
        accept(*folders, machine, COMMITS, new_machine=True)
