"""Results from elsewhere that are as they should be: what is asked for is taken, all else is passed over."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kernelwatch.instrument import machine
from kernelwatch.project import ROOT
from kernelwatch.store import models, record
from kernelwatch.store.accept import checks, command
from kernelwatch.store.accept.command import accept, dates, main
from kernelwatch.store.accept.refusal import RefusedError, convert, read
from kernelwatch.store.outcomes import Checked, Configuration
from kernelwatch.store.results import History, machines
from kernelwatch.store.run_record import RunRecord
from tests.incoming import COMMITS, MACHINE, RESULT, RUN, arrived, changed, contents
from tests.stored import BASE, COUNT, HEAD


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """What came, and what is stored."""
    return arrived(tmp_path)


def test_new_results_are_taken(folders: tuple[Path, Path]) -> None:
    """The new commit's results and the new line; what was stored stays; and a second time there is nothing new."""
    incoming, stored = folders
    before = contents(stored)
    assert accept(incoming, stored, MACHINE, COMMITS) == "gpu: 1 files and 1 lines taken"
    after = contents(stored)
    assert after.pop(RESULT) == (incoming / RESULT).read_bytes()
    runs = after.pop(f"{MACHINE}/runs.jsonl").splitlines()
    assert [json.loads(line)["commits"] for line in runs] == [[BASE], [HEAD]]
    assert after == {name: text for name, text in before.items() if not name.endswith("runs.jsonl")}
    assert "0 files and 0 lines" in accept(incoming, stored, MACHINE, COMMITS)


@pytest.mark.parametrize("commits", [{}, {BASE: 0}, {"d" * 40: 2}])
def test_results_of_other_commits_are_passed_over(folders: tuple[Path, Path], commits: dict[str, int]) -> None:
    """Neither their file nor a record that names them."""
    incoming, stored = folders
    before = contents(stored)
    assert "0 files and 0 lines" in accept(incoming, stored, MACHINE, commits)
    assert contents(stored) == before


def _of_another_compiler(folder: Path, **change: Any) -> Path:
    """Add results of a watched compiler to those that came; return the machine's folder."""
    path = folder / RESULT
    document = json.loads(path.read_text())
    named = {"env_name": f"{document['env_name']}-CUDA_TOOLKIT13.5.0", "env_vars": {"CUDA_TOOLKIT": "13.5.0"}}
    other = path.with_name(path.name.replace(".json", "-CUDA_TOOLKIT13.5.0.json"))
    other.write_text(json.dumps(document | named | change))
    return other.parent


def test_results_of_a_watched_compiler_are_taken(folders: tuple[Path, Path]) -> None:
    """Beside those of the default, which are no second environment of their commit; and the records of both."""
    incoming, stored = folders
    came = _of_another_compiler(incoming)
    line = {"commit": HEAD, "arch": "sm_90", "nvcc": "13.5.37", "cubins": {"k": "a" * 64}, "code": {"k": "b" * 64}}
    classes = {"code": "b" * 64, "instructions": {"global load 128": 1}}
    for file, each in ((record.CUBINS_FILE, line), (record.INSTRUCTIONS_FILE, classes)):
        (came / file).write_text(f"{json.dumps(each)}\n")
    assert accept(incoming, stored, MACHINE, COMMITS) == "gpu: 2 files and 3 lines taken"
    assert History(MACHINE, stored.parent, compiler="13.5.0").commits() == [HEAD]


@pytest.mark.parametrize(
    "change",
    [{"env_vars": {}}, {"env_vars": {"CUDA_TOOLKIT": "13.4.2"}}, {"env_vars": {"OTHER": "13.5.0"}}, {"env_name": "x"}],
)
def test_a_compiler_that_is_not_as_the_file_is_called(change: dict[str, Any], folders: tuple[Path, Path]) -> None:
    """Results that two places tell of different compilers are refused."""
    _of_another_compiler(folders[0], **change)
    with pytest.raises(RefusedError, match=f"{next(iter(change))} is"):
        accept(*folders, MACHINE, COMMITS)


