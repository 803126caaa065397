"""Hands this suite to kernelwatch; pyproject.toml names it."""

from __future__ import annotations

from benchmarks import installed, sweeps
from kernelwatch.suite import Suite

SUITE = Suite(
    kernels=installed.kernels,
    timed=sweeps.TIMED,
    copy=sweeps.COPY,
    counted=sweeps.COUNTED,
    compiled=sweeps.COMPILED,
)
