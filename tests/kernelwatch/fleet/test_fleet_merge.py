"""What shards of a commit measured, merged: the file that one run of all configurations would have left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.fleet import agreement, merge, shards
from kernelwatch.fleet.shards import Outcome, Shard
from kernelwatch.fleet.stored import Last, Stored
from kernelwatch.store import folders, jsonl, record
from kernelwatch.store.accept import __main__ as accepting
from kernelwatch.store.accept.refusal import RefusedError
from tests.incoming import MACHINE, RUN, changed
from tests.stored import BASE, COUNT, HEAD, TIME, Suite, samples, write

ONE, TWO = "GPU-1", "GPU-2"
WHOLE: Suite = {
    commit: {
        TIME: {"one": samples(seconds), "two": samples(2 * seconds), "three": float("nan")},
        COUNT: {"one": 4.0, "two": None, "three": float("nan")},
    }
    for commit, seconds in ((BASE, 1.0), (HEAD, 1.5))
}
NAN = float("nan")


def _outcome(folder: Path, suite: Suite, cases: set[str], device: str, factor: float = 1.0) -> Outcome:
    """What a worker returns that measured some cases, on a GPU that is slower by a factor."""
    part: Suite = {
        commit: {
            name: {
                case: ([factor * each for each in value] if isinstance(value, list) else value)
                if case in cases
                else NAN
                for case, value in rows.items()
            }
            for name, rows in benchmarks.items()
        }
        for commit, benchmarks in suite.items()
    }
    folder.mkdir()
    results = write(folder, part) / "results"
    line = {**RUN, "commits": sorted(suite), "before": {"uuid": device}}
    (results / MACHINE / record.FILE).write_text(json.dumps(line) + "\n", encoding="utf-8")
    for commit in suite:
        prints = {TIME.rpartition(".")[0]: dict.fromkeys(sorted(cases), "0" * 16)}
        found = {
            "commit": commit,
            "started": RUN["started"],
            "ended": RUN["ended"],
            "fingerprints": prints,
            "reused": {},
        }
        jsonl.append(results / MACHINE / record.FINGERPRINTS_FILE, found)
    files = (path for path in results.rglob("*") if path.is_file())
    return Outcome(device, {str(path.relative_to(results)): path.read_bytes() for path in files})


def _shard(*cases: str, commits: tuple[str, ...] = (BASE, HEAD), **more: Any) -> Shard:
    texts = tuple(f"'{case}'" for case in cases)
    return Shard(commits, {TIME: texts, COUNT: texts}, **more)


@pytest.fixture(autouse=True)
def dates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commits have no repository."""
    monkeypatch.setattr(accepting, "dates", lambda commits, *_, **__: {BASE: 0, HEAD: 1})


def _documents(folder: Path) -> dict[str, Any]:
    """All results, without the dates of measuring."""
    found = {}
    for path in sorted(folder.glob(f"{MACHINE}/????????-*.json")):
        found[path.name] = json.loads(path.read_text(), parse_constant=str)
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
    assert found.last()[TIME, "'one'"] == Last(ONE, HEAD)
    assert found.last()[TIME, "'two'"] == Last(TWO, HEAD)


def test_stored_configurations_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pull brought numbers of a commit that has local ones: a shard's row begins with both."""
    monkeypatch.delenv(folders.RESULTS, raising=False)
    local = tmp_path / "results-local"
    write(tmp_path, {BASE: {COUNT: {"one": 4.0, "two": 5.0, "three": 6.0}}})
    merge.merge(
        Shard((BASE,), {TIME: ("'one'",)}),
        _outcome(tmp_path / "0", {BASE: {TIME: WHOLE[BASE][TIME]}}, {"one"}, ONE),
        local,
        tmp_path,
    )
    (path,) = (local / MACHINE).glob("????????-*.json")
    changed(path, lambda document: document["results"].pop(COUNT, None))
    part: Suite = {BASE: {COUNT: {"one": 7.0, "two": NAN, "three": NAN}}}
    merge.merge(Shard((BASE,), {COUNT: ("'one'",)}), _outcome(tmp_path / "1", part, {"one"}, ONE), local, tmp_path)
    (document,) = _documents(local).values()
    assert document["results"][COUNT][0] == [7.0, 5.0, 6.0]
    assert set(document["results"]) == {TIME, COUNT}


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
    whole, part = (
        Shard((BASE,), {COUNT: tuple(f"'{case}'" for case in cases)}) for cases in (("one", "two"), ("one",))
    )
    stored = _taken(
        tmp_path,
        (whole, _outcome(tmp_path / "0", old, {"one", "two"}, ONE)),
        (part, _outcome(tmp_path / "1", new, {"one"}, ONE)),
    )
    (document,) = _documents(stored).values()
    assert document["results"][COUNT][0] == [4.0, "NaN"]


