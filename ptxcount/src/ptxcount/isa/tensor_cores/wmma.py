"""``wmma.load`` and ``wmma.store`` of tiles in memory (PTX ISA, "Warp Level Matrix"); products are in `mma`."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...lanes.symbolic_values import Value, dense
from ...lanes.warps import LANES, Array
from ...machine.chunk import Chunk
from ...ptx.program import TYPES, Instruction
from ..opcode_registry import Step, binds, make_step
from ..operands import (
    Reader,
    as_array,
    choose_modifier,
    expect_count,
    expect_modifiers,
    make_address_reader,
    make_count_error,
    make_reader,
    split_group,
)
from ..spaces import SPACES, find_space, make_resolver
from ..warp_collectives import reshape_to_lanes, reshape_to_threads
from .elements import ELEMENTS
from .fragments import Part, assemble_matrices, extract_part, list_fragment, split_pieces
from .matrix_rows import ROW, mask_first_lanes
from .mma import parse_shape
from .register_matrices import RegisterLayout, find_layout

_U32 = TYPES["u32"]
#: Element types of tiles; shorter ones are not supported.
_TYPES = ("f16", "bf16", "tf32", "f32", "f64", "s32", "u8", "s8")


class _Tile(NamedTuple):
    """A fragment in memory, and how a warp accesses it."""

    layout: RegisterLayout
    #: Parts that ptxas loads or stores by one instruction each.
    accesses: list[Part]
    #: Bits of an element.
    bits: int
    #: True if the elements of a row are contiguous, otherwise those of a column.
    by_row: bool
    #: True if ptxas loads the tile from shared memory by ``ldmatrix``.
    uses_ldmatrix: bool
    resolve: Callable[[Chunk], tuple[str, Value]]
    #: Function that reads the stride in elements; None for a dense tile.
    read_stride: Reader | None

    def load(self, chunk: Chunk) -> list[Array]:
        (space, start), loaded = self.resolve(chunk), []
        stride, counts_rows = self._find_stride(chunk), space == "shared" and self.uses_ldmatrix
        for part in self.accesses:
            place, count = self._locate_part(chunk, start, stride, part), part.row.shape[1]
            memory = chunk.find_memory(space)
            values = memory.load(place, self.bits // 8, count, chunk.active, chunk.make_reporter())
            loaded.append(np.stack([reshape_to_lanes(chunk, value) for value in values], axis=-1))
            if not counts_rows:
                chunk.record(space, "load", self.bits * count // 8, place)
        if counts_rows:
            self._record_rows(chunk, start, stride)
        return self.layout.split_matrix(chunk, assemble_matrices(self.accesses, loaded, self.layout.extent))

    def store(self, chunk: Chunk, *words: Array) -> list[Array]:
        matrix = self.layout.assemble_matrix(chunk, words)
        (space, start), stride = self.resolve(chunk), self._find_stride(chunk)
        for part in self.accesses:
            place = self._locate_part(chunk, start, stride, part)
            values = extract_part(part, matrix).astype(f"u{self.bits // 8}")
            columns = [reshape_to_threads(chunk, values[..., e]) for e in range(values.shape[-1])]
            chunk.find_memory(space).store(place, self.bits // 8, columns, chunk.active, chunk.make_reporter())
            chunk.record(space, "store", self.bits * len(columns) // 8, place)
        return []

    def _find_stride(self, chunk: Chunk) -> Array:
        """Return the elements between rows with ``by_row``, otherwise between columns."""
        if self.read_stride is None:
            return np.full((1, 1), self.layout.extent[1 if self.by_row else 0])
        return as_array(self.read_stride(chunk), _U32).astype(np.int64)

    def _locate_part(self, chunk: Chunk, start: Value, stride: Array, part: Part) -> Array:
        """Return the address of each thread's first element of a part; ``start`` is the address of the tile."""
        across, along = (part.row[:, 0], part.column[:, 0]) if self.by_row else (part.column[:, 0], part.row[:, 0])
        lane = np.arange(chunk.shape[1]) % LANES
        base = dense(start)
        offsets = (across[lane] * stride + along[lane]) * self.bits // 8
        return np.asarray(base.view(f"i{base.itemsize}").astype(np.int64) + offsets)

    def _record_rows(self, chunk: Chunk, start: Value, stride: Array) -> None:
        """Count loads from shared memory as ``ldmatrix``: up to four matrices of eight 16-byte rows.

        Each lane has the address of a row (with ``by_row``) or of a column of one matrix.
        """
        lane = np.arange(LANES)
        for first in range(0, len(self.accesses), 4):
            squares = self.accesses[first : first + 4]
            square = np.minimum(lane // 8, len(squares) - 1)  # of each lane
            row = np.array([part.row.min() for part in squares])[square]
            column = np.array([part.column.min() for part in squares])[square]
            row, column = (row + lane % 8, column) if self.by_row else (row, column + lane % 8)
            place = self._locate_part(chunk, start, stride, Part(row[:, None], column[:, None]))
            lanes = mask_first_lanes(chunk, 8 * len(squares))
            chunk.record("shared", "load", ROW, place, active=lanes, is_matrix=True)


@binds("wmma")
def _bind_tile(instruction: Instruction) -> Step | None:
    """Bind ``wmma.load.{a,b,c} r, [p]{, stride}`` and ``wmma.store.d [p], r{, stride}``."""
    if "mma" in instruction.modifiers:
        return None
    shape, _, names = parse_shape(instruction)
    role, element = choose_modifier(instruction, ("a", "b", "c", "d")), choose_modifier(instruction, _TYPES)
    expect_modifiers(instruction, sorted(names), {"load", "store", role, "sync", "aligned", "row", "col", *SPACES})
    by_row, loads, bits = "row" in names, "load" in names, ELEMENTS[element].bits
    expect_count(instruction, 2, 3)
    data, address = instruction.operands[:2] if loads else instruction.operands[1::-1]
    registers, layout = split_group(data), find_layout(role, shape, element)
    if len(registers) < len(layout.parts):
        raise make_count_error(instruction, "it", len(registers), "register", len(layout.parts))
    accesses = split_pieces(list_fragment(role, shape, bits), bits, by_row=by_row)
    space = find_space(instruction)
    resolve = make_resolver(space, make_address_reader(instruction, address, space))
    has_stride = len(instruction.operands) == 3
    read_stride = make_reader(instruction, instruction.operands[2], _U32) if has_stride else None
    is_k_contiguous = by_row if role == "a" else not by_row
    uses_ldmatrix = role in ("a", "b") and (bits == 16 or (bits == 8 and is_k_contiguous))
    if space in (None, "shared"):
        instruction.units.add(min(bits // 8, 4))
    tile = _Tile(layout, accesses, bits, by_row, uses_ldmatrix, resolve, read_stride)

    def load(chunk: Chunk) -> list[Array]:
        # Instructions have more registers than a fragment of few f16 elements, which is then repeated.
        words = tile.load(chunk)
        return [words[index % len(words)] for index in range(len(registers))]

    operands = [(register, layout.kind) for register in registers]
    if loads:
        return make_step(instruction, operands, [], load)
    return make_step(instruction, [], operands, tile.store)
