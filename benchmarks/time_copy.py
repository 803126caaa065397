"""Seconds a launch of copies, misaligned and strided, and of the plain copy that is everyone's ceiling."""

from __future__ import annotations

from benchmarks import timed

globals().update(timed.of_module(__name__))
