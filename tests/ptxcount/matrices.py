"""Products on tensor cores: kernels of one warp that read and write whole registers.

Formulas of the PTX ISA ("Matrix Fragments") place the elements. `tests/gpu/test_matrices.py` runs the same kernels on a
GPU.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ptxcount.lanes.warps import Array
from tests.ptxcount.small_floats import ml_dtypes
from tests.ptxcount.snippets import list_registers, module

RNG = np.random.default_rng(5)
_REGISTERS = {"f32": "f32", "s32": "b32", "f64": "f64"}


def _sub_byte(signed: bool) -> Callable[[Array], Array]:
    return lambda x: (x.astype(int) ^ 8) - 8 if signed else x.astype(int)


#: Element type -> bits, and the numbers that they encode.
ELEMENTS: dict[str, tuple[int, Callable[[Array], Array]]] = {
    "f16": (16, lambda x: x.astype("u2").view("f2").astype(float)),
    "bf16": (16, lambda x: x.astype("u2").view(ml_dtypes.bfloat16).astype(float)),
    "tf32": (32, lambda x: (x & 0xFFFFE000).astype("u4").view("f4").astype(float)),
    "f32": (32, lambda x: x.astype("u4").view("f4").astype(float)),
    "f64": (64, lambda x: x.astype("u8").view("f8")),
    "s32": (32, lambda x: x.astype("u4").view("i4").astype(float)),
    "s8": (8, lambda x: x.astype("u1").view("i1").astype(int)),
    "u8": (8, lambda x: x.astype(int)),
    "s4": (4, _sub_byte(True)),
    "u4": (4, _sub_byte(False)),
    "e4m3": (8, lambda x: x.astype("u1").view(ml_dtypes.float8_e4m3fn).astype(float)),
    "e5m2": (8, lambda x: x.astype("u1").view(ml_dtypes.float8_e5m2).astype(float)),
    "b1": (1, lambda x: x.astype(int)),
}


class Product(NamedTuple):
    """``mma.sync`` of a shape: the types of d, a, b and c, and further modifiers."""

    m: int
    n: int
    k: int
    types: tuple[str, str, str, str]
    modifiers: str = ""

    def __str__(self) -> str:
        before, _, behind = self.modifiers.partition("/")
        return f"mma.sync.aligned.m{self.m}n{self.n}k{self.k}.row.col{before}.{'.'.join(self.types)}{behind}"

    def extent(self, role: str) -> tuple[int, int]:
        """Return the rows and columns of a, b, c or d."""
        return {"a": (self.m, self.k), "b": (self.k, self.n)}.get(role, (self.m, self.n))

    def bits(self, role: str) -> int:
        """Return the bits of an element of a, b, c or d."""
        return ELEMENTS[self.types["dabc".index(role)]][0]

    def place(self, role: str, lane: int, i: int) -> tuple[int, int]:
        """Return the row and column in a, b, c or d of element ``i`` of a lane."""
        group, within, per = lane >> 2, lane % 4, max(32 // self.bits(role), 1)
        if role in "cd":
            return group + 8 * (i >= 2), within * 2 + (i & 1)
        if role == "b":
            return within * per + i % per + i // per * 4 * per, group
        if self.m == 8:
            return group, within * per + i % per
        return group + 8 * (i // per % 2), within * per + i % per + i // (2 * per) * 4 * per

    def registers(self, role: str) -> int:
        """Count the registers of a lane for a, b, c or d; f64 has registers of 64 bits."""
        rows, columns = self.extent(role)
        return rows * columns * self.bits(role) // 32 // max(self.bits(role), 32)

    def text(self) -> str:
        """Write a kernel with arrays d, a, b and c as parameters: for each register, its value in 32 lanes."""
        kinds = {role: _REGISTERS.get(self.types["dabc".index(role)], "b32") for role in "dabc"}
        lines = ["mul.wide.u32 %rd9, %r0, 4;", "mul.wide.u32 %rd8, %r0, 8;"]
        declared = [f".reg .{kinds[role]} %{role}<{self.registers(role)}>;" for role in "dabc"]
        steps = {role: 256 if kinds[role] == "f64" else 128 for role in "dabc"}
        for place, role in enumerate("dabc"):
            first = f"%rd{8 if steps[role] == 256 else 9}"
            lines.append(f"ld.param.u64 %rd{place}, [p{place}]; add.u64 %rd{place}, %rd{place}, {first};")
            for r in range(self.registers(role) if role != "d" else 0):
                lines.append(f"ld.global.{kinds[role]} %{role}{r}, [%rd{place} + {r * steps[role]}];")
        groups = [list_registers(f"%{role}", self.registers(role)) for role in "dabc"]
        lines.append(f"{self} {', '.join(groups)};")
        lines += [f"st.global.{kinds['d']} [%rd0 + {r * steps['d']}], %d{r};" for r in range(self.registers("d"))]
        return module("\n".join(lines), 4, "\n".join(declared), target="8.4 sm_90")

    def inputs(self) -> tuple[list[Array], list[Array]]:
        """Draw random registers of a, b and c; return them, and the matrices that they encode."""
        registers, matrices = [], []
        for role in "abc":
            count, bits = self.registers(role), self.bits(role)
            name = self.types["dabc".index(role)]
            words = RNG.integers(0, 2**32, (count, 32, max(bits // 32, 1)), dtype=np.uint32)
            words = np.ascontiguousarray(words).view(f"u{max(bits, 32) // 8}")[..., 0]
            if name in ("f16", "bf16", "tf32", "f32", "f64", "e4m3", "e5m2"):  # numbers near one
                words = self._tame(name, words.shape)
            if name == "s32" and "s8" not in self.types:  # sums on both sides of the limits; clamped sums only rise
                words = words % 2**11 + (2**31 - 2**10)
            per = max(32 // bits, 1)
            matrix = np.zeros(self.extent(role))
            for lane in range(32):
                for i in range(count * per):
                    word = int(words[i // per, lane]) >> (i % per * bits) & (2**bits - 1)
                    matrix[self.place(role, lane, i)] = ELEMENTS[name][1](np.array([word], np.uint64))[0]
            registers.append(words)
            matrices.append(matrix)
        return registers, matrices

    @staticmethod
    def _tame(name: str, shape: tuple[int, ...]) -> Array:
        kind: Any = {"bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
                     "f16": np.float16, "f64": np.float64}.get(name, np.float32)  # fmt: skip
        size = np.dtype(kind).itemsize
        values = RNG.normal(size=(*shape, max(4 // size, 1))).astype(kind)
        return np.ascontiguousarray(values).view(f"u{max(size, 4)}")[..., 0]

    def outputs(self, matrix: Array) -> Array:
        """Arrange a matrix like the registers of d; return an array of shape (elements of a lane, 32 lanes)."""
        count = self.registers("d") * max(32 // self.bits("d"), 1)
        return np.array([[matrix[self.place("d", lane, i)] for lane in range(32)] for i in range(count)])

    def compute_expected(self, a: Array, b: Array, c: Array) -> Array:
        """Return a @ b + c, not rounded; for ``xor``, add the number of unequal bits to c."""
        if "xor" in self.modifiers:
            return np.asarray((a[:, :, None] != b[None]).sum(axis=1) + c)
        return np.asarray(a @ b + c)


def _floats(name: str, k: int, to: str = "f32") -> Product:
    return Product(16, 8, k, (to, name, name, to))


PRODUCTS = [
    _floats("f16", 8), _floats("f16", 16), _floats("f16", 8, "f16"), _floats("f16", 16, "f16"),
    _floats("bf16", 8), _floats("bf16", 16), _floats("tf32", 4), _floats("tf32", 8),
    *[Product(16, 8, 32, ("f32", a, b, "f32")) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")],
    *[Product(m, 8, k, ("s32", a, b, "s32"), ".satfinite") for m, k in ((8, 16), (16, 16), (16, 32))
      for a, b in (("s8", "s8"), ("u8", "s8"), ("u8", "u8"))],
    *[Product(m, 8, k, ("s32", a, b, "s32")) for m, k in ((8, 32), (16, 32), (16, 64))
      for a, b in (("s4", "s4"), ("u4", "s4"))],
    *[Product(m, 8, k, ("s32", "b1", "b1", "s32"), f"/.{op}.popc") for m, k in ((8, 128), (16, 128), (16, 256))
      for op in ("xor", "and")],
    Product(8, 8, 4, ("f64",) * 4),
    *[Product(16, 8, k, ("f64",) * 4) for k in (4, 8, 16)],
]  # fmt: skip
LAYOUTS = ["row.col", "row.row", "col.col", "col.row"]


def quad_pairs(layouts: str, kind: str) -> tuple[str, list[Array], Array]:
    """Return a kernel of ``mma.m8n8k4`` on halves, its registers a, b and c, and the expected d."""
    rng, dtype = np.random.default_rng(3), np.dtype({"f16": "f2", "f32": "f4"}[kind])
    a, b, c = (rng.integers(-8, 8, extent) for extent in ((4, 8, 4), (4, 4, 8), (4, 8, 8)))
    registers = [np.zeros((32, 4), "f2"), np.zeros((32, 4), "f2"), np.zeros((32, 8), dtype)]
    places = np.zeros((32, 8, 3), int)
    for lane in range(32):
        quad, low, high = lane // 4 % 4, lane % 4, 4 * (lane >= 16)
        for i in range(4):
            row, column = (low + high, i) if layouts.startswith("row") else (i + high, low)
            registers[0][lane, i] = a[quad, row, column]
            row, column = (i, low + high) if layouts.endswith("col") else (low, i + high)
            registers[1][lane, i] = b[quad, row, column]
        for i in range(8):
            place = (low + high, i) if kind == "f16" else ((lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1))
            places[lane, i], registers[2][lane, i] = (quad, *place), c[(quad, *place)]
    count, word = (4, "b32") if kind == "f16" else (8, "f32")
    operands = [list_registers(f"%{name}", n) for name, n in zip("dabc", (count, 2, 2, count), strict=True)]
    body = "".join(f"ld.param.u64 %rd{n}, [p{n}]; mad.wide.u32 %rd{n}, %r0, {size}, %rd{n};"
                   for n, size in enumerate((8 * dtype.itemsize, 8, 8, 8 * dtype.itemsize)))  # fmt: skip
    body += f"ld.global.v2.b32 {operands[1]}, [%rd1]; ld.global.v2.b32 {operands[2]}, [%rd2];"
    body += "".join(f"ld.global.{word} %c{r}, [%rd3+{4 * r}];" for r in range(count))
    body += f"mma.sync.aligned.m8n8k4.{layouts}.{kind}.f16.f16.{kind} {', '.join(operands)};"
    body += "".join(f"st.global.{word} [%rd0+{4 * r}], %d{r};" for r in range(count))
    text = module(body, 4, f".reg .{word} %d<8>, %c<8>; .reg .b32 %a<2>, %b<2>;")
    return text, registers, (a @ b + c)[tuple(places.transpose(2, 0, 1))].astype(dtype)


def keep_half(rng: np.random.Generator, matrix: Array, size: int, unit: int = 1) -> tuple[Array, Array]:
    """Zero half of each group of `size` numbers of `matrix`, `unit` neighbours at a time.

    Return the kept numbers, and the sparsity metadata of each group.
    """
    groups = matrix.reshape(len(matrix), -1, size // unit, unit)
    keep = np.sort(rng.random(groups.shape[:3]).argsort(axis=2)[..., : groups.shape[2] // 2], axis=2)
    stored = np.take_along_axis(groups, keep[..., None], axis=2)
    groups[...] = 0
    np.put_along_axis(groups, keep[..., None], stored, axis=2)
    codes = keep[..., 0] | keep[..., 1] << 2 if keep.shape[2] > 1 else np.where(keep[..., 0] > 0, 14, 4)
    return np.ascontiguousarray(stored.reshape(len(matrix), -1)), codes