#: A record that names an expected commit and one that is not.
FOREIGN = "d" * 40
SKIP = {"benchmark": "a.b", "reason": "why", "configurations": 1}


@pytest.mark.parametrize(
    "facts",
    [
        {"commits": [HEAD, FOREIGN]},
        {"commits": [FOREIGN, HEAD]},
        {"skipped": [SKIP | {"commit": HEAD}, SKIP | {"commit": FOREIGN}]},
        {"held_back": [{"commit": FOREIGN, "configuration": "a.b(x)", "reasons": ["power"]}]},
    ],
)
def test_a_record_that_names_a_foreign_commit_too_is_passed_over(
    facts: dict[str, Any], folders: tuple[Path, Path]
) -> None:
    """With the expected one, or within what it tells of it; the results are taken."""
    incoming, stored = folders
    (incoming / MACHINE / "runs.jsonl").write_text(json.dumps({**RUN, **facts}), encoding="utf-8")
    assert "1 files and 0 lines" in accept(incoming, stored, MACHINE, COMMITS)
    assert "0 files and 1 lines" in accept(incoming, stored, MACHINE, {**COMMITS, FOREIGN: 2})


def test_a_line_is_stored_as_one_line(folders: tuple[Path, Path]) -> None:
    """However it came: a carriage return, which JSON takes for a blank, would end it; and a torn end stays apart."""
    incoming, stored = folders
    runs = stored / MACHINE / "runs.jsonl"
    before = runs.read_text(encoding="utf-8")
    runs.write_text(before.rstrip("\n"), encoding="utf-8")
    (incoming / MACHINE / "runs.jsonl").write_bytes(json.dumps(RUN).replace(", ", ",\r").encode())
    assert "1 lines" in accept(incoming, stored, MACHINE, COMMITS)
    assert runs.read_text(encoding="utf-8") == f"{before}{json.dumps(RUN)}\n"
    assert "0 lines" in accept(incoming, stored, MACHINE, COMMITS)


def test_what_a_run_records_would_be_taken(tmp_path: Path) -> None:
    """The models know every fact that `kernelwatch.store.record` tells."""
    convert({**RUN, "before": dict.fromkeys(machine._VOLATILE)}, models.Run, "a run")
    made = RunRecord()
    code = ("a" * 64, "k float32", "sm_90", "b" * 64)
    for benchmark in ("a.A.time_b", "a.A.c"):
        made.begin(HEAD, benchmark, 1_700_000_000_000, ["'one', 'two'"])
    for place, (params, rounds) in enumerate({"one, two": [5, 7], "one, 2": [5, 5], "3": [5, 5]}.items()):
        numbers = {"a.A.time_b": [1.0] * sum(rounds)}
        one = Configuration(group="a.A", place=place, params=params, fingerprint="0" * 16, rounds=rounds)
        one.numbers, one.machine_code, one.stopped = numbers, code, ["sufficed", "limit"]
        made.note(HEAD, one, list(numbers))
    made.note(HEAD, Configuration(group="a.A", place=3, params="4", skipped="why <not>"), ["a.A.time_b"])
    made.note(HEAD, Configuration(group="a.A", place=4, params="5", failed="ValueError: <no>"), ["a.A.c"])
    made.note_checks(HEAD, [Checked("a.A(one)", 1.0, 0.01)])
    made.note_instructions({code[3]: {"integer": 3}})
    made.append_to(str(tmp_path), "m")
    lines = {file: record.read(tmp_path, "m", file) for file in record.RECORDS}
    (line,), (cubins,), (instructions,), (fingerprints,), _ = lines.values()
    assert (cubins["cubins"], cubins["code"]) == ({code[1]: code[0]}, {code[1]: code[3]})
    assert instructions == {"code": code[3], "instructions": {"integer": 3}}
    assert fingerprints["run"] == line["run"]
    assert {*line} >= {"run", "began", "processes", "selected", "skipped", "failed", "nvcc", "asv", "host", "ended"}
    for file, (each, *_) in ((file, found) for file, found in lines.items() if found):
        convert(each, record.RECORDS[file], file)
    counts = [record.counts(line, HEAD, "a.A.time_b", params, 10) for params in ("one, two", "3")]
    assert counts == [(5, 7), (5, 5)]


