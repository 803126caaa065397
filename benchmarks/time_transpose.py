"""Times of transposes."""

from __future__ import annotations

from kernelwatch.asv import timed

globals().update(timed.of_module(__name__))
