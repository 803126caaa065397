"""Kernels of ``tcgen05``, and factors in the canonical layouts of the PTX ISA."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

import ptxcount
from ptxcount.lanes.warps import Array
from tests.ptxcount.snippets import list_registers, module

#: %t is the thread, %w its warp, and %d the first column of the allocation. %quarter is the first lane that the warp
#: can access, 32 %w, in the upper half of an address. %a and %b are for descriptors; %no and %yes are constants.
_REGISTERS = """
.shared .align 1024 .b8 factors[{size}]; .shared .align 8 .b64 barrier; .shared .align 4 .b32 base;
.reg .pred %p, %done, %no, %yes; .reg .b32 %t, %w, %d, %quarter, %v<256>, %m<8>; .reg .b64 %a, %b, %out;
"""
#: The threads copy a block's `size` bytes of p0 to ``factors``, and the first warp allocates tensor memory.
_BODY = """
mov.u32 %t, %r0; shr.u32 %w, %t, 5; shl.b32 %quarter, %w, 21; mov.pred %no, 0; mov.pred %yes, 1; mov.u32 %r1, %ctaid.x;
ld.param.u64 %rd1, [p0]; mad.wide.u32 %rd1, %r1, {size}, %rd1; mad.wide.u32 %rd1, %t, 4, %rd1;
mov.u32 %r2, factors; mad.lo.u32 %r2, %t, 4, %r2; mov.u32 %r3, %t;
COPY: setp.ge.u32 %p, %r3, {words};
@%p bra COPIED;
ld.global.u32 %r4, [%rd1]; st.shared.u32 [%r2], %r4;
add.u32 %r2, %r2, 512; add.u64 %rd1, %rd1, 512; add.u32 %r3, %r3, 128; bra COPY;
COPIED: setp.eq.u32 %p, %t, 0;
@%p mbarrier.init.shared.b64 [barrier], 1;
setp.eq.u32 %p, %w, 0;
@%p tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [base], {columns};
bar.sync 0; ld.shared.u32 %d, [base];
{body}
bar.sync 0; setp.eq.u32 %p, %w, 0;
@%p tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %d, {columns};
"""
#: Code in which the blocks of a cluster wait for each other.
MEET = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
#: Code that waits for the first phase of ``barrier``.
WAIT = "WAIT:\nmbarrier.try_wait.parity.shared.b64 %done, [barrier], 0;\n@!%done bra WAIT;\n"
COMMIT = "@%p tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster.b64 [barrier];\n"
#: A commit of two blocks that reaches the barriers of both: their ranks are the bits of the mask.
COMMIT_TO_PAIR = """.reg .b16 %blocks;
mov.b16 %blocks, 0b11;
@%p tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [barrier], %blocks;
"""
FIRST_THREAD = "setp.eq.u32 %p, %t, 0;\n"
#: Step of an address of tensor memory from a lane to the next; the lower 16 bits are the column.
LANE = 1 << 16


def write_kernel(body: str, *, columns: int = 64, size: int = 128, group: int = 1) -> str:
    """Write a kernel of 128 threads that runs `body` on `size` bytes of factors and `columns` of tensor memory."""
    body = _BODY.format(body=body, columns=columns, size=size, words=size // 4, group=group)
    return module(body, 2, _REGISTERS.format(size=size), target="8.7 sm_100a")


def dump(columns: int) -> str:
    """Return code that stores each lane of tensor memory as a row of ``out``, after the rows of earlier blocks."""
    stores = "\n".join(f"st.global.u32 [%out+{4 * k}], %v{k};" for k in range(columns))
    return (
        "add.u32 %r5, %d, %quarter;\n"
        f"tcgen05.ld.sync.aligned.32x32b.x{columns}.b32 {list_registers('%v', columns)}, [%r5];\n"
        "tcgen05.wait::ld.sync.aligned;\nld.param.u64 %out, [p1];\n"
        f"mad.lo.u32 %r6, %r1, 128, %t;\nmad.wide.u32 %out, %r6, {4 * columns}, %out;\n{stores}\n"
    )


def finish(columns: int) -> str:
    """Return code that commits the first thread's products, waits for them, and stores each lane in ``out``."""
    return COMMIT.format(group=1) + WAIT + dump(columns)


