"""Compiled kernels of the catalog, executed on the CPU, against their NumPy reference."""

import itertools
import math

import numpy as np
import pytest

from benchmarks.sweeps import FLAG_SETS
from gpu_kernels import catalog
from kernelwatch import Kernel
from kernelwatch.counting import launch_counts
from kernelwatch.kernel import Launch
from kernelwatch.kernel.launch import DTYPE, FLAGS
from ptxcount.engine.execute import execute_kernel
from ptxcount.machine.argument_layout import Argument
from ptxcount.util.errors import KernelFaultError, ReadOnlyError
from tests import cases
from tests.wrong_kernels import WRITING, WRONG

#: Largest side for kernels with one thread per element, and for kernels whose threads loop over the matrix.
SIDE, WALKED_SIDE = 64, 6

#: Side of a matrix -> other sides. 17 lies within a tile, 33 beyond it.
BESIDE = {17: (1, 2, 15, 16, 17, 31, 32), 33: range(1, SIDE + 1)}

#: Most steps of a transpose's thread here; longer loops repeat the same steps, and run on a GPU.
MOST_LOOPED = 500


@pytest.mark.parametrize("kernel", cases.COVERING_TRANSPOSES)
def test_small_transposes_are_right(kernel: str) -> None:
    text, spec = launch_counts.compile_ptx(kernel, "float32", FLAGS), catalog.KERNELS[kernel]
    source = np.arange(1, SIDE * SIDE + 1, dtype=np.float32)
    reads_rows = kernel != "transpose_write_coalesced"
    one_way = [(side, beside) for beside, sides in BESIDE.items() for side in sides]
    for rows, columns in (*one_way, *((columns, rows) for rows, columns in one_way)):
        matrix = source[: rows * columns].reshape(rows, columns)
        output = np.zeros((columns, rows), np.float32)
        geometry = spec.compute_geometry("float32", rows=rows, columns=columns)
        args: list[Argument] = [output, matrix.copy(), np.int64(rows), np.int64(columns)]
        counters = execute_kernel(text, kernel, geometry.grid, geometry.block, args, races="error")
        assert (output == matrix.T).all(), (rows, columns)
        if spec.tile is None:  # one thread per element, one request per warp of 32
            long, wide = (rows, columns) if reads_rows else (columns, rows)
            assert counters.totals()["load_requests"] == long * math.ceil(wide / 32), (rows, columns)


@pytest.mark.parametrize("kernel", sorted(set(cases.TRANSPOSES) - set(cases.COVERING_TRANSPOSES)))
def test_tiny_transposes_are_right(kernel: str) -> None:
    """Threads of these kernels loop over the matrix, so that a larger matrix would take long."""
    for rows, columns in itertools.product(range(1, WALKED_SIDE + 1), repeat=2):
        problem = launch_counts.count_launch(kernel, "float32", rows=rows, columns=columns).problem
        assert problem is None, (rows, columns)


#: Every shape in float32, every fifth in other dtypes, and no long loops of transposes; a GPU runs all.
AWKWARD_BY_TURNS = [
    (kernel, dtype, arguments)
    for kernel, dtype, arguments in cases.AWKWARD_IN_EVERY_DTYPE
    if dtype == DTYPE or cases.awkward(kernel).index(arguments) % 5 == cases.dtypes(kernel).index(dtype) % 5
    if kernel not in cases.TRANSPOSES or cases.steps_a_thread(kernel, arguments) <= MOST_LOOPED
]


@pytest.mark.parametrize(("kernel", "dtype", "arguments"), AWKWARD_BY_TURNS, ids=str)
def test_outputs_of_awkward_shapes_are_right(kernel: str, dtype: str, arguments: dict[str, int]) -> None:
    assert launch_counts.count_launch(kernel, dtype, **arguments).problem is None


