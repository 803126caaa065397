"""Descriptors of ``tcgen05.mma``: shared memory descriptors of factors, and instruction descriptors.

Sources: PTX ISA 9.0, Table 40 "Shared memory descriptor layout" and Tables 42 to 44 "Instruction descriptor format".
The layouts are those of ``wgmma``, plus swizzles with 32-byte atoms (9.7.16.3.3 "Canonical Layouts").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...lanes.warps import Array
from ...util.grammar import join_choices
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
LONG = 96
_FLOATS = {0: "f16", 1: "f32"}
_NARROW = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
KINDS: dict[str, Kind] = {
    "kind::f16": Kind({0: "f16", 1: "bf16"}, _FLOATS, 16),
    "kind::tf32": Kind({2: "tf32"}, {1: "f32"}, 8),
    "kind::f8f6f4": Kind(_NARROW, _FLOATS, 32),
    "kind::i8": Kind({0: "u8", 1: "s8"}, {2: "s32"}, 32),
    "kind::mxf8f6f4": Kind(_NARROW, {}, 32, is_scaled=True),
    "kind::mxf4": Kind({1: "e2m1"}, {}, 64, is_scaled=True, padded=False),
    "kind::mxf4nvf4": Kind({1: "e2m1"}, {}, 64, is_scaled=True, padded=False),
}
#: Allowed columns (Table 39 "Various combinations of .kind and shapes"), and those of integer products.
#: Keys: number of blocks of the CTA group, and True with ``.ws``.
_COLUMNS = {(1, False): (*range(8, 257, 8),), (2, False): (*range(16, 257, 16),), (1, True): (64, 128, 256)}
_INTEGER_COLUMNS = {**_COLUMNS, (1, False): (8, 16, 24, *range(32, 257, 16)), (2, False): (*range(32, 257, 32),)}


def _extract(bits: int, first: int, width: int = 1) -> int:
    return bits >> first & (1 << width) - 1


def _decode_type(bits: int, matrix: str, first: int, width: int, types: Mapping[int, str]) -> str:
    code = _extract(bits, first, width)
    if code not in types:
        field = f"bits {first} to {first + width - 1} of the instruction descriptor {bits:#x}, the type of {matrix}"
        allowed = join_choices(f"{known} ({name})" for known, name in types.items())
        raise ValueError(f"{field}, are {code}; they must be {allowed}")
    return types[code]


class InstructionDescriptor(NamedTuple):
    """The operand ``idesc`` of a product: rows and columns of the result, types, and how the factors are read."""

    rows: int
    columns: int
    a_type: str
    b_type: str
    result: str
    #: Sign of A and of B: 1, or -1 if the product negates it.
    signs: tuple[int, int]
    #: A and B: True if K is not contiguous in memory.
    transposed: tuple[bool, bool]
    saturates: bool
    #: Scales of A and of B: the first byte in a word.
    scale_bytes: tuple[int, int]
    #: Type of all scales.
    scale: str
    #: Column of the metadata, for sparse factors of 16 and 32 bits.
    selector: int
    #: K; a sparse A stores half of it.
    k: int

    @classmethod
    def decode(
        cls, bits: int, kind: Kind, group_size: int, *, is_stationary: bool, is_sparse: bool
    ) -> InstructionDescriptor:
        """Decode an instruction descriptor of a product of ``group_size`` blocks, with or without ``.ws`` and ``.sp``.

        Raises ValueError for a type, shape, sparsity or K that the product does not allow. Reserved bits are ignored.
        """
        a_type = _decode_type(bits, "A", 7, 3, kind.factors)
        b_type = _decode_type(bits, "B", 10, 3 if kind.padded else 2, kind.factors)
        result = "f32" if kind.is_scaled else _decode_type(bits, "the result", 4, 2, kind.results)
        rows = 128 * _extract(bits, 27, 2) if kind.is_scaled else 16 * _extract(bits, 24, 5)
        columns = 8 * _extract(bits, 17, 6)
        if _extract(bits, 2) != is_sparse:
            given = f"bit 2 of the instruction descriptor {bits:#x} is {_extract(bits, 2)}"
            raise ValueError(f"{given}; it must be 1 with .sp, else 0")
        allowed_rows = [m for m, *form in DATA_PATHS if form == [group_size, is_stationary]]
        allowed_columns = (_INTEGER_COLUMNS if result == "s32" else _COLUMNS)[group_size, is_stationary]
        if is_stationary and is_sparse:
            allowed_columns = (64, 128)
        for axis, size, allowed in (("M", rows, allowed_rows), ("N", columns, allowed_columns)):
            if size not in allowed:
                shape = f"{rows} x {columns} is no shape of a product with .cta_group::{group_size}"
                raise ValueError(f"{shape}; allowed {axis} are {', '.join(map(str, allowed))}")
        is_long = not kind.padded and _extract(bits, 31) == 1
        if is_long and (is_sparse or DATA_PATHS[rows, group_size, is_stationary].rows != 128):
            form = "sparse factors" if is_sparse else f"{rows} rows with .cta_group::{group_size}"
            raise ValueError(f"K is 96, which {form} do not allow; use dense factors with 128 rows in each block")
        return cls(
            rows,
            columns,
            a_type,
            b_type,
            result,
            signs=(-1 if _extract(bits, 13) else 1, -1 if _extract(bits, 14) else 1),
            transposed=(_extract(bits, 15) == 1, _extract(bits, 16) == 1),
            saturates=_extract(bits, 3) == 1,
            scale_bytes=(_extract(bits, 29, 2), _extract(bits, 4, 2)),
            scale="ue8m0" if _extract(bits, 23) else "ue4m3",
            selector=_extract(bits, 0, 2),
            k=LONG if is_long else kind.k * (2 if is_sparse else 1),
        )


class ColumnMask(NamedTuple):
    """Descriptor of ``.ws``: a mask of columns of B that count as zeros, and a shift of all columns.

    Runs of ``zeros`` masked columns and of ``used`` unmasked columns alternate. Each part of the columns, in the sense
    of `DataPath`, has its own start. The fields are those of CUTLASS 4 (``mma_sm100_desc.hpp``, ``MaskAndShiftB`` and
    ``make_column_zero_mask``). The shift follows PTX ISA 9.0, 9.7.16.4.3, Example 4.
    """

    #: Place in the alternation where each part begins.
    starts: tuple[int, ...]
    #: True for parts whose alternation begins with zeros.
    zeros_first: tuple[bool, ...]
    zeros: int
    used: int
    #: First column of B that the product uses.
    shift: int
    is_active: bool

    @classmethod
    def decode(cls, bits: int, rows: int) -> ColumnMask:
        """Decode a descriptor for a product of ``rows`` rows. Raises ValueError for a shift that is not allowed."""
        shift, greatest = _extract(bits, 56, 6), 16 if rows == 32 else 32
        if shift > greatest:
            raise ValueError(f"the shift of the mask descriptor {bits:#x} is {shift}; at most {greatest} is allowed")
        starts = tuple(_extract(bits, 8 * part, 8) for part in range(4))
        zeros_first = tuple(_extract(bits, 32 + part) == 1 for part in range(4))
        zeros, used = _extract(bits, 40, 8) + 1, _extract(bits, 48, 8) + 1
        return cls(starts, zeros_first, zeros, used, shift, _extract(bits, 39) == 1)

    def find_zeros(self, parts: int, columns: int) -> Array:
        """Return the mask of columns that count as zeros, (parts, columns)."""
        if not self.is_active:
            return np.zeros((parts, columns), bool)
        starts, zeros_first = (np.array(fields[:parts])[:, None] for fields in (self.starts, self.zeros_first))
        place_in_period = (starts + np.arange(columns)) % (self.zeros + self.used)
        return np.where(zeros_first, place_in_period < self.zeros, place_in_period >= self.used)


#: Swizzles by the three highest descriptor bits, as descriptors without addresses.
_SWIZZLES = {
    0: Descriptor(0, 0, 0, span=16),
    1: Descriptor(0, 0, 0, span=128, lines=4, swizzle=0x60),
    **{mode: Descriptor(0, 0, 0, span, swizzle=SWIZZLES[span]) for mode, span in ((2, 128), (4, 64), (6, 32))},
}


def decode_shared(bits: int) -> Descriptor:
    """Decode the descriptor of a factor in shared memory.

    Raises ValueError for undefined bits, NotImplementedError for bits that ptxcount does not support.
    """
    start, leading, stride = (16 * _extract(bits, first, 14) for first in (0, 16, 32))
    swizzle_mode, base_offset = _extract(bits, 61, 3), _extract(bits, 49, 3)
    pattern = _SWIZZLES.get(swizzle_mode)
    name = f"the shared memory descriptor {bits:#x}"
    if _extract(bits, 46, 3) != 1:
        raise ValueError(f"bits 46 to 48 of {name} are {_extract(bits, 46, 3):03b}; they must be 001")
    if pattern is None:
        allowed = ", ".join(map(str, sorted(_SWIZZLES)))
        raise ValueError(f"bits 61 to 63 of {name}, the swizzle, are {swizzle_mode}; allowed are {allowed}")
    if base_offset and pattern.swizzle:  # without a swizzle, the base offset has no meaning
        raise NotImplementedError(
            f"bits 49 to 51 of {name}, the base offset, are {base_offset}; ptxcount supports only 0"
        )
    if _extract(bits, 52):
        raise NotImplementedError(f"bit 52 of {name} is 1, an absolute stride; ptxcount supports only 0")
    return pattern._replace(start=start, leading=leading, stride=stride)
