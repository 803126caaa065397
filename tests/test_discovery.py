"""What asv finds in `benchmarks/`, with asv's own discovery."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from asv_runner.discovery import disc_benchmarks

from benchmarks import axes
from benchmarks.instruments import prebuild
from benchmarks.timed import SAMPLES

ROOT = Path(__file__).parent.parent

#: A row more in a table of gpu_kernels, and a name more in the axes, is a configuration more in all of these.
_KERNELS, _TRANSPOSES, _DTYPES, _FLAGS = map(len, (axes.KERNELS, axes.TRANSPOSES, axes.DTYPES, axes.FLAG_SETS))

#: Every benchmark there should be, with its number of configurations.
EXPECTED = {
    "time_transpose.Transpose.time_back_to_back": _TRANSPOSES * 7 * _DTYPES * _FLAGS,
    "time_transpose.TransposeInL2.time_back_to_back": _TRANSPOSES * 3,
    "time_copy.OffsetCopy.time_back_to_back": 8 * 1 * _DTYPES * 2,
    "time_copy.StrideCopy.time_back_to_back": 7 * 1 * _DTYPES * 2,
    "time_copy.MatrixSizedCopy.time_back_to_back": 4 * 1 * _FLAGS,
    "time_copy.DeviceCopy.time_back_to_back": 7 * _DTYPES,
    "time_transpose.IsolatedTranspose.time_isolated": _TRANSPOSES * 2 * _DTYPES,
    "track_control.Transpose.track_copy_ratio": _TRANSPOSES * 7 * _DTYPES * _FLAGS,
    "track_control.TransposeInL2.track_copy_ratio": _TRANSPOSES * 3,
    "track_control.IsolatedTranspose.track_copy_ratio": _TRANSPOSES * 2 * _DTYPES,
    "track_control.OffsetCopy.track_copy_ratio": 8 * 1 * _DTYPES * 2,
    "track_control.StrideCopy.track_copy_ratio": 7 * 1 * _DTYPES * 2,
    "track_control.MatrixSizedCopy.track_copy_ratio": 4 * 1 * _FLAGS,
    **{
        f"track_counted.{name}.track_{metric}": count
        for name, count in (
            ("Transpose", _TRANSPOSES * _DTYPES * _FLAGS),
            ("OffsetCopy", _DTYPES * 8 * _FLAGS),
            ("StrideCopy", _DTYPES * 7 * _FLAGS),
        )
        for metric in ("load_sectors", "store_sectors", "instructions")
    },
    "track_counted.Transpose.track_bank_conflicts": _TRANSPOSES * _DTYPES * _FLAGS,
    "track_compiled.Compiled.track_registers": _KERNELS * _DTYPES * _FLAGS * 3,
    "track_compiled.Compiled.track_spill_bytes": _KERNELS * _DTYPES * _FLAGS * 3,
    "track_compiled.Compiled.track_shared_bytes": _KERNELS * _DTYPES * _FLAGS * 3,
}


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Benchmarks by name, as asv's runner finds them."""
    return {benchmark.name: benchmark for benchmark in disc_benchmarks(str(ROOT / "benchmarks"))}


def test_all_and_no_others(found: dict[str, Any]) -> None:
    """Asv finds every intended benchmark with all its configurations, and nothing else."""
    assert {name: math.prod(map(len, benchmark.params)) for name, benchmark in found.items()} == EXPECTED
    least = zip((_KERNELS, _TRANSPOSES, _DTYPES, _FLAGS), (6, 4, 5, 3), strict=True)
    assert all(now >= before for now, before in least), "names are never taken off the axes"


def test_each_says_what_it_is(found: dict[str, Any]) -> None:
    """Each has an explicit version, a name that a person can read, named axes and a unit."""
    for name, benchmark in found.items():
        assert len(benchmark.version) < 10, f"{name}: set version, or a comment in it orphans its history"
        assert ":" in benchmark.pretty_name, name
        assert len(benchmark.param_names) == len(benchmark.params)
        assert not any(param.startswith("param") for param in benchmark.param_names)
        assert benchmark.unit != "unit", name
    assert len({benchmark.pretty_name for benchmark in found.values()}) == len(found)


def test_compiling_may_take_long(found: dict[str, Any]) -> None:
    """A benchmark's own limit is none for compiling everything, which a slow machine takes minutes for."""
    assert {benchmark.setup_cache_timeout for benchmark in found.values()} == {prebuild.TIMEOUT}


@pytest.mark.parametrize("module", ["timed", "track_compiled"])
def test_the_compiler_is_asked_before_the_fork(module: str) -> None:
    """A process that imports the benchmarks knows nvcc's version: those forked from it need not start nvcc for it."""
    asked = f"import benchmarks.{module}; from gpu_kernels import nvcc; print(nvcc.version.cache_info().currsize)"
    done = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "1\n", done.stderr


def test_protocol(found: dict[str, Any]) -> None:
    """What is timed takes one replay a sample, in two processes, and in each as many samples as the reports assume."""
    for name, benchmark in found.items():
        if benchmark.type == "time":
            assert (benchmark.number, benchmark.rounds) == (1, 2), name
            assert benchmark.repeat == SAMPLES, name


def test_axes_are_used(found: dict[str, Any]) -> None:
    """The parameters come from the literal axes."""
    assert found["time_copy.OffsetCopy.time_back_to_back"].params[0] == [repr(value) for value in axes.OFFSETS]
    assert found["time_transpose.Transpose.time_back_to_back"].params[1] == [repr(value) for value in axes.MATRICES]
