"""``python -m benchmarks.counters``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.counters import foreign
from benchmarks.counters.__main__ import main
from benchmarks.instruments import host_memory
from benchmarks.instruments.ptx.errors import LaunchError
from tests import cuda

SIX = [
    "load_requests",
    "load_sectors",
    "store_requests",
    "store_sectors",
    "shared_load_wavefronts",
    "shared_store_wavefronts",
]


def _json(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, int]:
    assert main([*words, "--json"]) == 0
    totals: dict[str, int] = json.loads(capsys.readouterr().out)
    assert all(type(value) is int for value in totals.values())
    return totals


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("transpose_read_coalesced rows=65 columns=33 --dtype int16", [130, 255, 130, 2145, 0, 0]),
        ("offset_copy size=1048576 offset=3 --dtype float32", [32768, 163840, 32768, 163840, 0, 0]),
        ("offset_copy --dtype float32 size=1048576 offset=0", [32768, 131072, 32768, 131072, 0, 0]),
        ("transpose_read_write_coalesced_unpadded rows=32 columns=32", [32, 128, 32, 128, 32, 1024]),
    ],
)
def test_json_of_the_catalog(command: str, expected: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    """Totals as integers."""
    totals = _json(capsys, *command.split())
    assert [totals[name] for name in SIX] == expected


def test_table_and_listing(capsys: pytest.CaptureFixture[str]) -> None:
    """The line with the bank conflicts is marked, and no other."""
    assert main(["transpose_read_write_coalesced_unpadded", "rows=64", "columns=64"]) == 0
    lines = capsys.readouterr().out.splitlines()
    marked = [line for line in lines if line.startswith(">>")]
    assert len(marked) == 2
    assert "tile[threadIdx.x][threadIdx.y] = input[row * columns + column];" in marked[0]
    assert "shared store: 32.00 wavefronts a request, 1.00 without bank conflicts" in marked[1]
    assert any(line.split()[:3] == ["load", "128", "512"] for line in lines)


def test_anyones_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    """A real mistake: 32 sectors a request where 4 would do, on the line that makes it."""
    source = str(cuda.FOLDER / "row_sums.cu")
    words = "--entry row_sums --grid 8 --block 128 sums=float32[1000] matrix=float32[1000,64] int32:1000 int32:64"
    assert main(["--source", source, *words.split()]) == 0
    marked = [line for line in capsys.readouterr().out.splitlines() if line.startswith(">>")]
    assert "sum += matrix[row * columns + column];" in marked[0]
    assert "load: 31.25 sectors a request, ideal 3.91" in marked[1]
    totals = _json(capsys, "--source", source, *words.split())
    assert [totals[name] for name in SIX] == [32 * 64, 1000 * 64, 32, 125, 0, 0]


def test_mangled_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A kernel without ``extern "C"``, by the name in the source; dynamic shared memory; flags."""
    source = tmp_path / "own.cu"
    source.write_text(
        "namespace own { __global__ void turn(FLOAT* out, FLOAT by) { extern __shared__ FLOAT s[]; "
        "s[threadIdx.x] = out[threadIdx.x]; __syncthreads(); out[threadIdx.x] = s[31 - threadIdx.x] * by; } }"
    )
    words = ["--source", str(source), "--entry", "turn", "--grid", "1", "--block", "32", "--flags", "-DFLOAT=float"]
    totals = _json(capsys, *words, "--dynamic-shared", "128", "out=float32[32]", "float32:2")
    assert [totals[name] for name in SIX] == [1, 4, 1, 4, 1, 1]


REFUSED = [
    ("", "a kernel is wanted: offset_copy"),
    ("no_such_kernel rows=1", "UnknownKernelError: kernel 'no_such_kernel' is not known"),
    ("offset_copy size=10", "ArgumentError: offset_copy takes size, offset; given: size"),
    ("offset_copy size=ten offset=0", "argument 'size=ten': NAME=INTEGER is wanted"),
    ("offset_copy size=10 offset=0 --dtype object", "UnknownDtypeError"),
    ("offset_copy size=10 offset=0 --flags -O9", "UnknownFlagsError"),
    ("--source nowhere.cu --entry k --grid 1 --block 1", "nowhere.cu: no such file"),
    ("--source nowhere.cu --entry k", "--source goes with --grid, --block"),
    ("--source {average} --entry sums --grid 1 --block 1", "0 kernels named 'sums'; it has row_sums"),
    ("--source {average} --entry row_sums --grid 1 --block 1 x", "argument 'x': neither an array"),
    ("--source {average} --entry row_sums --grid 1 --block 1 int99:1", "'int99' is not a NumPy dtype"),
    ("--source {average} --entry row_sums --grid 1 --block 1 int32:x", "'x' is not a int32"),
    (
        "--source {average} --entry row_sums --grid 1 --block 32 s=float32[32] m=float32[31,4] int32:32 int32:4",
        "OutOfBoundsError: {average}:8 (PTX line",
    ),
    ("--source {average} --entry row_sums --grid 1 --block 1 --flags -Dfloat=nothing", "CompileError: nvcc failed"),
    ("offset_copy size=5 offset=1 --grid 5 --arch sm_10", "--grid, --arch: goes with --source only"),
    ("offset_copy size=5 offset=1 offset=2", "argument 'offset=2': offset is given twice"),
    ("offset_copy size=500000000000 offset=1", "MemoryError: the arrays do not fit in this machine's memory"),
    (
        "--source {average} --entry row_sums --grid 1 --block 1 --dtype int8 s=float32[1] m=float32[1,1] int32:1",
        "--dtype: is for kernels of the catalog",
    ),
]


@pytest.mark.parametrize(("command", "text"), REFUSED)
def test_refusal(command: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 and one clear message on standard error."""
    average = str(cuda.FOLDER / "row_sums.cu")
    assert main(command.format(average=average).split()) == 1
    captured = capsys.readouterr()
    assert text.format(average=average) in captured.err
    assert not captured.out


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        # Input, and output before, after, and as NumPy has it: 1001 float32 each.
        ("offset_copy size=1000 offset=1", 16016),
        # Each of the two arrays would fit alone.
        ("--source {sums} --entry row_sums --grid 1 --block 32 s=float32[32] m=float32[32,4] int32:32 int32:4", 640),
    ],
)
def test_memory(command: str, needed: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit is refused before it is made: where Linux grants more than there is, NumPy does not notice."""
    words = command.format(sums=cuda.FOLDER / "row_sums.cu").split()
    monkeypatch.setattr(host_memory, "physical", lambda: needed)
    assert main(words) == 0
    monkeypatch.setattr(host_memory, "physical", lambda: needed - 1)
    assert main(words) == 1
    assert f"memory: they take {needed} bytes, it has {needed - 1}; use smaller" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["1,2,3,4", "x", ""])
def test_dimensions(text: str) -> None:
    """One to three numbers."""
    with pytest.raises(ValueError, match=r"."):
        foreign.dimensions(text)


def test_arrays() -> None:
    """Arrays hold 0, 1, 2, ... unless told otherwise."""
    array = foreign.argument("a=int16[2,3]")
    assert isinstance(array, np.ndarray)
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert isinstance(foreign.argument("n=uint8:7"), np.uint8)
    assert isinstance(foreign.argument("a=float64[4]=ones"), np.ndarray)
    with pytest.raises(LaunchError):
        foreign.argument("a=float64[-1]")
