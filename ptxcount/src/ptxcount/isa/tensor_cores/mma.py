"""Tensor cores: matrix products in registers, ``mma`` and ``wmma`` (PTX ISA, "Warp Level Matrix").

Products are summed in float64; sums of floats are rounded once. The GPU keeps fewer bits, in an undocumented order.
Products of float64 are added one by one, each with one rounding, as on an H200. The lane layout of block scales
("Block Scaling for mma.sync") is that of CUTLASS 4 (``mma_traits_sm120.hpp``, ``SFALayout`` and ``SFBLayout``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from ...lanes.warps import Array, spread
from ...machine.chunk import Chunk
from ...ptx.program import TYPES, Instruction, Operand, Type, format_operand
from ...util.grammar import join_choices
from ..arithmetic.floating import fused_multiply_add
from ..arithmetic.narrow_float import SCALES
from ..opcode_registry import Step, binds, make_step
from ..operands import (
    choose_modifier,
    expect_count,
    expect_modifiers,
    find_modifier,
    join_modifiers,
    make_count_error,
    split_group,
    unsupported,
)
from ..warp_collectives import reshape_to_lanes
from .elements import ELEMENTS, PADDED
from .fragments import Shape
from .register_matrices import QUADS, RegisterMatrix
from .sparse import Metadata

#: Scales per row by qualifier, and the defaults by kind.
_COUNTS = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4}
_DEFAULTS = {"kind::mxf8f6f4": 1, "kind::mxf4": 2}
#: Allowed first bytes of scales in a word, by scales per row.
_FIRST_BYTES = {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)}
_SCALE_NAMES = {"block_scale", *_COUNTS, *SCALES}
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


class _BlockScales(NamedTuple):
    """Scales of a product: their type, their number per row of A and column of B, and the operands with types."""

    name: str
    per_row: int
    operands: list[tuple[Operand, Type]]

    @classmethod
    def parse(cls, instruction: Instruction, operands: Sequence[Operand]) -> _BlockScales:
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
        """Multiply the rows of A and the columns of B by their scales; ``values`` are those of `operands`."""
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
            allowed = join_choices(_FIRST_BYTES[self.per_row])
            text += f"; {byte_id} must be {allowed}, and {thread_id} below {side.choices}"
            raise unsupported(chunk.instruction, text)
        # Inactive warps may have any byte-id and thread-id: their lanes and shifts only have to exist.
        places = np.minimum(side.lanes + side.stride * choice, 31)
        words = np.take_along_axis(words, np.broadcast_to(places, (*words.shape[:2], len(side.lanes))), axis=2)
        shifts = 8 * (first_byte[..., None] + np.arange(self.per_row)) % 32
        return SCALES[self.name](words[..., None] >> shifts.astype(np.uint32) & np.uint32(0xFF))


_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")


def parse_shape(instruction: Instruction) -> tuple[Shape, list[str], set[str]]:
    """Return the shape, the names of element types, and the other modifiers.

    Raises `UnsupportedInstructionError` unless there is one shape.
    """
    shapes = [match for name in instruction.modifiers if (match := _SHAPE.fullmatch(name))]
    if len(shapes) != 1:
        raise unsupported(instruction, "it needs one shape, such as .m16n8k16")
    m, n, k = (int(number) for number in shapes[0].groups())
    elements = [name for name in instruction.modifiers if name in ELEMENTS]
    return Shape(m, n, k), elements, {*instruction.modifiers} - {*elements, shapes[0].group()}


_MMA_NAMES = {"sync", "aligned", "row", "col", "satfinite", "and", "xor", "popc", "rn", "mma"}
#: Kinds of products of narrow floats: those with one element per byte, and all.
_BYTE_KINDS = ("kind::f8f6f4", "kind::mxf8f6f4")
_KINDS = (*_BYTE_KINDS, "kind::mxf4", "kind::mxf4nvf4")
_SPARSE = {"sp", "sp::ordered_metadata"}


def _check_types(instruction: Instruction, shape: Shape, types: Sequence[str], kind: str | None) -> None:
    narrow = {"e2m1", "e2m3", "e3m2"} & {*types}
    if narrow and not kind:
        raise unsupported(instruction, f".{min(narrow)} needs one of {join_modifiers(_KINDS)}")
    if shape == QUADS and types[1] not in ("f16", "f64"):
        raise unsupported(instruction, f"the factors of .m8n8k4 are .{types[1]}; allowed are .f16, .f64")


def _parse_orders(instruction: Instruction, shape: Shape) -> tuple[bool, bool]:
    """Return True for A if it is column-major, and True for B if it is row-major."""
    orders = [name for name in instruction.modifiers if name in ("row", "col")]
    transposed = orders[:1] == ["col"], orders[1:] == ["row"]
    if shape != QUADS and any(transposed) and instruction.opcode == "mma":
        raise unsupported(instruction, f"its layouts are {join_modifiers(orders)}; they must be .row, .col")
    return transposed


def _add_products(a: Array, b: Array, c: Array, d_type: str, names: Collection[str]) -> Array:
    """Return a @ b + c; with ``.xor``, c plus the number of bits that differ."""
    if d_type == "f64":  # one by one, by ascending k, each with one rounding, like an H200
        for k in range(a.shape[-1]):
            c = fused_multiply_add(*np.broadcast_arrays(a[..., k, None], b[..., k, None, :], c))
        return c
    if "xor" in names:  # |a| + |b| - 2 (a @ b)
        return np.asarray(a.sum(axis=3)[..., None] + b.sum(axis=2)[..., None, :] - 2 * (a @ b) + c)
    return np.asarray(a @ b + c)


class _Form(NamedTuple):
    """The form of a product: shape, element types of d, a, b and c, and other modifiers."""

    shape: Shape
    types: list[str]
    names: set[str]
    is_sparse: bool
    is_scaled: bool

    @classmethod
    def parse(cls, instruction: Instruction) -> _Form:
        """Parse the modifiers; raise `UnsupportedInstructionError` for unknown ones and for wrong types."""
        shape, types, names = parse_shape(instruction)
        is_sparse, is_scaled, kind = bool(names & _SPARSE), "block_scale" in names, find_modifier(instruction, _KINDS)
        known = {*_MMA_NAMES, *_SPARSE, *_KINDS, *(_SCALE_NAMES if is_scaled else ())}
        expect_modifiers(instruction, sorted(names), known)
        if instruction.opcode == "wmma" and len(types) == 2:  # f16
            types[1:1] = ["f16", "f16"]
        if len(types) != 4:
            raise make_count_error(instruction, "it", len(types), "element type", 4)
        _check_types(instruction, shape, types, kind)
        if kind in _BYTE_KINDS:
            types[1:3] = (PADDED if name == "e2m1" else name for name in types[1:3])
        return cls(shape, types, names, is_sparse, is_scaled)

    def parse_matrices(self, instruction: Instruction) -> list[RegisterMatrix]:
        """Parse the operands d, a, b and c; a sparse A stores half of its columns."""
        stored = self.shape._replace(k=self.shape.k // 2) if self.is_sparse else self.shape
        shapes, orders = (self.shape, stored, self.shape, self.shape), _parse_orders(instruction, self.shape)
        roles = zip("dabc", instruction.operands[:4], shapes, self.types, (False, *orders, False), strict=True)
        return [
            RegisterMatrix.parse(instruction, operand, role, shape, element, transposed=transposed)
            for role, operand, shape, element, transposed in roles
        ]


@binds("mma", "wmma")
def _bind_product(instruction: Instruction) -> Step | None:
    """Bind ``mma{.sp}.sync.aligned.shape.row.col...dtype.atype.btype.ctype d, a, b, c...``, and ``wmma.mma``.

    With ``.sp``, metadata and a selector follow ``c``; with ``.block_scale``, scales.
    """
    if instruction.opcode == "wmma" and "mma" not in instruction.modifiers:
        return None
    form = _Form.parse(instruction)
    first_scale = 6 if form.is_sparse else 4
    expect_count(instruction, first_scale + (4 if form.is_scaled else 0))
    target, *sources = form.parse_matrices(instruction)
    reads = [read for source in sources for read in source.typed_registers]
    metadata = scales = None
    if form.is_sparse:
        words, selector = instruction.operands[4:6]
        metadata = Metadata.locate(instruction, form.shape.k, ELEMENTS[form.types[1]].bits, selector)
        reads.append((words, TYPES["b32"]))
    if form.is_scaled:
        scales = _BlockScales.parse(instruction, instruction.operands[first_scale:])
        reads += scales.operands

    def multiply(chunk: Chunk, *values: Array) -> list[Array]:
        remaining = iter(values)
        a, b, c = (source.take_numbers(chunk, remaining) for source in sources)
        if metadata:
            a = metadata.expand(chunk, a, reshape_to_lanes(chunk, next(remaining)))
        if scales:
            a, b = scales.scale_factors(chunk, a, b, [*remaining])
        total = _add_products(a, b, c, form.types[0], form.names)
        return target.encode_numbers(chunk, total, saturate="satfinite" in form.names)

    return make_step(instruction, target.typed_registers, reads, multiply)
