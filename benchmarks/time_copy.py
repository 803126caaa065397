"""Times of misaligned and strided copies, and of the plain copy that all kernels are compared with."""

from __future__ import annotations

from kernelwatch.asv import timed

globals().update(timed.of_module(__name__))
