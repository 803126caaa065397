"""The vectorized transpose at large and ragged shapes."""

import math

import numpy as np
import pytest

from benchmarks.sweeps import MOVED
from gpu_kernels import catalog
from kernelwatch.counting import launch_counts
from kernelwatch.kernel.launch import FLAGS
from kernelwatch.suite import metrics
from ptxcount.engine.execute import execute_kernel
from ptxcount.machine.argument_layout import Argument

NAME = "transpose_vectorized"
DTYPES = MOVED

#: Bytes of a vector of large tiles.
VECTOR = {"int8": 8, "float16": 16, "float32": 16, "float64": 16, "complex128": 16}

#: Numbers of rows that give at least 256 large tiles. Rows of the output begin at sectors. The last tile is partial.
WHOLE_ROWS = {dtype: 4096 if dtype in ("int8", "float16") else 2048 for dtype in DTYPES}
PARTIAL_ROWS = {dtype: 4064 if dtype in ("int8", "float16") else 2040 for dtype in DTYPES}


@pytest.mark.parametrize(("all_rows", "columns"), [(WHOLE_ROWS, 1024), (PARTIAL_ROWS, 1144)], ids=("whole", "partial"))
@pytest.mark.parametrize("dtype", DTYPES)
def test_large_tiles_move_vectors(dtype: str, all_rows: dict[str, int], columns: int) -> None:
    """A request moves up to 32 vectors. Those at ends of rows move fewer, so there are at most 20 % more requests."""
    rows = all_rows[dtype]
    result = launch_counts.count_launch(NAME, dtype, rows=rows, columns=columns)
    assert result.problem is None
    vectors = rows * columns * np.dtype(dtype).itemsize // VECTOR[dtype]
    for requests in ("load_requests", "store_requests"):
        assert math.ceil(vectors / 32) <= result.counters.totals()[requests] <= 1.2 * vectors / 32
    assert metrics.METRICS["bank_conflicts"].value(result.counters) == 0


@pytest.mark.parametrize(("dtype", "nbytes"), [("int8", 4), ("float16", 8), ("float32", 8), ("float64", 16)])
def test_small_tiles_move_short_vectors(dtype: str, nbytes: int) -> None:
    """A vector has four elements of one or two bytes, or two elements. Bank conflicts are rare."""
    result = launch_counts.count_launch(NAME, dtype, rows=512, columns=480)
    assert result.problem is None
    totals, requests = result.counters.totals(), 512 * 480 * np.dtype(dtype).itemsize // (32 * nbytes)
    assert totals["load_requests"] == pytest.approx(requests, rel=0.1)
    assert totals["store_requests"] == pytest.approx(requests, rel=0.1)
    assert metrics.METRICS["bank_conflicts"].value(result.counters) == 0


def test_rows_of_128_kib_are_moved_once() -> None:
    """A row has 8192 elements of 16 bytes. A request moves 32 of them, a sector holds two."""
    result = launch_counts.count_launch(NAME, "complex128", rows=256, columns=8192)
    assert result.problem is None
    totals = result.counters.totals()
    assert totals["load_requests"] == totals["store_requests"] == 256 * 8192 // 32
    assert totals["load_sectors"] == totals["store_sectors"] == 256 * 8192 * 16 // 32


@pytest.mark.parametrize(
    ("dtype", "loads", "stores", "sectors", "conflicts"),
    [("int8", 1.7, 1.3, 1.06, 0), ("float16", 1.3, 1.15, 1.01, 0.004)],
)
def test_partial_sectors_cost_little(dtype: str, loads: float, stores: float, sectors: float, conflicts: float) -> None:
    """If output rows begin within sectors, tiles load words, store vectors, and write few more sectors than needed."""
    rows, columns = 2040, 576
    result = launch_counts.count_launch(NAME, dtype, rows=rows, columns=columns)
    assert result.problem is None
    totals, nbytes = result.counters.totals(), rows * columns * np.dtype(dtype).itemsize
    word, vector = 32 * 4, 32 * 16  # bytes of a request
    assert nbytes / word <= totals["load_requests"] <= loads * nbytes / word
    assert nbytes / vector <= totals["store_requests"] <= stores * nbytes / vector
    assert nbytes / 32 <= totals["store_sectors"] <= sectors * nbytes / 32
    assert metrics.METRICS["bank_conflicts"].value(result.counters) <= conflicts


#: Dtype and shape; if instructions do not depend on the size, fewer rows reach them all.
RAGGED = [
    (dtype, *shape)
    for dtype in DTYPES
    for shape in ((263, 517), *(((1035, 1031), (1023, 257)) if dtype in ("float32", "complex128") else ((2059, 1031),)))
]


@pytest.mark.parametrize(("dtype", "rows", "columns"), RAGGED)
def test_ragged_rows_have_few_conflicts(dtype: str, rows: int, columns: int) -> None:
    """In int8, lines of a tile half a sector apart share banks. Otherwise, only elements at ends of rows do.

    The limits are the largest counts, rounded up.
    """
    result = launch_counts.count_launch(NAME, dtype, rows=rows, columns=columns)
    assert result.problem is None
    most = {"int8": 0.6, "float16": 0.01, "float32": 0.01, "float64": 0.002, "complex128": 0}[dtype]
    assert metrics.METRICS["bank_conflicts"].value(result.counters) <= most


@pytest.mark.parametrize(("rows", "columns"), [(203, 261), (512, 512)], ids=str)
@pytest.mark.parametrize(("first_input", "first_output"), [(0, 1), (1, 0), (2, 3), (3, 2)])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32"])
def test_arrays_may_be_at_any_address(dtype: str, first_input: int, first_output: int, rows: int, columns: int) -> None:
    """Elements before and after the output keep 252, a value that no input has."""
    length, word = rows * columns, np.dtype(f"u{np.dtype(dtype).itemsize}")
    memory = np.random.default_rng(1).integers(0, 251, first_input + length).astype(word)
    matrix, around = memory[first_input:], np.full(first_output + length + 3, 252, word)
    matrix.flags.writeable = False
    geometry = catalog.KERNELS[NAME].compute_geometry(dtype, rows=rows, columns=columns)
    args: list[Argument] = [around[first_output : first_output + length], matrix, np.int64(rows), np.int64(columns)]
    execute_kernel(launch_counts.compile_ptx(NAME, dtype, FLAGS), NAME, geometry.grid, geometry.block, args)
    expected = np.full_like(around, 252)
    expected[first_output : first_output + length] = matrix.reshape(rows, columns).T.ravel()
    np.testing.assert_array_equal(around, expected)
