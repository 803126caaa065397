"""What shards of a commit measured, merged: the file that one run of all configurations would have left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.fleet import merge
from kernelwatch.fleet.shards import Outcome, Shard
from kernelwatch.fleet.stored import Stored
from kernelwatch.store import folders, record
from kernelwatch.store.accept import command as accepting
from kernelwatch.store.accept.refusal import RefusedError
from kernelwatch.store.samples import unpack
from tests.incoming import MACHINE, RUN, changed
from tests.stored import BASE, COUNT, HEAD, TIME, Suite, samples, write

ONE, TWO = "GPU-1", "GPU-2"
NAN = float("nan")
WHOLE: Suite = {
    commit: {
        TIME: {"one": samples(seconds), "two": samples(2 * seconds), "three": NAN},
        COUNT: {"one": 4.0, "two": None, "three": NAN},
    }
    for commit, seconds in ((BASE, 1.0), (HEAD, 1.5))
}


def _outcome(folder: Path, suite: Suite, cases: set[str], device: str) -> Outcome:
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
    line = {**RUN, "commits": sorted(suite), "before": {"uuid": device}, "selected": selected}
    (results / MACHINE / record.FILE).write_text(json.dumps(line) + "\n", encoding="utf-8")
    return Outcome(device, _files(results))


def _files(results: Path) -> dict[str, bytes]:
    return {str(path.relative_to(results)): path.read_bytes() for path in results.rglob("*") if path.is_file()}


def _shard(*cases: str, names: tuple[str, ...] = (TIME, COUNT), commits: tuple[str, ...] = (BASE, HEAD)) -> Shard:
    return Shard(commits, dict.fromkeys(names, tuple(f"'{case}'" for case in cases)))


@pytest.fixture(autouse=True)
def dates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commits have no repository."""
    monkeypatch.setattr(
        accepting, "dates", lambda commits, *_, **__: {each: (BASE, HEAD).index(each) for each in commits}
    )


def _documents(folder: Path) -> dict[str, Any]:
    """All results, without the dates of measuring."""
    found = {}
    for path in sorted(folder.glob(f"{MACHINE}/????????-*.json")):
        found[path.name] = unpack(json.loads(path.read_text(), parse_constant=str))
        for row in found[path.name]["results"].values():
            row[3] = None
    return found


def _taken(tmp_path: Path, *parts: tuple[Shard, Outcome]) -> Path:
    stored = tmp_path / "stored"
    for shard, outcome in parts:
        merge.merge(shard, outcome, stored, tmp_path)
    return stored


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 0, 1), (1, 0, 1)])
def test_shards_together_are_the_whole(tmp_path: Path, order: tuple[int, ...]) -> None:
    """In any order, and if one comes twice."""
    cases = [{"one", "three"}, {"two"}]
    shard = [_shard(*sorted(each)) for each in cases]
    outcomes = [_outcome(tmp_path / f"{n}", WHOLE, each, f"GPU-{n + 1}") for n, each in enumerate(cases)]
    stored = _taken(tmp_path, *((shard[n], outcomes[n]) for n in order))
    (tmp_path / "whole").mkdir()
    assert _documents(stored) == _documents(write(tmp_path / "whole", WHOLE) / "results")
    runs = record.read(stored, MACHINE)
    assert len(runs) == 2, "no record is counted twice"
    assert {run["before"]["uuid"]: sorted(run["selected"][TIME]) for run in runs} == {
        ONE: ["'one'", "'three'"],
        TWO: ["'two'"],
    }
    found = Stored(stored, MACHINE)
    assert found.has(HEAD, TIME) == {"'one'", "'two'", "'three'"}
    assert found.last()[TIME, "'one'"] == ONE
    assert found.last()[TIME, "'two'"] == TWO


