"""Rows of matrices in shared memory, ``ldmatrix`` and ``stmatrix``; and ``movmatrix`` (PTX ISA, "Warp Level Matrix").

The layouts of 8-bit matrices are from CUTLASS 4 (``copy_traits_sm100.hpp``, ``LDSM`` and ``STSM``).
"""

from typing import NamedTuple

import numpy as np

from ...lanes.warps import LANES, Array, by_thread, spread
from ...machine.chunk import Chunk
from ...ptx.program import TYPES, Instruction
from ..opcode_registry import Step, binds, make_step, op
from ..operands import choose_modifier, expect_count, join_modifiers, make_count_error, split_group, unsupported
from ..spaces import make_shared_reader
from ..warp_collectives import reshape_to_lanes, reshape_to_threads
from .elements import pack_elements, unpack_elements
from .fragments import Part, Shape, assemble_matrices, extract_part, list_fragment

_B32 = TYPES["b32"]
_LANE = np.arange(LANES)[:, None]
#: Bytes of a row, also if its elements are packed with padding.
ROW = 16
#: Bits of each packed element in memory, by type; in registers, each is a byte.
PACKED = {"b8x16.b6x16_p32": 6, "b8x16.b4x16_p64": 4}


class _Tile(NamedTuple):
    """A matrix: the number of 16-byte rows, the bits of an element in registers, and the part of each register."""

    rows: int
    bits: int
    parts: tuple[Part, ...]


