"""The runs behind a commit's numbers: the facts of a run are those of its own numbers only."""

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.config.project_root import ROOT
from kernelwatch.show.site import measured
from kernelwatch.store.results import History
from tests.stored import BASE, COUNT, HEAD, TIME, Suite, find_results, review_as_json, write, write_lines

OTHER_TIME = "time_y.Y.time_back_to_back"

SILENT, FIRST, LATER = (datetime(2026, 1, day, tzinfo=timezone.utc) for day in (1, 2, 3))

#: Day of a run -> driver, compiler and UUID of the GPU.
RUNS = {SILENT: (None, "x", "GPU-aaaaaaaa-1"), FIRST: ("1", "x", "GPU-aaaaaaaa-1"), LATER: ("2", "y", "GPU-bbbbbbbb-2")}

#: Benchmark -> run that measured it.
Taken = dict[str, datetime]


def _store_runs(root: Path, runs: dict[str, Taken], *, environment: str = "python3.11", uuids: bool = True) -> History:
    """Store results of commits, each benchmark measured by a run of RUNS, and the run records; return the history."""
    suite: Suite = {commit: {name: {"one": 1.0} for name in names} for commit, names in runs.items()}
    began = {
        (commit, name): day + timedelta(minutes=1) for commit, names in runs.items() for name, day in names.items()
    }
    folder = write(root, suite, environment=environment, began=began) / "results" / "gpu"
    lines = (_run(day, sorted(runs), uuid if uuids else None) for day, (_, _, uuid) in RUNS.items())
    write_lines(folder / "runs.jsonl", *lines)
    return History("gpu", root)


def _run(day: datetime, commits: list[str], uuid: str | None) -> dict[str, Any]:
    driver, compiler, _ = RUNS[day]
    ended = (day + timedelta(hours=1)).isoformat()
    gpu = {"driver": driver, **({} if uuid is None else {"uuid": uuid})}
    return {"commits": commits, "started": day.isoformat(), "ended": ended, "nvcc": compiler, "before": gpu}


ANEW = f"; to measure both alike: kernelwatch measure {BASE[:8]} {HEAD[:8]}"


