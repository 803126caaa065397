"""Products on tensor cores: kernels of one warp that read and write whole registers.

Formulas of the PTX ISA ("Matrix Fragments") place the elements. `tests/gpu/test_matrices.py` runs the same kernels on a
GPU.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ptxcount.lanes.warps import Array
from tests.ptxcount.small_floats import ml_dtypes
from tests.ptxcount.snippets import list_registers, module

RNG = np.random.default_rng(5)
#: Types of registers that are not b32, by element type.
_REGISTERS = {"f32": "f32", "f64": "f64"}


class Element(NamedTuple):
    """An element type: bits, and a function that decodes words with an element in their lowest bits."""

    bits: int
    decode: Callable[[Array], Array]


ELEMENTS = {
    "f16": Element(16, lambda x: x.astype("u2").view("f2").astype(float)),
    "bf16": Element(16, lambda x: x.astype("u2").view(ml_dtypes.bfloat16).astype(float)),
    "tf32": Element(32, lambda x: (x & 0xFFFFE000).astype("u4").view("f4").astype(float)),  # without 13 bits
    "f32": Element(32, lambda x: x.astype("u4").view("f4").astype(float)),
    "f64": Element(64, lambda x: x.astype("u8").view("f8")),
    "s32": Element(32, lambda x: x.astype("u4").view("i4").astype(float)),
    "s8": Element(8, lambda x: x.astype("u1").view("i1").astype(int)),
    "u8": Element(8, lambda x: x.astype(int)),
    "s4": Element(4, lambda x: (x.astype(int) ^ 8) - 8),  # extends the sign of four bits
    "u4": Element(4, lambda x: x.astype(int)),
    "e4m3": Element(8, lambda x: x.astype("u1").view(ml_dtypes.float8_e4m3fn).astype(float)),
    "e5m2": Element(8, lambda x: x.astype("u1").view(ml_dtypes.float8_e5m2).astype(float)),
    "b1": Element(1, lambda x: x.astype(int)),
}
_FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32, "f64": np.float64,
           "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}  # fmt: skip


class Product(NamedTuple):
    """``mma.sync`` of a shape: the types of d, a, b and c, saturation, and the operation on factors of single bits."""

    m: int
    n: int
    k: int
    types: tuple[str, str, str, str]
    saturates: bool = False
    bit_operation: str = ""

    def __str__(self) -> str:
        saturation = ".satfinite" if self.saturates else ""
        operation = f".{self.bit_operation}.popc" if self.bit_operation else ""
        shape = f"m{self.m}n{self.n}k{self.k}.row.col"
        return f"mma.sync.aligned.{shape}{saturation}.{'.'.join(self.types)}{operation}"

    def element(self, role: str) -> Element:
        """Return the element type of a, b, c or d."""
        return ELEMENTS[self.type_name(role)]

    def type_name(self, role: str) -> str:
        return dict(zip("dabc", self.types, strict=True))[role]

    def extent(self, role: str) -> tuple[int, int]:
        """Return the rows and columns of a, b, c or d."""
        return {"a": (self.m, self.k), "b": (self.k, self.n)}.get(role, (self.m, self.n))

    def place(self, role: str, lane: int, i: int) -> tuple[int, int]:
        """Return the row and column in a, b, c or d of element ``i`` of a lane.

        The PTX ISA calls the lane's group of four ``groupID``, and its place in the group ``threadID_in_group``.
        """
        group, in_group = divmod(lane, 4)
        if role in "cd":
            return group + i // 2 * 8, in_group * 2 + i % 2
        per_word = 32 // self.element(role).bits or 1
        word, in_word = divmod(i, per_word)
        along_k = in_group * per_word + in_word  # in the first words of a group, which have 4 * per_word elements
        if role == "b":
            return along_k + word * 4 * per_word, group
        if self.m == 8:
            return group, along_k
        return group + 8 * (word % 2), along_k + word // 2 * 4 * per_word

    def registers(self, role: str) -> int:
        """Count the registers of a lane for a, b, c or d; f64 has registers of 64 bits."""
        rows, columns = self.extent(role)
        bits = self.element(role).bits
        return rows * columns * bits // 32 // max(bits, 32)

    def text(self) -> str:
        """Write a kernel with arrays d, a, b and c as parameters: for each register, its value in 32 lanes."""
        lines, declared = [], []
        for place, role in enumerate("dabc"):
            kind = _REGISTERS.get(self.type_name(role), "b32")
            size, count = (8 if kind == "f64" else 4), self.registers(role)
            declared.append(f".reg .{kind} %{role}<{count}>;")
            lines.append(f"ld.param.u64 %rd{place}, [p{place}]; mad.wide.u32 %rd{place}, %r0, {size}, %rd{place};")
            if role != "d":
                lines += [f"ld.global.{kind} %{role}{r}, [%rd{place} + {32 * size * r}];" for r in range(count)]
        operands = [list_registers(f"%{role}", self.registers(role)) for role in "dabc"]
        lines.append(f"{self} {', '.join(operands)};")
        kind = _REGISTERS.get(self.type_name("d"), "b32")
        size = 8 if kind == "f64" else 4
        lines += [f"st.global.{kind} [%rd0 + {32 * size * r}], %d{r};" for r in range(self.registers("d"))]
        return module("\n".join(lines), 4, "\n".join(declared), target="8.4 sm_90")

    def inputs(self) -> tuple[list[Array], list[Array]]:
        """Draw random registers of a, b and c, (registers, lanes); return them, and the matrices that they encode."""
        registers = [self._draw_registers(role) for role in "abc"]
        return registers, [self._decode(role, words) for role, words in zip("abc", registers, strict=True)]

    def _draw_registers(self, role: str) -> Array:
        name, bits = self.type_name(role), self.element(role).bits
        word_type = np.dtype(f"u{max(bits, 32) // 8}")
        shape = (self.registers(role), 32)
        if name in _FLOATS:  # numbers near one
            dtype = np.dtype(_FLOATS[name])
            numbers = RNG.normal(size=(*shape, word_type.itemsize // dtype.itemsize)).astype(dtype)
            return numbers.view(word_type)[..., 0]
        words = RNG.integers(0, 2**32, shape, dtype=np.uint32)
        if name == "s32" and "s8" not in self.types:
            return words % 2**11 + (2**31 - 2**10)  # sums on both sides of the limit; clamped sums only rise
        return words

    def _decode(self, role: str, words: Array) -> Array:
        element, matrix = self.element(role), np.zeros(self.extent(role))
        per_word = 32 // element.bits or 1
        for register, lane, part in np.ndindex(*words.shape, per_word):
            bits = int(words[register, lane]) >> part * element.bits & (2**element.bits - 1)
            place = self.place(role, lane, register * per_word + part)
            matrix[place] = element.decode(np.array([bits], np.uint64))[0]
        return matrix

    def outputs(self, matrix: Array) -> Array:
        """Arrange a matrix like the registers of d; return an array of shape (elements of a lane, 32 lanes)."""
        count = self.m * self.n // 32
        return np.array([[matrix[self.place("d", lane, i)] for lane in range(32)] for i in range(count)])

    def compute_expected(self, a: Array, b: Array, c: Array) -> Array:
        """Return a @ b + c, not rounded; for ``xor``, add the number of unequal bits to c."""
        if self.bit_operation == "xor":
            return np.asarray((a[:, :, None] != b[None]).sum(axis=1) + c)
        return np.asarray(a @ b + c)


def _make_float_product(name: str, k: int, result: str = "f32") -> Product:
    return Product(16, 8, k, (result, name, name, result))


PRODUCTS = [
    *[_make_float_product("f16", k, result) for result in ("f32", "f16") for k in (8, 16)],
    *[_make_float_product("bf16", k) for k in (8, 16)], *[_make_float_product("tf32", k) for k in (4, 8)],
    *[Product(16, 8, 32, ("f32", a, b, "f32")) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")],
    *[Product(m, 8, k, ("s32", a, b, "s32"), saturates=True) for m, k in ((8, 16), (16, 16), (16, 32))
      for a, b in (("s8", "s8"), ("u8", "s8"), ("u8", "u8"))],
    *[Product(m, 8, k, ("s32", a, b, "s32")) for m, k in ((8, 32), (16, 32), (16, 64))
      for a, b in (("s4", "s4"), ("u4", "s4"))],
    *[Product(m, 8, k, ("s32", "b1", "b1", "s32"), bit_operation=operation)
      for m, k in ((8, 128), (16, 128), (16, 256)) for operation in ("xor", "and")],
    Product(8, 8, 4, ("f64",) * 4), *[Product(16, 8, k, ("f64",) * 4) for k in (4, 8, 16)],
]  # fmt: skip
LAYOUTS = ["row.col", "row.row", "col.col", "col.row"]


class _QuadPairPlaces(NamedTuple):
    """Rows and columns of a lane's elements in one of the four products of ``mma.m8n8k4``."""

    a: list[tuple[int, int]]
    b: list[tuple[int, int]]
    c: list[tuple[int, int]]


