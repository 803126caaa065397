"""Watches the memory accesses of CUDA kernels over time: what is compiled, counted and timed of each commit."""

from __future__ import annotations

from kernelwatch import settings

settings.read_old_names()
