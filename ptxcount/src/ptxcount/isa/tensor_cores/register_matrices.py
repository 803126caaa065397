"""Matrices in the registers of a warp."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from ...lanes.warps import Array
from ...machine.chunk import Chunk
from ...ptx.program import TYPES, Instruction, Operand, Type
from ..operands import make_count_error, split_group
from ..warp_collectives import reshape_to_lanes, reshape_to_threads
from .elements import ELEMENTS, encode, pack_elements, unpack_elements
from .fragments import Part, Shape, assemble_matrices, extract_part, list_fragment, list_quad_pairs

#: The shape with four products at once, except for float64.
QUADS = Shape(8, 8, 4)
_B32, _U64 = TYPES["b32"], TYPES["u64"]


class RegisterLayout(NamedTuple):
    """Register layout of an operand: the part of the matrix in each register, bits per element, and matrix shape."""

    parts: list[Part]
    bits: int
    extent: tuple[int, int]

    @property
    def kind(self) -> Type:
        """The type of each register."""
        return _U64 if self.bits == 64 else _B32

    def assemble_matrix(self, chunk: Chunk, registers: Sequence[Array]) -> Array:
        """Return the bits of each warp's matrix, (blocks, warps, rows, columns), from the values of registers."""
        words = [reshape_to_lanes(chunk, register) for register in registers]
        count = self.parts[0].row.shape[1]
        return assemble_matrices(self.parts, [unpack_elements(word, self.bits, count) for word in words], self.extent)

    def split_matrix(self, chunk: Chunk, matrix: Array) -> list[Array]:
        """Return the values of the registers from the bits of each warp's matrix: the inverse of `assemble_matrix`."""
        return [reshape_to_threads(chunk, pack_elements(extract_part(part, matrix), self.bits)) for part in self.parts]


def find_layout(role: str, shape: Shape, element: str, *, transposed: bool = False) -> RegisterLayout:
    """Return the register layout of operand ``a``, ``b``, ``c`` or ``d``; ``transposed`` matters only for `QUADS`."""
    bits = ELEMENTS[element].bits
    if shape == QUADS and bits < 64:
        extent = {"a": (32, 4), "b": (4, 32)}.get(role, (32, 32))
        return RegisterLayout(list_quad_pairs(role, bits, transposed=transposed), bits, extent)
    parts = list_fragment(role, shape, bits)
    if role in ("c", "d") and bits > 16:
        parts = [Part(part.row[:, [e]], part.column[:, [e]]) for part in parts for e in (0, 1)]
    return RegisterLayout(parts, bits, shape.operand_extent(role))


class RegisterMatrix(NamedTuple):
    """A matrix in registers: the type and layout of its elements, and as many registers as the layout has."""

    element: str
    layout: RegisterLayout
    registers: tuple[Operand, ...]

    @classmethod
    def parse(
        cls, instruction: Instruction, operand: Operand, role: str, shape: Shape, element: str,
        *, transposed: bool = False,
    ) -> RegisterMatrix:  # fmt: skip
        """Parse the registers of operand ``a``, ``b``, ``c`` or ``d``, which has the layout of `find_layout`.

        ``wmma`` may have more registers than its fragment needs. Raises `UnsupportedInstructionError` for any other
        number.
        """
        registers, layout = split_group(operand), find_layout(role, shape, element, transposed=transposed)
        count = len(layout.parts)
        if len(registers) < count or (len(registers) > count and instruction.opcode != "wmma"):
            raise make_count_error(instruction, f"its matrix {role}", len(registers), "register", count)
        return cls(element, layout, registers[:count])

    @property
    def typed_registers(self) -> list[tuple[Operand, Type]]:
        """The registers with their types."""
        return [(register, self.layout.kind) for register in self.registers]

    def take_numbers(self, chunk: Chunk, values: Iterator[Array]) -> Array:
        """Take the next values, those of the registers; return the numbers of each warp's matrix."""
        words = [*islice(values, len(self.registers))]
        return ELEMENTS[self.element].decode(self.layout.assemble_matrix(chunk, words))

    def encode_numbers(self, chunk: Chunk, numbers: Array, *, saturate: bool) -> list[Array]:
        """Return the values of the registers from the numbers of each warp's matrix."""
        return self.layout.split_matrix(chunk, encode(numbers, self.element, saturate=saturate))
