"""Tensor cores: ``mma``, ``wmma``, ``ldmatrix``, ``stmatrix``, ``movmatrix`` (PTX ISA, "Warp Level Matrix").

Products of floats are summed in float64 and rounded once. The chip sums fewer bits, in an order that nobody documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...lanes.symbolic_values import Value, dense
from ...lanes.warps import LANES, Array, by_thread, spread
from ...machine.chunk import Chunk
from ...ptx.program import TYPES, Address, Instruction, Type
from ..arithmetic import bfloat, small_float
from ..arithmetic.floating import fused_multiply_add
from ..operands import address, as_array, expect_count, items, reader, unsupported
from ..registry import Step, binds, op, step_of
from ..spaces import SPACES, find_space, make_resolver, make_shared_reader
from ..warp_collectives import lanes_of, threads_of
from .fragments import Part, Shape, assemble_matrices, extract_part, list_fragment, list_quad_pairs, split_pieces

_B32, _U32, _U64 = TYPES["b32"], TYPES["u32"], TYPES["u64"]


class Element(NamedTuple):
    """The elements of a matrix: their bits, and the numbers that these stand for, as float64."""

    bits: int
    decode: Callable[[Array], Array]


#: Sums of products of integers stay below 2**53, so that float64 holds them.
ELEMENTS: dict[str, Element] = {
    "f16": Element(16, lambda x: x.astype(np.uint16).view(np.float16).astype(np.float64)),
    "bf16": Element(16, lambda x: bfloat.decode_bits(x).astype(np.float64)),
    "tf32": Element(32, lambda x: (x.astype(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)),
    "f32": Element(32, lambda x: x.astype(np.uint32).view(np.float32).astype(np.float64)),
    "f64": Element(64, lambda x: x.astype(np.uint64).view(np.float64)),
    "s32": Element(32, lambda x: x.astype(np.uint32).view(np.int32).astype(np.float64)),
    "e4m3": Element(8, lambda x: small_float.decode_small(4, x)),
    "e5m2": Element(8, lambda x: small_float.decode_small(5, x)),
    "u8": Element(8, lambda x: x.astype(np.float64)),
    "s8": Element(8, lambda x: ((x.astype(np.int64) ^ 128) - 128).astype(np.float64)),
    "u4": Element(4, lambda x: x.astype(np.float64)),
    "s4": Element(4, lambda x: ((x.astype(np.int64) ^ 8) - 8).astype(np.float64)),
    "b1": Element(1, lambda x: x.astype(np.float64)),
}


def encode(result: Array, name: str, *, saturate: bool) -> Array:
    """Encode sums as the bits of the type of the result: ``f16``, ``f32``, ``f64`` or ``s32``."""
    if name == "s32":
        if saturate:
            result = np.clip(result, -(2**31), 2**31 - 1)
        return result.astype(np.int64).astype(np.uint32)
    dtype = np.dtype({"f16": "f2", "f32": "f4"}.get(name, "f8"))
    return np.ascontiguousarray(result.astype(dtype)).view(f"u{dtype.itemsize}")


def unpack_elements(words: Array, bits: int, count: int) -> Array:
    """Split registers into elements, (..., 32 lanes, elements)."""
    if count == 1:
        return words[..., None]
    shifts = (np.arange(count) * bits).astype(words.dtype)
    return np.asarray((words[..., None] >> shifts) & words.dtype.type((1 << bits) - 1))


def pack_elements(elements: Array, bits: int) -> Array:
    """Join the elements of each register; the inverse of `unpack_elements`."""
    if elements.shape[-1] == 1:
        return elements[..., 0]
    word = np.zeros(elements.shape[:-1], np.uint32)
    for place in range(elements.shape[-1]):
        word |= elements[..., place].astype(np.uint32) << np.uint32(place * bits)
    return word


class RegisterLayout(NamedTuple):
    """Layout of an operand in registers: their parts of the matrix, bits of an element, and rows and columns.

    Accumulators of more than 16 bits take two registers for each part.
    """

    parts: list[Part]
    bits: int
    extent: tuple[int, int]

    @property
    def kind(self) -> Type:
        """The type of each register."""
        return _U64 if self.bits == 64 else _B32

    def assemble_matrix(self, chunk: Chunk, registers: Sequence[Array]) -> Array:
        """Return the bits of each warp's matrix."""
        words = [lanes_of(chunk, register) for register in registers]
        count = self.parts[0].row.shape[1]
        return assemble_matrices(self.parts, [unpack_elements(word, self.bits, count) for word in words], self.extent)

    def registers(self, chunk: Chunk, matrix: Array) -> list[Array]:
        """Return the registers that hold a matrix."""
        return [threads_of(chunk, pack_elements(extract_part(part, matrix), self.bits)) for part in self.parts]


