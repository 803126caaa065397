"""Warpgroup matrix products, ``wgmma``, of factors in shared memory (PTX ISA, "Asynchronous Warpgroup Level").

They complete immediately, and round like the products of `tensor_cores.mma`. A descriptor locates each factor, unless A
is in registers. In each warp, metadata have the lanes of ``mma.sp`` (CUTLASS 4, ``mma_traits_sm90_gmma_sparse.hpp``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
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
    parse_integer,
    split_group,
    unsupported,
)
from ..single_threads import make_row_reporter
from ..tensor_cores.elements import ELEMENTS
from ..tensor_cores.fragments import Shape
from ..tensor_cores.mma import parse_shape
from ..tensor_cores.register_matrices import RegisterMatrix
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

    def load_numbers(self, chunk: Chunk, descriptors: Array) -> Array:
        """Load each warp's factor, (blocks, warps, outer, k), by the descriptor of the warp's first lane.

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
        return ELEMENTS[self.name].decode(factors)


class _LeftFactor(NamedTuple):
    """The factor A: in registers or, if these are None, in shared memory; and the metadata of a sparse A."""

    registers: RegisterMatrix | None
    shared: _SharedFactor
    metadata: Metadata | None
    #: The descriptor or the registers, then the words of metadata, with their types.
    operands: list[tuple[Operand, Type]]

    def take_numbers(self, chunk: Chunk, values: Iterator[Array]) -> Array:
        """Take the next values, those of the operands; return the rows of each warp, (blocks, warps, 16, k)."""
        if self.registers:
            numbers = self.registers.take_numbers(chunk, values)
        else:
            numbers = self.shared.load_numbers(chunk, next(values))
            first_rows = 16 * (np.arange(numbers.shape[1]) % _WARPS)
            rows = [numbers[:, warp, first : first + 16] for warp, first in enumerate(first_rows)]
            numbers = np.stack(rows, axis=1)
        return self.metadata.expand(chunk, numbers, reshape_to_lanes(chunk, next(values))) if self.metadata else numbers


def _parse_constants(instruction: Instruction, constants: Sequence[Operand]) -> tuple[int, bool, bool]:
    """Return the sign of the product, and True for A and B if they are transposed; the default is 1, False, False."""
    numbers = [parse_integer(instruction, constant, "a sign or transpose") for constant in constants]
    signs, transposes = numbers[:2], numbers[2:]  # one transpose, that of B, if A is in registers
    if not ({*signs} <= {-1, 1} and {*transposes} <= {0, 1}):
        needed = "they must be two signs, 1 or -1, and then transposes, 0 or 1"
        raise unsupported(instruction, f"its last operands are {', '.join(map(str, numbers))}; {needed}")
    a_transposed, b_transposed = [False] * (2 - len(transposes)) + [bool(number) for number in transposes]
    return prod(signs), a_transposed, b_transposed


def _parse_form(instruction: Instruction) -> tuple[Shape, list[str], set[str]]:
    """Return the shape, the types of d, a and b, and the other modifiers."""
    shape, types, names = parse_shape(instruction)
    expect_modifiers(instruction, sorted(names), _NAMES)
    if shape.m != 16 * _WARPS:
        raise unsupported(instruction, f"m is {shape.m}; it must be {16 * _WARPS}")
    if len(types) != 3:
        raise unsupported(instruction, f"its types are {join_modifiers(types)}; they must be those of d, a and b")
    if ELEMENTS[types[1]].bits < 8:
        raise unsupported(instruction, f"elements of a are .{types[1]}; they must have at least 8 bits")
    return shape, types, names


@binds("wgmma")
def _bind_product(instruction: Instruction) -> Step:
    """Bind ``wgmma.mma_async{.sp}.sync.aligned.m64nNkK.dtype.atype.btype d, a, b, scale{, signs{, transposes}}``.

    ``signs`` are two numbers, and ``transposes`` one for each factor in shared memory. With ``.sp``, metadata and a
    selector precede ``scale``. The forms ``fence``, ``commit_group`` and ``wait_group`` do nothing.
    """
    if not _ORDERING.isdisjoint(instruction.modifiers):
        return lambda chunk: None
    shape, (d_type, a_type, b_type), names = _parse_form(instruction)
    metadata_count = 2 if "sp" in names else 0  # the metadata, and the selector
    expect_count(instruction, *(count + metadata_count for count in (4, 6, 7, 8)))
    d, a, b, *rest = instruction.operands
    metadata_operands, (scale, *constants) = rest[:metadata_count], rest[metadata_count:]
    sign, a_transposed, b_transposed = _parse_constants(instruction, constants)
    warp_shape = Shape(16, shape.n, shape.k // 2 if metadata_operands else shape.k)
    target = RegisterMatrix.parse(instruction, d, "d", warp_shape, d_type)
    left = _parse_left(instruction, a, metadata_operands, shape, warp_shape, a_type, transposed=a_transposed)
    right = _SharedFactor((shape.n, shape.k), b_type, b_transposed)

    def multiply(chunk: Chunk, *values: Array) -> list[Array]:
        remaining = iter(values)
        previous = target.take_numbers(chunk, remaining)
        accumulates = reshape_to_lanes(chunk, next(remaining))[:, :, :1, None]
        factors = right.load_numbers(chunk, next(remaining)).swapaxes(2, 3)
        products = left.take_numbers(chunk, remaining) @ factors
        sums = sign * products + np.where(accumulates, previous, 0)
        return target.encode_numbers(chunk, sums, saturate="satfinite" in names)

    reads = [*target.typed_registers, (scale, _PRED), (b, _U64), *left.operands]
    return make_step(instruction, target.typed_registers, reads, multiply)


def _parse_left(
    instruction: Instruction, operand: Operand, metadata_operands: list[Operand], shape: Shape, warp_shape: Shape,
    name: str, *, transposed: bool,
) -> _LeftFactor:  # fmt: skip
    """Parse A: registers or a descriptor, and the metadata and their selector, if A is sparse."""
    shared, registers, metadata = _SharedFactor((shape.m, warp_shape.k), name, transposed), None, None
    operands: list[tuple[Operand, Type]] = [(operand, _U64)]
    if len(split_group(operand)) > 1:
        registers = RegisterMatrix.parse(instruction, operand, "a", warp_shape, name)
        operands = registers.typed_registers
    if metadata_operands:
        words, selector = metadata_operands
        metadata = Metadata.locate(instruction, shape.k, ELEMENTS[name].bits, selector)
        operands.append((words, _U32))
    return _LeftFactor(registers, shared, metadata, operands)
