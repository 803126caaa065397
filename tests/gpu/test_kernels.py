"""Kernels on a device give NumPy's results within their tolerance, and pass compute-sanitizer."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest

from benchmarks.sweeps import FLAG_SETS
from gpu_kernels import catalog
from kernelwatch.config.project_root import ROOT
from kernelwatch.kernel.launch import FLAGS
from kernelwatch.suite import registry
from tests.cases import AWKWARD_IN_EVERY_DTYPE, COVERING_TRANSPOSES, PRODUCTS, TRANSPOSES, dtypes
from tests.gpu.cases import SMALL, list_all_launches, list_launches
from tests.gpu.harness import run_and_check

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", TRANSPOSES)
def test_small_transposes_are_exact(name: str) -> None:
    kernel = catalog.KERNELS[name]
    for rows, columns in itertools.product(range(1, 65), repeat=2):
        run_and_check(kernel, "float32", FLAGS, rows=rows, columns=columns)


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_right_at_edges_of_tiles(name: str) -> None:
    kernel = catalog.KERNELS[name]
    for lengths in itertools.product((1, 31, 32, 33, 127), repeat=3):
        for dtype in dtypes(name):
            arguments = dict(zip(("rows", "inner", "columns"), lengths, strict=True))
            run_and_check(kernel, dtype, FLAGS, **arguments)


@pytest.mark.parametrize("flags", FLAG_SETS)
@pytest.mark.parametrize("name", registry.current_suite().kernels())
def test_kernels_are_right_at_awkward_shapes(name: str, flags: str) -> None:
    awkward_cases = [(dtype, arguments) for kernel, dtype, arguments in AWKWARD_IN_EVERY_DTYPE if kernel == name]
    for dtype, arguments in (
        *awkward_cases,
        *((launch.dtype, launch.arguments) for launch in list_launches(name, SMALL)),
    ):
        run_and_check(registry.find_kernel(name), dtype, flags, **arguments)


@pytest.mark.parametrize("name", COVERING_TRANSPOSES)
def test_more_tiles_than_blocks_along_y_are_transposed(name: str) -> None:
    run_and_check(catalog.KERNELS[name], "int8", FLAGS, rows=2_097_120 + 33, columns=3)
    run_and_check(catalog.KERNELS[name], "int8", FLAGS, rows=3, columns=2_097_120 + 33)


@pytest.mark.parametrize(
    ("tool", "summary"),
    [("memcheck", "ERROR SUMMARY: 0 errors"), ("racecheck", "RACECHECK SUMMARY: 0 hazards displayed")],
)
def test_sanitizer_finds_no_error(tool: str, summary: str, report_share: Callable[[str, int, int], None]) -> None:
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.skip("compute-sanitizer is not on PATH; it comes with the CUDA toolkit")
    words = [str(launch) for launch in list_all_launches(SMALL)]
    command = [sanitizer, "--tool", tool, "--error-exitcode", "9", sys.executable, "-m", "tests.gpu.harness", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(words)} launches" in done.stdout
    assert summary in done.stdout
    report_share(f"launches without an error of {tool}", len(words), len(words))
