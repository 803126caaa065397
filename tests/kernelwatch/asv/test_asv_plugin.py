"""What surrounds a run of asv."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asv import _stats
from asv.results import Results, get_existing_hashes, iter_results_for_machine_and_hash
from asv.util import write_json

from kernelwatch.asv import plugin as asv_plugin
from kernelwatch.asv import reuse
from kernelwatch.instrument import machine, measuring
from kernelwatch.instrument.companions import IN_TURNS
from kernelwatch.project import ROOT
from kernelwatch.store import folders, record, storing
from kernelwatch.store.run_record import RunRecord
from tests.stored import BASE


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happened, in its order."""
    found: list[str] = []

    @contextmanager
    def running(in_turns: list[str]) -> Iterator[dict[str, Any]]:
        assert in_turns == ["base", "head"]
        facts: dict[str, Any] = {}  # the process has not begun
        found.append("measuring begins")
        began.append(facts)
        yield facts
        found.append("measuring ends")

    monkeypatch.setattr(measuring, "running", running)
    monkeypatch.setattr(machine, "nvml", lambda: None)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-x")
    monkeypatch.setenv(IN_TURNS, "base head")
    return found


#: What is told of the device, once the measuring process has begun.
began: list[dict[str, Any]] = []


def _run(events: list[str], conf: Any, *, fails: bool = False, dry_run: bool = False) -> None:
    def run(_: type, conf: Any, *, _returns: dict[str, Any], dry_run: bool, attribute: dict[str, Any]) -> None:
        events.append(f"run into {Path(conf.results_dir).name}")
        began[-1]["l2_bytes"] = 7
        assert attribute == {"repeat": "5"}
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "", "what has no name here is not measured"
        _returns["machine_params"] = {"machine": "m"}
        asv_plugin._current[-1].note("c0ffee", "time_x", "")
        if fails:
            raise RuntimeError("asv failed")

    asv_plugin._recorded(run)(SimpleNamespace, conf, dry_run=dry_run, attribute={"repeat": "5"})


def test_a_run_is_surrounded(events: list[str], tmp_path: Path) -> None:
    """The measuring process lives as long as the run, and its facts are in the record."""
    _run(events, SimpleNamespace(results_dir=str(tmp_path / "results"), launch_method="spawn"))
    assert events == ["measuring begins", "run into results-local", "measuring ends"]
    (line,) = record.read(tmp_path / "results-local", "m")
    assert line["before"] == {"l2_bytes": 7}
    assert line["commits"] == ["c0ffee"]


def test_a_run_that_fails_is_recorded(events: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also elsewhere, where a variable says so; the next run has a record of its own, a dry run none."""
    monkeypatch.setenv(folders.RESULTS, str(tmp_path / "elsewhere"))
    conf = {"results_dir": str(tmp_path / "results"), "launch_method": "spawn"}
    _run(events, SimpleNamespace(**conf), dry_run=True)
    assert {path.name for path in (tmp_path / "elsewhere").iterdir()} <= {storing.LOCK}
    with pytest.raises(RuntimeError, match="asv failed"):
        _run(events, SimpleNamespace(**conf), fails=True)
    _run(events, SimpleNamespace(**conf))
    assert len(record.read(tmp_path / "elsewhere", "m")) == 2
    assert asv_plugin._current == []
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere"]


@pytest.mark.parametrize(("commit", "noted"), [("c0ffee", ["c0ffee"]), (None, [])])
def test_only_commits_are_noted(commit: str | None, noted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`asv run --python=same` measures the working tree and keeps no results: nothing is noted of it."""
    found: list[Any] = []
    kept = SimpleNamespace(note=lambda commit, *_: found.append(commit), note_stored=lambda *said: found.append(said))
    monkeypatch.setattr(asv_plugin, "_current", [kept])
    results = SimpleNamespace(commit_hash=commit, started_at={"time_x": 7})
    answers = SimpleNamespace(stderr="", samples=[[1.0, 2.0], None])
    benchmark = {"name": "time_x", "type": "time", "params": [["'a'", "'b'"]]}
    assert asv_plugin._noted(lambda *_: "added")(results, benchmark, answers) == "added"
    assert found == [*noted, *((commit, "time_x", 7, {"a": 2}) for _ in noted)]


@pytest.mark.parametrize(("places", "selected"), [(None, []), ({0, 1, 2, 3}, []), ({3, 1}, ["'a', 2", "'b', 2"])])
def test_a_selection_is_noted(places: set[int] | None, selected: list[str]) -> None:
    """By the texts that `--bench` has chosen them by; nothing is said of a run of all."""
    assert asv_plugin._selected(["'a', 1", "'a', 2", "'b', 1", "'b', 2"], places) == selected


def test_asv_machine_offers_what_a_run_takes(tmp_path: Path) -> None:
    """`asv machine --yes` stores the machine under the name that a run gives it, with no facts that would split it."""
    command = [sys.executable, "-m", "asv", "machine", "--yes"]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, check=True)
    stored = json.loads((tmp_path / ".asv-machine.json").read_text(encoding="utf-8"))
    name = machine.default_name(machine.gpu())
    assert stored == {name: machine.stable(name, machine.gpu()), "version": 1}


