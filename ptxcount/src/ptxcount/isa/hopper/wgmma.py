"""Warpgroup matrix products, ``wgmma``, of factors in shared memory (PTX ISA, "Asynchronous Warpgroup Level").

They complete immediately, and round like the products of `tensor_cores.mma`. A descriptor locates each factor, unless A
is in registers. In each warp, metadata have the lanes of ``mma.sp`` (CUTLASS 4, ``mma_traits_sm90_gmma_sparse.hpp``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...lanes.warps import Array, spread
from ...machine.chunk import Chunk
from ...ptx.program import TYPES, Instruction, Operand, Type
from ..opcode_registry import Step, binds, make_step
from ..operands import (
    expect_count,
    expect_modifiers,
    join_modifiers,
    make_count_error,
    parse_integer,
    split_group,
    unsupported,
)
from ..single_threads import make_row_reporter
from ..tensor_cores.elements import ELEMENTS, encode
from ..tensor_cores.fragments import Shape
from ..tensor_cores.mma import find_layout, parse_shape
from ..tensor_cores.sparse import Metadata
from ..warp_collectives import reshape_to_lanes
from .map_fields import SWIZZLES

_U32, _U64, _PRED = TYPES["u32"], TYPES["u64"], TYPES["pred"]
_WARPS = 4
#: Swizzle spans in bytes, by the two highest bits of a descriptor.
_SPANS = (16, 128, 64, 32)
_NAMES = {"mma_async", "sp", "sync", "aligned", "satfinite"}
_ORDERING = {"fence", "commit_group", "wait_group"}


class Descriptor(NamedTuple):
    """Matrix descriptor: start address, and leading and stride dimension byte offsets."""

    start: int
    leading: int
    stride: int
    #: Bytes of a line of the swizzle pattern; 16 without a swizzle.
    span: int
    #: Lines of a swizzle pattern along K, if the outer axis is contiguous.
    lines: int = 8
    #: Address bits that the swizzle changes.
    swizzle: int = 0

    @classmethod
    def decode(cls, bits: int) -> Descriptor:
        """Decode the 64 bits of a descriptor."""
        start, leading, stride = ((bits >> place & 0x3FFF) << 4 for place in (0, 16, 32))
        span = _SPANS[bits >> 62 & 3]
        return cls(start, leading, stride, span, swizzle=SWIZZLES[span] if span > 16 else 0)

    def locate_elements(self, outer: int, k: int, width: int, *, transposed: bool) -> Array:
        """Return the shared address of each element of a factor, (outer, k); ``width`` is an element's size in bytes.

        ``outer`` is the number of rows of A, or of columns of B. With ``transposed``, this axis is contiguous in memory
        instead of K.
        """
        across, along = np.arange(outer)[:, None], np.arange(k)[None, :]
        is_swizzled = self.span > 16
        if not transposed:
            byte = along * width
            inner = byte if is_swizzled else byte // 16 * self.leading + byte % 16
            place = across // 8 * self.stride + across % 8 * self.span + inner
        else:
            span_stride, group_stride = self.leading, self.stride
            if not is_swizzled:
                span_stride, group_stride = group_stride, span_stride
            byte, line, group = across * width, along % self.lines, along // self.lines
            place = byte // self.span * span_stride + group * group_stride + line * self.span + byte % self.span
        place = place + self.start
        # The swizzle XORs bits with those 3 places above; with atoms of 32 bytes, 2 places above.
        return np.asarray(place ^ ((place >> (3 if self.lines == 8 else 2)) & self.swizzle))


class _SharedFactor(NamedTuple):
    """A factor in shared memory: its extent (outer, k), the type of elements, and True if K is not contiguous."""

    extent: tuple[int, int]
    name: str
    transposed: bool

    def load(self, chunk: Chunk, descriptors: Array) -> Array:
        """Load the bits of each warp's factor, (blocks, warps, outer, k), by the descriptor of the warp's first lane.

        Factors of inactive warps are zeros.
        """
        report, width = make_row_reporter(chunk), ELEMENTS[self.name].bits // 8
        descriptor_rows = reshape_to_lanes(chunk, spread(descriptors, chunk.shape))[:, :, 0]
        active = reshape_to_lanes(chunk, spread(chunk.active, chunk.shape))[:, :, 0]
        loaded: dict[tuple[int, int], Array] = {}  # by block and descriptor: warps share factors
        factors = np.zeros((*active.shape, *self.extent), f"u{width}")
        for row, warp in np.argwhere(active).tolist():
            bits = int(descriptor_rows[row, warp])
            if (row, bits) not in loaded:
                places = Descriptor.decode(bits).locate_elements(*self.extent, width, transposed=self.transposed)
                loaded[row, bits] = chunk.shared.gather_elements(row, places, width, report)
            factors[row, warp] = loaded[row, bits]
        return factors


def _parse_constants(instruction: Instruction, constants: Sequence[Operand]) -> tuple[int, bool, bool]:
    """Return the sign of the product, and True for A and B if they are transposed; the default is 1, False, False."""
    numbers = [parse_integer(instruction, constant, "a sign or transpose") for constant in constants]
    a_sign, b_sign = numbers[:2] or [1, 1]
    transposes = [bool(number) for number in numbers[2:]]  # only that of B if A is in registers
    a_transposed, b_transposed = [False] * (2 - len(transposes)) + transposes
    return a_sign * b_sign, a_transposed, b_transposed


@binds("wgmma")
def _bind_product(instruction: Instruction) -> Step:
    """Bind ``wgmma.mma_async{.sp}.sync.aligned.m64nNkK.dtype.atype.btype d, a, b, scale{, signs{, transposes}}``.

    ``signs`` are two numbers, and ``transposes`` one for each factor in shared memory. With ``.sp``, metadata and a
    selector precede ``scale``. The forms ``fence``, ``commit_group`` and ``wait_group`` do nothing.
    """
    if not _ORDERING.isdisjoint(instruction.modifiers):
        return lambda chunk: None
    shape, elements, names = parse_shape(instruction)
    expect_modifiers(instruction, sorted(names), _NAMES)
    if shape.m != 16 * _WARPS:
        raise unsupported(instruction, f"m is {shape.m}; it must be {16 * _WARPS}")
    if len(elements) != 3:
        raise unsupported(instruction, f"its types are {join_modifiers(elements)}; those of d, a and b are needed")
    d_type, a_type, b_type = elements
    if ELEMENTS[a_type].bits < 8:
        raise unsupported(instruction, f"elements of a are .{a_type}; at least 8 bits are needed")
    is_sparse = "sp" in names
    metadata_count = 2 if is_sparse else 0  # the metadata, and the selector
    expect_count(instruction, *(count + metadata_count for count in (4, 6, 7, 8)))
    target, first, second, *rest = instruction.operands
    metadata_operands, (scale, *constants) = rest[:metadata_count], rest[metadata_count:]
    metadata = Metadata.locate(instruction, shape.k, ELEMENTS[a_type].bits, metadata_operands[1]) if is_sparse else None
    in_registers = len(split_group(first)) > 1
    sign, a_transposed, b_transposed = _parse_constants(instruction, constants)
    stored = shape.k // 2 if is_sparse else shape.k
    shared_a = _SharedFactor((shape.m, stored), a_type, a_transposed)
    shared_b = _SharedFactor((shape.n, shape.k), b_type, b_transposed)
    warp_shape = Shape(16, shape.n, stored)
    factor, accumulator = find_layout("a", warp_shape, a_type), find_layout("d", warp_shape, d_type)
    targets, registers = split_group(target), split_group(first)
    if len(targets) != len(accumulator.parts):
        raise make_count_error(instruction, "its matrix d", len(targets), "register", len(accumulator.parts))
    if in_registers and len(registers) != len(factor.parts):
        raise make_count_error(instruction, "its matrix a", len(registers), "register", len(factor.parts))

    def multiply(chunk: Chunk, *values: Array) -> list[Array]:
        # `sources` are the registers or descriptors of A, and last the metadata.
        previous, (scales, b_descriptors, *sources) = values[: len(targets)], values[len(targets) :]
        if in_registers:
            a = factor.assemble_matrix(chunk, sources[: len(registers)])
        else:
            rows = shared_a.load(chunk, sources[0])
            first_rows = 16 * (np.arange(rows.shape[1]) % _WARPS)  # of each warp in its warpgroup
            a = np.stack([rows[:, warp, first : first + 16] for warp, first in enumerate(first_rows)], axis=1)
        a = ELEMENTS[a_type].decode(a)
        if metadata:
            a = metadata.expand(chunk, a, reshape_to_lanes(chunk, sources[-1]))
        b = ELEMENTS[b_type].decode(shared_b.load(chunk, b_descriptors).swapaxes(2, 3))
        sums = sign * (a @ b)
        accumulates = reshape_to_lanes(chunk, scales)[:, :, :1, None]
        sums = sums + np.where(accumulates, ELEMENTS[d_type].decode(accumulator.assemble_matrix(chunk, previous)), 0)
        return accumulator.split_matrix(chunk, encode(sums, d_type, saturate="satfinite" in names))

    reads: list[tuple[Operand, Type]] = [(target, accumulator.kind) for target in targets]
    reads += [(scale, _PRED), (second, _U64)]
    reads += [(register, factor.kind) for register in registers] if in_registers else [(first, _U64)]
    reads += [(words, _U32) for words in metadata_operands[:1]]
    return make_step(instruction, [(target, accumulator.kind) for target in targets], reads, multiply)
