"""Forms of ``tcgen05.mma``: facts from modifiers and operands, without the instruction descriptor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...ptx.program import Address, Group, Instruction, Operand
from ...util.grammar import count_noun, join_choices
from ..operands import (
    choose_modifier,
    expect_modifiers,
    find_modifier,
    make_count_error,
    parse_integer,
    split_group,
    unsupported,
)
from .descriptors import KINDS, Kind
from .issuing_warps import GROUP_SIZES, read_group_size

#: Scales per row, by qualifier; and by kind for ``.block32``, which is the default.
_SCALE_COUNTS = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4, "block16": 4}
_BLOCK32_COUNTS = {"kind::mxf8f6f4": 1, "kind::mxf4": 2, "kind::mxf4nvf4": 2}
_OPTIONS = {"mma", "ws", "sp", "block_scale", "block32", *GROUP_SIZES, *KINDS, *_SCALE_COUNTS}
#: Maximum ``scale-input-d``.
_MAX_SHIFT = 15


class ProductForm(NamedTuple):
    """Form of a product, from the modifiers and operands of an instruction."""

    kind: Kind
    #: Number of blocks that multiply together.
    group_size: int
    #: True for ``.ws`` ("weight stationary").
    is_stationary: bool
    #: True if A is in tensor memory instead of shared memory.
    from_tensor_memory: bool
    #: Scales per row of a factor, if K is not 96; 0 without scales.
    scales: int
    #: Number of products (elements along K) that a scale multiplies: 16 or 32; 0 with ``.scale_vec``, or without
    #: scales.
    block: int
    #: Number of words in the mask of unchanged lanes (``disable-output-lane``).
    masks: int
    #: Exponent of the power of two that divides the old result (``scale-input-d``).
    shift: int
    is_sparse: bool

    @classmethod
    def parse(cls, instruction: Instruction, operands: Sequence[Operand]) -> ProductForm:
        """Parse the modifiers, and the operands without metadata; raise `UnsupportedInstructionError` for other forms.

        The first operands are ``[d], a, b, idesc``. With scales, ``[scales of a], [scales of b], p`` follow. Without
        scales, ``{mask words,} p{, scale-input-d}`` follow. With ``.ws``, ``p{, column mask}`` follow instead.
        """
        names = {*instruction.modifiers}
        _check_modifiers(instruction)
        kind_name = choose_modifier(instruction, KINDS)
        kind, is_scaled, is_stationary = KINDS[kind_name], "block_scale" in names, "ws" in names
        if kind.is_scaled != is_scaled:
            needs = "needs" if kind.is_scaled else "does not allow"
            raise unsupported(instruction, f".{kind_name} {needs} .block_scale")
        counts = (7,) if is_scaled else (5, 6, 7)
        if len(operands) not in counts:
            given = f"it has {count_noun(len(operands), 'operand')} without metadata"
            raise unsupported(instruction, f"{given}; .{kind_name} needs {join_choices(counts)}")
        has_mask = not is_scaled and isinstance(operands[4], Group)
        masks = split_group(operands[4]) if has_mask else ()
        if is_stationary and (has_mask or is_scaled):
            refused = "disable-output-lane" if has_mask else ".block_scale"
            raise unsupported(instruction, f".ws does not allow {refused}; remove one of them")
        has_shift = not (is_scaled or is_stationary)
        shift = _parse_shift(instruction, operands[6 if has_mask else 5 :]) if has_shift else 0
        group_size = read_group_size(instruction)
        if is_stationary and group_size == 2:
            raise unsupported(instruction, ".ws needs .cta_group::1")
        if has_mask and len(masks) != 4 * group_size:
            raise make_count_error(instruction, "disable-output-lane", len(masks), "word", 4 * group_size)
        scales, block = _find_scales(instruction, kind_name) if is_scaled else (0, 0)
        from_tensor_memory = isinstance(operands[1], Address)
        return cls(kind, group_size, is_stationary, from_tensor_memory, scales, block, len(masks), shift, "sp" in names)


def _check_modifiers(instruction: Instruction) -> None:
    if "ashift" in instruction.modifiers:
        problem = "the PTX ISA does not tell if a product with .ashift reads the rows before or after their shift"
        raise unsupported(instruction, f"{problem}; remove .ashift")
    checked = [name for name in instruction.modifiers if not name.startswith("collector::")]
    expect_modifiers(instruction, checked, _OPTIONS)


def _parse_shift(instruction: Instruction, operands: Sequence[Operand]) -> int:
    """Parse ``scale-input-d``, the first of ``operands``; return 0 if there is none."""
    if not operands:
        return 0
    shift = parse_integer(instruction, operands[0], "scale-input-d")
    if not 0 <= shift <= _MAX_SHIFT:
        raise unsupported(instruction, f"scale-input-d is {shift}; allowed are 0 to {_MAX_SHIFT}")
    return shift


def _find_scales(instruction: Instruction, kind_name: str) -> tuple[int, int]:
    """Return `ProductForm.scales` and `ProductForm.block` of a product with scales."""
    qualifier = find_modifier(instruction, _SCALE_COUNTS)
    if not qualifier:
        return _BLOCK32_COUNTS[kind_name], 32
    return _SCALE_COUNTS[qualifier], 16 if qualifier == "block16" else 0