#: Elements of 16 and of 8 bits in a register of each lane: adjacent ones of a row.
_HALVES = Part(np.broadcast_to(_LANE // 4, (LANES, 2)), 2 * (_LANE % 4) + np.arange(2))
_BYTES = Part(np.broadcast_to(_LANE // 4, (LANES, 4)), 4 * (_LANE % 4) + np.arange(4))


def _make_transposed_part(first: int, stride: int) -> Part:
    """Make the part of a transposed access: four bytes per lane, in two adjacent rows, and in columns eight apart."""
    return Part(stride * (_LANE % 4) + first + np.arange(4) % 2, _LANE // 4 + np.arange(4) // 2 * 8)


#: Keys: opcode, shape, ``trans`` or empty, and type.
_TILES: dict[tuple[str, str, str, str], _Tile] = {
    **{
        (opcode, "m8n8", trans, "b16"): _Tile(8, 16, (_HALVES.transpose() if trans else _HALVES,))
        for opcode in ("ldmatrix", "stmatrix")
        for trans in ("", "trans")
    },
    **{("ldmatrix", "m8n16", "", kind): _Tile(8, 8, (_BYTES,)) for kind in PACKED},
    **{
        ("ldmatrix", "m16n16", "trans", kind): _Tile(16, 8, (_make_transposed_part(0, 4), _make_transposed_part(2, 4)))
        for kind in ("b8", *PACKED)
    },
    ("stmatrix", "m16n8", "trans", "b8"): _Tile(8, 8, (_make_transposed_part(0, 2),)),
}


def mask_first_lanes(chunk: Chunk, lanes: int) -> Array:
    """Return the mask of active threads among the first ``lanes`` lanes of each warp, (1 or blocks, threads)."""
    return chunk.active & (np.arange(chunk.shape[1]) % LANES < lanes)[None, :]


def _parse_tile(instruction: Instruction) -> tuple[_Tile, int, int]:
    """Return the kind of the matrices, their number, and the bits of an element in memory."""
    names = [*instruction.modifiers]
    number = choose_modifier(instruction, ("x1", "x2", "x4"))
    known = {"sync", "aligned", "x1", "x2", "x4", "shared", "shared::cta"}
    shape = next((name for name in names if name.startswith("m")), "")  # CUTLASS writes it after .trans
    trans = "trans" if "trans" in names else ""
    kind = ".".join(name for name in names if name not in {*known, "trans", shape})
    tile = _TILES.get((instruction.opcode, shape, trans, kind))
    if tile is None:
        allowed = [".".join(filter(None, key)) for opcode, *key in _TILES if opcode == instruction.opcode]
        problem = f"its shape and type are {join_modifiers(filter(None, (shape, trans, kind)))}"
        raise unsupported(instruction, f"{problem}; allowed are {join_modifiers(allowed)}")
    count, bits = int(number[1]), PACKED.get(kind, tile.bits)
    if tile.rows * count > LANES:
        raise unsupported(instruction, f".{shape}.{number} does not exist; allowed are .x1, .x2")
    return tile, count, bits


@binds("ldmatrix", "stmatrix")
def _bind_rows(instruction: Instruction) -> Step:
    """Bind ``ldmatrix.sync.aligned.shape.num{.trans}{.shared}.type r, [p]``, and ``stmatrix [p], r``."""
    loads = instruction.opcode == "ldmatrix"
    tile, count, bits = _parse_tile(instruction)
    expect_count(instruction, 2)
    data, address = instruction.operands if loads else instruction.operands[::-1]
    registers = split_group(data)
    if len(registers) != count * len(tile.parts):
        raise make_count_error(instruction, "the vector", len(registers), "register", count * len(tile.parts))
    read_address = make_shared_reader(instruction, address)
    instruction.units.add(4)
    word_count = ROW // 4 * min(bits, 8) // 8  # words of a row; the rest is padding

    def load(chunk: Chunk) -> list[Array]:
        place, mask = read_address(chunk), mask_first_lanes(chunk, tile.rows * count)
        words = chunk.shared.load(place, 4, word_count, mask, chunk.make_reporter())
        lanes = np.ascontiguousarray(np.stack([reshape_to_lanes(chunk, word) for word in words], axis=-1))
        rows = lanes.view(f"u{tile.bits // 8}") if bits >= 8 else split_row(lanes.view(np.uint8), bits)
        chunk.record("shared", "load", ROW, place, active=mask, is_matrix=True)
        squares = [rows[:, :, tile.rows * square : tile.rows * (square + 1)] for square in range(count)]
        return [
            reshape_to_threads(chunk, pack_elements(extract_part(part, square), tile.bits))
            for square in squares
            for part in tile.parts
        ]

    def store(chunk: Chunk, *words_of_squares: Array) -> list[Array]:
        place, mask = read_address(chunk), mask_first_lanes(chunk, tile.rows * count)
        squares = []
        for words in words_of_squares:
            elements = unpack_elements(reshape_to_lanes(chunk, words), tile.bits, 32 // tile.bits)
            squares.append(assemble_matrices(list(tile.parts), [elements], (tile.rows, 8 * ROW // tile.bits)))
        # Repeated to 32 rows, one for each lane.
        rows = np.concatenate(np.broadcast_arrays(*squares * (4 // count)), axis=2)
        words = np.ascontiguousarray(rows.astype(f"u{tile.bits // 8}")).view(np.uint32)
        values = [spread(by_thread(np.ascontiguousarray(words[..., k]), chunk.shape[1]), chunk.shape) for k in range(4)]
        chunk.shared.store(place, 4, values, mask, chunk.make_reporter())
        chunk.record("shared", "store", ROW, place, active=mask)
        return []

    operands = [(register, _B32) for register in registers]
    return make_step(instruction, operands, [], load) if loads else make_step(instruction, [], operands, store)


def split_row(content: Array, bits: int) -> Array:
    """Split packed rows, (..., bytes), into elements of 4 or 6 bits, each in the lower bits of a byte."""
    flags = np.unpackbits(content, axis=-1, bitorder="little").reshape(*content.shape[:-1], -1, bits)
    return np.packbits(flags, axis=-1, bitorder="little")[..., 0]


@op("movmatrix.sync.aligned.m8n8.trans.b16", "b32 = b32")
def _transpose_square(chunk: Chunk, words: Array) -> list[Array]:
    part = list_fragment("c", Shape(8, 8, 8), 16)[0]
    square = assemble_matrices([part], [unpack_elements(reshape_to_lanes(chunk, words), 16, 2)], (8, 8))
    return [reshape_to_threads(chunk, pack_elements(extract_part(part.transpose(), square), 16))]
