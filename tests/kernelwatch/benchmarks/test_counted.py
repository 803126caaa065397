"""Counted benchmarks as asv calls them."""

import dataclasses
from typing import Any
from unittest import mock

import pytest

import kernelwatch.benchmarks as kw
from benchmarks import track_compiled, track_counted
from gpu_kernels import KERNELS
from kernelwatch.counting import launch_counts
from kernelwatch.counting.launch_counts import CountOutcome, count_launches
from kernelwatch.errors import CompileError
from kernelwatch.suite import metrics, registry
from ptxcount.counting.counters import Access, LaunchCounters
from ptxcount.util.errors import Source

FLAGS = "-Xptxas -O3"


def _set_up(name: str, params: tuple[Any, ...]) -> tuple[Any, dict[str, CountOutcome]]:
    benchmark: Any = getattr(track_counted, name)()
    return benchmark, count_launches([benchmark.sweep.launch(dict(zip(benchmark.param_names, params, strict=True)))])


@pytest.mark.parametrize(
    ("name", "params", "expected"),
    [
        ("OffsetCopy", ("float32", 1, FLAGS), [5.0, 2.0]),
        ("OffsetCopy", ("float32", 0, FLAGS), [4.0, 1.0]),
        ("OffsetCopy", ("complex128", 1, FLAGS), [17.0, 5.0]),
        ("StrideCopy", ("float64", 4, FLAGS), [32.0, 8.0]),
    ],
)
def test_copies_have_their_sectors_and_lines(name: str, params: tuple[Any, ...], expected: list[float]) -> None:
    """Per request: a warp's 32 float32 are 4 sectors in one line; an offset of one element adds one of each."""
    benchmark, cache = _set_up(name, params)
    benchmark.setup(cache, *params)
    assert [benchmark.track_load_sectors(cache, *params), benchmark.track_load_lines(cache, *params)] == expected
    assert [benchmark.track_store_sectors(cache, *params), benchmark.track_store_lines(cache, *params)] == expected
    assert 15 < benchmark.track_instructions(cache, *params) < 30


def _access(space: str, kind: str, requests: int, **counted: Any) -> Access:
    return Access(Source(1), space, kind, width=4, requests=requests, **counted)


def test_metrics_are_ratios_or_sums() -> None:
    """Sectors and lines are per request of global memory, bank conflicts (extra wavefronts) of shared memory."""
    counters = LaunchCounters(
        threads=10,
        accesses=[
            _access("global", "load", 4, sectors=28, lines=20),
            _access("global", "store", 16, sectors=48, lines=24),
            _access("global", "atomic", 32, sectors=64),
            _access("texture", "load", 64, sectors=256),
            _access("bulk", "store", 128, sectors=512),
            _access("local", "load", 2, sectors=8),
            _access("local", "store", 1, sectors=3),
            _access("constant", "load", 6, addresses=90),
            _access("cluster", "load", 2, sectors=17),
            _access("cluster", "atomic", 3, sectors=51),
            _access("shared", "load", 3, wavefronts=9, conflict_free=5),
            _access("shared", "store", 5, wavefronts=13, conflict_free=5),
            _access("shared", "copy", 7, wavefronts=100),
            _access("shared", "atomic", 7, wavefronts=1000),
        ],
        thread_instructions=250,
        merged={"load": (2, 6)},
    )
    assert {name: metric.value(counters) for name, metric in metrics.METRICS.items()} == {
        "load_sectors": 28 / 4,
        "store_sectors": 48 / 16,
        "load_lines": 20 / 4,
        "store_lines": 24 / 16,
        "bank_conflicts": (4 + 8) / (3 + 5),
        "instructions": 250 / 10,
        "sectors_loaded": 28 + 256,
        "sectors_stored": 48 + 512,
        "sectors_of_atomics": 64,
        "requests": 4 + 16 + 32 + 64 + 128,
        "local_sectors": 8 + 3,
        "local_requests": 2 + 1,
        "cluster_sectors": 17 + 51,
        "cluster_requests": 2 + 3,
        "constant_addresses": 90,
        "constant_requests": 6,
        "wavefronts": 9 + 13 + 100 + 1000,
        "merged_wavefronts": 6 + 13 + 100 + 1000,  # 6 instead of 9 wavefronts of loads
    }
    assert {metric.value(LaunchCounters(0)) for metric in metrics.METRICS.values()} == {0.0}


