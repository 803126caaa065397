"""Rows of matrices in shared memory, ``ldmatrix`` and ``stmatrix``; and ``movmatrix`` (PTX ISA, "Warp Level Matrix").

The layouts of 8-bit matrices are from CUTLASS 4 (``copy_traits_sm100.hpp``, ``LDSM`` and ``STSM``).
"""

from typing import NamedTuple

import numpy as np

from ...lanes.warps import LANES, Array, by_thread, spread
from ...machine.chunk import Chunk
from ...ptx.program import TYPES, Instruction
from ..opcode_registry import Step, binds, make_step, op
from ..operands import Reader, choose_modifier, expect_count, join_modifiers, make_count_error, split_group, unsupported
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
    instruction.units.add(4)
    rows = _MatrixRows(tile, count, bits, make_shared_reader(instruction, address))
    operands = [(register, _B32) for register in registers]
    if loads:
        return make_step(instruction, operands, [], rows.load)
    return make_step(instruction, [], operands, rows.store)


class _MatrixRows(NamedTuple):
    """Rows of matrices in shared memory; a lane has the address of each row."""

    tile: _Tile
    #: Number of matrices, and bits of an element in memory.
    number: int
    bits: int
    read_address: Reader

    def load(self, chunk: Chunk) -> list[Array]:
        """Load the matrices; return the value of each register."""
        tile, bits = self.tile, self.bits
        place, mask = self.read_address(chunk), mask_first_lanes(chunk, tile.rows * self.number)
        word_count = ROW // 4 * min(bits, 8) // 8  # words of a row; the rest is padding
        words = chunk.shared.load(place, 4, word_count, mask, chunk.make_reporter())
        chunk.record("shared", "load", ROW, place, active=mask, is_matrix=True)
        lanes = np.ascontiguousarray(np.stack([reshape_to_lanes(chunk, word) for word in words], axis=-1))
        rows = lanes.view(f"u{tile.bits // 8}") if bits >= 8 else split_row(lanes.view(np.uint8), bits)
        matrices = [rows[:, :, tile.rows * k : tile.rows * (k + 1)] for k in range(self.number)]
        return [
            reshape_to_threads(chunk, pack_elements(extract_part(part, matrix), tile.bits))
            for matrix in matrices
            for part in tile.parts
        ]

    def store(self, chunk: Chunk, *registers: Array) -> list[Array]:
        """Store the matrices in registers, one register each."""
        tile = self.tile
        place, mask = self.read_address(chunk), mask_first_lanes(chunk, tile.rows * self.number)
        matrices = []
        for words in registers:
            elements = unpack_elements(reshape_to_lanes(chunk, words), tile.bits, 32 // tile.bits)
            matrices.append(assemble_matrices(list(tile.parts), [elements], (tile.rows, 8 * ROW // tile.bits)))
        # Repeated to 32 rows, one for each lane.
        rows = np.concatenate(np.broadcast_arrays(*matrices * (4 // self.number)), axis=2)
        row_words = np.ascontiguousarray(rows.astype(f"u{tile.bits // 8}")).view(np.uint32)
        by_word = [by_thread(np.ascontiguousarray(row_words[..., k]), chunk.shape[1]) for k in range(ROW // 4)]
        chunk.shared.store(place, 4, [spread(words, chunk.shape) for words in by_word], mask, chunk.make_reporter())
        chunk.record("shared", "store", ROW, place, active=mask)
        return []


def split_row(content: Array, bits: int) -> Array:
    """Split packed rows, (..., bytes), into elements of 4 or 6 bits, each in the lower bits of a byte."""
    flags = np.unpackbits(content, axis=-1, bitorder="little").reshape(*content.shape[:-1], -1, bits)
    return np.packbits(flags, axis=-1, bitorder="little")[..., 0]


@op("movmatrix.sync.aligned.m8n8.trans.b16", "b32 = b32")
def _transpose_square(chunk: Chunk, words: Array) -> list[Array]:
    part = list_fragment("c", Shape(8, 8, 8), 16)[0]
    square = assemble_matrices([part], [unpack_elements(reshape_to_lanes(chunk, words), 16, 2)], (8, 8))
    return [reshape_to_threads(chunk, pack_elements(extract_part(part.transpose(), square), 16))]
