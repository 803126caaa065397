"""Forms of ``tcgen05.mma``: facts from modifiers and operands, without the instruction descriptor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...ptx.program import Address, Group, Immediate, Instruction, Operand, format_operand
from ...util.grammar import count_noun
from ..operands import choose_modifier, expect_modifiers, find_modifier, make_count_error, split_group, unsupported
from .descriptors import KINDS, Kind
from .issuing_warps import GROUPS, read_group

#: Scales per row, by qualifier; and the defaults by kind.
_SCALE_COUNTS = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4, "block16": 4}
_BLOCK32 = {"kind::mxf8f6f4": 1, "kind::mxf4": 2, "kind::mxf4nvf4": 2}
_OPTIONS = {"mma", "ws", "sp", "block_scale", "block32", *GROUPS, *KINDS, *_SCALE_COUNTS}
#: Maximum ``scale-input-d``.
_MAX_SHIFT = 15


class ProductForm(NamedTuple):
    """Form of a product, from the modifiers and operands of an instruction."""

    kind: Kind
    #: Number of blocks that multiply together.
    group: int
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
        if "ashift" in names:
            problem = ".ashift: the PTX ISA does not tell if the product reads the rows before or after their shift"
            raise unsupported(instruction, problem)
        checked = [name for name in instruction.modifiers if not name.startswith("collector::")]
        expect_modifiers(instruction, checked, _OPTIONS)
        kind_name = choose_modifier(instruction, KINDS)
        count = find_modifier(instruction, _SCALE_COUNTS)
        kind, is_scaled, is_stationary = KINDS[kind_name], "block_scale" in names, "ws" in names
        if kind.is_scaled != is_scaled:
            needs = "needs" if kind.is_scaled else "does not allow"
            raise unsupported(instruction, f".{kind_name} {needs} .block_scale")
        least = 7 if is_scaled else 5
        if not least <= len(operands) <= 7:
            given = f"it has {count_noun(len(operands), 'operand')} without metadata"
            raise unsupported(instruction, f"{given}; .{kind_name} needs {least} to 7")
        masks = split_group(operands[4]) if isinstance(operands[4], Group) and not is_scaled else ()
        rest = () if is_scaled else operands[6 if masks else 5 :]
        if is_stationary and (masks or is_scaled):
            raise unsupported(instruction, f".ws does not allow {'disable-output-lane' if masks else '.block_scale'}")
        shift: float = 0
        if rest and not is_stationary:
            if not isinstance(rest[0], Immediate):
                raise unsupported(instruction, f"scale-input-d is {format_operand(rest[0])}; a number is needed")
            shift = rest[0].value
        if not 0 <= shift <= _MAX_SHIFT:
            raise unsupported(instruction, f"scale-input-d is {shift}; 0 to {_MAX_SHIFT} are allowed")
        group = read_group(instruction)
        if is_stationary and group == 2:
            raise unsupported(instruction, ".ws needs .cta_group::1")
        if masks and len(masks) != 4 * group:
            raise make_count_error(instruction, "disable-output-lane", len(masks), "word", 4 * group)
        scales = block = 0
        if is_scaled and count:
            scales, block = _SCALE_COUNTS[count], 16 if count == "block16" else 0
        elif is_scaled:
            scales, block = _BLOCK32[kind_name], 32
        from_tensor_memory = isinstance(operands[1], Address)
        return cls(kind, group, is_stationary, from_tensor_memory, scales, block, len(masks), int(shift), "sp" in names)
