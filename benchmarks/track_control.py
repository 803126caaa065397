"""Times as multiples of a plain copy of the same useful bytes."""

from __future__ import annotations

from kernelwatch.asv import timed

globals().update(timed.of_module(__name__))
