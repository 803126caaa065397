"""Measured launches: their texts, and the sweeps behind asv's classes."""

import json
from typing import Any

import pytest

from benchmarks.sweeps import MOVED
from gpu_kernels import KERNELS, MIXED
from kernelwatch.config.project_root import ROOT
from kernelwatch.errors import ArgumentError
from kernelwatch.kernel import Launch
from kernelwatch.suite import launch_facts, metrics, registry
from kernelwatch.suite.benchmark_names import Kind
from kernelwatch.suite.sweep import Sweep
from kernelwatch.workflow.load_review import describe_configuration


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("copy size=10 offset=1 int8 -Xptxas -O0", Launch("copy", "int8", "-Xptxas -O0", {"size": 10, "offset": 1})),
        ("offset_copy", Launch("offset_copy", "float32", "-Xptxas -O3")),
        ("offset_copy float64", Launch("offset_copy", "float64")),
        ("scale factor=0.5", Launch("scale", arguments={"factor": 0.5})),
        ("k columns=2 rows=1", Launch("k", arguments={"rows": 1, "columns": 2})),
        ("k -Xptxas -dlcm=cg", Launch("k", flags="-Xptxas -dlcm=cg")),
        # Names in cubins.jsonl up to 917313d.
        ("k, float16, -Xptxas -dlcm=cg", Launch("k", "float16", "-Xptxas -dlcm=cg")),
    ],
)
def test_texts_of_launches_are_read_back(text: str, expected: Launch) -> None:
    assert Launch.parse(text) == expected
    assert Launch.parse(str(expected)) == expected
    assert hash(Launch.parse(str(expected))) == hash(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a launch; write KERNEL NAME=NUMBER"),
        ("-Xptxas -O3", "is not a launch"),
        ("k float32 float64", "is not a launch"),
        ("k size=ten", "'ten' is not a number"),
        ("k size=1 size=2", "size is given twice"),
    ],
)
def test_invalid_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Launch.parse(text)


#: Benchmark, values of its axes, its launch, useful bytes and operations.
CONFIGURATIONS: list[tuple[str, dict[str, Any], str, tuple[int | None, int | None]]] = [
    ("time_transpose.Transpose.time_back_to_back",
     {"kernel": "transpose_read_coalesced", "rows x columns": "5003x2999", "dtype": "int8", "flags": "-Xptxas -O0"},
     "transpose_read_coalesced rows=5003 columns=2999 int8 -Xptxas -O0", (2 * 5003 * 2999, None)),
    ("time_copy.MatrixSizedCopy.time_back_to_back",
     {"copy": "stride_copy stride=2", "dtype": "float32", "flags": "-Xptxas -O3"},
     "stride_copy size=163840000 stride=2 float32 -Xptxas -O3", (2 * 4 * 163840000, None)),
    ("track_counted.OffsetCopy.track_load_sectors", {"dtype": "float64", "offset": 31, "flags": "-Xptxas -O3"},
     "offset_copy size=65536 offset=31 float64 -Xptxas -O3", (2 * 8 * 65536, None)),
    ("track_compiled.Compiled.track_registers",
     {"kernel": "offset_copy", "dtype": "int8", "flags": "-Xptxas -O3", "arch": "sm_80"},
     "offset_copy int8 -Xptxas -O3", (None, None)),
    ("time_copy.DeviceCopy.time_back_to_back", {"rows x columns": "3x5", "dtype": "int8"},
     "device_copy rows=3 columns=5 int8", (2 * 3 * 5, None)),
    ("time_kernel.MatrixProduct.time_back_to_back",
     {"kernel": "matmul_tiled", "rows x inner x columns": "3x4x5", "dtype": "float32", "flags": "-Xptxas -O3"},
     "matmul_tiled rows=3 inner=4 columns=5", (4 * (3 * 4 + 4 * 5 + 3 * 5), 2 * 3 * 4 * 5)),
    # Without the suite, only parameters are known.
    ("time_old.Old.time_launch", {"kernel": "k", "dtype": "int8", "flags": "-Xptxas -O3"}, "k int8", (None, None)),
]  # fmt: skip