def find_layout(role: str, shape: Shape, element: str, *, turned: bool = False) -> RegisterLayout:
    """Return the register layout of an operand ``a``, ``b``, ``c`` or ``d``; ``element`` is a key of `ELEMENTS`."""
    bits = ELEMENTS[element].bits
    if shape == _QUADS and bits < 64:
        extent = {"a": (32, 4), "b": (4, 32)}.get(role, (32, 32))
        return RegisterLayout(list_quad_pairs(role, bits, turned=turned), bits, extent)
    parts = list_fragment(role, shape, bits)
    if role in "cd" and bits > 16:
        parts = [Part(part.row[:, [e]], part.column[:, [e]]) for part in parts for e in (0, 1)]
    return RegisterLayout(parts, bits, shape.operand_extent(role))


#: The shape of four products at once, if they are not of float64.
_QUADS = Shape(8, 8, 4)
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")


def parse_shape(instruction: Instruction) -> tuple[Shape, list[str], set[str]]:
    """Return shape, elements and other modifiers; `UnsupportedInstructionError` unless there is one shape."""
    shapes = [match for name in instruction.modifiers if (match := _SHAPE.fullmatch(name))]
    if len(shapes) != 1:
        raise unsupported(instruction)
    m, n, k = (int(number) for number in shapes[0].groups())
    elements = [name for name in instruction.modifiers if name in ELEMENTS]
    return Shape(m, n, k), elements, {*instruction.modifiers} - {*elements, shapes[0].group()}


def _multiply_matrices(a: Array, b: Array, c: Array, names: set[str]) -> Array:
    if "xor" in names:
        return np.asarray(a.sum(axis=3)[..., None] + b.sum(axis=2)[..., None, :] - 2 * (a @ b) + c)
    return np.asarray(a @ b + c)


def _multiply_in_order(a: Array, b: Array, c: Array) -> Array:
    """Add fused products one by one, by rising k, as an H200 does with float64."""
    for k in range(a.shape[-1]):
        c = fused_multiply_add(*np.broadcast_arrays(a[..., k, None], b[..., k, None, :], c))
    return c


_MMA_NAMES = {"sync", "aligned", "row", "col", "satfinite", "and", "xor", "popc", "rn", "mma", "kind::f8f6f4"}


@binds("mma", "wmma")
def _bind_product(instruction: Instruction) -> Step | None:
    """``mma.sync.aligned.shape.row.col.dtype.atype.btype.ctype d, a, b, c``, and ``wmma.mma`` with any layouts."""
    if instruction.opcode == "wmma" and "mma" not in instruction.modifiers:
        return None
    shape, elements, names = parse_shape(instruction)
    if instruction.opcode == "wmma" and len(elements) == 2:  # of halves
        elements = [elements[0], "f16", "f16", elements[1]]
    layouts = [name for name in instruction.modifiers if name in ("row", "col")]
    turned = [layouts[:1] == ["col"], layouts[1:] == ["row"], False]
    unsupported_form = any(turned) and instruction.opcode == "mma"
    if shape == _QUADS:
        unsupported_form = elements[1:2] not in (["f16"], ["f64"])
    if len(elements) != 4 or not names <= _MMA_NAMES or unsupported_form:
        raise unsupported(instruction)
    expect_count(instruction, 4)
    target_element, left, right, plus = elements
    target, *sources = [items(operand) for operand in instruction.operands]
    roles = zip("abc", (left, right, plus), turned, strict=True)
    layouts_of_sources = [find_layout(role, shape, name, turned=transposed) for role, name, transposed in roles]
    target_layout = find_layout("d", shape, target_element)
    for layout, operands in zip((target_layout, *layouts_of_sources), (target, *sources), strict=True):
        if len(operands) < len(layout.parts):
            raise unsupported(instruction, f"{len(layout.parts)} registers wanted, {len(operands)} given")
    counts = np.cumsum([len(operands) for operands in sources])[:-1]

    def product(chunk: Chunk, *registers: Array) -> list[Array]:
        split = [registers[first:stop] for first, stop in zip([0, *counts], [*counts, None], strict=True)]
        a, b, c = (
            ELEMENTS[name].decode(source_layout.assemble_matrix(chunk, values))
            for name, source_layout, values in zip((left, right, plus), layouts_of_sources, split, strict=True)
        )
        summed = _multiply_in_order(a, b, c) if target_element == "f64" else _multiply_matrices(a, b, c, names)
        total = encode(summed, target_element, saturate="satfinite" in names)
        return target_layout.registers(chunk, total)

    writes = [(operand, target_layout.kind) for operand in target[: len(target_layout.parts)]]
    reads = [
        (operand, layout.kind)
        for operands, layout in zip(sources, layouts_of_sources, strict=True)
        for operand in operands
    ]
    return step_of(instruction, writes, reads, product)


