"""Controls of a run: the base, and times of the base's code on a fake GPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from asv.console import log

from kernelwatch.config.project_root import ROOT
from kernelwatch.instrument import machine
from kernelwatch.instrument.session import Session
from kernelwatch.runner import measure_controls, measure_times, whole_run
from kernelwatch.runner.commit_process import PackageError
from kernelwatch.runner.protocol import MachineCode, Task
from kernelwatch.runner.run_record import RunRecord
from kernelwatch.store import record
from kernelwatch.store.cubins import CubinHashes
from kernelwatch.store.measurements import BenchmarkMeasurements, CommitMeasurements, RunFacts
from kernelwatch.store.points import Point
from kernelwatch.store.results import History
from tests import commits, served, stored
from tests.fake_cuda import FakeGpu
from tests.kernelwatch.runner import test_times
from tests.kernelwatch.runner.test_commit import FakeProcess
from tests.kernelwatch.runner.test_times import GROUP, TIME
from tests.stored import BASE, HEAD

gpu, measure = test_times.gpu, test_times.measure

SECONDS = 30e-6

ENVIRONMENT = "python3.11"


@pytest.fixture(autouse=True)
def uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this machine's GPU be B."""
    monkeypatch.setattr(machine, "volatile_facts", lambda: {"uuid": "B"})


#: GPUs of the runs that measured base, environment, other commit of the run, and whether there is a base to measure.
BASES: dict[str, tuple[str, str, str, bool]] = {
    "another GPU": ("A", ENVIRONMENT, "", True),
    "this GPU": ("B", ENVIRONMENT, "", False),
    "both": ("AB", ENVIRONMENT, "", True),
    "another environment": ("A", "another", "", False),
    "the run measures base": ("A", ENVIRONMENT, "base", False),
    "the run skips base": ("A", ENVIRONMENT, "base", True),
    "the run measures a commit between": ("A", ENVIRONMENT, "between", False),
    "the run measures an earlier commit": ("A", ENVIRONMENT, "first", True),
}


