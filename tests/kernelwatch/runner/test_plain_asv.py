"""asv alone, without the plugin: the same classes, names, axes, versions and numbers, only slower."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kernelwatch.benchmarks as kw
from kernelwatch.config.project_root import ROOT
from kernelwatch.instrument import device, machine, session, stopping_rule
from kernelwatch.instrument.tolerance import WrongOutputError
from tests import on_fake_gpu
from tests.fake_cuda import FakeGpu
from tests.kernelwatch.runner.test_times import Small, gpu
from tests.kernelwatch.strangers import STRANGERS, made

__all__ = ["gpu"]


def _described(results: Path) -> dict[str, dict[str, Any]]:
    """What `benchmarks.json` says that results are found by."""
    found = json.loads((results / "benchmarks.json").read_text())
    fields = ("params", "param_names", "version", "unit", "type")
    return {name: {each: one[each] for each in fields} for name, one in found.items() if isinstance(one, dict)}


def _values(results: Path) -> str:
    """All numbers, as a text: there NaN, which stands for what was skipped, equals NaN."""
    (path,) = results.glob("*/*-*.json")
    found = json.loads(path.read_text())
    return str(sorted((name, list(map(float, row[0]))) for name, row in found["results"].items()))


def test_the_same_of_a_stranger(tmp_path: Path) -> None:
    """`check`, a quick look with this Python, and a run store what the runner stores."""
    project, commits = made(STRANGERS["a project in C++"], tmp_path)
    bench = ("--bench", "Brighten", "--bench", "track_compiled")
    assert project.run("asv", "run", f"{commits[2]}^!", *bench).returncode == 0
    plain, fast = project.path / "results", project.path / "fast"
    plain.rename(fast)
    configuration = project.path / "asv.conf.json"
    lines = configuration.read_text(encoding="utf-8").splitlines(keepends=True)
    configuration.write_text("".join(line for line in lines if "plugins" not in line), encoding="utf-8")
    project.run("asv", "machine", "--yes")
    for words in (
        ("check", "--python=same"),
        ("run", "--python=same", "--quick", *bench),
        ("run", f"{commits[2]}^!", *bench),
    ):
        done = project.run("asv", *words)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "failed" not in done.stdout
    assert _described(plain) == _described(fast)
    assert _values(plain) == _values(fast)


def test_names_are_those_that_are_stored() -> None:
    """Of this suite, as its last results have them: results are found by these for ever. There may be new ones."""
    from asv_runner.discovery import disc_benchmarks

    found = {one.name: one for one in disc_benchmarks(str(ROOT / "benchmarks"))}
    stored = _described(ROOT / "results")
    fields = ("params", "param_names", "version", "unit", "type")
    assert {name: {each: getattr(found.get(name), each, None) for each in fields} for name in stored} == stored


def test_classes_do_without_asv() -> None:
    """In processes of asv 0.6.1 a module of asv's hides Python's `statistics`, which asv itself imports."""
    found = "[name for name in sys.modules if name.partition('.')[0] == 'asv']"
    code = f"import sys, benchmarks.suite, kernelwatch.runner.commit_worker; print({found})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


@pytest.fixture
def here(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGpu]:
    """The device, in this process."""
    monkeypatch.setattr(machine, "nvml_handle", lambda: None)
    session._process_session.cache_clear()
    yield gpu
    session._process_session.cache_clear()


class SmallRatios(kw.Control):
    """The control."""

    timed = Small


@pytest.mark.usefixtures("here")
def test_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As asv's loop calls it: `setup` before each sample, two readings of the timer, and no more than there are."""
    monkeypatch.setattr(
        stopping_rule, "MIN_SAMPLES", stopping_rule.MIN_SAMPLES + 2
    )  # the instrument says how many there are
    one = Small()
    samples = []
    one.setup("right", 64)
    for _ in range(one.repeat):
        one.setup("right", 64)
        one.timer()  # a sample that raises has no second reading: it is taken again
        one.setup("right", 64)
        begin = one.timer()
        one.time_back_to_back("right", 64)
        samples.append(one.timer() - begin)
    assert samples == pytest.approx([on_fake_gpu.SECONDS] * one.repeat)
    assert one.timer.is_used_up
    ratios = SmallRatios()
    ratios.setup("right", 64)
    found = ratios.track_copy_ratio("right", 64)
    assert found["samples"] == pytest.approx([2.5] * one.repeat)
    assert found["number"] == 1
    named: Any = SmallRatios.track_copy_ratio
    assert named.benchmark_name.endswith(".SmallRatios.track_copy_ratio")
    for kernel, error in (("wrong", WrongOutputError), ("missing", NotImplementedError)):
        with pytest.raises(error, match=kernel):
            Small().setup(kernel, 64)


def test_no_device(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is skipped, with a reason that says what is missing."""

    def require() -> None:
        raise NotImplementedError("there is no CUDA driver")

    monkeypatch.setattr(device, "process_context", require)
    with pytest.raises(NotImplementedError, match="there is no CUDA driver"):
        Small().setup("right", 64)
    assert not gpu.launched
