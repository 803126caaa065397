"""What shards of a commit measured, merged: the file that one run of all configurations would have left."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from kernelwatch.fleet.plan import Stored
from kernelwatch.fleet.task import Outcome
from kernelwatch.store import record
from kernelwatch.store.reading import UnreadableError
from tests.incoming import MACHINE, RUN
from tests.stored import BASE, COUNT, HEAD, TIME, Suite, documents, samples, write

pytestmark = pytest.mark.fleet

ONE, TWO = "GPU-1", "GPU-2"
NAN = float("nan")
WHOLE: Suite = {
    commit: {
        TIME: {"one": samples(seconds), "two": samples(2 * seconds), "three": NAN},
        COUNT: {"one": 4.0, "two": None, "three": NAN},
    }
    for commit, seconds in ((BASE, 1.0), (HEAD, 1.5))
}


def _files(results: Path) -> dict[str, bytes]:
    return {str(path.relative_to(results)): path.read_bytes() for path in results.rglob("*") if path.is_file()}


def _part(folder: Path, suite: Suite, cases: set[str], device: str) -> Outcome:
    """What a worker returns that measured some cases."""
    part: Suite = {
        commit: {
            name: {case: value if case in cases else NAN for case, value in rows.items()}
            for name, rows in benchmarks.items()
        }
        for commit, benchmarks in suite.items()
    }
    folder.mkdir()
    results = write(folder, part) / "results"
    names = {name.partition("@")[0] for benchmarks in suite.values() for name in benchmarks}
    selected = {name: [f"'{case}'" for case in sorted(cases)] for name in sorted(names)}
    for commit in suite:
        line = {**RUN, "commits": [commit], "before": {"uuid": device}, "selected": selected}
        path = results / MACHINE / f"{commit[:8]}-python3.11.{record.FILE}"
        path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    return Outcome(device, _files(results))


def _taken(stored: Path, *parts: Outcome) -> Path:
    from kernelwatch.fleet import engine

    for outcome in parts:
        engine.merge(outcome, MACHINE, stored)
    return stored


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 0, 1), (1, 0, 1)])
def test_shards_together_are_the_whole(tmp_path: Path, order: tuple[int, ...]) -> None:
    """In any order, and if one comes twice."""
    cases = [{"one", "three"}, {"two"}]
    parts = [_part(tmp_path / f"{n}", WHOLE, each, f"GPU-{n + 1}") for n, each in enumerate(cases)]
    stored = _taken(tmp_path / "stored", *(parts[n] for n in order))
    (tmp_path / "whole").mkdir()
    assert documents(stored) == documents(write(tmp_path / "whole", WHOLE) / "results")
    runs = record.read(stored, MACHINE)
    assert sorted((run["before"]["uuid"], *run["commits"], *run["selected"][TIME]) for run in runs) == [
        (ONE, BASE, "'one'", "'three'"),
        (ONE, HEAD, "'one'", "'three'"),
        (TWO, BASE, "'two'"),
        (TWO, HEAD, "'two'"),
    ], "no record is counted twice"
    found = Stored(stored, MACHINE)
    assert found.has(HEAD, TIME) == {"'one'", "'two'", "'three'"}
    assert found.last()[TIME, "'one'"] == ONE
    assert found.last()[TIME, "'two'"] == TWO


def test_what_was_not_measured_is_known(tmp_path: Path) -> None:
    """Its value is NaN, as of what asv skipped; the record tells the two apart."""
    stored = _taken(tmp_path / "stored", _part(tmp_path / "0", WHOLE, {"one", "three"}, ONE))
    assert Stored(stored, MACHINE).has(HEAD, TIME) == {"'one'", "'three'"}


def test_another_version(tmp_path: Path) -> None:
    """Its numbers mean something else: they are to be measured again."""
    both: Suite = {BASE: {f"{COUNT}@1": {"one": 4.0}}, HEAD: {f"{COUNT}@2": {"one": 4.0}}}
    found = Stored(write(tmp_path, both) / "results", MACHINE)
    assert [found.has(commit, COUNT) for commit in (BASE, HEAD)] == [set(), {"'one'"}]


def test_whose_series_they_are(tmp_path: Path) -> None:
    """The GPU's that measured them last; a run began with some benchmarks only."""
    moments = [datetime.fromtimestamp(second, timezone.utc) for second in (1, 2)]
    began = {(HEAD, TIME): moments[0], (HEAD, COUNT): moments[1]}
    results = write(tmp_path, {HEAD: WHOLE[HEAD]}, began=began) / "results"
    one = {**RUN, "commits": [HEAD], "before": {"uuid": ONE}, "began": {HEAD: {TIME: 1000, COUNT: 1000}}}
    two = {**one, "before": {"uuid": TWO}, "began": {HEAD: {COUNT: 2000}}}
    lines = "".join(json.dumps(line) + "\n" for line in (one, two))
    (results / MACHINE / record.FILE).write_text(lines, encoding="utf-8")
    assert Stored(results, MACHINE).last() == {
        (name, f"'{case}'"): uuid for name, uuid in ((TIME, ONE), (COUNT, TWO)) for case in ("one", "two")
    }


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        (f"{MACHINE}/machine.json", b'{"machine": "another"}', "is not the machine of"),
        (f"{MACHINE}/{HEAD[:8]}-python3.11.json", b"{}", "missing required field"),
        ("../outside.json", b"{}", "no name"),
    ],
)
def test_what_is_wrong_is_refused(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    """And nothing of the shard is taken; a worker's files stay in their folder."""
    stored = _taken(tmp_path / "stored", _part(tmp_path / "0", {BASE: WHOLE[BASE]}, {"one"}, ONE))
    before, outcome = _files(stored), _part(tmp_path / "1", WHOLE, {"two"}, TWO)
    with pytest.raises(UnreadableError, match=why):
        _taken(stored, Outcome(TWO, {**outcome.files, name: content}))
    assert _files(stored) == before
    assert not list(tmp_path.rglob("outside.json"))
