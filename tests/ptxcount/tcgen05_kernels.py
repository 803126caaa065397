"""Kernels of ``tcgen05``, and factors in the canonical layouts of the PTX ISA."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

import ptxcount
from ptxcount.lanes.warps import Array
from tests.ptxcount.snippets import list_registers, module

_REGISTERS = """
.shared .align 1024 .b8 factors[{size}]; .shared .align 8 .b64 barrier; .shared .align 4 .b32 base;
.reg .pred %p, %done, %no, %yes; .reg .b32 %t, %w, %d, %quarter, %v<256>, %m<8>; .reg .b64 %a, %b, %out;
"""
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
#: Code that waits for the first phase of ``barrier``.
WAIT = "WAIT:\nmbarrier.try_wait.parity.shared.b64 %done, [barrier], 0;\n@!%done bra WAIT;\n"
COMMIT = "@%p tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster.b64 [barrier];\n"
FIRST_THREAD = "setp.eq.u32 %p, %t, 0;\n"


def write_kernel(body: str, *, columns: int = 64, size: int = 128, group: int = 1) -> str:
    """Write a kernel of 128 threads that fills ``factors``, allocates ``%d`` and runs code."""
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
    """A CuTe layout of one or two axes: sizes and strides, innermost first, in units of 16 bytes or elements."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def offsets(self) -> Array:
        """Return the offset of each coordinate; the innermost axis varies fastest."""
        places = np.array([*product(*(range(n) for n in reversed(self.sizes)))]).reshape(prod(self.sizes), -1)
        return np.asarray(places[:, ::-1] @ np.array(self.strides))


#: Swizzle modes: bits of the descriptor, 16-byte units of a line, and ``Swizzle<bits, base, shift>`` of CuTe.
SWIZZLES = {"none": (0, 1, (0, 4, 3)), "32": (6, 2, (1, 4, 3)), "64": (4, 4, (2, 4, 3)), "128": (2, 8, (3, 4, 3)),
            "128_32": (1, 8, (2, 5, 2))}  # fmt: skip


class Factor(NamedTuple):
    """A factor in shared memory: its bytes, and its descriptor without the start address."""

    image: Array
    descriptor: int


def lay_out(matrix: Array, swizzle: str, *, mn_major: bool) -> Factor:
    """Lay out a matrix (outer, products) by PTX ISA 9.7.16.3.3 "Canonical Layouts", with the smallest strides."""
    mode, units, (bits, base, shift) = SWIZZLES[swizzle]
    width, (outer, inner) = matrix.itemsize, matrix.shape
    t = 16 // width
    if mn_major:
        lines = 4 if swizzle == "128_32" else 8
        pattern = lines * units * t
        m, k = outer // (units * t), inner // lines
        leading, stride = (pattern * m, pattern) if units == 1 else (pattern, pattern * m)
        along_m, along_k = (stride, leading) if units == 1 else (leading, stride)
        outer_offsets = Layout((t, units, m), (1, t, along_m)).offsets()
        inner_offsets = Layout((lines, k), (units * t, along_k)).offsets()
    else:
        m, k = outer // 8, inner // t
        stride = 8 * units * t if units > 1 else 8 * t * k
        leading = 8 * t if units == 1 else t
        outer_offsets = Layout((8, m), (units * t, stride)).offsets()
        inner_offsets = Layout((t, k), (1, leading)).offsets()
    places = (outer_offsets[:, None] + inner_offsets[None, :]) * width
    mask = ((1 << bits) - 1) << base
    places = places ^ (places >> shift & mask)
    image = np.zeros(-(-(int(places.max()) + width) // 1024) * 1024, np.uint8)
    for byte in range(width):
        image[places + byte] = matrix.view(np.uint8).reshape(outer, inner, width)[..., byte]
    descriptor = (leading * width >> 4) << 16 | (stride * width >> 4) << 32 | 1 << 46 | mode << 61
    return Factor(image, descriptor)


#: Code that computes %rd2, the address of ``factors`` in a descriptor: 14 bits, in units of 16 bytes.
ADDRESS = "mov.u32 %r2, factors;\nshr.u32 %r2, %r2, 4;\nand.b32 %r2, %r2, 0x3FFF;\ncvt.u64.u32 %rd2, %r2;"


def load_descriptors(left: Factor, right: Factor) -> str:
    """Return code that computes %a and %b, the descriptors of two adjacent factors in ``factors``."""
    lines = [ADDRESS]
    for name, factor, start in (("%a", left, 0), ("%b", right, len(left.image) >> 4)):
        lines.append(f"add.u64 {name}, %rd2, {factor.descriptor + start};")
    return "\n".join(lines) + "\n"


#: First bits of further fields of an instruction descriptor; negate and turned have a bit for each factor.
_FIRST_BITS = {"selector": 0, "sparse": 2, "saturate": 3, "negate": 13, "turned": 15}


def describe_product(rows: int, columns: int, codes: tuple[int, int, int], **fields: int) -> int:
    """Encode an instruction descriptor from the type codes of left, right and result, and further fields."""
    left, right, result = codes
    bits = result << 4 | left << 7 | right << 10 | (columns >> 3) << 17 | (rows >> 4) << 24
    return bits | sum(value << _FIRST_BITS[name] for name, value in fields.items())


def describe_scaled_product(
    columns: int, code: int, scale: str, firsts: tuple[int, int] = (0, 0), *, is_long: bool = False
) -> int:
    """Encode an instruction descriptor of 128 rows with scales; ``firsts``: the first bytes of those of left and right.

    Both factors have the type ``code``. If ``is_long``, K is 96.
    """
    bits = firsts[1] << 4 | code << 7 | code << 10 | (columns >> 3) << 17 | (scale == "ue8m0") << 23
    return bits | (128 >> 7) << 27 | firsts[0] << 29 | is_long << 31
