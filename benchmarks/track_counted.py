"""Memory transactions of the kernels, counted by executing their PTX: exact, on any machine."""

from __future__ import annotations

from kernelwatch.asv import counted

globals().update(counted.classes())