def test_files_nobody_asked_for_are_passed_over(folders: tuple[Path, Path]) -> None:
    """Other machines, other names, thresholds, and a list of benchmarks that is not to be taken."""
    incoming, stored = folders
    shutil.copytree(incoming / MACHINE, incoming / "other")
    for name in ("benchmarks.json", f"{MACHINE}/noise.jsonl", f"{MACHINE}/notes.txt", "index.html"):
        (incoming / name).write_text("anything", encoding="utf-8")
    accept(incoming, stored, MACHINE, COMMITS)
    own = (f"{BASE[:8]}-python3.11.json", "machine.json", "runs.jsonl")
    assert set(contents(stored)) == {"benchmarks.json", RESULT, *(f"{MACHINE}/{name}" for name in own)}
    assert (stored / "benchmarks.json").read_bytes() != b"anything"


def test_stored_results_are_replaced_only_if_asked(folders: tuple[Path, Path]) -> None:
    """The results of a commit are measured once."""
    incoming, stored = folders
    accept(incoming, stored, MACHINE, COMMITS)
    changed(incoming / RESULT, lambda document: document["results"][COUNT].__setitem__(0, [5.0, 5.0]))
    with pytest.raises(RefusedError, match=f"{RESULT}: has other numbers than results/ for {COUNT}; all stay"):
        accept(incoming, stored, MACHINE, COMMITS)
    accept(incoming, stored, MACHINE, COMMITS, replace=True)
    assert (stored / RESULT).read_bytes() == (incoming / RESULT).read_bytes()