@pytest.mark.parametrize(
    ("head", "notes"),
    [
        ({TIME: FIRST, OTHER_TIME: FIRST, COUNT: FIRST}, []),
        ({TIME: FIRST, OTHER_TIME: FIRST, COUNT: LATER}, [f"different compiler: x for base, y for head{ANEW}"]),
        ({TIME: FIRST, COUNT: FIRST}, []),
        ({TIME: SILENT, OTHER_TIME: FIRST, COUNT: FIRST}, []),
        (
            {TIME: FIRST, OTHER_TIME: LATER, COUNT: FIRST},
            [f"different driver: 1 for base, 2 for head{ANEW}", f"different compiler: x for base, y for head{ANEW}"],
        ),
    ],
)
def test_different_driver_and_compiler_are_noted(
    head: Taken, notes: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Different drivers are noted if they measured times, different compilers for any number."""
    _store_runs(tmp_path, {BASE: {TIME: FIRST, OTHER_TIME: FIRST, COUNT: FIRST}, HEAD: head})
    _, review = review_as_json(tmp_path, capsys)
    assert [note for note in review["notes"] if note.startswith("different ")] == notes


@pytest.mark.parametrize(
    ("fact", "base", "head", "note"),
    [
        ("l2_fetch_bytes", 64, 32, "different fetch granularity of the L2 cache: 64 for base, 32 for head"),
        ("l2_fetch_bytes", 64, 64, ""),
        ("l2_fetch_bytes", 64, None, ""),
        ("generators", {"triton": "3.8.0"}, {"triton": "3.8.0"}, ""),
        ("generators", {"triton": "3.8.0"}, {}, ""),
        (
            "generators", {"triton": "3.8.0"}, {"triton": "3.9.0", "numba": "0.62"},
            "different generator of PTX: triton 3.8.0 for base, numba 0.62, triton 3.9.0 for head",
        ),
    ],
)  # fmt: skip
def test_different_fetch_size_and_generator_are_noted(
    fact: str, base: Any, head: Any, note: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fact that one of the runs did not record gives no note."""
    _store_runs(tmp_path, {BASE: {TIME: FIRST}, HEAD: {TIME: LATER}})
    lines = []
    for day, value in ((FIRST, base), (LATER, head)):
        line = _run(day, [BASE, HEAD], RUNS[day][2])
        (line if fact == "generators" else line["before"])[fact] = value
        lines.append(line)
    write_lines(tmp_path / "results" / "gpu" / "runs.jsonl", *lines)
    _, review = review_as_json(tmp_path, capsys)
    notes = [text for text in review["notes"] if "granularity" in text or "generator" in text]
    assert notes == [f"{note}{ANEW}"] * bool(note)


@pytest.mark.parametrize(
    ("runs", "driver"),
    [
        ({TIME: FIRST, COUNT: LATER}, "1"),
        ({TIME: LATER, COUNT: FIRST}, "2"),
        ({TIME: FIRST, OTHER_TIME: LATER}, "2"),
        ({COUNT: FIRST}, "2"),
    ],
)
def test_facts_are_those_of_the_timing_run(runs: Taken, driver: str, tmp_path: Path) -> None:
    """They are of the last run that measured a time, or else of the last run. The driver identifies it."""
    _store_runs(tmp_path, {BASE: runs, HEAD: {TIME: FIRST, COUNT: FIRST}})
    history, results = find_results(tmp_path, BASE)
    assert history.find_last_timed_run(results)["before"]["driver"] == driver
    newest = history.find_newest(COUNT)
    assert newest is not None
    assert newest.commit_hash == HEAD
    for name in {TIME, COUNT} - runs.keys():  # a benchmark without a run has no GPU
        assert (history.list_runs(results, name), history.list_gpus(results, benchmark=name)) == ([], set())


@pytest.mark.parametrize(("nvcc", "whose"), [(("13.0.88", "13.5.37"), [0]), (("13.5.37", "13.5.37"), [0, 1])])
def test_runs_of_other_compilers_are_left_out(nvcc: tuple[str, str], whose: list[int], tmp_path: Path) -> None:
    """If no run would remain, all runs are kept: early runs did not separate compilers."""
    lines = [_run(FIRST, [BASE], "a") | {"nvcc": f"release 13, V{version}"} for version in nvcc]
    write_lines(write(tmp_path, {BASE: {TIME: {"one": 1.0}}}) / "results" / "gpu" / "runs.jsonl", *lines)
    history, results = find_results(tmp_path, BASE)
    assert history.list_runs(results) == [lines[place] for place in whose]


def test_site_shows_facts_of_the_times(tmp_path: Path) -> None:
    """Facts of a later count in another environment are not shown."""
    _store_runs(tmp_path, {BASE: {TIME: FIRST}})
    suite = {TIME: FIRST, COUNT: LATER}
    _store_runs(tmp_path, {HEAD: suite})  # makes both benchmarks known
    history = _store_runs(tmp_path, {BASE: {COUNT: LATER}, HEAD: suite}, environment="python3.12")
    assert [*history.load_environments(BASE)] == ["python3.11", "python3.12"]

    def facts(history: History) -> dict[str, Any]:
        return measured.describe_runs(history, BASE, [TIME, COUNT])

    assert (facts(history)["nvcc"], facts(history)["gpus"]) == ("x", {"aaaaaaaa": [TIME]})
    unknown = _store_runs(tmp_path, {BASE: {TIME: FIRST}}, uuids=False)
    assert facts(unknown)["gpus"] == {measured.UNKNOWN_GPU: [TIME]}, "a run without a UUID may be of another GPU"


def test_each_series_has_its_gpu(tmp_path: Path) -> None:
    """In a fleet, a series has the GPU of the run that selected its configuration."""
    folder = write(tmp_path, {commit: {TIME: {"one": 1.0, "two": 2.0}} for commit in (BASE, HEAD)}) / "results" / "gpu"
    shards = [(["'one'"], "GPU-aaaaaaaa-1"), (["'two'"], "GPU-bbbbbbbb-2")]
    lines = [_run(FIRST, [HEAD], uuid) | {"selected": {TIME: texts}} for texts, uuid in shards]
    write_lines(folder / "runs.jsonl", *lines, _run(FIRST, [BASE], "c"))
    history = History("gpu", tmp_path)
    assert measured.list_remarks(history, HEAD, TIME) == {"gpus": {"0": "aaaaaaaa", "1": "bbbbbbbb"}}
    assert measured.list_remarks(history, BASE, TIME) == {}


def test_unknown_machine_is_an_error() -> None:
    message = "no results of nope, only of no-gpu-x86_64, .*nvidia-h200; .* run: asv run"
    with pytest.raises(FileNotFoundError, match=message):
        History("nope", ROOT)
