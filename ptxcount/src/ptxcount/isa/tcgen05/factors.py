"""Factors of products: elements in shared or tensor memory as float64, their scales, and sparsity metadata.

In padded kinds, a unit of 16 bytes has 16 elements of 4 or 6 bits, then padding (PTX ISA 9.0, 9.7.16.10.4 "Packing
formats"). Scales are in 32 lanes, and repeated in the other lanes, or in those of the half (9.7.16.10.7, Figures 231 to
252; CUTLASS 4, ``mma_traits_sm100.hpp``, ``tmem_sf_frg``). A part of the columns is that of `DataPath`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...lanes.warps import Array
from ...machine.address_map import Report
from ...machine.chunk import Chunk
from ...util.errors import TensorMemoryError
from ..arithmetic.narrow_float import SCALES
from ..hopper.wgmma import Descriptor
from ..tensor_cores.elements import ELEMENTS
from ..tensor_cores.matrix_rows import split_row
from .layouts import DataPath

FACTOR_ELEMENTS = {
    **{name: ELEMENTS[name] for name in ("f16", "bf16", "tf32", "e4m3", "e5m2", "u8", "s8", "e2m1")},
    **{name: ELEMENTS[name]._replace(bits=6) for name in ("e2m3", "e3m2")},
}


def load_shared_factor(
    chunk: Chunk, row: int, descriptor: Descriptor, extent: tuple[int, int], name: str, report: Report,
    *, transposed: bool, padded: bool,
) -> Array:  # fmt: skip
    """Load a factor from the shared memory of the block ``row`` as float64.

    ``extent`` is the shape of the result: rows of A or columns of B, and K. ``name`` is the type of elements.
    ``transposed`` factors are not contiguous along K; 4-bit elements without padding (see `Kind`) always are.
    """
    element, (outer, k) = FACTOR_ELEMENTS[name], extent
    if element.bits >= 8:
        places = descriptor.locate_elements(outer, k, element.bits // 8, transposed=transposed)
        return element.decode(chunk.shared.gather_elements(row, places, element.bits // 8, report))
    if not padded:
        places = descriptor.locate_elements(outer, k // 2, 1, transposed=False)
        return element.decode(split_row(chunk.shared.gather_elements(row, places, 1, report), 4))
    places = descriptor.locate_elements(outer, k, 1, transposed=transposed)  # as if each element had a byte
    bit = places % 16 * element.bits
    first_byte = places // 16 * 16 + bit // 8
    last_byte = places // 16 * 16 + (bit + element.bits - 1) // 8
    low, high = (chunk.shared.gather_elements(row, byte, 1, report) for byte in (first_byte, last_byte))
    codes = ((low | high.astype(np.uint16) << 8) >> (bit % 8).astype(np.uint16)) & ((1 << element.bits) - 1)
    return element.decode(codes)


def find_stored_bits(name: str, *, padded: bool) -> int:
    """Return the bits of an element in shared memory, at least 8 with padding."""
    bits = FACTOR_ELEMENTS[name].bits
    return max(bits, 8) if padded else bits


def load_tensor_factor(
    chunk: Chunk, blocks: Array, path: DataPath, base: tuple[int, int], k: int, name: str, report: Report
) -> Array:
    """Load A from the tensor memory of ``blocks`` as float64, (blocks, parts, rows of A, K).

    ``base`` is the lane and the column of the address.
    """
    element = FACTOR_ELEMENTS[name]
    columns = base[1] + np.arange(k * element.bits // 32)
    lanes = base[0] + path.find_lanes()
    places = blocks[:, None, None, None], lanes[None, :, :, None], columns
    words = chunk.tensor.load(*places, report, is_asynchronous=True)
    if element.bits == 4:
        return element.decode(split_row(words.view(np.uint8), 4))
    return element.decode(words.view(f"u{element.bits // 8}"))


class ScaleBytes(NamedTuple):
    """Bytes of a row's scales: type of a scale, the first byte in a word, and the number of scales."""

    name: str
    first: int
    length: int


def load_scales(
    chunk: Chunk, blocks: Array, base: tuple[int, int], count: int, parts: int, scale: ScaleBytes, report: Report
) -> Array:
    """Load the scales of a factor's ``count`` rows as float64, (blocks, rows, scales per row).

    ``base`` is the lane and the column of the address. With two parts, lanes 0 to 63 have the first half of the rows,
    and lanes 64 to 127 the second. Scales that exceed a word of four bytes continue in the same lanes: 4 columns later
    for up to 128 rows, 8 for up to 256.
    """
    part, within = np.divmod(np.arange(count), count // parts)
    repeats = np.arange(4 // parts)[:, None, None] * 32
    lanes = base[0] + (part * (128 // parts) + within % 32)[:, None] + repeats
    byte = np.arange(scale.first, scale.first + scale.length)
    columns = base[1] + (within // 32)[:, None] + byte // 4 * (-(-count // 128) * 4)
    words = chunk.tensor.load(blocks[:, None, None, None], lanes[None], columns, report, is_asynchronous=True)
    wrong_blocks = blocks[(words != words[:, :1]).any(axis=(1, 2, 3))]
    if wrong_blocks.size:
        text = f"scales differ between lanes that are 32 apart; {4 // parts} such lanes must have the same scales"
        report(TensorMemoryError, (int(wrong_blocks[0]), 0), text, base[0] << 16 | base[1])
    return SCALES[scale.name](words[:, 0] >> (8 * (byte % 4)).astype(np.uint32) & 0xFF)


def load_metadata(
    chunk: Chunk, blocks: Array, path: DataPath, base: tuple[int, int], bits: int, selector: int, report: Report
) -> Array:
    """Load the metadata of sparse rows, (blocks, parts, rows, groups of elements).

    ``bits`` is the size of an element. The layout is that of CUTLASS 4 (``tmem_e_frg``, and ``tmem_e_frg_ws`` with a
    copy for each part of the columns). For 16- and 32-bit elements, a word has the metadata of two rows, eight apart,
    and ``selector`` is the column. For example, rows 1 and 9 have groups 0 to 3 in lane 1, and groups 4 to 7 in lane 9.
    For shorter elements, a row has the lane of its number: groups 0 to 7 in the first column, later groups in the
    second.
    """
    row = np.arange(path.rows)[:, None]
    group = np.arange(8 if bits >= 16 else 16)
    if bits >= 16:
        places, columns = row - row // 8 % 2 * 8 + group // 4 * 8, np.broadcast_to(selector, group.shape)
        shifts = row // 8 % 2 * 16 + group % 4 * 4
    else:
        places, columns, shifts = np.broadcast_arrays(row, group // 8, group % 8 * 4)
    lanes = base[0] + path.find_lanes()[:, places]
    words = chunk.tensor.load(blocks[:, None, None, None], lanes, base[1] + columns, report, is_asynchronous=True)
    return np.asarray(words >> shifts.astype(np.uint32) & np.uint32(15))
