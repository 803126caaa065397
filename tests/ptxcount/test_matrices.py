"""Tensor cores against NumPy: register products by the PTX ISA's formulas, and compiled kernels."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from experiments.path_cases import list_paths
from ptxcount.lanes.warps import Array
from tests.ptxcount import sources
from tests.ptxcount.matrices import LAYOUTS, PRODUCTS, Product, quad_pairs
from tests.ptxcount.snippets import execute_snippet, list_registers, module


@pytest.mark.parametrize("product", PRODUCTS, ids=str)
def test_mma_as_in_numpy(product: Product) -> None:
    registers, matrices = product.inputs()
    element = product.element("d")
    out = np.zeros((product.registers("d"), 32), np.uint64 if element.bits == 64 else np.uint32)
    execute_snippet(product.text(), [out, *registers])
    expected = product.outputs(product.compute_expected(*matrices))
    values = element.decode(_split_halves(out) if element.bits == 16 else out)
    low, high = -(2**31), 2**31 - 1
    if product.type_name("d") == "s32":
        wrapped = (expected - low) % 2**32 + low
        np.testing.assert_array_equal(values, np.clip(expected, low, high) if product.saturates else wrapped)
    # A rounding changes a half by up to 2**-11 of it, and a float by 2**-24. Terms of opposite sign may cancel.
    elif element.bits == 16:
        np.testing.assert_allclose(values, expected, rtol=1e-3, atol=1e-2)
    else:
        np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-5)


def _split_halves(registers: Array) -> Array:
    return np.stack([registers & 0xFFFF, registers >> 16], axis=1).reshape(-1, 32)


@pytest.mark.parametrize("kind", ["f16", "f32"])
@pytest.mark.parametrize("layouts", LAYOUTS)
def test_quad_pairs_are_exact(layouts: str, kind: str) -> None:
    text, registers, expected = quad_pairs(layouts, kind)
    out = np.zeros_like(expected)
    execute_snippet(text, [out, *registers])
    assert (out == expected).all()


class WmmaCase(NamedTuple):
    """A kernel of tests/kernels/tensor_cores.cu: its name, dtypes of factors and sums, m, n and k, and memory orders.

    The orders of a, b and c are C (row-major) or F (column-major).
    """

    name: str
    factor: str
    total: str
    shape: tuple[int, int, int]
    orders: str


WMMA = [
    WmmaCase("half_rcr", "f2", "f4", (16, 16, 16), "CFC"), WmmaCase("half_crc", "f2", "f4", (16, 16, 16), "FCF"),
    WmmaCase("half_half", "f2", "f2", (16, 16, 16), "FFF"), WmmaCase("half_tall", "f2", "f4", (32, 8, 16), "CCC"),
    WmmaCase("half_wide", "f2", "f4", (8, 32, 16), "CFF"), WmmaCase("bytes_rcr", "i1", "i4", (16, 16, 16), "CFC"),
    WmmaCase("bytes_crc", "i1", "i4", (16, 16, 16), "FCF"), WmmaCase("tf32_rrr", "f4", "f4", (16, 16, 8), "CCC"),
    WmmaCase("double_rcr", "f8", "f8", (8, 8, 4), "CFC"),
]  # fmt: skip


@pytest.mark.parametrize("case", WMMA, ids=[case.name for case in WMMA])
def test_wmma_is_exact(case: WmmaCase) -> None:
    name, factor, total, (m, n, k), orders = case
    rng = np.random.default_rng(7)
    extents = [((m, k), factor), ((k, n), factor), ((m, n), total)]
    a, b, c = (rng.integers(-8, 8, extent).astype(dtype) for extent, dtype in extents)
    memory = [matrix.ravel(order=order).copy() for matrix, order in zip((a, b, c), orders, strict=True)]  # type: ignore[arg-type]
    leading = [np.int32(matrix.shape[order == "C"]) for matrix, order in zip((a, b, c), orders, strict=True)]
    out = np.zeros(m * n, total)
    sources.execute("tensor_cores", name, [out, *memory, *leading])
    expected = a.astype(float) @ b.astype(float) + c
    np.testing.assert_array_equal(out.reshape((m, n), order=orders[2]), expected)  # type: ignore[call-overload]


@cache
def _make_row_kernel() -> str:
    """Return PTX that stores and loads one, two, four, and four transposed matrices; lanes pass the row of each."""
    body = "ld.param.u64 %rd1, [p0]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1; ld.global.u32 %r2, [%rd2];\n"
    body += "mov.u32 %r3, s; mad.lo.u32 %r4, %r2, 16, %r3; mov.u32 %r5, 0; mov.u32 %r6, 0; mov.u32 %r7, 0;\n"
    body += "mov.u32 %r8, 0;\n"
    for form, count in (("x1", 1), ("x2", 2), ("x4", 4), ("x4.trans", 4)):
        names = list_registers("%r", count, first=5)
        body += f"stmatrix.sync.aligned.m8n8.{form}.shared.b16 [%r4], {names}; bar.warp.sync 0xffffffff;\n"
        body += f"ldmatrix.sync.aligned.{form}.m8n8.shared.b16 {names}, [%r4];"  # CUTLASS's order
        body += "bar.warp.sync 0xffffffff;\n"
    return module(body, 1, ".shared .align 1024 .b8 s[32768];")


def test_wavefronts_of_ldmatrix_as_on_h200() -> None:
    """The names of paths are "instruction, rows"; for each choice of rows, loads come before stores."""
    expected_wavefronts: dict[str, list[int]] = {}
    rows = {}
    for path in list_paths(small=True):
        if path.group == "matrix rows":
            name = path.name.partition(", ")[2]
            expected_wavefronts.setdefault(name, []).append(path.wavefronts)
            rows[name] = path.arguments[1]
    assert sum(map(len, expected_wavefronts.values())) == len(rows) * 2 * 4  # four loads and four stores
    for name, row in rows.items():
        counters = execute_snippet(_make_row_kernel(), [row], unwritten="off", races="off")
        accesses = [access for access in counters.accesses if access.space == "shared"]
        loads, stores = ([a.wavefronts for a in accesses if a.kind == kind] for kind in ("load", "store"))
        assert loads + stores == expected_wavefronts[name], name


def test_wmma_load_counts_as_ldmatrix() -> None:
    """16 x 16 halves are four matrices, of a wavefront each, although all rows have one address (stride 0)."""
    registers = list_registers("%r", count=8, first=1)
    body = f"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {registers}, [s], 0;"
    text = module(body, 0, ".shared .align 32 .b8 s[32];")
    counters = execute_snippet(text, [], unwritten="off")
    assert [(access.kind, access.wavefronts) for access in counters.accesses] == [("load", 4)]


def test_four_matrices_take_four_wavefronts() -> None:
    """The kernel loads four matrices of 128 bytes, transposed, and stores them."""
    halves = np.arange(256, dtype=np.uint16)
    out = np.zeros(128, np.uint32)
    counters = sources.execute("tensor_cores", "rows", [out, halves.view(np.uint32)])
    transposed = halves.reshape(4, 8, 8).transpose(0, 2, 1).ravel()
    assert out.view(np.uint16).tolist() == transposed.tolist()
    matrix_accesses = [access for access in counters.accesses if access.space == "shared" and access.width == 16]
    assert [access.wavefronts for access in matrix_accesses] == [4, 4]