def test_stored_configurations_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pull brought numbers of a commit that has local ones: the shard adds its own to these, and all are read."""
    monkeypatch.delenv(folders.RESULTS, raising=False)
    local = tmp_path / "results-local"
    stored = write(tmp_path, {BASE: {COUNT: {"one": 4.0, "two": 5.0, "three": 6.0}}}) / "results"
    parts: list[tuple[str, str, Suite]] = [
        (TIME, "one", {BASE: {TIME: WHOLE[BASE][TIME]}}),
        (COUNT, "one", {BASE: {COUNT: {"one": 7.0, "two": NAN, "three": NAN}}}),
    ]
    for name, case, suite in parts:
        outcome = _outcome(tmp_path / name, suite, {case}, ONE)
        merge.merge(_shard(case, names=(name,), commits=(BASE,)), outcome, local, tmp_path)
    (document,) = _documents(local).values()
    assert document["results"][COUNT][0] == [7.0, "NaN", "NaN"]
    with folders.joined(stored) as joined:
        (document,) = _documents(joined).values()
    assert document["results"][COUNT][0] == [7.0, 5.0, 6.0]
    assert set(document["results"]) == {TIME, COUNT}


@pytest.mark.parametrize(
    ("old", "new", "united"),
    [
        ({"one": 4.0, "two": 5.0}, {"three": NAN, "two": NAN, "one": 7.0}, ["NaN", 5.0, 7.0]),
        ({"one": 4.0, "two": None}, {"one": NAN, "two": NAN, "three": 6.0}, [4.0, None, 6.0]),
    ],
)
def test_stored_configurations_of_other_axes_stay(tmp_path: Path, old: Any, new: Any, united: list[Any]) -> None:
    """Their places in a row are others than those of the same configurations today."""
    parts = [(old, set(old)), (new, {case for case, value in new.items() if value == value})]
    done = [
        (_shard(*cases, names=(COUNT,), commits=(BASE,)), _outcome(tmp_path / f"{n}", {BASE: {COUNT: one}}, cases, ONE))
        for n, (one, cases) in enumerate(parts)
    ]
    (document,) = _documents(_taken(tmp_path, *done)).values()
    assert document["results"][COUNT][0] == united


def test_what_was_not_measured_is_known(tmp_path: Path) -> None:
    """Its value is NaN, as of what asv skipped; the record tells the two apart."""
    stored = _taken(tmp_path, (_shard("one", "three"), _outcome(tmp_path / "0", WHOLE, {"one", "three"}, ONE)))
    assert Stored(stored, MACHINE).has(HEAD, TIME) == {"'one'", "'three'"}


def test_what_another_version_measured_is_not_stored(tmp_path: Path) -> None:
    """Its numbers mean something else: they are to be measured again."""
    both: Suite = {BASE: {f"{COUNT}@1": {"one": 4.0}}, HEAD: {f"{COUNT}@2": {"one": 4.0}}}
    found = Stored(write(tmp_path, both) / "results", MACHINE)
    assert [found.has(commit, COUNT) for commit in (BASE, HEAD)] == [set(), {"'one'"}]


def test_values_of_another_version_are_not_kept(tmp_path: Path) -> None:
    """Of one benchmark all numbers are of one version."""
    old, new = (dict[str, Any]({BASE: {f"{COUNT}@{version}": {"one": 4.0, "two": 5.0}}}) for version in (1, 2))
    whole, part = (_shard(*cases, names=(COUNT,), commits=(BASE,)) for cases in (("one", "two"), ("one",)))
    first = whole, _outcome(tmp_path / "0", old, {"one", "two"}, ONE)
    stored = _taken(tmp_path, first, (part, _outcome(tmp_path / "1", new, {"one"}, ONE)))
    (document,) = _documents(stored).values()
    assert document["results"][COUNT][0] == [4.0, "NaN"]


def test_whose_series_they_are(tmp_path: Path) -> None:
    """The GPU's that measured them last; a run began with some benchmarks only."""
    results = write(tmp_path, {HEAD: WHOLE[HEAD]}) / "results"
    one = {**RUN, "commits": [HEAD], "before": {"uuid": ONE}}
    two = {**one, "before": {"uuid": TWO}, "began": {HEAD: {COUNT: 0}}}
    lines = "".join(json.dumps(line) + "\n" for line in (one, two))
    (results / MACHINE / record.FILE).write_text(lines, encoding="utf-8")
    assert Stored(results, MACHINE).last() == {
        (name, f"'{case}'"): uuid for name, uuid in ((TIME, ONE), (COUNT, TWO)) for case in WHOLE[HEAD][name]
    }


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda folder: (folder / f"{HEAD[:8]}-python3.11.json").unlink(), "has no results of"),
        (lambda folder: changed(folder / f"{HEAD[:8]}-python3.11.json", _one_more), "has values it may not have"),
        (lambda folder: (folder / "machine.json").unlink(), "not the results of one machine"),
    ],
)
def test_what_is_wrong_is_refused(tmp_path: Path, spoil: Any, why: str) -> None:
    """And nothing of the shard is taken."""
    outcome = _outcome(tmp_path / "0", WHOLE, {"one"}, ONE)
    results = tmp_path / "0" / "results"
    spoil(results / MACHINE)
    with pytest.raises(RefusedError, match=why):
        _taken(tmp_path, (_shard("one"), Outcome(outcome.device, _files(results))))
    assert not list((tmp_path / "stored").glob("*/????????-*.json"))


def _one_more(document: Any) -> None:
    document["results"][TIME][1][0].append("'four'")


def test_a_name_outside_is_refused(tmp_path: Path) -> None:
    """A worker's files stay in their folder."""
    with pytest.raises(RefusedError, match="no name"):
        _taken(tmp_path, (_shard("one"), Outcome(ONE, {"../outside.json": b"{}"})))
    assert not (tmp_path / "outside.json").exists()
