"""Sparse factors: expands elements and metadata of ``mma.sp`` to full matrices (PTX ISA, "Sparse matrix storage").

Two of each group of four units are stored. A unit is an element; of 4-bit types, a pair of elements; of tf32, half an
element. The lane layout of metadata is from CUTLASS 4 (``host_reorder.h``, ``mma_traits_sm120_sparse.hpp``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...lanes.warps import Array, lanes_by_warp, spread
from ...machine.chunk import Chunk
from ...ptx.program import Instruction, Operand
from ...util.grammar import join_choices
from ..operands import parse_integer, unsupported

#: Rows of A.
_ROWS = np.arange(16)[:, None]


def expand_groups(stored: Array, codes: Array, unit: int) -> Array:
    """Expand stored elements, (..., stored), by the codes of their groups, (..., groups); all others are zeros.

    ``unit`` is the number of elements per index: 1, or 2 for 4-bit types. It is 0 for tf32: both indices of a code are
    for one element, which is as wide as two f16. The code 0b0100 is for the first of two elements, 0b1110 for the
    second.
    """
    if unit == 0:
        index, slots, unit = (codes >> 1 & 1)[..., None], 2, 1
    else:
        index, slots = np.stack([codes & 3, codes >> 2], axis=-1), 4
    index = index[..., None].astype(np.intp)
    values = stored.reshape(*stored.shape[:-1], codes.shape[-1], -1, unit)
    full = np.zeros((*values.shape[:-2], slots, unit), stored.dtype)
    np.put_along_axis(full, np.broadcast_to(index, values.shape), values, axis=-2)
    return full.reshape(*stored.shape[:-1], -1)


def find_undefined(codes: Array, unit: int, *, ordered: bool) -> Array:
    """Return the mask of undefined codes: equal indices, and with ``ordered`` also descending ones.

    For tf32 (unit 0), only 0b0100 and 0b1110 are defined.
    """
    if unit == 0:
        return np.asarray((codes != 0b0100) & (codes != 0b1110))
    first, second = codes & 3, codes >> 2
    return np.asarray(first >= second if ordered else first == second)


def explain_undefined(code: int, unit: int, *, ordered: bool) -> str:
    """Return the error text for an undefined code, with the codes that are defined."""
    codes = np.arange(16)
    defined = codes[~find_undefined(codes, unit, ordered=ordered)].tolist()
    allowed = ", ".join(f"{code:#06b}" for code in defined)
    return f"the metadata {code:#06b} of a group of elements is undefined; allowed are {allowed}"


def count_elements_per_index(bits: int) -> int:
    """Count the elements per metadata index; 0 stands for 32-bit elements (see `expand_groups`)."""
    return {4: 2, 32: 0}.get(bits, 1)


class Metadata(NamedTuple):
    """Location of metadata in the registers of a warp: lane and bit of each code of 16 rows, both (16, codes).

    ``unit`` is that of `expand_groups`. If ``ordered``, the indices of a group must ascend.
    """

    lanes: Array
    shifts: Array
    unit: int
    ordered: bool

    @classmethod
    def locate(cls, instruction: Instruction, k: int, bits: int, selector: Operand) -> Metadata:
        """Find the lane and bit of each code of the metadata, for ``k`` expanded elements of ``bits`` bits per row.

        A row has a code of 4 bits for each group of elements. A word has codes of two rows of A if elements have 16
        bits or more, else of one row. The selector chooses one, two or four lanes of each quad (four lanes).
        """
        unit, ordered = count_elements_per_index(bits), "sp" not in instruction.modifiers
        group_size, rows_of_word = {0: 2, 1: 4, 2: 8}[unit], 2 if bits >= 16 else 1
        allowed = [group_size * codes for codes in (4, 8, 16) if codes * rows_of_word >= 8]
        if k not in allowed:
            text = f"K is {k}; with sparse elements of {bits} bits, it must be {join_choices(allowed)}"
            raise unsupported(instruction, text)
        code = np.arange(k // group_size)
        word_of_row, bit = np.divmod(code * 4, 32 // rows_of_word)
        quad_lanes = len(code) // 4  # a quad has the metadata of rows r and r + 8
        most = 4 // quad_lanes
        number = parse_integer(instruction, selector, "the sparsity selector")
        if number not in range(most):
            raise unsupported(instruction, f"the sparsity selector is {number}; it must be {join_choices(range(most))}")
        is_second_row, first_lane = _ROWS // 8, number * quad_lanes + 4 * (_ROWS % 8)
        if rows_of_word == 2:
            return cls(first_lane + word_of_row, bit + 16 * is_second_row, unit, ordered)
        return cls(first_lane + 2 * word_of_row + is_second_row, np.broadcast_to(bit, (16, len(code))), unit, ordered)

    def expand(self, chunk: Chunk, stored: Array, words: Array) -> Array:
        """Expand the stored rows, (blocks, warps, 16, stored), by the lanes' metadata words, (blocks, warps, 32)."""
        codes: Array = words[:, :, self.lanes] >> self.shifts.astype(np.uint32) & 15
        is_active = np.asarray(lanes_by_warp(spread(chunk.active, chunk.shape), chunk.shape[1]).any(axis=2))
        is_wrong = find_undefined(codes, self.unit, ordered=self.ordered) & is_active[..., None, None]
        if is_wrong.any():
            code = int(np.broadcast_to(codes, is_wrong.shape)[is_wrong][0])
            raise unsupported(chunk.instruction, explain_undefined(code, self.unit, ordered=self.ordered))
        warps = is_wrong.shape[:2]
        stored, codes = (np.broadcast_to(part, (*warps, *part.shape[2:])) for part in (stored, codes))
        return expand_groups(stored, codes, self.unit)