def test_the_newest_commit_of_a_run_is_the_last(tmp_path: Path) -> None:
    """It may have benchmarks that the others lack."""
    results = write(tmp_path, {BASE: {COUNT: {"one": 4.0}}, HEAD: WHOLE[HEAD]}) / "results"
    line = {**RUN, "commits": [HEAD, BASE], "before": {"uuid": ONE}}
    (results / MACHINE / record.FILE).write_text(json.dumps(line) + "\n", encoding="utf-8")
    found = Stored(results, MACHINE).last()
    assert found == {(name, f"'{case}'"): Last(ONE, HEAD) for name in WHOLE[HEAD] for case in WHOLE[HEAD][name]}


def test_a_control_is_noted_and_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value of another GPU's series stays as it is."""
    monkeypatch.setattr(shards, "control", lambda: shards.Series(TIME, "'one'"))
    mine = _shard("one", "two", "three"), _outcome(tmp_path / "0", WHOLE, {"one", "two", "three"}, ONE)
    other = _shard("one", control="'one'"), _outcome(tmp_path / "1", WHOLE, {"one"}, TWO, 1.07)
    stored = _taken(tmp_path, mine, other)
    (tmp_path / "whole").mkdir()
    assert _documents(stored) == _documents(write(tmp_path / "whole", WHOLE) / "results")
    *_, last = record.read(stored, MACHINE)
    assert last["control"] == {BASE: pytest.approx(1.07), HEAD: pytest.approx(1.605)}
    assert TIME not in last["selected"]
    assert [list(each["fingerprints"][TIME[:8]]) for each in record.fingerprints(stored, MACHINE)][2:] == [[], []]


def test_a_step_is_noted_and_not_stored(tmp_path: Path) -> None:
    """One commit is measured on both GPUs: the first one's times stay, and the ratio is in the record."""
    before = {BASE: WHOLE[BASE]}
    mine = (
        _shard("one", "two", "three", commits=(BASE,)),
        _outcome(tmp_path / "0", before, {"one", "two", "three"}, ONE),
    )
    stored = _taken(tmp_path, mine)
    kept = _documents(stored)
    taken_over = _shard("one", "two", overlap=BASE), _outcome(tmp_path / "1", WHOLE, {"one", "two"}, TWO, 1.07)
    _taken(tmp_path, taken_over)
    name = f"{BASE[:8]}-python3.11.json"
    assert _documents(stored)[name] == kept[name]
    *_, last = record.read(stored, MACHINE)
    assert last["commits"] == [HEAD]
    assert last["handover"]["commit"] == BASE
    assert [each["commit"] for each in record.fingerprints(stored, MACHINE)] == [BASE, HEAD]
    assert last["handover"]["ratios"][f"{TIME}('one')"] == pytest.approx(1.07, abs=1e-5)
    assert Stored(stored, MACHINE).last()[TIME, "'two'"] == Last(TWO, HEAD)


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
    files = {str(path.relative_to(results)): path.read_bytes() for path in results.rglob("*") if path.is_file()}
    with pytest.raises(RefusedError, match=why):
        _taken(tmp_path, (_shard("one"), Outcome(outcome.device, files)))
    assert not list((tmp_path / "stored").glob("*/????????-*.json"))


def _one_more(document: Any) -> None:
    document["results"][TIME][1][0].append("'four'")


def test_a_name_outside_is_refused(tmp_path: Path) -> None:
    """A worker's files stay in their folder."""
    with pytest.raises(RefusedError, match="no name"):
        _taken(tmp_path, (_shard("one"), Outcome(ONE, {"../outside.json": b"{}"})))
    assert not (tmp_path / "outside.json").exists()


def test_agreement(tmp_path: Path) -> None:
    """Of two backfills: the times of series that one GPU measured both times, and of those that two did."""
    both = [
        _taken(
            tmp_path / name,
            (_shard("one"), _outcome(tmp_path / f"{name}-one", WHOLE, {"one"}, ONE, factor)),
            (_shard("two"), _outcome(tmp_path / f"{name}-two", WHOLE, {"two"}, gpu, factor)),
        )
        for name, gpu, factor in (("a", ONE, 1.0), ("b", TWO, 1.01))
    ]
    found = sorted(agreement.pairs(both[0], both[1], MACHINE))
    assert [(round(pair.second / pair.first, 6), pair.is_same_gpu) for pair in found] == [
        (1.01, True),
        (1.01, True),
        (1.01, False),
        (1.01, False),
    ]
    rows = [line.split() for line in agreement.table(found).splitlines()[2:]]
    assert [row[3:] for row in rows] == [["another", "2", *["1.00"] * 3], ["the", "same", "2", *["1.00"] * 3]]
