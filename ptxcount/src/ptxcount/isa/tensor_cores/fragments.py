"""Layouts of matrix fragments in the lanes of a warp, for tensor cores (PTX ISA, "Matrix Fragments").

A fragment is a list of registers. A register is a pair of arrays of shape (32 lanes, elements): the rows and columns of
its elements. All shapes except ``m8n8k4`` with f16 follow one pattern: each group of four lanes has one of eight rows
(of B, columns), and adjacent elements share a register. The layout of ``wmma`` is unspecified: here it is that of
``mma``, as on GPUs from sm_80 on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...lanes.warps import LANES, Array

#: Number of each lane's group of four lanes, and of the lane in its group.
_GROUP, _LANE_IN_GROUP = np.arange(LANES)[:, None] // 4, np.arange(LANES)[:, None] % 4


class Part(NamedTuple):
    """Rows and columns of the elements of a register, each of shape (32, elements)."""

    row: Array
    column: Array

    def transpose(self) -> Part:
        """Return the part with rows and columns exchanged."""
        return Part(self.column, self.row)

    def shift(self, row: int, column: int) -> Part:
        """Return the part moved by a number of rows and columns."""
        return Part(self.row + row, self.column + column)


class Shape(NamedTuple):
    """``m`` rows and ``n`` columns of the result, ``k`` products per element."""

    m: int
    n: int
    k: int

    def operand_extent(self, role: str) -> tuple[int, int]:
        """Return rows and columns of the operand ``a``, ``b``, ``c`` or ``d``."""
        return {"a": (self.m, self.k), "b": (self.k, self.n)}.get(role, (self.m, self.n))


def list_fragment(role: str, shape: Shape, bits: int) -> list[Part]:
    """List the registers of an operand, the ``role`` ``a``, ``b``, ``c`` or ``d``; ``bits`` is the size of an element.

    A part of ``c`` or ``d`` has two elements of any size; a part of ``a`` or ``b`` fills a 32-bit word, or has one f64.
    So A of 16 x 16 elements of 16 bits has four parts of (32 lanes, 2 elements).
    """
    if shape.m == 8 and shape.n > 8:  # ptxas swaps A and B: fragments are those of the transpose
        swapped_role = {"a": "b", "b": "a"}.get(role, role)
        return [part.transpose() for part in list_fragment(swapped_role, Shape(shape.n, 8, shape.k), bits)]
    count = 2 if role in ("c", "d") else max(32 // bits, 1)
    lane = np.broadcast_to(_GROUP, (LANES, count))
    inner = _LANE_IN_GROUP * count + np.arange(count)
    rows, columns = shape.operand_extent(role)
    if role == "b":
        pieces = [Part(lane, inner).shift(0, row).transpose() for row in range(0, rows, 4 * count)]
        return [piece.shift(0, column) for column in range(0, columns, 8) for piece in pieces]
    height = min(rows, 16)
    return [
        Part(lane, inner).shift(tile + half, column)
        for tile in range(0, rows, height)
        for column in range(0, columns, 4 * count)
        for half in range(0, height, 8)
    ]


def list_quad_pairs(role: str, bits: int, *, transposed: bool) -> list[Part]:
    """List the registers of ``m8n8k4`` with f16: four products, each by a quad of lanes and the quad 16 lanes later.

    They are listed as one product of 32 x 32. Each of the four has eight rows of ``a``, eight columns of ``b``, and a
    diagonal square of ``c``. With ``transposed``, ``a`` is column-major, or ``b`` row-major.
    """
    lane = np.arange(LANES)[:, None]
    first, upper = lane // 4 % 4 * 8, lane // 16 * 4
    if role in ("a", "b"):
        along, within = np.broadcast_arrays(np.arange(4), lane % 4)
        outer, inner = (along, within) if transposed else (within, along)
        part = Part(first + upper + outer, inner) if role == "a" else Part(inner, first + upper + outer)
    else:
        column, row = np.broadcast_arrays(np.arange(8), lane % 4)
        if bits == 32:
            row, column = row % 2 + (column & 2), (column & 4) + (row & 2) + column % 2
        part = Part(first + upper + row, first + column)
    count = 32 // bits
    return [Part(*(side[:, place : place + count] for side in part)) for place in range(0, part.row.shape[1], count)]


def assemble_matrices(parts: list[Part], values: list[Array], extent: tuple[int, int]) -> Array:
    """Assemble the matrices of warps, (blocks, warps, *extent), from the elements of each part's register."""
    batch_shape = np.broadcast_shapes(*(value.shape[:2] for value in values))
    matrix = np.zeros((*batch_shape, *extent), values[0].dtype)
    for part, value in zip(parts, values, strict=False):
        matrix[:, :, part.row, part.column] = value
    return matrix


def extract_part(part: Part, matrix: Array) -> Array:
    """Return the elements of one register, (blocks, warps, 32, elements): the inverse of `assemble_matrices`."""
    return np.asarray(matrix[:, :, part.row, part.column])


def split_pieces(parts: list[Part], bits: int, *, by_row: bool) -> list[Part]:
    """List the loads or stores that ptxas emits for a fragment in memory (machine code for sm_90, nvcc 13.0).

    Elements of a lane that are adjacent in memory move together. Otherwise, elements of 16 bits move as the transpose
    of an 8 x 8 square, and ``movm`` restores the square. All others move one by one.
    """
    accesses = []
    for part in parts:
        along, across = (part.column, part.row) if by_row else (part.row, part.column)
        if (np.diff(along, axis=1) == 1).all():
            accesses.append(part)
        elif bits == 16:
            along, across = along[0, 0] + (across - across[0, 0]), across[0, 0] + (along - along[0, 0])
            accesses.append(Part(across, along) if by_row else Part(along, across))
        else:
            accesses += [Part(part.row[:, [e]], part.column[:, [e]]) for e in range(along.shape[1])]
    return accesses
