"""Cubins of the experiments' own kernels."""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path

from ptxcount.source import cuda_compiler


@cache
def compile_cubin(source: Path, arch: str, flags: str = "") -> bytes:
    """Compile a file for an architecture; return the cubin."""
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder, "kernels.cubin")
        nvcc = str(cuda_compiler.find_nvcc())
        subprocess.run([nvcc, "--cubin", "-arch", arch, *flags.split(), str(source), "-o", str(cubin)], check=True)
        return cubin.read_bytes()
