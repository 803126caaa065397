"""Where results of a machine are: stored or local, never mixed, none lost."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from runner import folders

SUITE = "benchmarks.json"


def _write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"of": folder.name, "name": name}), encoding="utf-8")


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Two stored machines, two local ones; `both` came by a pull after it was measured here."""
    stored = tmp_path / "results"
    _write(stored, SUITE, "known/machine.json", "known/1-3.json", "both/machine.json", "both/1-3.json")
    _write(folders.local(stored), SUITE, "new/machine.json", "new/1-3.json", "new/runs.jsonl")
    _write(folders.local(stored), "both/machine.json", "both/1-3.json", "both/2-3.json", "torn/1-3.json")
    return stored


@pytest.mark.parametrize(
    ("machine", "folder"),
    [("known", "results"), ("both", "results"), ("new", "results-local"), ("never seen", "results-local")],
)
def test_a_machines_folder(machine: str, folder: str, stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what the stored results know is written to them; a variable names one folder for all."""
    assert folders.of(machine, stored) == stored.with_name(folder)
    monkeypatch.setenv(folders.RESULTS, "elsewhere")
    assert folders.of(machine, stored) == Path("elsewhere")


def test_machines(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once."""
    assert folders.machines(stored) == ["both", "known", "new"]
    monkeypatch.setenv(folders.RESULTS, str(folders.local(stored)))
    assert folders.machines(stored) == ["both", "new"]


def test_joined(stored: Path, caplog: pytest.LogCaptureFixture) -> None:
    """All files of both but the local ones of a machine that is stored: these are named, and left alone."""
    before = {path: path.read_bytes() for path in stored.parent.rglob("*.json*")}
    with folders.joined(stored) as joined:
        found = {str(path.relative_to(joined)): json.loads(path.read_text())["of"] for path in joined.rglob("*.json*")}
    del found[SUITE]
    assert found == {
        "known/machine.json": "results",
        "known/1-3.json": "results",
        "both/machine.json": "results",
        "both/1-3.json": "results",
        "new/machine.json": "results-local",
        "new/1-3.json": "results-local",
        "new/runs.jsonl": "results-local",
        "torn/1-3.json": "results-local",
    }
    (told,) = caplog.messages
    assert told.startswith(f"{folders.local(stored) / 'both'} is left out: ")
    assert {path: path.read_bytes() for path in stored.parent.rglob("*.json*")} == before
    assert not joined.exists()


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
