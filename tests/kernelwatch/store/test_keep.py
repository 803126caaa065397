"""`make keep`: local results become stored ones; what is stored already is never replaced unasked, and none is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.store import folders, samples, storing
from kernelwatch.store.merging import DifferingError
from tests.incoming import MACHINE, RESULT, arrived, changed, contents
from tests.stored import COUNT, TIME

HERE, RECORD = f"{MACHINE}/machine.json", f"{MACHINE}/runs.jsonl"


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stored results of one commit; local ones of that commit and another, a record, and what no rule is about."""
    came, stored = arrived(tmp_path)
    local = folders.local(stored)
    came.rename(local)
    (local / MACHINE / "noise.jsonl").write_text("{}\n", encoding="utf-8")
    return stored


@pytest.mark.parametrize("is_known", [True, False])
def test_all_is_moved(is_known: bool, stored: Path) -> None:
    """Results, records and noise are in the stored folder, whether it knew the machine or not; none is local."""
    local = folders.local(stored)
    if not is_known:
        shutil.rmtree(stored / MACHINE)
    before, came = contents(stored), contents(local)
    folders.keep(MACHINE, stored)
    kept = contents(stored)
    assert kept[RECORD] == before.get(RECORD, b"") + came[RECORD]
    names = {name for name in came if name.startswith(f"{MACHINE}/")} - {RECORD}
    assert {name: kept[name] for name in names} == {name: came[name] for name in names}
    assert not (local / MACHINE).exists()
    assert folders.machines(stored) == [MACHINE]


#: What is wrong -> how it comes about, and what is said.
WRONG: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "another machine of that name": (
        lambda local, _: changed(local / HERE, lambda facts: facts.update(ram="1")),
        "is not the machine of",
    ),
    "torn": (lambda local, _: (local / RESULT).write_text('{"comm'), "is not JSON"),
}


@pytest.mark.parametrize(("spoil", "said"), WRONG.values(), ids=WRONG)
def test_what_is_refused_stays(
    spoil: Callable[[Path, Path], object], said: str, stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says why; stored and local results are as they were."""
    local = folders.local(stored)
    spoil(local, stored)
    before = contents(stored), contents(local)
    with pytest.raises(ValueError, match=said):
        folders.keep(MACHINE, stored)
    assert (contents(stored), contents(local)) == before
    assert folders.main(["--machine", MACHINE], stored) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("refused: ")


def _other(result: Any) -> None:
    """Let a commit's file have one benchmark of another name, taken at another time."""
    result["results"]["track_counted.X.track_lines"] = result["results"].pop(COUNT)
    result["results"][TIME][3] = 12345


@pytest.mark.parametrize("is_other", [True, False])
def test_results_of_one_commit_are_united(is_other: bool, stored: Path) -> None:
    """A pull brought another benchmark of a commit that was measured here; where numbers differ, `replace` is asked."""
    local = folders.local(stored)
    shutil.copy(local / RESULT, stored / RESULT)
    changed(stored / RESULT, _other)
    if is_other:
        changed(stored / RESULT, lambda result: result["results"][TIME][0].reverse())
    before, came = (samples.read(folder / RESULT)["results"] for folder in (stored, local))
    with folders.joined(stored) as joined:
        read = samples.read(joined / RESULT)["results"]
    if is_other:
        with pytest.raises(DifferingError, match=f"has other numbers than .* for {TIME}; --replace"):
            folders.keep(MACHINE, stored)
        assert samples.read(stored / RESULT)["results"].keys() == before.keys()
    assert folders.main(["--replace"] if is_other else [], stored) == 0
    kept = samples.read(stored / RESULT)["results"]
    assert set(kept) == set(read) == {*before, *came}
    expected = before | (came if is_other else {COUNT: came[COUNT]})
    assert str(sorted(kept.items())) == str(sorted(expected.items()))
    assert not (local / MACHINE).exists()


def test_thresholds(stored: Path) -> None:
    """Those of the last selftest take the place of the stored ones."""
    kept = '{"same": 1}\n{"here": 1}\n'
    (folders.local(stored) / MACHINE / "noise.jsonl").write_text(kept, encoding="utf-8")
    (stored / MACHINE / "noise.jsonl").write_text('{"same": 1}\n{"other": 1}\n', encoding="utf-8")
    folders.keep(MACHINE, stored)
    assert (stored / MACHINE / "noise.jsonl").read_text() == kept
    assert not (folders.local(stored) / MACHINE).exists()


def test_command(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All machines; then there is nothing left to keep."""
    assert folders.main([], stored) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{MACHINE}: 1 commits taken",
        "to store them: git add results && git commit",
    ]
    assert folders.main([], stored) == 0
    assert capsys.readouterr().out == "nothing to keep: results-local has no results\n"
    assert storing.LOCK not in {path.name for path in stored.rglob("*/*")}
