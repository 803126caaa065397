"""Tables of layouts in tensor memory: registers of warps, and rows of products.

Sources: PTX ISA 9.0, 9.7.16.2.3.1 "Memory Layout" (Figures 183 to 187) and 9.7.16.10.5 "Data Path Layout Organization"
(Figures 205 to 218), read with CUTLASS 4: ``cute/atom/copy_traits_sm100.hpp`` and ``mma_traits_sm100.hpp``
(``tmem_frg``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...lanes.warps import Array


class Fragment(NamedTuple):
    """Places of a warp's registers in tensor memory, for a shape of ``ld`` and ``st``."""

    #: Lanes of tensor memory that a warp accesses.
    lanes: int
    #: Registers of each thread for ``.x1``.
    registers: int
    #: Function that returns lanes and columns, relative to the address, from indices of threads and registers.
    locate: Callable[[Array, Array], tuple[Array, Array]]


FRAGMENTS: dict[str, Fragment] = {
    "32x32b": Fragment(32, 1, lambda t, r: (t, r)),
    "16x64b": Fragment(16, 1, lambda t, r: (t // 4 + t % 2 * 8, r * 2 + t // 2 % 2)),
    "16x128b": Fragment(16, 2, lambda t, r: (t // 4 + r % 2 * 8, r // 2 * 4 + t % 4)),
    "16x256b": Fragment(16, 4, lambda t, r: (t // 4 + r // 2 % 2 * 8, r // 4 * 8 + t % 4 * 2 + r % 2)),
    "16x32bx2": Fragment(16, 1, lambda t, r: (t % 16, r)),  # threads from 16 on access the second half
}


class DataPath(NamedTuple):
    """Lanes of a product's rows.

    If a block has less than 128 rows, the columns of the result may be in several parts, each in other lanes.
    """

    #: Rows per block.
    rows: int
    #: Number of parts of the columns.
    parts: int
    #: Function that returns lanes from indices of rows and parts.
    locate: Callable[[Array, Array], Array]
    #: Allowed lanes of an address ("Tensor Memory Datapath Lane Alignment").
    bases: tuple[int, ...] = (0,)

    def find_lanes(self) -> Array:
        """Return the lane of each row in each part of the columns; the shape is (parts, rows)."""
        lanes = self.locate(np.arange(self.rows)[None, :], np.arange(self.parts)[:, None])
        return np.broadcast_to(lanes, (self.parts, self.rows))


def _make_adjacent(rows: int, parts: int) -> DataPath:
    """Make a layout in which the lanes of a part follow those of the part before."""
    return DataPath(rows, parts, lambda row, part: row + rows * part)


#: Layouts A to G, without C for sparse factors. Keys: M, number of blocks of the CTA group, and True with ``.ws``.
DATA_PATHS: dict[tuple[int, int, bool], DataPath] = {
    (256, 2, False): _make_adjacent(128, 1),  # A
    (128, 2, False): _make_adjacent(64, 2),  # B
    (128, 1, False): _make_adjacent(128, 1),  # D
    (128, 1, True): _make_adjacent(128, 1),  # D
    (64, 1, True): _make_adjacent(64, 2),  # E
    (64, 1, False): DataPath(64, 1, lambda row, part: row // 16 * 32 + row % 16 + part, (0, 16)),  # F
    (32, 1, True): _make_adjacent(32, 4),  # G
}
