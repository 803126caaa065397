"""Times as multiples of a plain copy of the same useful bytes."""

from __future__ import annotations

from kernelwatch.asv import control

globals().update(control.OF_MODULE)