@pytest.mark.parametrize("flag_set", FLAG_SETS)
@pytest.mark.parametrize("kernel", catalog.KERNELS)
def test_outputs_are_right_with_every_flag_set(kernel: str, flag_set: str) -> None:
    """The shape is the last awkward one with few steps per thread."""
    shapes = reversed(cases.awkward(kernel))
    arguments = next(shape for shape in shapes if cases.steps_a_thread(kernel, shape) <= cases.MOST_STEPS)
    dtype = "float32" if "float32" in cases.dtypes(kernel) else cases.dtypes(kernel)[0]
    assert launch_counts.count_launch(kernel, dtype, flag_set, **arguments).problem is None


#: Error of the executor for each kernel of ``tests/wrong_kernels``. An element is the first wrong one.
FOUND = {
    "offset_copy_off_by_one": "element [3] of output is",
    "transpose_skipped_last_tile": "element [64, 0] of output was never written",
    "transpose_missing_bounds_check": "access out of bounds",
    "transpose_stale_output": "element [1, 0] of output was never written",
    "add_skipped_tail": "element [992] of output was never written",
    "add_missing_bounds_check": "access out of bounds",
    "matmul_skipped_last_step": "element [0, 0] of output is",
    "matmul_exchanged_operands": "element [0, 0] of output is",
    "matmul_forgotten_turn": "element [0, 0] of output is",
}


@pytest.mark.parametrize(("kernel", "arguments"), [row[:2] for row in WRONG], ids=[row[0].name for row in WRONG])
def test_wrong_kernels_are_found(kernel: Kernel, arguments: dict[str, int]) -> None:
    try:
        problem = launch_counts.count_launch(kernel, "float32", **arguments).problem
    except KernelFaultError as fault:
        problem = str(fault)
    assert problem is not None
    assert FOUND[kernel.name] in problem


@pytest.mark.parametrize(("kernel", "arguments", "_"), WRITING, ids=lambda value: getattr(value, "name", ""))
def test_write_to_an_input_is_an_error(kernel: Kernel, arguments: dict[str, int], _: str) -> None:
    last = len(cases.list_array_shapes(kernel, **arguments)) - 1  # the input that the kernels in WRITING write
    written = rf"wrong\.cu:\d+ .* write to a read-only array by .* of argument {last} of"
    with pytest.raises(ReadOnlyError, match=written):
        launch_counts.count_launch(kernel, "float32", **arguments)


def test_blocks_of_many_rows_continue_along_z() -> None:
    rows = 32 * 65535 + 5  # 5 more than CUDA's 65535 blocks along y hold
    result = launch_counts.count_launch("transpose_read_coalesced", "int8", rows=rows, columns=1)
    assert result.geometry.grid[2] > 1
    assert result.problem is None


def _count_gathered(nbytes: int) -> float:
    """Return the mean sectors per request: half load 32 indices (4 sectors), half 32 random elements of an array."""
    sectors = nbytes // 32
    return (4 + sectors * (1 - (1 - 1 / sectors) ** 32)) / 2


#: Launch -> sectors and lines per request. A warp's 32 float32 fill 4 sectors of a line.
COUNTED: dict[str, dict[str, float]] = {
    "row_sum rows=20 columns=256 float32": {"load_sectors": 4, "load_lines": 1, "store_sectors": 1},
    "row_sum rows=21 columns=128 float64": {"load_sectors": 8, "load_lines": 2, "store_sectors": 1},
    "row_sum rows=1 columns=1 float32": {"load_sectors": 1, "store_sectors": 1},
    "gather size=4096 float32": {"load_sectors": _count_gathered(4 * 4096), "store_sectors": 4, "store_lines": 1},
    "gather size=4096 float64": {"load_sectors": _count_gathered(8 * 4096), "store_sectors": 8, "store_lines": 2},
    "histogram size=4101 bins=64 int8": {"load_sectors": 1, "load_lines": 1, "store_sectors": 0},
}


@pytest.mark.parametrize("text", COUNTED)
def test_metrics_follow_from_addresses(text: str) -> None:
    outcome = launch_counts.count_launches([Launch.parse(text)])[str(Launch.parse(text))]
    assert (outcome.failure, outcome.missing) == ("", "")
    assert {name: outcome.metrics[name] for name in COUNTED[text]} == pytest.approx(COUNTED[text], rel=0.01)
