"""Descriptors of ``tcgen05.mma``: shared memory descriptors of factors, and instruction descriptors.

Sources: PTX ISA 9.0, Table 40 "Shared memory descriptor layout" and Tables 42 to 44 "Instruction descriptor format".
The layouts are those of ``wgmma``, plus swizzles with 32-byte atoms (9.7.16.3.3 "Canonical Layouts").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...lanes.warps import Array
from ..hopper.map_fields import SWIZZLES
from ..hopper.wgmma import Descriptor
from .layouts import DATA_PATHS


class Kind(NamedTuple):
    """A kind of product: types of factors and result by code, K of a dense product, and whether it has block scales.

    ``padded``: 16 elements of 4 or 6 bits occupy 16 bytes in shared memory. Otherwise, elements of 4 bits are dense.
    """

    factors: Mapping[int, str]
    results: Mapping[int, str]
    k: int
    is_scaled: bool = False
    padded: bool = True


#: K of products of unpadded 4-bit factors with bit 31 of the instruction descriptor.
_LONG = 96
_FLOATS = {0: "f16", 1: "f32"}
_NARROW = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
KINDS: dict[str, Kind] = {
    "kind::f16": Kind({0: "f16", 1: "bf16"}, _FLOATS, 16),
    "kind::tf32": Kind({2: "tf32"}, {1: "f32"}, 8),
    "kind::f8f6f4": Kind(_NARROW, _FLOATS, 32),
    "kind::i8": Kind({0: "u8", 1: "s8"}, {2: "s32"}, 32),
    "kind::mxf8f6f4": Kind(_NARROW, {}, 32, True),
    "kind::mxf4": Kind({1: "e2m1"}, {}, 64, True, padded=False),
    "kind::mxf4nvf4": Kind({1: "e2m1"}, {}, 64, True, padded=False),
}
#: Allowed columns, by blocks and ``.ws`` (Table 39 "Various combinations of .kind and shapes"), and for integers.
_COLUMNS = {(1, False): range(8, 257, 8), (2, False): range(16, 257, 16), (1, True): (64, 128, 256)}
_INTEGER_COLUMNS = {**_COLUMNS, (1, False): (8, 24, *range(16, 257, 16)), (2, False): range(32, 257, 32)}


class InstructionDescriptor(NamedTuple):
    """The operand ``idesc`` of a product: rows and columns of the result, types, and how the factors are read."""

    rows: int
    columns: int
    a_type: str
    b_type: str
    result: str
    #: A and B: the sign, and True if K is not contiguous in memory.
    signs: tuple[int, int]
    transposed: tuple[bool, bool]
    saturates: bool
    #: A and B: the first byte of their scales in a word.
    scale_bytes: tuple[int, int]
    #: Type of all scales.
    scale: str
    #: Column of the metadata, for sparse factors of 16 and 32 bits.
    selector: int
    #: K; a sparse A stores half of it.
    k: int

    @property
    def is_long(self) -> bool:
        """True for K = 96."""
        return self.k == _LONG

    @classmethod
    def decode(
        cls, bits: int, kind: Kind, group: int, *, is_stationary: bool, is_sparse: bool
    ) -> InstructionDescriptor:
        """Decode an instruction descriptor of a product of ``group`` blocks, with or without ``.ws`` and ``.sp``.

        Raises ValueError for undefined bits.
        """
        codes = (bits >> 7 & 7, bits >> 10 & (7 if kind.padded else 3))
        result = "f32" if kind.is_scaled else kind.results.get(bits >> 4 & 3, "")
        factors = [kind.factors.get(code, "") for code in codes]
        rows = (bits >> 27 & 3) << 7 if kind.is_scaled else (bits >> 24 & 31) << 4
        columns = (bits >> 17 & 63) << 3
        if bits >> 2 & 1 != is_sparse:
            raise ValueError(
                f"bit 2 of the instruction descriptor {bits:#x} is {bits >> 2 & 1}; it must be 1 with .sp, else 0"
            )
        if not all(factors) or not result:
            types = f"of the factors, {codes[0]} and {codes[1]}, or of the result, {bits >> 4 & 3}"
            raise ValueError(f"the types {types}, are undefined")
        allowed = (_INTEGER_COLUMNS if result == "s32" else _COLUMNS).get((group, is_stationary), ())
        is_wide = is_stationary and is_sparse and columns > 128
        if columns not in allowed or is_wide or (rows, group, is_stationary) not in DATA_PATHS:
            raise ValueError(f"{rows} x {columns} is no shape of a product with .cta_group::{group}")
        is_long = not kind.padded and bool(bits >> 31)
        if is_long and (is_sparse or DATA_PATHS[rows, group, is_stationary].rows != 128):
            form = "sparse factors" if is_sparse else f"{rows} rows with .cta_group::{group}"
            raise ValueError(f"K is 96, which {form} do not allow; use dense factors with 128 rows in each block")
        return cls(
            rows,
            columns,
            factors[0],
            factors[1],
            result,
            signs=(-1 if bits >> 13 & 1 else 1, -1 if bits >> 14 & 1 else 1),
            transposed=(bool(bits >> 15 & 1), bool(bits >> 16 & 1)),
            saturates=bool(bits >> 3 & 1),
            scale_bytes=(bits >> 29 & 3, bits >> 4 & 3),
            scale="ue8m0" if bits >> 23 & 1 else "ue4m3",
            selector=bits & 3,
            k=_LONG if is_long else kind.k * (1 + is_sparse),
        )


class ColumnMask(NamedTuple):
    """Mask of the columns of B that count as zeros, for each part of the columns, and a shift of all columns.

    ``zeros`` masked columns and ``used`` unmasked ones alternate. The fields are those of CUTLASS 4
    (``mma_sm100_desc.hpp``, ``MaskAndShiftB`` and ``make_column_zero_mask``), the shift follows PTX ISA 9.0,
    9.7.16.4.3, Example 4.
    """

    #: Offset of each part in the alternation.
    starts: tuple[int, ...]
    #: True for parts that begin with zeros.
    zeros_first: tuple[bool, ...]
    zeros: int
    used: int
    #: First column of B that the product uses.
    shift: int
    is_active: bool

    @classmethod
    def decode(cls, bits: int, rows: int) -> ColumnMask:
        """Decode a descriptor for a product of ``rows`` rows. Raises as `InstructionDescriptor.decode`."""
        shift, greatest = bits >> 56 & 63, 16 if rows == 32 else 32
        if shift > greatest:
            raise ValueError(f"the shift of the mask descriptor {bits:#x} is {shift}; at most {greatest} is allowed")
        starts = tuple(bits >> 8 * part & 255 for part in range(4))
        zeros_first = tuple(bool(bits >> 32 + part & 1) for part in range(4))
        return cls(starts, zeros_first, (bits >> 40 & 255) + 1, (bits >> 48 & 255) + 1, shift, bool(bits >> 39 & 1))

    def find_zeros(self, parts: int, columns: int) -> Array:
        """Return the mask of columns that count as zeros, (parts, columns)."""
        if not self.is_active:
            return np.zeros((parts, columns), bool)
        starts, zeros_first = (np.array(fields[:parts])[:, None] for fields in (self.starts, self.zeros_first))
        place_in_period = (starts + np.arange(columns)) % (self.zeros + self.used)
        return np.where(zeros_first, place_in_period < self.zeros, place_in_period >= self.used)


class _Pattern(NamedTuple):
    """Swizzle pattern: bytes per line (``span``), lines along K, and the address bits that the swizzle changes."""

    span: int
    lines: int
    swizzle: int


#: Patterns by the three highest descriptor bits.
_PATTERNS = {
    0: _Pattern(16, 8, 0),
    1: _Pattern(128, 4, 0x60),
    **{mode: _Pattern(span, 8, SWIZZLES[span]) for mode, span in ((2, 128), (4, 64), (6, 32))},
}


def decode_shared(bits: int) -> Descriptor:
    """Decode the descriptor of a factor in shared memory.

    Raises ValueError for undefined bits, NotImplementedError for bits that ptxcount does not support.
    """
    start, leading, stride = ((bits >> place & 0x3FFF) << 4 for place in (0, 16, 32))
    pattern = _PATTERNS.get(bits >> 61 & 7)
    if bits >> 46 & 7 != 1:
        raise ValueError(f"bits 46 to 48 of the descriptor {bits:#x} are {bits >> 46 & 7:03b}; 001 is needed")
    if pattern is None:
        raise ValueError(f"the descriptor {bits:#x} has the undefined swizzle {bits >> 61 & 7}")
    if (bits >> 49 & 7 and pattern.swizzle) or bits >> 52 & 1:  # without a swizzle, the base offset is meaningless
        raise NotImplementedError(f"the descriptor {bits:#x} has a base offset or an absolute stride")
    return Descriptor(start, leading, stride, pattern.span, pattern.lines, pattern.swizzle)