@pytest.mark.parametrize(("benchmark", "params", "text", "facts"), CONFIGURATIONS)
def test_configuration_has_its_launch(
    benchmark: str, params: dict[str, Any], text: str, facts: tuple[int | None, int | None]
) -> None:
    expected = Launch.parse(text)
    assert launch_facts.find_launch(benchmark, params) == expected
    assert launch_facts.find_launch(benchmark, {axis: str(value) for axis, value in params.items()}) == expected
    assert (launch_facts.find_useful_bytes(benchmark, params), launch_facts.find_flops(benchmark, params)) == facts
    assert launch_facts.find_code_name(benchmark, params) == expected.code_name
    assert launch_facts.is_verified(launch_facts.find_definition(benchmark, params))


@pytest.mark.parametrize("value", ["5003", "5003x", "3x4x5", "axb", ""])
def test_value_outside_an_axis_is_no_launch(value: str) -> None:
    """There is no error: results may be another suite's."""
    params = {"kernel": "transpose_read_coalesced", "rows x columns": value, "dtype": "int8", "flags": "-Xptxas -O3"}
    assert launch_facts.find_launch("time_transpose.Transpose.time_back_to_back", params) is None


def test_no_two_times_have_one_description() -> None:
    descriptions = []
    for name, (kind, sweep) in registry.current_suite().benchmarks.items():
        for point in sweep.points() if kind is Kind.TIMED else ():
            params = {axis: str(value) for axis, value in point.items()}
            facts = describe_configuration(name, params)
            descriptions.append((facts.kernel, facts.conditions, *params.items()))
    assert len({*descriptions}) == len(descriptions) > 800


@pytest.mark.parametrize(("shown", "size"), [({}, 1), ({"size": 2}, 2), ({"size": 3}, 1)])
def test_summary_has_shown_or_first_values(shown: dict[str, int], size: int) -> None:
    sweep = Sweep("Any", "", {"size": (1, 2), "dtype": ("int8", "float16")}, shown=shown)
    assert sweep.summary_point() == {"size": size, "dtype": "int8"}


def test_every_kernel_is_measured() -> None:
    all_kernels = list(KERNELS)
    for sweeps in (registry.current_suite().timed, registry.current_suite().counted):
        assert set(all_kernels) == {sweep.launch(point).kernel for sweep in sweeps for point in sweep.points()}
    assert all_kernels == list(registry.current_suite().compiled.axes["kernel"])


def test_sweep_is_shared_if_a_kernel_uses_shared_memory() -> None:
    for sweep in registry.current_suite().counted:
        launches = sorted({(launch.kernel, launch.dtype) for launch in map(sweep.launch, sweep.points())})
        modules = (registry.find_kernel(kernel).compile_module(dtype, arch=metrics.ARCH) for kernel, dtype in launches)
        beginnings = (module.ptx.partition(f".entry {module.entry}(")[2] for module in modules)
        bodies = (text.partition(".entry ")[0] for text in beginnings)  # without later kernels
        assert sweep.shared == any(".shared" in body for body in bodies), sweep.name


def test_counted_dtypes_are_the_supported_ones() -> None:
    """Kernels that list no dtypes only move data: MOVED has one dtype per item size. MIXED kernels are exceptions."""
    for name, dtypes in registry.current_suite().dtypes.items():
        assert name in MIXED or dtypes == set(KERNELS[name].dtypes or MOVED), name


def test_every_launch_is_valid() -> None:
    checked, suite = 0, registry.current_suite()
    for name, (kind, sweep) in suite.benchmarks.items():
        for point in sweep.points() if kind is not registry.Kind.COMPILED and sweep != suite.copy else ():
            launch = launch_facts.find_launch(name, point)
            assert launch is not None
            registry.find_kernel(launch.kernel).bind_arguments(launch.dtype, **launch.arguments)
            assert launch_facts.find_useful_bytes(name, point)
            checked += 1
    assert checked > 1000


#: Classes with results on 2026-11-26: names, values and launches stay.
HISTORY: dict[str, Any] = json.loads((ROOT / "tests/data/benchmarks-2026-11-26.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("group", HISTORY)
def test_stored_series_continue(group: str) -> None:
    stored, names = HISTORY[group], registry.current_suite().benchmarks_by_class[group]
    assert set(stored["names"]) <= set(names)
    sweep = registry.current_suite().benchmarks[names[0]][1]
    assert [sweep.kernel, sweep.fixed, sweep.in_l2, sweep.isolated] == stored["how"]
    assert list(sweep.axes) == list(stored["axes"])
    for axis, values in stored["axes"].items():
        assert set(values) <= set(map(str, sweep.axes[axis]))
