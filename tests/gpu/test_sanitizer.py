"""compute-sanitizer over one case of each kernel and dtype."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from gpu_kernels import KERNELS
from kernelwatch.project import ROOT
from tests.gpu.one_of_each import CASES

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(
    ("tool", "summary"),
    [("memcheck", "ERROR SUMMARY: 0 errors"), ("racecheck", "RACECHECK SUMMARY: 0 hazards displayed")],
)
def test_sanitizer(tool: str, summary: str) -> None:
    """The tool finds no error."""
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.skip("compute-sanitizer is not on PATH; it comes with the CUDA toolkit")
    assert {name for name, *_ in CASES} == set(KERNELS)
    command = [sanitizer, "--tool", tool, "--error-exitcode", "9", sys.executable, "-m", "tests.gpu.one_of_each"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(CASES)} launches" in done.stdout
    assert summary in done.stdout