def _place_quad_pair(lane: int, layouts: str, kind: str) -> _QuadPairPlaces:
    """Place a lane's elements by the formulas of the PTX ISA; `kind` is the type of c and d."""
    a_layout, b_layout = layouts.split(".")
    in_quad, upper = lane % 4, 4 if lane >= 16 else 0
    outer, four = in_quad + upper, range(4)
    a = [(outer, i) for i in four] if a_layout == "row" else [(i + upper, in_quad) for i in four]
    b = [(i, outer) for i in four] if b_layout == "col" else [(in_quad, i + upper) for i in four]
    if kind == "f16":
        return _QuadPairPlaces(a, b, [(outer, i) for i in range(8)])
    c = [((lane & 1) + (i & 2) + upper, (i & 4) + (lane & 2) + (i & 1)) for i in range(8)]
    return _QuadPairPlaces(a, b, c)


def quad_pairs(layouts: str, kind: str) -> tuple[str, list[Array], Array]:
    """Return a kernel of ``mma.m8n8k4`` on halves, its registers a, b and c, and the expected d.

    A quad of lanes and the quad 16 lanes later compute one of four products.
    """
    rng, dtype = np.random.default_rng(3), np.dtype({"f16": "f2", "f32": "f4"}[kind])
    a, b, c = (rng.integers(-8, 8, extent) for extent in ((4, 8, 4), (4, 4, 8), (4, 8, 8)))
    registers = [np.zeros((32, 4), "f2"), np.zeros((32, 4), "f2"), np.zeros((32, 8), dtype)]
    expected = np.zeros((32, 8), dtype)
    for lane in range(32):
        product, places = lane // 4 % 4, _place_quad_pair(lane, layouts, kind)
        for words, matrices, elements in zip(registers, (a, b, c), places, strict=True):
            words[lane] = [matrices[product][place] for place in elements]
        expected[lane] = [(a @ b + c)[product][place] for place in places.c]
    count, word = (4, "b32") if kind == "f16" else (8, "f32")  # registers of c and d
    d_names, a_names, b_names, c_names = (
        list_registers(f"%{name}", n) for name, n in zip("dabc", (count, 2, 2, count), strict=True)
    )
    body = "".join(f"ld.param.u64 %rd{n}, [p{n}]; mad.wide.u32 %rd{n}, %r0, {size}, %rd{n};"
                   for n, size in enumerate((8 * dtype.itemsize, 8, 8, 8 * dtype.itemsize)))  # fmt: skip
    body += f"ld.global.v2.b32 {a_names}, [%rd1]; ld.global.v2.b32 {b_names}, [%rd2];"
    body += "".join(f"ld.global.{word} %c{r}, [%rd3+{4 * r}];" for r in range(count))
    body += f"mma.sync.aligned.m8n8k4.{layouts}.{kind}.f16.f16.{kind} {d_names}, {a_names}, {b_names}, {c_names};"
    body += "".join(f"st.global.{word} [%rd0+{4 * r}], %d{r};" for r in range(count))
    return module(body, 4, f".reg .{word} %d<8>, %c<8>; .reg .b32 %a<2>, %b<2>;"), registers, expected


def keep_half(rng: np.random.Generator, matrix: Array, size: int, unit: int = 1) -> tuple[Array, Array]:
    """Zero half of each group of `size` numbers of `matrix`, `unit` neighbours at a time.

    Return the kept numbers, and the sparsity metadata of each group: the indices of both kept units, in two bits each.
    In a group of two numbers (tf32), each number has two indices, as it is as wide as two halves.
    """
    groups = matrix.reshape(len(matrix), -1, size // unit, unit)
    units = groups.shape[2]
    kept = np.sort(rng.random(groups.shape[:3]).argsort(axis=2)[..., : units // 2], axis=2)
    stored = np.take_along_axis(groups, kept[..., None], axis=2)
    groups[...] = 0
    np.put_along_axis(groups, kept[..., None], stored, axis=2)
    indices = kept if units == 4 else np.concatenate([2 * kept, 2 * kept + 1], axis=2)
    codes = indices[..., 0] | indices[..., 1] << 2
    return np.ascontiguousarray(stored.reshape(len(matrix), -1)), codes
