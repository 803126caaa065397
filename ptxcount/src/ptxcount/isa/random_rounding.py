"""``cvt.rs`` to four floats of 4, 6 or 8 bits (PTX ISA, ``cvt``, ``rbits``).

Two operands share 16 random bits. The PTX ISA does not say which operand gets which bits, and GPUs differ.
Measurements show straight bytes on sm_100a, reversed bits on sm_103a (github.com/Dao-AILab/quack,
``quack/rounding.py``). So ptxcount only converts numbers whose result is the same on both: exact or clamped numbers, or
any numbers with random bits that are zero.
"""

from __future__ import annotations

import re

import numpy as np

from ..lanes.warps import Array, spread
from ..machine.chunk import Chunk
from ..ptx.program import TYPES, Instruction
from .arithmetic.floating import apply_relu
from .arithmetic.narrow_float import FORMATS, NarrowFormat
from .opcode_registry import Step, allow_clamps, binds, make_step
from .operands import expect_count, make_count_error, split_group, unsupported

_FORM = re.compile(allow_clamps("cvt.rs[saturated].(e4m3|e5m2|e2m3|e3m2|e2m1)x4.f32").replace(".", r"\."))
#: Random bits that the first two operands share, as a mask, by the width of a result; the last two share the others.
_UPPER_BITS = {4: 0xFF00FF00, 8: 0xFFFF0000}


@binds("cvt", having={"rs"})
def _bind_random_rounding(instruction: Instruction) -> Step:
    """Bind ``cvt.rs{.relu}.satfinite.typex4.f32 d, {a, b, e, f}, rbits``; ``a`` becomes the highest bits."""
    match = _FORM.fullmatch(instruction.name)
    if match is None:
        forms = "cvt.rs{.relu}.satfinite.{e4m3,e5m2,e2m3,e3m2,e2m1}x4.f32, cvt.rs{.relu}{.satfinite}.{f16,bf16}x2.f32"
        raise unsupported(instruction, f"its forms are {forms}")
    expect_count(instruction, 3)
    target, numbers, word = instruction.operands
    sources = split_group(numbers)
    if len(sources) != 4:
        raise make_count_error(instruction, "it", len(sources), "number", 4)
    narrow, relu = FORMATS[f"{match[2]}x2"], ".relu" in match[1]
    upper = np.uint32(_UPPER_BITS[narrow.bits])
    kind = TYPES[f"b{4 * narrow.bits}"]

    def convert(chunk: Chunk, *values: Array) -> list[Array]:
        *floats, words = values
        packed = np.zeros(1, np.uint32)
        for place, number in enumerate(floats):
            random = words & (upper if place < 2 else ~upper)
            codes = _round_number(chunk, apply_relu(number) if relu else number, random, narrow)
            packed = packed << np.uint32(narrow.bits) | codes.astype(np.uint32)
        return [packed.astype(kind.dtype)]

    reads = [*((source, TYPES["f32"]) for source in sources), (word, TYPES["u32"])]
    return make_step(instruction, [(target, kind)], reads, convert)


def _round_number(chunk: Chunk, numbers: Array, random: Array, narrow: NarrowFormat) -> Array:
    """Return the codes of numbers rounded towards zero; raise if a set random bit may change the result."""
    magnitudes, greatest = np.abs(numbers).astype(np.float64), narrow.encode(np.array([np.inf]))
    nearest = narrow.encode(magnitudes)
    below = np.where(narrow.decode(nearest) > magnitudes, nearest - 1, nearest)
    above = np.where(narrow.decode(below) < magnitudes, below + 1, below)
    above = np.minimum(above, np.maximum(greatest, below))
    undefined = spread((below != above) & (random != 0), chunk.shape) & spread(chunk.active, chunk.shape)
    if undefined.any():
        number = spread(numbers, chunk.shape)[undefined][0]
        problem = f"{number:g} is not exact in this type, and the PTX ISA does not say which random bits round it"
        raise unsupported(chunk.instruction, f"{problem}; pass zero bits or exact numbers")
    return np.where(np.isnan(numbers), nearest, below | narrow.encode(np.copysign(0.0, numbers)))
