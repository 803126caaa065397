"""``wmma.load`` and ``wmma.store`` of tiles in memory (PTX ISA, "Warp Level Matrix"); products are in `mma`."""

import numpy as np

from ...lanes.symbolic_values import Value, dense
from ...lanes.warps import LANES, Array
from ...machine.chunk import Chunk
from ...ptx.program import TYPES, Instruction
from ..opcode_registry import Step, binds, make_step
from ..operands import (
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
from .mma import find_layout, parse_shape

_U32 = TYPES["u32"]
#: Element types of tiles; shorter ones are not supported.
_TYPES = ("f16", "bf16", "tf32", "f32", "f64", "s32", "u8", "s8")


def _locate_part(chunk: Chunk, start: Value, leading: Array, part: Part, bits: int, *, by_row: bool) -> Array:
    """Return the address of each thread's first element of a part of a tile.

    ``start`` is the address of the tile. ``leading`` is the stride in elements: between rows with ``by_row``, else
    between columns.
    """
    across, along = (part.row[:, 0], part.column[:, 0]) if by_row else (part.column[:, 0], part.row[:, 0])
    lane = np.arange(chunk.shape[1]) % LANES
    base = dense(start)
    return np.asarray(
        base.view(f"i{base.itemsize}").astype(np.int64) + (across[lane] * leading + along[lane]) * bits // 8
    )


@binds("wmma")
def _bind_tile(instruction: Instruction) -> Step | None:
    """Bind ``wmma.load.{a,b,c} r, [p]{, stride}`` and ``wmma.store.d [p], r{, stride}``.

    The stride is in elements between rows, or between columns with ``.col``.
    """
    if "mma" in instruction.modifiers:
        return None
    shape, _, names = parse_shape(instruction)
    role, element = choose_modifier(instruction, ("a", "b", "c", "d")), choose_modifier(instruction, _TYPES)
    expect_modifiers(instruction, sorted(names), {"load", "store", role, "sync", "aligned", "row", "col", *SPACES})
    by_row = "row" in names
    bits, loads = ELEMENTS[element].bits, "load" in names
    expect_count(instruction, 2, 3)
    data, address = instruction.operands[:2] if loads else instruction.operands[1::-1]
    registers = split_group(data)
    layout = find_layout(role, shape, element)
    if len(registers) < len(layout.parts):
        raise make_count_error(instruction, "it", len(registers), "register", len(layout.parts))
    accesses = split_pieces(list_fragment(role, shape, bits), bits, by_row=by_row)
    space, default_leading = find_space(instruction), np.full((1, 1), layout.extent[1 if by_row else 0], np.uint32)
    resolve = make_resolver(space, make_address_reader(instruction, address, space))
    read_leading = [make_reader(instruction, operand, _U32) for operand in instruction.operands[2:]]
    is_k_contiguous = by_row if role == "a" else not by_row
    # ptxas loads these fragments from shared memory by ldmatrix.
    counts_as_ldmatrix = role in ("a", "b") and (bits == 16 or (bits == 8 and is_k_contiguous))
    if space in (None, "shared"):
        instruction.units.add(min(bits // 8, 4))

    def locate_tile(chunk: Chunk) -> tuple[str, Value, Array]:
        """Return the state space, address and stride in elements of the tile."""
        leading = as_array(read_leading[0](chunk), _U32) if read_leading else default_leading
        return *resolve(chunk), leading.astype(np.int64)

    def load_tile(chunk: Chunk) -> list[Array]:
        space, start, leading = locate_tile(chunk)
        memory, loaded = chunk.find_memory(space), []
        for part in accesses:
            place = _locate_part(chunk, start, leading, part, bits, by_row=by_row)
            count = part.row.shape[1]
            values = memory.load(place, bits // 8, count, chunk.active, chunk.make_reporter())
            loaded.append(np.stack([reshape_to_lanes(chunk, value) for value in values], axis=-1))
            if space != "shared" or not counts_as_ldmatrix:
                chunk.record(space, "load", bits * count // 8, place)
        if space == "shared" and counts_as_ldmatrix:
            _record_rows(chunk, start, leading, accesses, bits, by_row)
        tile_registers = layout.split_matrix(chunk, assemble_matrices(accesses, loaded, layout.extent))
        # Instructions have more registers than a fragment of few f16 elements, which is then repeated.
        return [tile_registers[index % len(tile_registers)] for index in range(len(registers))]

    def store_tile(chunk: Chunk, *words: Array) -> list[Array]:
        matrix = layout.assemble_matrix(chunk, words)
        space, start, leading = locate_tile(chunk)
        for part in accesses:
            place = _locate_part(chunk, start, leading, part, bits, by_row=by_row)
            values = extract_part(part, matrix).astype(f"u{bits // 8}")
            columns = [reshape_to_threads(chunk, values[..., e]) for e in range(values.shape[-1])]
            chunk.find_memory(space).store(place, bits // 8, columns, chunk.active, chunk.make_reporter())
            chunk.record(space, "store", bits * len(columns) // 8, place)
        return []

    operands = [(register, layout.kind) for register in registers]
    if loads:
        return make_step(instruction, operands, [], load_tile)
    return make_step(instruction, [], operands, store_tile)


def _record_rows(chunk: Chunk, start: Value, leading: Array, parts: list[Part], bits: int, by_row: bool) -> None:
    """Count loads of a fragment from shared memory as ``ldmatrix``: up to four matrices of eight 16-byte rows.

    Each lane has the address of a row (with ``by_row``) or of a column of one matrix.
    """
    lane = np.arange(LANES)
    for first in range(0, len(parts), 4):
        squares = parts[first : first + 4]
        square = np.minimum(lane // 8, len(squares) - 1)  # of each lane
        row = np.array([part.row.min() for part in squares])[square]
        column = np.array([part.column.min() for part in squares])[square]
        row, column = (row + lane % 8, column) if by_row else (row, column + lane % 8)
        part = Part(row[:, None], column[:, None])
        place = _locate_part(chunk, start, leading, part, bits, by_row=by_row)
        lanes = mask_first_lanes(chunk, 8 * len(squares))
        chunk.record("shared", "load", ROW, place, active=lanes, is_matrix=True)
