"""A stored history that is torn or made up: what cannot be read is named and left out, the rest is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from asv.results import iter_results
from asv.util import load_json

from kernelwatch.show.site.readable import readable
from kernelwatch.store.results import machines
from tests.incoming import MACHINE, RESULT, RUN, arrived, changed, contents
from tests.stored import BASE, COUNT, HEAD, TIME

RUNS = f"{MACHINE}/runs.jsonl"


#: What a result of a commit holds that no run stores; tests.faults.test_hostile has all that is refused.
MADE_UP = {
    "no results": lambda document: document.pop("results"),
    "a number that no machine reaches": lambda document: document["results"][COUNT][0].__setitem__(0, 1e308),
    "more values than configurations": lambda document: document["results"][TIME][0].append(1.0),
    "another machine": lambda document: document["params"].update(machine="x"),
}

TORN = {"empty": b"", "half": b'{"results": {', "no text": b"\xff", "no object": b"[]", "deep": b"[" * 100_000}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Results of two commits of one machine."""
    return arrived(tmp_path)[0]


def _expect(folder: Path, named: str, commits: set[str], caplog: pytest.LogCaptureFixture) -> None:
    before = contents(folder)
    with readable(folder) as left:
        assert {found.commit_hash for found in iter_results(str(left))} == commits
        for name in machines(left):
            assert load_json(str(left / name / "machine.json"))["machine"] == name
    assert [message.split(" is left out: ")[0] for message in caplog.messages] == [str(folder / named)]
    assert contents(folder) == before


@pytest.mark.parametrize("change", MADE_UP.values(), ids=MADE_UP)
def test_made_up(change: Any, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The other commit is published."""
    changed(folder / RESULT, change)
    _expect(folder, RESULT, {BASE}, caplog)


@pytest.mark.parametrize("content", TORN.values(), ids=TORN)
def test_torn(content: bytes, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A result leaves the other commit, a machine's facts leave the other machine."""
    (folder / RESULT).write_bytes(content)
    _expect(folder, RESULT, {BASE}, caplog)
    caplog.clear()
    (folder / "other").mkdir()
    (folder / "other" / "machine.json").write_bytes(content)
    (folder / RESULT).unlink()
    _expect(folder, "other/machine.json", {BASE}, caplog)


@pytest.mark.parametrize("line", ["{", "[]", "{}", "\ufffd", json.dumps(RUN | {"nvcc": ["a"]})])
def test_a_record_is_left_out_by_line(line: str, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The lines around it stay."""
    whole = (folder / RUNS).read_text()
    (folder / RUNS).write_text(f"{whole}{line}\n{whole}")
    with readable(folder) as left:
        assert (left / RUNS).read_text() == whole * 2
        assert {found.commit_hash for found in iter_results(str(left))} == {BASE, HEAD}
    assert [message.split(" is left out: ")[0] for message in caplog.messages] == [f"{folder / RUNS}, line 2"]


def test_what_can_be_read_is_published_as_it_is(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """From its own place, without a word."""
    with (folder / RUNS).open("a") as file:
        file.write(f"\n{json.dumps(RUN)}\n")
    with readable(folder) as left:
        assert left == folder
    assert not caplog.messages