@pytest.mark.parametrize("case", BASES)
def test_base_is_the_nearest_ancestor(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus, environment, other, is_measured = BASES[case]
    folder = commits.begin(tmp_path)
    names = {name: commits.commit(folder, message=name) for name in ("first", "base", "between", "head")}
    stored.write(folder, {names[name]: {stored.TIME: {"one": 1.0}} for name in ("first", "base")})
    runs = [{**stored.RUN, "commits": [names["base"]], "before": {"uuid": uuid}} for uuid in gpus]
    stored.write_lines(folder / "results" / stored.MACHINE / record.RUNS_FILE, *runs)
    monkeypatch.setattr(measure_controls, "ROOT", folder)
    history, of_run = History(stored.MACHINE, folder), [names["head"], *([names[other]] if other else ())]
    base = measure_controls.find_base(history, names["head"], environment, of_run, lambda _: "skips" in case)
    assert (base.commit if base else None) == (names["base"] if is_measured else None)


def make_base(codes: dict[str, MachineCode], **changes: Any) -> CommitMeasurements:
    """Return the times of base on GPU A. The axes no longer have the lengths other than 64."""
    names = [*((kernel, "64") for kernel in codes), *((kernel, str(n)) for kernel in codes for n in range(100, 200))]
    points = [
        Point({"kernel": kernel, "n": length}, SECONDS, **{"copies": 1.0, "gpus": frozenset(["A"]), **changes})
        for kernel, length in names
    ]
    cubins = CubinHashes(Path("nowhere", "gpu"))
    cubins._cubin_hashes[BASE, "sm_90"] = {code.name: code.cubin_sha256 for code in codes.values()}
    by_params = {tuple(point.params.items()): point for point in points}
    run = RunFacts(("1",), "A", arch="sm_90")
    measured = BenchmarkMeasurements("time", "seconds", "", by_params, (run,))
    return CommitMeasurements("gpu", BASE, ENVIRONMENT, None, {TIME: measured}, cubins)


#: Facts of base's times, kernels with other machine code in head, throttled kernels, and kernels to measure.
CHANGES: dict[str, tuple[dict[str, Any], tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "all kernels changed": ({}, ("right", "also_right"), (), ("right", "also_right")),
    "one changed": ({}, ("right",), (), ("right",)),
    "none changed": ({}, (), (), ()),
    "none changed, but the GPU was throttled": ({}, (), ("also_right",), ("also_right",)),
    "head has only throttled times": ({}, ("right",), ("right", "also_right"), ()),
    "base was measured here": ({"gpus": frozenset(["B"])}, ("right", "also_right"), (), ()),
    "base is slower than 1.6 copies": ({"copies": 2.0}, ("right", "also_right"), (), ()),
}


@pytest.mark.parametrize("case", CHANGES)
def test_changed_code_of_base_is_measured(case: str, gpu: FakeGpu, measure: test_times.Measure, tmp_path: Path) -> None:
    """The base's process measures its own code. Head's own times are controls for unchanged code."""
    facts, changed, throttled, expected = CHANGES[case]
    gpu.seconds |= dict.fromkeys(("right", "also_right", "device_copy"), SECONDS)
    configurations, _ = measure(indices=[0, 1])
    codes = {configuration.params.partition(",")[0]: configuration.machine_code for configuration in configurations}
    base = make_base({kernel: code for kernel, code in codes.items() if code}, **facts)
    for configuration in configurations:
        kernel = configuration.params.partition(",")[0]
        assert configuration.machine_code
        if kernel in changed:
            configuration.machine_code = configuration.machine_code._replace(cubin_sha256="new")
        configuration.throttle_reasons = ["heat"] * (kernel in throttled)
    tasks: list[Task] = []

    @contextmanager
    def start(commit: str) -> Iterator[Any]:
        assert commit == BASE
        messages: list[Any] = []

        def perform(task: Task) -> None:
            tasks.append(task)
            with served.serve_session(Session(), tmp_path / "base") as address:  # type: ignore[arg-type]
                measure_times.measure_task(task, messages.append, address)  # type: ignore[arg-type]

        yield SimpleNamespace(send_task=perform, iter_messages=lambda: iter(messages), wait=lambda: "")

    (tmp_path / "base").mkdir()
    benchmarks = {TIME: {"params": [[f"'{kernel}'" for kernel in test_times.Small.params[0]], ["64"]], "version": "3"}}
    controls = measure_controls.measure_controls(base, configurations, benchmarks, start)
    assert [task.indices for task in tasks] == [{GROUP: [("right", "also_right").index(name) for name in expected]}] * (
        expected != ()
    )
    times = {f"{kernel}, 64": pytest.approx(SECONDS) for kernel in expected}
    assert controls == ({BASE: {TIME: times}} if expected else {})


@pytest.mark.parametrize("change", [{"cubin_sha256": "another"}, {}])
def test_other_machine_code_is_no_control(change: dict[str, str], gpu: FakeGpu, measure: test_times.Measure) -> None:
    """A time counts only if base's code is as it was; a generator of PTX may have changed it. A failure is an error."""
    gpu.seconds |= dict.fromkeys(("right", "device_copy"), SECONDS)
    (outcome,), _ = measure(indices=[0])
    assert outcome.machine_code
    base = make_base({"right": outcome.machine_code})
    benchmarks = {TIME: {"params": [["'right'"], ["64"]], "version": "3"}}
    own = msgspec.structs.replace(outcome, machine_code=outcome.machine_code._replace(cubin_sha256="new"))

    @contextmanager
    def start(_: str, problem: str = "") -> Iterator[Any]:
        assert outcome.machine_code
        code = outcome.machine_code._replace(**change)
        yield FakeProcess(msgspec.structs.replace(outcome, machine_code=code), problem=problem)

    controls = measure_controls.measure_controls(base, [own], benchmarks, start)
    assert controls == ({} if change else {BASE: {TIME: {"right, 64": pytest.approx(SECONDS)}}})
    with pytest.raises(PackageError, match="it broke off"):
        measure_controls.measure_controls(base, [own], benchmarks, lambda commit: start(commit, "it broke off"))


@pytest.mark.parametrize(
    ("options", "facts", "looks"),
    [
        ({}, {"l2_bytes": 1}, True),
        ({}, {}, False),
        *(({name: True}, {"l2_bytes": 1}, False) for name in ("quick", "interleave_rounds", "dry_run")),
    ],
)
def test_failed_controls_do_not_fail_a_run(
    options: dict[str, Any], facts: dict[str, Any], looks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run with a GPU and the usual samples looks for a base. An error is only a warning."""
    warnings: list[str] = []
    monkeypatch.setattr(log, "warning", warnings.append)
    conf, environment = SimpleNamespace(branches=["main"]), SimpleNamespace(name="e", env_vars={})
    asv_machine: Any = SimpleNamespace(machine="no such machine")
    run = whole_run.SuiteRun(conf, None, asv_machine, options, ROOT / "results", Path(), facts)
    assert run._measure_controls(HEAD, environment, {}, RunRecord(HEAD)) == {}
    assert len(warnings) == looks
    assert all("cccccccc has no controls (docs/method.md): " in text for text in warnings)


@pytest.mark.parametrize("is_skipped", [False, True])
def test_skipped_base_may_have_controls(is_skipped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The option --skip-existing-commits keeps the stored results of base, although the run names base."""
    stored.write(tmp_path, {BASE: {stored.TIME: {"one": 1.0}}})
    answers: list[bool] = []
    monkeypatch.setattr(measure_controls, "find_base", lambda *facts: answers.append(facts[-1](BASE)))
    options, conf = {"skip_existing_commits": is_skipped}, SimpleNamespace(branches=["main"])
    asv_machine: Any = SimpleNamespace(machine=stored.MACHINE)
    run = whole_run.SuiteRun(conf, None, asv_machine, options, tmp_path / "results", Path(), {"l2_bytes": 1})
    environment = SimpleNamespace(name=ENVIRONMENT, env_vars={})
    run._measure_controls(HEAD, environment, {stored.TIME: {"version": "1", "params": [["one"]]}}, RunRecord(HEAD))
    assert answers == [is_skipped]
