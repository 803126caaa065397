"""Block scales of ``mma`` with ``.block_scale`` (PTX ISA, "Block Scaling for mma.sync").

The lane layout is that of CUTLASS 4 (``mma_traits_sm120.hpp``, ``SFALayout`` and ``SFBLayout``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...lanes.warps import Array, spread
from ...machine.chunk import Chunk
from ...ptx.program import TYPES, Instruction, Operand, Type, format_operand
from ..arithmetic.narrow_float import SCALES
from ..operands import choose_modifier, join_modifiers, split_group, unsupported
from ..warp_collectives import reshape_to_lanes

#: Scales per row by qualifier, and the defaults by kind.
_COUNTS = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4}
_DEFAULTS = {"kind::mxf8f6f4": 1, "kind::mxf4": 2}
#: Allowed first bytes of scales in a word, by scales per row.
_FIRST_BYTES = {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)}
SCALE_NAMES = {"block_scale", *_COUNTS, *SCALES}
_ROWS, _COLUMNS = np.arange(16), np.arange(8)


class _Side(NamedTuple):
    """Lanes with the scales of the rows of A, or of the columns of B."""

    factor: str
    #: Lane of each row or column if the thread-id is 0; it is ``stride`` lanes further for each thread-id.
    lanes: Array
    stride: int
    #: Number of allowed thread-ids.
    choices: int


_ROWS_OF_A = _Side("a", 4 * (_ROWS % 8) + _ROWS // 8, stride=2, choices=2)
_COLUMNS_OF_B = _Side("b", 4 * _COLUMNS, stride=1, choices=4)


class BlockScales(NamedTuple):
    """Scales of a product: their type, their number per row of A and column of B, and the operands with types."""

    name: str
    per_row: int
    operands: list[tuple[Operand, Type]]

    @classmethod
    def parse(cls, instruction: Instruction, operands: Sequence[Operand]) -> BlockScales:
        """Parse ``scale-a, {byte, thread}, scale-b, {byte, thread}``; a scale may be in braces."""
        counts = [_COUNTS[name] for name in instruction.modifiers if name in _COUNTS]
        counts += [_DEFAULTS[name] for name in instruction.modifiers if name in _DEFAULTS]
        groups = [split_group(operand) for operand in operands]
        if not counts:
            raise unsupported(instruction, f"it needs one of {join_modifiers(_COUNTS)}")
        if [len(group) for group in groups] != [1, 2, 1, 2]:
            given = ", ".join(map(format_operand, operands))
            needed = "a, {byte-id-a, thread-id-a}, scale-b, {byte-id-b, thread-id-b}"
            raise unsupported(instruction, f"the operands of its scales are {given}; they must be scale-{needed}")
        kinds = (TYPES["b32"], TYPES["u16"], TYPES["u16"]) * 2
        typed = list(zip([operand for group in groups for operand in group], kinds, strict=True))
        return cls(choose_modifier(instruction, SCALES), counts[0], typed)

    def scale_factors(self, chunk: Chunk, a: Array, b: Array, values: Sequence[Array]) -> tuple[Array, Array]:
        """Multiply the rows of A and the columns of B by their scales; ``values`` are those of the operands."""
        rows = self._load_scales(chunk, values[:3], _ROWS_OF_A)
        columns = self._load_scales(chunk, values[3:6], _COLUMNS_OF_B)
        repeats = a.shape[-1] // self.per_row
        return a * np.repeat(rows, repeats, axis=3), b * np.repeat(columns, repeats, axis=3).swapaxes(2, 3)

    def _load_scales(self, chunk: Chunk, values: Sequence[Array], side: _Side) -> Array:
        """Return the scales of rows or columns, (blocks, warps, rows, scales per row), as floats."""
        words, first_byte, choice = (reshape_to_lanes(chunk, spread(value, chunk.shape)) for value in values)
        first_byte, choice = (operand[:, :, :1].astype(np.int64) for operand in (first_byte, choice))  # of lane 0
        is_active = reshape_to_lanes(chunk, spread(chunk.active, chunk.shape)).any(axis=2, keepdims=True)
        is_wrong = (~np.isin(first_byte, _FIRST_BYTES[self.per_row]) | (choice >= side.choices)) & is_active
        if is_wrong.any():
            byte_id, thread_id = f"byte-id-{side.factor}", f"thread-id-{side.factor}"
            text = f"{byte_id} is {first_byte[is_wrong][0]} and {thread_id} is {choice[is_wrong][0]}"
            allowed = " or ".join(map(str, _FIRST_BYTES[self.per_row]))
            text += f"; {byte_id} must be {allowed}, and {thread_id} below {side.choices}"
            raise unsupported(chunk.instruction, text)
        # Inactive warps may have any byte-id and thread-id: their lanes and shifts only have to exist.
        places = np.minimum(side.lanes + side.stride * choice, 31)
        words = np.take_along_axis(words, np.broadcast_to(places, (*words.shape[:2], len(side.lanes))), axis=2)
        shifts = 8 * (first_byte[..., None] + np.arange(self.per_row)) % 32
        return SCALES[self.name](words[..., None] >> shifts.astype(np.uint32) & np.uint32(0xFF))
