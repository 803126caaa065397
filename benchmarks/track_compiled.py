"""What the compiler made of the kernels: registers, spills and shared memory, on any machine."""

from __future__ import annotations

from kernelwatch.asv import compiled

globals().update(compiled.classes())
