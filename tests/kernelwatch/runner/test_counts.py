"""Counting and compiling of the selected configurations in a commit's process."""

import re
import types
from typing import Any
from unittest import mock

import pytest

import kernelwatch.benchmarks as kw
from kernelwatch.benchmarks import base
from kernelwatch.counting import launch_counts
from kernelwatch.errors import ArgumentError, CompileError, UnknownFlagsError, UnknownKernelError
from kernelwatch.runner import measure_counts
from kernelwatch.runner.protocol import RunConfiguration, StoredNumbers, Task
from kernelwatch.suite import registry
from kernelwatch.suite.benchmark_names import copy_ratio_name, measurement_group

COPY = "track_counted.OffsetCopy"
SECTORS = f"{COPY}.track_load_sectors"

#: Indices of the configurations with float32 and offset 0 or 1, each with three sets of flags.
PLACES = list(range(48, 54))


def _task(stored: Any = None, version: str = "1", commit: str = "", **indices: list[int]) -> Task:
    groups = {name.replace("__", "."): group_indices for name, group_indices in indices.items()}
    versions, rounds = dict.fromkeys(groups, version), dict.fromkeys(groups, 1)
    return Task(indices=groups, versions=versions, rounds=rounds, stored=stored or {}, commit=commit)


def _compile_and_count(task: Task) -> tuple[list[RunConfiguration], list[Any]]:
    messages: list[Any] = []
    measure_counts.compile_and_count(task, messages.append)  # type: ignore[arg-type]
    return split_messages(messages)


def split_messages(messages: list[Any]) -> tuple[list[RunConfiguration], list[Any]]:
    configurations = [message for message in messages if isinstance(message, RunConfiguration)]
    others = [message for message in messages if not isinstance(message, RunConfiguration)]
    return sorted(configurations, key=lambda configuration: configuration.index), others


@pytest.fixture
def counted_launches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the executed launches. The launches are executed in this process."""
    launched: list[str] = []

    def count_here(launches: Any) -> Any:
        launched.extend(map(str, launches))
        return launch_counts.count_launches(launches)

    def map_here(_: Any, function: Any, launches: Any) -> Any:
        return (count_here if function is launch_counts.count_launches else function)(list(launches))

    monkeypatch.setattr(measure_counts, "map_groups", map_here)
    return launched


def test_stored_counts_are_reused(counted_launches: list[str]) -> None:
    """A second run executes one of six launches, as a check. It executes all if the check's numbers differ.

    All are also executed for another version of the benchmark.
    """
    first, _ = _compile_and_count(_task(track_counted__OffsetCopy=PLACES))
    assert len(counted_launches) == 6
    assert [configuration.numbers[SECTORS] for configuration in first] == [4.0] * 3 + [5.0] * 3, (
        "an offset of 1 touches a fifth sector"
    )
    assert {configuration.params.rpartition(", ")[0] for configuration in first} == {"float32, 0", "float32, 1"}
    entries = {configuration.fingerprint: StoredNumbers("c0", dict(configuration.numbers)) for configuration in first}

    def count_again(version: str = "1", commit: str = "") -> tuple[int, int, list[bool], list[dict[str, Any]]]:
        """Return the numbers of executed launches and of differences, whether each count is reused, and all counts."""
        counted_launches.clear()
        task = _task({COPY: entries}, version, commit, track_counted__OffsetCopy=PLACES)
        configurations, differences = _compile_and_count(task)
        reused = sorted(bool(configuration.reused) for configuration in configurations)
        return len(counted_launches), len(differences), reused, [again.numbers for again in configurations]

    numbers = [configuration.numbers for configuration in first]
    assert count_again() == (1, 0, [False, *[True] * 5], numbers)
    assert count_again(commit="c0")[2:] == ([False] * 6, numbers), "numbers of the commit itself have no origin"
    assert count_again(version="2")[0] == 6
    for entry in entries.values():
        entry.values[SECTORS] += 1
    assert count_again()[:2] == (6, 1)


def test_selected_configurations_are_compiled() -> None:
    """Each has resources and code hashes, or a reason why it is skipped."""
    sweep = registry.current_suite().compiled
    group, points = f"track_compiled.{sweep.name}", list(sweep.points())
    selected = {("offset_copy", "float32", "sm_90"), ("add_coalesced", "int8", "sm_90")}
    keys = [(point["kernel"], point["dtype"], point["arch"], point["flags"]) for point in points]
    indices = [index for index, (*key, flags) in enumerate(keys) if tuple(key) in selected and flags == "-Xptxas -O3"]
    configurations, other_messages = _compile_and_count(_task(track_compiled__Compiled=indices))
    assert not other_messages
    compiled, unsupported = configurations
    assert [compiled.index, unsupported.index] == indices
    assert set(compiled.numbers) == {f"{group}.track_{name}" for name in registry.RESOURCES}
    assert not compiled.skipped
    code = compiled.machine_code
    assert code is not None
    assert (code.name, code.arch) == ("offset_copy float32 -Xptxas -O3", "sm_90")
    assert len(code.code_sha256) == 64
    assert "does not support int8" in unsupported.skipped
    assert (unsupported.numbers, unsupported.machine_code) == ({}, None)


@pytest.mark.usefixtures("counted_launches")
@pytest.mark.parametrize(
    ("kind", "error", "skipped", "failed"),
    [
        ("counted", CompileError("b.cu(3): error: no"), "", r"CompileError: b.cu\(3\): error: no"),
        ("counted", UnknownKernelError("no kernel 'k'"), "this commit does not have it: no kernel 'k'", ""),
        ("counted", UnknownFlagsError("-Xptxas needs a value"), "", "UnknownFlagsError: -Xptxas needs a value"),
        ("compiled", CompileError("a.cu(3): error: no"), "", r"CompileError: a.cu\(3\): error: no"),
        ("compiled", NotImplementedError("nvcc knows no sm_99"), "nvcc knows no sm_99", ""),
    ],
)
def test_compiler_errors_leave_no_number(
    kind: str, error: Exception, skipped: str, failed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler's error and wrong flags are failures. A missing kernel or architecture is a skip."""
    refuse = mock.Mock(side_effect=error)
    monkeypatch.setattr(launch_counts, "compile_ptx", refuse)
    monkeypatch.setattr(measure_counts, "compile_cubin", refuse)
    task = _task(track_counted__OffsetCopy=PLACES[:1]) if kind == "counted" else _task(track_compiled__Compiled=[0])
    (configuration,), _ = _compile_and_count(task)
    assert configuration.skipped == skipped
    assert re.fullmatch(failed, configuration.failed)
    assert (configuration.numbers, configuration.machine_code) == ({}, None)


