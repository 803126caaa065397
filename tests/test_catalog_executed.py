"""The compiled kernels of the catalog, executed on the CPU, against their NumPy reference."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.instruments import counted
from benchmarks.instruments.ptx.errors import KernelFaultError, OutOfBoundsError
from benchmarks.instruments.ptx.execute import Argument, run
from gpu_kernels import catalog, dtypes, flags
from gpu_kernels.spec import Kernel
from tests.wrong_kernels import WRONG

TRANSPOSES = [name for name in catalog.KERNELS if "transpose" in name]
SIDE = 64


@pytest.mark.parametrize("kernel", TRANSPOSES)
def test_every_small_transpose(kernel: str) -> None:
    """All shapes from 1 x 1 to 64 x 64 in float32: the output, and a request for each part of a row of a tile."""
    text, spec = counted.ptx(kernel, "float32", flags.DEFAULT), catalog.get(kernel)
    source = np.arange(1, SIDE * SIDE + 1, dtype=np.float32)
    reads_rows = kernel != "transpose_write_coalesced"
    for rows in range(1, SIDE + 1):
        for columns in range(1, SIDE + 1):
            given = source[: rows * columns].reshape(rows, columns)
            output = np.zeros((columns, rows), np.float32)
            geometry = spec.geometry(rows=rows, columns=columns)
            args: list[Argument] = [output, given.copy(), np.int64(rows), np.int64(columns)]
            counters = run(text, kernel, geometry.grid, geometry.block, args)
            assert (output == given.T).all(), (rows, columns)
            long, wide = (rows, columns) if reads_rows else (columns, rows)
            assert counters.totals()["load_requests"] == long * math.ceil(wide / 32), (rows, columns)


SHAPES = [(1, 1), (1, 100), (100, 1), (33, 31), (65, 97), (200, 129), (3, 1000), (257, 64)]


@pytest.mark.parametrize("dtype", dtypes.DTYPES)
@pytest.mark.parametrize("kernel", TRANSPOSES)
def test_awkward_transposes(kernel: str, dtype: str) -> None:
    """Shapes around the tile's edges, in every dtype."""
    for rows, columns in SHAPES:
        result = counted.count(kernel, dtype, rows=rows, columns=columns)
        assert result.problem() is None, (rows, columns)


@pytest.mark.parametrize("dtype", dtypes.DTYPES)
def test_copies(dtype: str) -> None:
    """Sizes around a block's, offsets and strides, in every dtype; elements between keep their poison."""
    for size in (1, 31, 255, 256, 257, 1000):
        for step in (1, 2, 7, 32, 33):
            assert counted.count("offset_copy", dtype, size=size, offset=step - 1).problem() is None, (size, step)
            assert counted.count("stride_copy", dtype, size=size, stride=step).problem() is None, (size, step)


@pytest.mark.parametrize("flag_set", flags.FLAG_SETS)
@pytest.mark.parametrize("kernel", catalog.KERNELS)
def test_every_flag_set(kernel: str, flag_set: str) -> None:
    """The PTX of every flag set is executed."""
    arguments = dict.fromkeys(catalog.get(kernel).parameters, 37)
    assert counted.count(kernel, "float32", flag_set, **arguments).problem() is None


#: What the executor says of each wrong kernel of ``tests/wrong_kernels``.
FOUND = {
    "offset_copy_off_by_one": "element [3] of the output is",
    "transpose_skipped_last_tile": "element [64, 0] of the output was never written",
    "transpose_missing_bounds_check": "access out of bounds",
    "transpose_stale_output": "element [1, 0] of the output was never written",
}


@pytest.mark.parametrize(("kernel", "arguments"), [row[:2] for row in WRONG], ids=[row[0].name for row in WRONG])
def test_wrong_kernels_are_found(kernel: Kernel, arguments: dict[str, int]) -> None:
    """By a fault, or by what is missing from the output."""
    try:
        said = counted.count(kernel, "float32", **arguments).problem()
    except KernelFaultError as fault:
        said = str(fault)
    assert said is not None
    assert FOUND[kernel.name] in said


def test_off_by_one_at_the_edge() -> None:
    """Where it reads before the array, a copy that is off by one is a fault."""
    with pytest.raises(OutOfBoundsError, match="4 bytes before argument 1"):
        counted.count(WRONG[0][0], "float32", size=100, offset=0)


def test_rows_beyond_a_grids_y() -> None:
    """A matrix so tall that blocks go on along z."""
    rows = 32 * 65535 + 5
    result = counted.count("transpose_read_coalesced", "int8", rows=rows, columns=1)
    assert result.geometry.grid[2] > 1
    assert result.problem() is None


def test_other_dtypes_by_their_size() -> None:
    """A dtype travels as the element type of its size."""
    wide = counted.count("offset_copy", "int16", size=100, offset=1).counters
    assert wide == counted.count("offset_copy", "float16", size=100, offset=1).counters