def test_parallel_counts_equal_serial_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    small: dict[str, dict[str, Any]] = {
        "Transpose": {"kernel": ["transpose_read_coalesced", "no_such_kernel"]},
        "OffsetCopy": {"offset": [0, 1]},
        "StrideCopy": {"stride": [1, 2]},
    }
    common: dict[str, Any] = {"dtype": ["int8", "float32"], "flags": [FLAGS, "-Xptxas -O0"]}
    originals = ((getattr(track_counted, name).sweep, axes) for name, axes in small.items())
    sweeps = [dataclasses.replace(sweep, axes={**axes, **common}) for sweep, axes in originals]
    suite = registry.Suite(KERNELS.copy, (), None, sweeps, track_compiled.Compiled.sweep)
    monkeypatch.setattr(registry, "current_suite", lambda: suite)
    outcomes = track_counted.Add().setup_cache()
    assert outcomes == count_launches(sweep.launch(point) for sweep in sweeps for point in sweep.points())
    assert len(outcomes) == 3 * 2**3  # three sweeps of three axes with two values
    assert {bool(outcome.missing) for outcome in outcomes.values()} == {True, False}


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        (("no_such_kernel", "float32", FLAGS), "it: there is no kernel 'no_such_kernel'"),
        (("transpose_read_coalesced", "no", FLAGS), "it: dtype 'no' is not a NumPy dtype"),
        (("transpose_read_coalesced", "complex256", FLAGS), "the dtype: '-DELEMENT={bits}': an element of 32 bytes"),
        (("add_coalesced", "float32", FLAGS), "it: add_coalesced takes size; given: columns, rows"),
    ],
)
def test_what_a_commit_lacks_is_skipped(params: tuple[str, ...], reason: str) -> None:
    benchmark, cache = _set_up("Transpose", params)
    with pytest.raises(NotImplementedError, match=f"^this commit does not have {reason}"):
        benchmark.setup(cache, *params)


def test_errors_are_outcomes_of_their_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    params, refusal = ("float32", 1, FLAGS), CompileError("nvcc failed: nvcc kernel.cu")
    with monkeypatch.context() as patch:
        patch.setattr(launch_counts, "compile_ptx", mock.Mock(side_effect=refusal))
        _, cache = _set_up("OffsetCopy", params)
        assert [outcome.failure for outcome in cache.values()] == ["CompileError: nvcc failed: nvcc kernel.cu"]
    with monkeypatch.context() as patch:
        problem = "element [0] of the output was never written"
        patch.setattr(launch_counts, "_find_problem", lambda *_: problem)
        benchmark, cache = _set_up("OffsetCopy", params)
    assert list(cache.values()) == [CountOutcome({}, failure=f"offset_copy: {problem}")]
    with pytest.raises(RuntimeError, match="never written"):
        benchmark.setup(cache, *params)


@pytest.mark.parametrize(
    ("own", "title"),
    [
        ({"title": "Mine", "__doc__": "Text."}, "Mine"),
        ({"__doc__": "Text.\n\nFurther text."}, "Text"),
        ({"kernel": "row_sum"}, "row_sum"),
        ({}, "Child"),
    ],
)
def test_title_is_not_inherited(own: dict[str, str], title: str) -> None:
    """Without a title and a docstring, the kernel or else the class is the title."""
    parent = type(
        "Parent", (kw.Counted,), {"title": "Other", "__doc__": "Other.", "param_names": ("n",), "params": [[1]]}
    )
    child: Any = type("Child", (parent,), own)
    assert child.title == title
