"""The kernels on a device, against NumPy: bit for bit, or as near as their operation says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from benchmarks.sweeps import FLAG_SETS
from gpu_kernels import KERNELS, catalog
from tests.cases import AWKWARD_IN_EVERY_DTYPE, COVERING_TRANSPOSES, PRODUCTS, TRANSPOSES
from tests.gpu.harness import run_and_check

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", TRANSPOSES)
def test_every_small_matrix(name: str) -> None:
    """Every rows x columns in 1..64 x 1..64 is transposed exactly in float32."""
    kernel = catalog.get(name)
    for rows, columns in itertools.product(range(1, 65), repeat=2):
        run_and_check(kernel, "float32", "-Xptxas -O3", rows=rows, columns=columns)


@pytest.mark.parametrize("name", PRODUCTS)
def test_every_product_at_the_edges_of_tiles(name: str) -> None:
    """Every rows x inner x columns of lengths around those of tiles is right in every dtype."""
    kernel = catalog.get(name)
    for lengths in itertools.product((1, 31, 32, 33, 127), repeat=3):
        for dtype in kernel.operation.dtypes:
            arguments = dict(zip(kernel.operation.minimum, lengths, strict=True))
            run_and_check(kernel, dtype, "-Xptxas -O3", **arguments)


@pytest.mark.parametrize("flag_set", FLAG_SETS)
@pytest.mark.parametrize("name", KERNELS)
def test_awkward_shapes(name: str, flag_set: str) -> None:
    """Every kernel is right at shapes that do not fit its blocks, for each dtype and flag set."""
    for kernel, dtype, arguments in AWKWARD_IN_EVERY_DTYPE:
        if kernel == name:
            run_and_check(KERNELS[name], dtype, flag_set, **arguments)


@pytest.mark.parametrize("name", COVERING_TRANSPOSES)
def test_more_rows_than_a_grid_has_blocks_along_y(name: str) -> None:
    """A matrix of over 65535 x 32 rows, or columns, is transposed exactly."""
    run_and_check(catalog.get(name), "int8", "-Xptxas -O3", rows=2_097_120 + 33, columns=3)
    run_and_check(catalog.get(name), "int8", "-Xptxas -O3", rows=3, columns=2_097_120 + 33)


@pytest.mark.parametrize("name", [*COVERING_TRANSPOSES, "offset_copy", "stride_copy"])
def test_more_than_two_to_the_31_elements(name: str) -> None:
    """Indices beyond 32 bits reach the right elements."""
    import pycuda.driver as cuda

    kernel = catalog.get(name)
    arguments = {
        "offset_copy": {"size": 2**31 + 5, "offset": 3},
        "stride_copy": {"size": 2**26 + 5, "stride": 33},
    }.get(name, {"rows": 46349, "columns": 46351})
    assert np.prod(kernel.arrays(**arguments)[1]) > 2**31
    free, _ = cuda.mem_get_info()
    if free < 6 * 2**30:
        pytest.skip(f"needs 6 GiB of GPU memory, {free / 2**30:.1f} GiB are free")
    run_and_check(kernel, "int8", "-Xptxas -O3", **arguments)