def _locate_pieces(chunk: Chunk, start: Value, leading: Array, part: Part, bits: int, *, by_row: bool) -> Array:
    """Return the byte address where each thread's piece of a tile begins."""
    across, along = (part.row[:, 0], part.column[:, 0]) if by_row else (part.column[:, 0], part.row[:, 0])
    lane = np.arange(chunk.shape[1]) % LANES
    base = dense(start)
    return np.asarray(
        base.view(f"i{base.itemsize}").astype(np.int64) + (across[lane] * leading + along[lane]) * bits // 8
    )


@binds("wmma")
def _bind_tile(instruction: Instruction) -> Step:
    """``wmma.load.{a,b,c}`` and ``wmma.store.d``: a matrix in memory, and elements between its rows (or columns)."""
    shape, elements, names = parse_shape(instruction)
    roles = [name for name in names if name in ("a", "b", "c", "d")]
    allowed = {"load", "store", *roles, "sync", "aligned", "row", "col", *SPACES}
    if len(elements) != 1 or len(roles) != 1 or not names <= allowed or ELEMENTS[elements[0]].bits < 8:
        raise unsupported(instruction)
    (element,), (role,), by_row = elements, roles, "row" in names
    bits, loads = ELEMENTS[element].bits, "load" in names
    expect_count(instruction, 2, 3)
    registers = items(instruction.operands[not loads])
    layout = find_layout(role, shape, element)
    if len(registers) < len(layout.parts):
        raise unsupported(instruction, f"{len(layout.parts)} registers wanted, {len(registers)} given")
    plan = split_pieces(list_fragment(role, shape, bits), bits, by_row=by_row)
    space, default_leading = find_space(instruction), np.full((1, 1), layout.extent[by_row], np.uint32)
    resolve = make_resolver(space, address(instruction, instruction.operands[loads], space))
    read_leading = [reader(instruction, operand, _U32) for operand in instruction.operands[2:]]
    rows_at_once = role in "ab" and bits in (8, 16) and (by_row == (role == "a") or bits == 16)
    if space in (None, "shared"):
        instruction.units.add(min(bits // 8, 4))

    def locate_tile(chunk: Chunk) -> tuple[str, Value, Array]:
        """Return the state space, the address of the tile, and the elements between its rows."""
        leading = as_array(read_leading[0](chunk), _U32) if read_leading else default_leading
        return *resolve(chunk), leading.astype(np.int64)

    def load_tile(chunk: Chunk) -> list[Array]:
        space, start, leading = locate_tile(chunk)
        memory, loaded = chunk.memory(space), []
        for piece in plan:
            place = _locate_pieces(chunk, start, leading, piece, bits, by_row=by_row)
            count = piece.row.shape[1]
            values = memory.load(place, bits // 8, count, chunk.active, chunk.make_reporter())
            loaded.append(np.stack([lanes_of(chunk, value) for value in values], axis=-1))
            if space != "shared" or not rows_at_once:
                chunk.record(space, "load", bits * count // 8, place)
        if space == "shared" and rows_at_once:
            _record_rows(chunk, start, leading, plan, bits, by_row)
        tile_registers = layout.registers(chunk, assemble_matrices(plan, loaded, layout.extent))
        return [
            tile_registers[index % len(tile_registers)] for index in range(len(registers))
        ]  # f16 of few elements: twice

    def store_tile(chunk: Chunk, *words: Array) -> list[Array]:
        matrix = layout.assemble_matrix(chunk, words)
        space, start, leading = locate_tile(chunk)
        for piece in plan:
            place = _locate_pieces(chunk, start, leading, piece, bits, by_row=by_row)
            values = extract_part(piece, matrix).astype(f"u{bits // 8}")
            columns = [threads_of(chunk, values[..., e]) for e in range(values.shape[-1])]
            chunk.memory(space).store(place, bits // 8, columns, chunk.active, chunk.make_reporter())
            chunk.record(space, "store", bits * len(columns) // 8, place)
        return []

    operands = [(register, layout.kind) for register in registers]
    return step_of(instruction, *((operands, [], load_tile) if loads else ([], operands, store_tile)))


def _record_rows(chunk: Chunk, start: Value, leading: Array, parts: list[Part], bits: int, by_row: bool) -> None:
    """Count loads of a fragment from shared memory as ``ldmatrix``: up to four squares of eight rows of 16 bytes."""
    lane = np.arange(LANES)
    for first in range(0, len(parts), 4):
        squares = parts[first : first + 4]
        heads = [(int(part.row.min()), int(part.column.min())) for part in squares]
        row, column = (
            np.array([head[axis] for head in heads])[np.minimum(lane // 8, len(squares) - 1)] for axis in (0, 1)
        )
        part = Part((row + lane % 8 * by_row)[:, None], (column + lane % 8 * (not by_row))[:, None])
        place = _locate_pieces(chunk, start, leading, part, bits, by_row=by_row)
        _record_squares(chunk, place, _mask_first_lanes(chunk, 8 * len(squares)))


def _record_squares(chunk: Chunk, place: Value, active: Array) -> None:
    """Count a load of rows of squares: no more of them are served together where lanes have one address."""
    chunk.find_counters("shared", "load", 16).is_matrix = True
    chunk.record("shared", "load", 16, place, active=active)


def _mask_first_lanes(chunk: Chunk, lanes: int) -> Array:
    """Return the mask of active threads among the first lanes of each warp."""
    return chunk.active & (np.arange(chunk.shape[1]) % LANES < lanes)[None, :]


@binds("ldmatrix", "stmatrix")
def _bind_rows(instruction: Instruction) -> Step:
    """``ldmatrix.sync.aligned.m8n8.num{.trans}{.shared}.b16 r, [p]`` and ``stmatrix`` with its operands exchanged."""
    names, loads = {*instruction.modifiers}, instruction.opcode == "ldmatrix"
    counts = [int(name[1]) for name in names if name in ("x1", "x2", "x4")]
    allowed = {"sync", "aligned", "m8n8", "b16", "x1", "x2", "x4", "trans", "shared", "shared::cta"}
    if len(counts) != 1 or not {"m8n8", "b16"} <= names <= allowed:
        raise unsupported(instruction)
    (count,) = counts
    expect_count(instruction, 2)
    row_address, registers = instruction.operands[loads], items(instruction.operands[not loads])
    if len(registers) != count or not isinstance(row_address, Address):
        raise unsupported(instruction)
    read_address = make_shared_reader(instruction, address(instruction, row_address, find_space(instruction)))
    instruction.units.add(4)
    lane = np.arange(LANES)
    part = Part(np.broadcast_to(lane[:, None] // 4, (LANES, 2)), 2 * (lane % 4)[:, None] + np.arange(2))
    part = part.transpose() if "trans" in names else part

    def load(chunk: Chunk) -> list[Array]:
        place, mask = read_address(chunk), _mask_first_lanes(chunk, 8 * count)
        words = chunk.shared.load(place, 4, 4, mask, chunk.make_reporter())
        lanes = np.stack([lanes_of(chunk, word) for word in words], axis=-1)
        halves = np.ascontiguousarray(lanes).view(np.uint16)
        _record_squares(chunk, place, mask)
        squares = [halves[:, :, 8 * square : 8 * square + 8] for square in range(count)]
        return [threads_of(chunk, pack_elements(extract_part(part, square), 16)) for square in squares]

    def store(chunk: Chunk, *values_of_squares: Array) -> list[Array]:
        place, mask = read_address(chunk), _mask_first_lanes(chunk, 8 * count)
        squares = [
            assemble_matrices([part], [unpack_elements(lanes_of(chunk, words_of_square), 16, 2)], (8, 8))
            for words_of_square in values_of_squares
        ]
        rows = np.concatenate(np.broadcast_arrays(*squares * (4 // count)), axis=2)
        words = np.ascontiguousarray(rows.astype(np.uint16)).view(np.uint32)
        values = [spread(by_thread(np.ascontiguousarray(words[..., k]), chunk.shape[1]), chunk.shape) for k in range(4)]
        chunk.shared.store(place, 4, values, mask, chunk.make_reporter())
        chunk.record("shared", "store", 16, place, active=mask)
        return []

    operands = [(register, _B32) for register in registers]
    return step_of(instruction, *((operands, [], load) if loads else ([], operands, store)))


@op("movmatrix.sync.aligned.m8n8.trans.b16", "b32 = b32")
def _transpose_square(chunk: Chunk, words: Array) -> list[Array]:
    part = list_fragment("c", Shape(8, 8, 8), 16)[0]
    square = assemble_matrices([part], [unpack_elements(lanes_of(chunk, words), 16, 2)], (8, 8))
    return [threads_of(chunk, pack_elements(extract_part(part.transpose(), square), 16))]
