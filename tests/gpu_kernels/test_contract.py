"""The contract with packages of kernels: stable names, skips, geometry and traffic of the catalog."""

import importlib
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import kernelwatch
from benchmarks import installed
from gpu_kernels import KERNELS
from kernelwatch.instrument import skip_reasons
from kernelwatch.kernel.geometry import Extent, Geometry
from kernelwatch.suite import registry

#: Names that packages of older commits import; they stay.
IMPORTED = {
    "kernelwatch": "Kernel in_and_out inputs outputs",
    "kernelwatch.errors": "ArgumentError UnknownKernelError",
    "kernelwatch.kernel": "Array Kernel Shape geometry",
    "kernelwatch.kernel.geometry": "Extent cover_or_finer one_block",
}


def test_names_of_older_packages_stay() -> None:
    for module, names in IMPORTED.items():
        assert all(hasattr(importlib.import_module(module), name) for name in names.split()), module
    assert kernelwatch.Kernel is kernelwatch.kernel.Kernel


#: Packages of earlier commits: a version of the interface, or the error of their import.
SKIPPED = [
    {},
    {"CONTRACT": 2},
    TypeError("Kernel() got an unexpected keyword argument"),
    ImportError("cannot import name 'Operation' from 'kernelwatch.kernel'"),
]


def _install_package(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the installed package by one with these attributes, or by one whose import raises this error."""

    def import_module(_: str) -> Any:
        if isinstance(package, Exception):
            raise package
        return SimpleNamespace(KERNELS={"offset_copy": object()}, **package)

    monkeypatch.setattr(importlib, "import_module", import_module)
    suite = SimpleNamespace(kernels=installed.kernels, dtypes={})
    monkeypatch.setattr(registry, "current_suite", lambda: suite)


@pytest.mark.parametrize("package", SKIPPED, ids=str)
def test_older_packages_are_skipped(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _install_package(package, monkeypatch)
    reason = "the package defines no kernelwatch kernels"
    with pytest.raises(NotImplementedError, match=reason), skip_reasons.skip_unknown_names():
        registry.find_kernel("offset_copy")


def test_missing_names_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only names that the library once had (`installed._REMOVED`) are skipped; a typo is an error."""
    _install_package(ImportError("cannot import name 'Kernal' from 'kernelwatch.kernel'"), monkeypatch)
    with pytest.raises(ImportError, match="Kernal"), skip_reasons.skip_unknown_names():
        registry.find_kernel("offset_copy")


BY_ROWS, BY_COLUMNS = "transpose_read_coalesced", "transpose_write_coalesced"
SIDE = np.int32(65536)

#: Kernel, dtype, arguments -> grid and block, x first; useful bytes and operations.
LAUNCHES: list[tuple[str, str, dict[str, Any], Extent, Extent, int, int]] = [
    ("offset_copy", "int8", {"size": 256 + 1, "offset": 9}, (2, 1, 1), (256, 1, 1), 2 * 257, 0),
    # The sum of NumPy's integers, 300, does not overflow.
    ("offset_copy", "int8", {"size": np.uint8(200), "offset": np.uint8(100)}, (1, 1, 1), (256, 1, 1), 2 * 200, 0),
    ("offset_copy", "int8", {"size": 2**33, "offset": 0}, (2**33 // 256, 1, 1), (256, 1, 1), 2 * 2**33, 0),
    ("stride_copy", "complex128", {"size": 256, "stride": 9}, (1, 1, 1), (256, 1, 1), 2 * 16 * 256, 0),
    (BY_ROWS, "int8", {"rows": 2 * 32 + 1, "columns": 32}, (1, 3, 1), (32, 32, 1), 2 * 65 * 32, 0),
    (BY_COLUMNS, "int8", {"rows": 2 * 32 + 1, "columns": 32}, (3, 1, 1), (32, 32, 1), 2 * 65 * 32, 0),
    # Along y, CUDA allows 65535 blocks; more are split evenly along z.
    (BY_ROWS, "int8", {"rows": 65535 * 32, "columns": 1}, (1, 65535, 1), (32, 32, 1), 2 * 65535 * 32, 0),
    (BY_ROWS, "int8", {"rows": 65535 * 32 + 1, "columns": 1}, (1, 65536 // 2, 2), (32, 32, 1), 2 * (65535 * 32 + 1), 0),
    (BY_ROWS, "int8", {"rows": 65536 * 32 + 1, "columns": 1}, (1, 32768 + 1, 2), (32, 32, 1), 2 * (65536 * 32 + 1), 0),
    (BY_ROWS, "int8", {"rows": SIDE, "columns": SIDE}, (65536 // 32, 65536 // 32, 1), (32, 32, 1), 2 * 65536**2, 0),
    ("transpose_serial", "float64", {"rows": 288, "columns": 288}, (1, 1, 1), (1, 1, 1), 16 * 288**2, 0),
    ("transpose_row_per_thread", "int8", {"rows": 8 * 32 + 1, "columns": 9}, (9, 1, 1), (32, 1, 1), 2 * 257 * 9, 0),
    ("add_uncoalesced", "float64", {"size": 1024 + 1}, (2, 1, 1), (32, 32, 1), 3 * 8 * 1025, 1025),
    *(
        (
            *("matmul_tiled", "float16", {"rows": 10, "inner": 20, "columns": columns}, grid, (32, 8, 1)),
            *(2 * (10 * 20 + 20 * columns + 10 * columns), 2 * 10 * 20 * columns),
        )
        for columns, grid in ((30, (1, 1, 1)), (33, (2, 1, 1)))
    ),
    # The vectorized transpose: large tiles if there are many, otherwise squares, and others for ragged rows.
    *(
        (
            *("transpose_vectorized", dtype, {"rows": rows, "columns": columns}),
            *((math.ceil(rows / tile[0]), math.ceil(columns / tile[1]), 1), (256, 1, 1)),
            *(2 * rows * columns * np.dtype(dtype).itemsize, 0),
        )
        for rows, columns, dtype, tile in (
            (256, 256, "float32", (32, 32)),
            (512, 512, "float32", (32, 32)),
            (1024, 1024, "float32", (64, 64)),
            (1000, 700, "float32", (64, 32)),
            (5003, 2999, "float32", (64, 32)),
            (5003, 2999, "int8", (64, 124)),
            (2048, 1024, "int8", (32, 128)),
            (4096, 1024, "int8", (64, 256)),
            (2048, 1024, "float16", (32, 128)),
            (4096, 1024, "float16", (128, 128)),
            (128, 128, "complex128", (16, 16)),
            (2048, 1024, "complex128", (16, 32)),
            (2040, 1024, "int8", (64, 124)),
            (256, 256, "float64", (32, 32)),
            (1024, 1023, "complex128", (14, 32)),
            (257, 251, "float32", (32, 32)),
        )
    ),
    ("transpose_vectorized", "float32", {"rows": 8, "columns": 65536 * 64}, (1, 65536 // 2, 2), (256, 1, 1), 2**28, 0),
]


@pytest.mark.parametrize(("name", "dtype", "arguments", "grid", "block", "useful", "flops"), LAUNCHES)
def test_grids_and_traffic_of_launches(
    name: str, dtype: str, arguments: dict[str, Any], grid: Extent, block: Extent, useful: int, flops: int
) -> None:
    """Useful bytes count each element once per direction."""
    kernel = KERNELS[name]
    assert kernel.compute_geometry(dtype, **arguments) == Geometry(grid, block)
    assert (kernel.useful_bytes(dtype, **arguments), kernel.flops(**arguments)) == (useful, flops)