def test_asv_show_and_compare_read_local_results_too(tmp_path: Path) -> None:
    """They get one folder with all machines; the run of a machine gets its own, and keeps it."""
    stored = tmp_path / "results"
    for folder, name in ((stored, "known"), (folders.local(stored), "new")):
        (folder / name).mkdir(parents=True)
        (folder / name / "machine.json").write_text("{}", encoding="utf-8")
    conf = SimpleNamespace(results_dir=str(stored), launch_method="spawn")
    reading = asv_plugin._reading_all(lambda _, conf: sorted(path.name for path in Path(conf.results_dir).iterdir()))
    assert reading(SimpleNamespace, conf) == ["known", "new"]
    assert conf.results_dir == str(stored)


def test_a_run_reads_what_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It skips a commit that either folder has."""
    stored, local = tmp_path / "results", tmp_path / "results-local"
    commits = {name: name[0] * 40 for name in ("stored", "local")}
    for name, commit in commits.items():
        results = Results({"machine": "m"}, {}, commit, 0, "3", "e", {})
        folder = local if name == "local" else stored
        results.save(str(folder))
        write_json(str(folder / "m" / "machine.json"), {"machine": "m"}, 1)
    found = asv_plugin._of_all_places(iter_results_for_machine_and_hash)
    seen = {name: [each.commit_hash for each in found(str(local), "m", commit)] for name, commit in commits.items()}
    assert seen == {"stored": [commits["stored"]], "local": [commits["local"]]}
    assert set(asv_plugin._of_all_places(get_existing_hashes)(str(local))) == set(commits.values())


def test_an_axis_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stored commit is measured again, and its axis had fewer values: places are those of today's axis."""
    results = Results({"machine": "gpu"}, {}, BASE, 0, "3.11", "python3.11", {})
    vars(results)["_results"] = {"time": [1.0, 2.0]}
    vars(results)["_samples"], vars(results)["_stats"] = {"time": [[1.0], [2.0]]}, {"time": [{"q": 1}, {"q": 2}]}
    vars(results)["_benchmark_params"] = {"time": [["a", "c"]]}
    known = {"benchmarks": {"time": {"params": [["a", "b", "c"]]}}}
    monkeypatch.setattr(asv_plugin, "_reuse", [reuse.Reuse(Path(), known, RunRecord({}), is_on=False)])
    asv_plugin._on_todays_axes(Results.remove_samples)(results, "time", [2])
    assert results.get_result_samples("time", [["a", "b", "c"]]) == [[1.0], None, None]
    assert results.get_result_value("time", [["a", "c"]]) == [1.0, 2.0]


def test_the_distribution_of_u_is_asvs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same p-values, and a table of 20 + 20 samples is not made anew for each configuration."""
    pairs = [([i + 0.1 * shift for i in range(20)], [i + 0.5 for i in range(20)]) for shift in range(0, 400, 20)]
    own, steps = getattr(_stats.mann_whitney_u_cdf, "__wrapped__", _stats.mann_whitney_u_cdf), _stats.mann_whitney_u_r
    monkeypatch.setattr(_stats, "mann_whitney_u_cdf", own)
    expected = [_stats.mann_whitney_u(*pair) for pair in pairs[::10]]
    asked: list[int] = []

    def counted(*words: Any) -> int:
        asked.append(1)
        return int(steps(*words))

    monkeypatch.setattr(_stats, "mann_whitney_u_r", counted)
    monkeypatch.setattr(_stats, "mann_whitney_u_cdf", asv_plugin._looked_up_once(own))
    found = [_stats.mann_whitney_u(*pair) for pair in pairs]
    first = len(asked)
    assert found[::10] == expected
    assert [_stats.mann_whitney_u(*pair) for pair in pairs] == found
    assert len(asked) == first > 0, "looked up again"
