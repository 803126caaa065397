"""Copies between tensor memory and registers: ``tcgen05.ld``, ``st`` and ``wait``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...lanes.symbolic_values import dense
from ...lanes.warps import LANES, Array, spread
from ...machine.chunk import Chunk
from ...machine.tensor_memory import split_address
from ...ptx.program import TYPES, Instruction
from ...util.errors import OutOfBoundsError
from ..opcode_registry import Step, binds, make_step
from ..operands import (
    Reader,
    choose_modifier,
    expect_count,
    expect_modifiers,
    make_address_reader,
    make_count_error,
    parse_integer,
    split_group,
    unsupported,
)
from ..single_threads import make_row_reporter
from ..warp_collectives import reshape_to_lanes, reshape_to_threads
from .issuing_warps import find_whole_warps, read_per_warp
from .layouts import FRAGMENTS

_B32, _U32 = TYPES["b32"], TYPES["u32"]
#: Modifiers of repetition, ``.x1`` to ``.x128``.
_NUMBERS = {f"x{1 << power}": 1 << power for power in range(8)}
_MAX_REGISTERS = 128
_QUARTER = 32


class _Access(NamedTuple):
    """A ``ld`` or ``st`` of whole warps: the shape, registers per thread, and the function that reads the address."""

    shape: str
    registers: int
    read: Reader
    #: Column offset of threads 16 to 31.
    split: int
    #: True if a register has the lower halves of two columns.
    packed: bool

    def locate(self, chunk: Chunk) -> tuple[Array, Array, Array, Array]:
        """Return the block and index of active warps, and their lanes and columns, (warps, threads, registers).

        Report lanes outside the warp's quarter (PTX ISA, 9.7.16.8.1). An address in the first quarter is relative to
        the warp's own quarter: code of tilelang uses such addresses.
        """
        rows, warps = find_whole_warps(chunk)
        fragment = FRAGMENTS[self.shape]
        thread, register = np.arange(LANES)[:, None], np.arange(self.registers)[None, :]
        lane, column = np.broadcast_arrays(*fragment.locate(thread, register))
        columns = column * (2 if self.packed else 1) + thread // 16 * self.split
        bases = read_per_warp(chunk, dense(self.read(chunk)).astype(np.uint32), rows, warps)
        first_lanes, first_columns = bases >> 16, bases & 0xFFFF
        quarter_starts = warps % 4 * _QUARTER
        first_lanes = np.where(first_lanes < _QUARTER, first_lanes + quarter_starts, first_lanes)
        is_wrong = (first_lanes < quarter_starts) | (first_lanes + fragment.lanes > quarter_starts + _QUARTER)
        if is_wrong.any():
            place = int(is_wrong.argmax())
            base, first = split_address(int(bases[place])), int(quarter_starts[place])
            text = (
                f"lanes {base[0]} to {base[0] + fragment.lanes - 1} of tensor memory; warp {warps[place]} of its block "
                f"can access lanes {first} to {first + _QUARTER - 1}"
            )
            make_row_reporter(chunk)(OutOfBoundsError, (int(rows[place]), 0), text, int(bases[place]))
        return rows, warps, first_lanes[:, None, None] + lane, first_columns[:, None, None] + columns


def _parse_access(instruction: Instruction, packing: str) -> _Access:
    """Parse a ``ld`` or ``st``; ``packing`` is the modifier for two columns per register."""
    name, *names = instruction.modifiers
    expect_modifiers(instruction, names, {"sync", "aligned", "b32", packing, *FRAGMENTS, *_NUMBERS})
    shape, number = choose_modifier(instruction, FRAGMENTS), choose_modifier(instruction, _NUMBERS)
    count = FRAGMENTS[shape].registers * _NUMBERS[number]
    expect_count(instruction, 3 if shape == "16x32bx2" else 2)
    place, *rest = instruction.operands[1 if name == "ld" else 0 :]
    split = parse_integer(instruction, rest[0], "the offset of its second half") if shape == "16x32bx2" else 0
    registers = split_group(instruction.operands[0 if name == "ld" else -1])
    if count > _MAX_REGISTERS:
        problem = f".{shape}.{number} needs {count} registers; at most {_MAX_REGISTERS} are allowed"
        raise unsupported(instruction, problem)
    if len(registers) != count:
        raise make_count_error(instruction, "it", len(registers), "register", count)
    read = make_address_reader(instruction, place, "tensor")
    return _Access(shape, count, read, split, packing in names)


@binds("tcgen05", having={"ld"})
def _bind_load(instruction: Instruction) -> Step:
    """Bind ``tcgen05.ld.sync.aligned.shape.num{.pack::16b}.b32 r, [address]{, split}``."""
    access = _parse_access(instruction, "pack::16b")

    def load(chunk: Chunk) -> list[Array]:
        rows, warps, lanes, columns = access.locate(chunk)
        report, block = make_row_reporter(chunk), rows[:, None, None]
        words = chunk.tensor.load(block, lanes, columns, report)
        if access.packed:
            words = words & 0xFFFF | chunk.tensor.load(block, lanes, columns + 1, report) << np.uint32(16)
        result = np.zeros((access.registers, chunk.shape[0], -(-chunk.shape[1] // LANES), LANES), np.uint32)
        result[:, rows, warps] = np.moveaxis(words, 2, 0)
        return [reshape_to_threads(chunk, register) for register in result]

    return make_step(instruction, [(register, _B32) for register in split_group(instruction.operands[0])], [], load)


@binds("tcgen05", having={"st"})
def _bind_store(instruction: Instruction) -> Step:
    """Bind ``tcgen05.st.sync.aligned.shape.num{.unpack::16b}.b32 [address]{, split}, r``."""
    access = _parse_access(instruction, "unpack::16b")

    def store(chunk: Chunk, *registers: Array) -> list[Array]:
        rows, warps, lanes, columns = access.locate(chunk)
        report, block = make_row_reporter(chunk), rows[:, None, None]
        by_lane = (reshape_to_lanes(chunk, spread(register, chunk.shape)) for register in registers)
        words = np.stack([values[rows, warps] for values in by_lane], axis=-1)
        if access.packed:
            chunk.tensor.store(block, lanes, columns + 1, words >> np.uint32(16), report)
            words = words & np.uint32(0xFFFF)
        chunk.tensor.store(block, lanes, columns, words, report)
        return []

    return make_step(instruction, [], [(register, _B32) for register in split_group(instruction.operands[-1])], store)


@binds("tcgen05", having={"wait::ld", "wait::st"})
def _bind_wait(instruction: Instruction) -> Step:
    """Bind ``tcgen05.wait::ld`` and ``wait::st``: later products see completed stores."""
    expect_count(instruction, 0)

    def wait(chunk: Chunk) -> None:
        rows, warps = find_whole_warps(chunk)
        chunk.tensor.finish_stores(rows, warps % 4)

    return (lambda chunk: None) if instruction.modifiers[0] == "wait::ld" else wait