def store(words: Sequence[str], column: int = 0) -> str:
    """Return code that stores each thread's words in its lane of tensor memory, from a column on."""
    return (
        f"add.u32 %r5, %d, %quarter;\ntcgen05.st.sync.aligned.32x32b.x{len(words)}.b32 [%r5+{column}], "
        f"{{{', '.join(words)}}};\ntcgen05.wait::st.sync.aligned;\n"
    )


def fill(columns: int) -> str:
    """Return code that fills tensor memory: the upper half of a word is its lane, the lower half its column."""
    names = [f"%v{k}" for k in range(columns)]
    sums = "".join(f"add.u32 {name}, %r4, {k};\n" for k, name in enumerate(names))
    return f"shl.b32 %r4, %t, 16;\n{sums}{store(names)}"


def launch(text: str, image: Array, out: Array, blocks: int = 1, **options: Any) -> ptxcount.LaunchCounters:
    return ptxcount.count(text, "snippet", blocks, 128, [image, out], **options)


class Layout(NamedTuple):
    """A CuTe layout: sizes and strides of its modes, the fastest first. Strides are in elements, words or bits."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def offsets(self) -> Array:
        """Return the offset of each coordinate; that of the first mode varies fastest."""
        places = np.array([*product(*(range(n) for n in reversed(self.sizes)))]).reshape(prod(self.sizes), -1)
        return np.asarray(places[:, ::-1] @ np.array(self.strides))


class Swizzle(NamedTuple):
    """A swizzle: its code in a descriptor, 16-byte units of a line, and ``Swizzle<bits, base, shift>`` of CuTe."""

    code: int
    units: int
    bits: int
    base: int = 4
    shift: int = 3


#: Swizzles by their bytes, and "128_32" by its bytes and those of its atom.
SWIZZLES = {
    "none": Swizzle(code=0, units=1, bits=0), "32": Swizzle(code=6, units=2, bits=1),
    "64": Swizzle(code=4, units=4, bits=2), "128": Swizzle(code=2, units=8, bits=3),
    "128_32": Swizzle(code=1, units=8, bits=2, base=5, shift=2),
}  # fmt: skip
#: Fields of a shared memory descriptor (PTX ISA 9.0, Table 40). The first must be 1 for tcgen05, and 0 for wgmma.
FIXED_FIELD, BASE_OFFSET, ABSOLUTE_STRIDE, SWIZZLE_CODE = 1 << 46, 1 << 49, 1 << 52, 1 << 61


class Factor(NamedTuple):
    """A factor in shared memory: its bytes, and its descriptor without the start address."""

    image: Array
    descriptor: int


def lay_out(matrix: Array, swizzle: str = "none", *, mn_major: bool = False) -> Factor:
    """Lay out a matrix (outer, products) by PTX ISA 9.7.16.3.3 "Canonical Layouts", with the smallest strides.

    The letters are those of the PTX ISA: `t` elements have 16 bytes, and a pattern is repeated `m` times along the
    outer axis and `k` times along the products.
    """
    mode = SWIZZLES[swizzle]
    width, (outer, products), t = matrix.itemsize, matrix.shape, 16 // matrix.itemsize
    line = mode.units * t  # elements
    if mn_major:
        lines = 4 if swizzle == "128_32" else 8
        m, k = outer // line, products // lines
        pattern = lines * line
        along_m, along_k = pattern, pattern * m
        leading, stride = (along_k, along_m) if swizzle == "none" else (along_m, along_k)
        outer_offsets = Layout((t, mode.units, m), (1, t, along_m)).offsets()
        inner_offsets = Layout((lines, k), (line, along_k)).offsets()
    else:
        m, k = outer // 8, products // t
        stride = 8 * t * k if swizzle == "none" else 8 * line
        leading = 8 * t if swizzle == "none" else t
        outer_offsets = Layout((8, m), (line, stride)).offsets()
        inner_offsets = Layout((t, k), (1, leading)).offsets()
    places = (outer_offsets[:, None] + inner_offsets[None, :]) * width
    swizzled_bits = ((1 << mode.bits) - 1) << mode.base
    places = places ^ (places >> mode.shift & swizzled_bits)
    image = np.zeros(-(-(int(places.max()) + width) // 1024) * 1024, np.uint8)
    for byte in range(width):
        image[places + byte] = matrix.view(np.uint8).reshape(outer, products, width)[..., byte]
    # Both strides are in units of 16 bytes.
    strides = (leading * width // 16) << 16 | (stride * width // 16) << 32
    return Factor(image, strides | FIXED_FIELD | mode.code * SWIZZLE_CODE)


def split_nibbles(matrix: Array) -> Array:
    """Return the 4-bit codes of bytes, the lower half first, as a matrix of bytes."""
    return np.stack([matrix & 15, matrix >> 4], axis=-1).reshape(len(matrix), -1)


def join_images(factors: Sequence[Factor]) -> tuple[Array, list[int]]:
    """Return the bytes of adjacent factors, and the descriptor of each, relative to the first one's address."""
    starts = np.cumsum([0, *(len(factor.image) for factor in factors)]).tolist()
    descriptors = [factor.descriptor + start // 16 for factor, start in zip(factors, starts, strict=False)]
    return np.concatenate([factor.image for factor in factors]), descriptors


#: Code that computes %rd2, the address of ``factors`` in a descriptor: 14 bits, in units of 16 bytes.
ADDRESS = "mov.u32 %r2, factors;\nshr.u32 %r2, %r2, 4;\nand.b32 %r2, %r2, 0x3FFF;\ncvt.u64.u32 %rd2, %r2;"


def load_descriptors(left: Factor, right: Factor) -> str:
    """Return code that computes %a and %b, the descriptors of two adjacent factors in ``factors``."""
    a, b = join_images([left, right])[1]
    return f"{ADDRESS}\nadd.u64 %a, %rd2, {a};\nadd.u64 %b, %rd2, {b};\n"


#: Codes of the types of factors and results in an instruction descriptor (PTX ISA 9.0, Tables 42 to 44).
_FACTOR_CODES = {"f16": 0, "bf16": 1, "tf32": 2, "u8": 0, "s8": 1,
                 "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}  # fmt: skip
_RESULT_CODES = {"f16": 0, "f32": 1, "s32": 2}
#: First bits of fields of an instruction descriptor; "negate" and "turned" (MN-major) have a bit for each factor.
_FIRST_BITS = {"selector": 0, "sparse": 2, "saturate": 3, "result": 4, "left": 7, "right": 10, "negate": 13,
               "turned": 15, "columns": 17, "rows": 24}  # fmt: skip


def describe_product(
    rows: int, columns: int, types: tuple[str, str] = ("f16", "f16"), result: str = "f32", **fields: int
) -> int:
    """Encode an instruction descriptor; `types` are those of the left and the right factor.

    `fields` of `_FIRST_BITS` replace or add values.
    """
    left, right = (_FACTOR_CODES[name] for name in types)
    values = {"rows": rows // 16, "columns": columns // 8, "left": left, "right": right}
    values |= {"result": _RESULT_CODES[result], **fields}
    return sum(value << _FIRST_BITS[name] for name, value in values.items())


def describe_scaled_product(
    columns: int, factors: str, scale: str, firsts: tuple[int, int] = (0, 0), *, is_long: bool = False,
    is_sparse: bool = False,
) -> int:  # fmt: skip
    """Encode an instruction descriptor of 128 rows with scales; ``firsts``: the first bytes of those of left and right.

    `factors` is the type of both factors, ``e4m3`` or ``e2m1``. If ``is_long``, K is 96.
    """
    code = {"e4m3": 0, "e2m1": 1}[factors]  # that of e2m1 is for kinds of only this type
    bits = is_sparse << 2 | firsts[1] << 4 | code << 7 | code << 10 | (columns // 8) << 17 | (scale == "ue8m0") << 23
    return bits | 1 << 27 | firsts[0] << 29 | is_long << 31  # rows are in units of 128