@pytest.mark.parametrize(
    ("current", "stored", "expected"),
    [
        ({"a": 4.0, "b": 2.0}, {"a": 4.0}, 1.0),
        ({"a": 3.0}, {"a": 0.0}, 1 + 3.0),
        ({"a": 0.0}, {"a": 0.0}, 1 + 0.0),
        ({"a": 5.0, "b": 2.0}, {"a": 4.0, "b": 4.0}, 2 / 4),
        ({"b": 1.0}, {"a": 1.0}, None),
        ({"a": 1.0}, {}, 1.0),
    ],
)
def test_ratio_of_worst_metric(current: dict[str, float], stored: dict[str, float], expected: float | None) -> None:
    """The ratio farthest from 1 counts; that to a stored 0 is 1 plus the current number. New metrics are ignored.

    If a stored metric is missing now, there is no ratio.
    """
    assert measure_counts._worst_ratio(current, stored) == expected


def test_incomplete_benchmark_classes_are_left_out() -> None:
    """Imported and hidden classes are left out, too. The others are in the module's order."""
    module = types.ModuleType("mine")
    axes = {"kernel": "k", "param_names": ("n",), "params": ((1,),)}
    vars(module).update(Base=kw.Counted, n=3)
    for name, where in (("Two", "mine"), ("_Hidden", "mine"), ("Other", "other"), ("Bare", "mine"), ("One", "mine")):
        attributes = {"__module__": where, **(axes if name != "Bare" else {})}
        setattr(module, name, type(name, (kw.Counted,), attributes))
    assert [benchmark_class.__name__ for benchmark_class in base.iter_benchmarks(module)] == ["Two", "One"]
    with pytest.raises(ArgumentError, match="exactly one class of Compiled; given: 0"):
        kw.suite_of(dict, module)


@pytest.mark.parametrize(("kind", "module"), [(kw.Counted, "track_counted"), (kw.Compiled, "track_compiled")])
def test_benchmark_names_do_not_depend_on_the_file(kind: Any, module: str) -> None:
    benchmark_class = type("One", (kind,), {"kernel": "k", "param_names": ("n",), "params": ((1,),)})
    method = next(name for name in vars(kind) if name.startswith("track_"))
    assert getattr(benchmark_class, method).benchmark_name == f"{module}.One.{method}"


def test_only_time_and_copy_ratio_share_a_measurement() -> None:
    """All modules of times have one key; `speed` is a module with a name of the user's."""
    assert measurement_group("speed.One") == measurement_group(copy_ratio_name("speed.One.time_x")) == "time.One"
    for module in ("track_counted", "track_compiled"):
        assert measurement_group(f"{module}.One") == f"{module}.One"


@pytest.mark.parametrize("params", [(4096,), ("4096",), ((1,), (2,)), ((1,), 2)])
def test_axes_need_lists_of_values(params: Any) -> None:
    with pytest.raises(ArgumentError, match=r"class One: params needs a list of values .* \(n\); given: \("):
        type("One", (kw.Counted,), {"kernel": "k", "param_names": ("n",), "params": params})
