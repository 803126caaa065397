"""Where results are: runs write local ones, what is read is both, and none is lost."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.store import folders

SUITE = "benchmarks.json"
COLUMNS = ["result", "params", "version"]


def _results(**benchmarks: Any) -> str:
    durations = {f"<{name}>": 1 for name in benchmarks}
    return json.dumps({"results": benchmarks, "durations": durations, "result_columns": COLUMNS})


def _write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"of": folder.name, "name": name}), encoding="utf-8")


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Two stored machines, three local ones: one has results of both, another shares but a name with the stored one."""
    stored = tmp_path / "results"
    _write(stored, SUITE, "known/machine.json", "known/1-3.json", "both/machine.json", "both/1-3.json")
    _write(folders.local(stored), SUITE, "new/machine.json", "new/1-3.json", "new/runs.jsonl")
    _write(
        folders.local(stored), "both/1-3.json", "both/2-3.json", "torn/1-3.json", "known/machine.json", "known/2-3.json"
    )
    shutil.copy(stored / "both/machine.json", folders.local(stored) / "both")
    return stored


def test_a_run_writes_to_the_local_folder(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is stored; both are read, from wherever one begins. A variable names one folder for all."""
    local = folders.local(stored)
    assert (stored.name, local.name, folders.written(stored)) == ("results", "results-local", local)
    assert folders.places(stored) == folders.places(local) == [stored, local]
    assert folders.machines(stored) == ["both", "known", "new"], "each once"
    monkeypatch.setenv(folders.RESULTS, str(local))
    assert folders.written(stored) == local
    assert folders.places(stored) == folders.places(local) == [local]
    assert folders.machines(stored) == ["both", "known", "new"]


def test_joined(stored: Path, caplog: pytest.LogCaptureFixture) -> None:
    """All files of both, but the local ones of another machine of a stored one's name: these are named, and left."""
    before = {path: path.read_bytes() for path in stored.parent.rglob("*.json*")}
    with folders.joined(stored) as joined:
        found = {str(path.relative_to(joined)): json.loads(path.read_text())["of"] for path in joined.rglob("*.json*")}
    del found[SUITE]
    local = ("both/1-3.json", "both/2-3.json", "new/machine.json", "new/1-3.json", "new/runs.jsonl", "torn/1-3.json")
    stays = ("known/machine.json", "known/1-3.json", "both/machine.json")
    assert found == dict.fromkeys(stays, "results") | dict.fromkeys(local, "results-local")
    (told,) = caplog.messages
    assert told.startswith(f"{folders.local(stored) / 'known'} is left out: ")
    assert {path: path.read_bytes() for path in stored.parent.rglob("*.json*")} == before
    assert not joined.exists()


#: What is stored and what is local of one file -> what is read.
UNITED: dict[str, tuple[str, str, str, str]] = {
    "a benchmark each": ("1-3.json", _results(a=[1]), _results(b=[2]), _results(a=[1], b=[2])),
    "the local one counts": ("1-3.json", _results(a=[1], b=[1]), _results(a=[2]), _results(a=[2], b=[1])),
    "a torn local file": ("1-3.json", _results(a=[1]), '{"resu', '{"resu'),
    "a torn stored file": ("1-3.json", '{"resu', _results(a=[1]), _results(a=[1])),
    "lines, each once": ("runs.jsonl", '{"a":1}\n{"b":1}\n', '{"b":1}\n{"c":1}\n', '{"a":1}\n{"b":1}\n{"c":1}\n'),
    "no end of a line": ("noise.jsonl", '{"a":1}', '{"c":1}\n{"tor', '{"a":1}\n{"c":1}\n{"tor\n'),
}


@pytest.mark.parametrize(("name", "before", "after", "expected"), UNITED.values(), ids=UNITED)
def test_a_file_that_both_have(name: str, before: str, after: str, expected: str, stored: Path) -> None:
    """Benchmarks and lines of both; a file that cannot be united is left to whoever reads it."""
    for folder, text in ((stored, before), (folders.local(stored), after)):
        (folder / "both" / name).write_text(text, encoding="utf-8")
    with folders.joined(stored) as joined:
        text = (joined / "both" / name).read_text(encoding="utf-8")
    assert text == expected or json.loads(text) == json.loads(expected)


@pytest.mark.parametrize("newer", ["results", "results-local"])
def test_benchmarks_are_those_of_the_last_checkout(newer: str, stored: Path) -> None:
    """A run rewrites the local list, a pull the stored one: the newer describes what there is."""
    for folder in (stored, folders.local(stored)):
        moment = 1000 + (folder.name == newer)
        os.utime(folder / SUITE, (moment, moment))
    with folders.joined(stored) as joined:
        assert json.loads((joined / SUITE).read_text())["of"] == newer


def test_nothing_local(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder itself is read; so is the one that a variable names."""
    monkeypatch.setenv(folders.RESULTS, str(folders.local(stored)))
    with folders.joined(stored) as joined:
        assert joined == folders.local(stored)
    monkeypatch.delenv(folders.RESULTS)
    folders.local(stored).rename(stored.with_name("elsewhere"))
    with folders.joined(stored) as joined:
        assert joined == stored
