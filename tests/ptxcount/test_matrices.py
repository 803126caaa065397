"""Tensor cores: products of registers by the PTX ISA's formulas, and kernels that nvcc compiled, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from ptxcount.execute import run
from tests.ptxcount import sources
from tests.ptxcount.matrices import ELEMENTS, PRODUCTS, Product
from tests.ptxcount.snippets import module


@pytest.mark.parametrize("product", PRODUCTS, ids=str)
def test_products(product: Product) -> None:
    """``mma.sync`` of every shape and type: exact of integers, rounded once of floats."""
    registers, matrices = product.inputs()
    wide = product.bits("d") == 64
    out = np.zeros((product.registers("d"), 32), np.uint64 if wide else np.uint32)
    run(product.text(), "snippet", (1, 1, 1), (32, 1, 1), [out, *registers])
    wanted = product.outputs(product.expected(*matrices))
    per = max(32 // product.bits("d"), 1)
    got = np.stack([out >> (16 * place) & 0xFFFF if per == 2 else out for place in range(per)], axis=1)
    values = ELEMENTS[product.types[0]][1](got.reshape(-1, 32))
    if product.types[0] == "s32":
        limit = np.clip if "satfinite" in product.more else lambda x, low, high: (x - low) % 2**32 + low
        np.testing.assert_array_equal(values, limit(wanted, -(2**31), 2**31 - 1))
    else:
        np.testing.assert_allclose(values, wanted, rtol=1e-3 if per == 2 else 1e-6, atol=1e-2 if per == 2 else 1e-5)


@pytest.mark.parametrize("kind", ["f16", "f32"])
@pytest.mark.parametrize("layouts", ["row.col", "row.row", "col.col", "col.row"])
def test_quad_pairs(layouts: str, kind: str) -> None:
    """``m8n8k4`` of halves: four products, whose elements lie as the PTX ISA's formulas say; sums are exact."""
    rng, dtype = np.random.default_rng(3), np.dtype({"f16": "f2", "f32": "f4"}[kind])
    a, b, c = (rng.integers(-8, 8, extent) for extent in ((4, 8, 4), (4, 4, 8), (4, 8, 8)))
    registers = [np.zeros((32, 4), "f2"), np.zeros((32, 4), "f2"), np.zeros((32, 8), dtype)]
    out, places = np.zeros((32, 8), dtype), np.zeros((32, 8, 3), int)
    for lane in range(32):
        quad, low, high = lane // 4 % 4, lane % 4, 4 * (lane >= 16)
        for i in range(4):
            one, other = (low + high, i) if layouts.startswith("row") else (i + high, low)
            registers[0][lane, i] = a[quad, one, other]
            one, other = (i, low + high) if layouts.endswith("col") else (low, i + high)
            registers[1][lane, i] = b[quad, one, other]
        for i in range(8):
            place = (low + high, i) if kind == "f16" else ((lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1))
            places[lane, i], registers[2][lane, i] = (quad, *place), c[(quad, *place)]
    count, word = (4, "b32") if kind == "f16" else (8, "f32")
    held = [
        "{" + ", ".join(f"%{name}{r}" for r in range(n)) + "}"
        for name, n in zip("dabc", (count, 2, 2, count), strict=True)
    ]
    body = "".join(f"ld.param.u64 %rd{n}, [p{n}]; mad.wide.u32 %rd{n}, %r0, {size}, %rd{n};"
                   for n, size in enumerate((8 * dtype.itemsize, 8, 8, 8 * dtype.itemsize)))  # fmt: skip
    body += f"ld.global.v2.b32 {held[1]}, [%rd1]; ld.global.v2.b32 {held[2]}, [%rd2];"
    body += "".join(f"ld.global.{word} %c{r}, [%rd3+{4 * r}];" for r in range(count))
    body += f"mma.sync.aligned.m8n8k4.{layouts}.{kind}.f16.f16.{kind} {', '.join(held)};"
    body += "".join(f"st.global.{word} [%rd0+{4 * r}], %d{r};" for r in range(count))
    text = module(body, 4, f".reg .{word} %d<8>, %c<8>; .reg .b32 %a<2>, %b<2>;")
    run(text, "snippet", (1, 1, 1), (32, 1, 1), [out, *registers])
    assert (out == (a @ b + c)[tuple(places.transpose(2, 0, 1))]).all()


#: Kernel of tests/kernels/tensor_cores.cu: types of factors and sums, m, n, k, and the order in memory of a, b and c.
WMMA = [
    ("half_rcr", "f2", "f4", (16, 16, 16), "CFC"), ("half_crc", "f2", "f4", (16, 16, 16), "FCF"),
    ("half_half", "f2", "f2", (16, 16, 16), "FFF"), ("half_tall", "f2", "f4", (32, 8, 16), "CCC"),
    ("half_wide", "f2", "f4", (8, 32, 16), "CFF"), ("bytes_rcr", "i1", "i4", (16, 16, 16), "CFC"),
    ("bytes_crc", "i1", "i4", (16, 16, 16), "FCF"), ("tf32_rrr", "f4", "f4", (16, 16, 8), "CCC"),
    ("double_rcr", "f8", "f8", (8, 8, 4), "CFC"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "factor", "total", "shape", "orders"), WMMA, ids=[case[0] for case in WMMA])
def test_wmma(name: str, factor: str, total: str, shape: tuple[int, int, int], orders: str) -> None:
    """Matrices in shared and in global memory, by rows and by columns; small whole numbers, so that sums are exact."""
    m, n, k = shape
    rng = np.random.default_rng(7)
    extents = [((m, k), factor), ((k, n), factor), ((m, n), total)]
    a, b, c = (rng.integers(-8, 8, extent).astype(dtype) for extent, dtype in extents)
    memory = [each.ravel(order=order).copy() for each, order in zip((a, b, c), orders, strict=True)]  # type: ignore[arg-type]
    leading = [np.int32(each.shape[order == "C"]) for each, order in zip((a, b, c), orders, strict=True)]
    out = np.zeros(m * n, total)
    run(sources.ptx("tensor_cores"), name, (1, 1, 1), (32, 1, 1), [out, *memory, *leading])
    wanted = a.astype(float) @ b.astype(float) + c
    np.testing.assert_array_equal(out.reshape((m, n), order=orders[2]), wanted)  # type: ignore[call-overload]


def test_rows_of_squares() -> None:
    """``ldmatrix`` with ``.trans`` and ``stmatrix`` turn four squares; each takes four wavefronts, as ``LDSM.x4``."""
    halves = np.arange(256, dtype=np.uint16)
    out = np.zeros(128, np.uint32)
    counters = run(sources.ptx("tensor_cores"), "rows", (1, 1, 1), (32, 1, 1), [out, halves.view(np.uint32)])
    turned = halves.reshape(4, 8, 8).transpose(0, 2, 1).ravel()
    assert out.view(np.uint16).tolist() == turned.tolist()
    assert [a.wavefronts for a in counters.accesses if a.space == "shared" and a.width == 16] == [4, 4]