@pytest.mark.parametrize("turn", range(4))
def test_an_error_leaves_whole_files(
    turn: int, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each is as it was or as it came; one line says what is wrong; and the next time the rest is taken."""
    incoming, stored = folders
    changed(incoming / "benchmarks.json", lambda document: document[COUNT].update(timeout=2))
    cubins = {"commit": HEAD, "arch": "sm_90", "cubins": {"x": "0" * 64}}
    (incoming / MACHINE / "cubins.jsonl").write_text(json.dumps(cubins), encoding="utf-8")
    before, turns, does = contents(stored), itertools.count(), os.fsync
    words = [str(incoming), str(stored), "--machine", MACHINE, "--commits", "HEAD", "--new-suite"]
    monkeypatch.setattr(command, "dates", lambda *_, **__: COMMITS)

    def failing(descriptor: int) -> None:
        if next(turns) == 2 * turn:  # a file, and its folder
            raise OSError("full")
        does(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        assert main(words) == 1
    assert capsys.readouterr().err == "refused: full\n"
    found = contents(stored)
    assert main(words) == 0
    after = contents(stored)
    assert found.items() <= {*before.items(), *after.items()}
    assert len(after.items() - found.items()) == 4 - turn


def test_new_benchmarks_come_with_their_list(folders: tuple[Path, Path]) -> None:
    """A benchmark that the stored list lacks is refused, unless the list may be replaced."""
    incoming, stored = folders
    changed(stored / "benchmarks.json", lambda document: document.pop(COUNT))
    with pytest.raises(RefusedError, match="is no benchmark of this suite"):
        accept(incoming, stored, MACHINE, COMMITS)
    accept(incoming, stored, MACHINE, COMMITS, new_suite=True)
    assert (stored / "benchmarks.json").read_bytes() == (incoming / "benchmarks.json").read_bytes()


@pytest.mark.parametrize("name", machines(ROOT / "results"))
def test_own_results_are_as_they_should_be(name: str) -> None:
    """What is stored here would be taken, also when the suite has grown: one value more, in another order."""
    folder = ROOT / "results"
    known = read(folder / name / "machine.json")
    loaded = checks.suite(folder / "benchmarks.json")
    benchmarks = {
        key: replace(each, params=[["'one more'", *reversed(axis)] for axis in each.params])
        for key, each in loaded.items()
    }
    history = History(name)
    stored = [each for commit in history.commits() for each in history.environments(commit).values()]
    whole = [each for each in stored if all(history.ran(each, key) == "" for key in each.get_all_result_keys())]
    assert len(whole) > 1
    for each in whole:
        path = folder / name / f"{each.commit_hash[:8]}-{each.env_name}.json"
        checks.results(path, path.name, known, benchmarks, each.commit_hash, each.date)
    for file in record.RECORDS:
        path = folder / name / file
        own = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        assert not own or checks.lines(path, file, folder / "none", history.commits()) == own


@pytest.mark.parametrize(
    ("params", "result", "refusal"),
    [
        ([["'one'", "'two'"]], [4.0, None], None),
        ([["'two'", "'one'"]], [None, 4.0], None),
        ([["'two'"]], [4.0], None),
        ([["'two'"]], [4.0, None], "result has not one value for each of 1 "),
        ([["'two'", "'two'"]], [4.0, 4.0], "params has values it may not have"),
        ([["'three'"]], [4.0], "params has values it may not have"),
        ([], [4.0], "params has not the benchmark's axes"),
        ([[1, 2]], [4.0, None], "Expected `str`, got `int`"),
    ],
)
def test_axes_may_be_shorter_or_in_another_order(
    params: Any, result: Any, refusal: str | None, folders: tuple[Path, Path]
) -> None:
    """As those of an older suite are; one value a configuration, each of a value that the suite knows, once."""
    incoming, stored = folders

    def over(document: Any) -> None:
        columns = document["result_columns"]
        row = document["results"][COUNT]
        row[columns.index("params")], row[columns.index("result")] = params, result
        del row[columns.index("duration") + 1 :]

    changed(incoming / RESULT, over)
    if refusal is None:
        assert "1 files" in accept(incoming, stored, MACHINE, COMMITS)
    else:
        with pytest.raises(RefusedError, match=refusal):
            accept(incoming, stored, MACHINE, COMMITS)


@pytest.mark.history
def test_command(folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line on what was taken, or on what was refused; revisions are git's; a dash makes no option of them."""
    incoming, stored = (str(folder) for folder in folders)
    words = [incoming, stored, "--machine", MACHINE, "--commits"]
    commit = dates(["HEAD"], ROOT, ancestors=False)
    assert len(commit) == 1
    (file,) = (ROOT / "results" / "nvidia-h200").glob("ee4e49ae-*.json")
    asv = json.loads(file.read_bytes())
    assert dates(["ee4e49ae"], ROOT, ancestors=False) == {asv["commit_hash"]: asv["date"]}
    assert commit.items() < dates(["HEAD"], ROOT, ancestors=True).items()
    assert main([*words, "HEAD", "HEAD~1"], ROOT) == 0
    assert "0 files and 0 lines taken" in capsys.readouterr().out
    for revision in ("nope", "--output=/tmp/x"):
        assert main([*words[:-1], f"--commits={revision}"], ROOT) == 1
        assert capsys.readouterr().err.startswith(f"refused: {revision}: git log in {ROOT} ended with 128: fatal")
    (folders[0] / MACHINE / "machine.json").write_text('{"a\\n::error::b": 1')
    assert main([*words, "HEAD"], ROOT) == 1
    assert capsys.readouterr().err.count("\n") == 1
