"""A compiled kernel for each feature of the language, against NumPy or plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ptxcount.counting.counters import LaunchCounters
from ptxcount.engine.execute import execute_kernel
from tests.ptxcount import sources
from tests.ptxcount.snippets import execute_snippet, module

Array = npt.NDArray[Any]
Index3 = tuple[int, int, int]


def launch(entry: str, grid: int | Index3, block: int | Index3, *args: Any, dynamic_shared: int = 0) -> LaunchCounters:
    sizes = [(n, 1, 1) if isinstance(n, int) else n for n in (grid, block)]
    return execute_kernel(sources.ptx("features"), entry, sizes[0], sizes[1], list(args), dynamic_shared=dynamic_shared)


SHAPE = np.zeros(1, np.dtype([("columns", "i4"), ("pad", "i2"), ("scale", "f4")], align=True))
SHAPE["columns"], SHAPE["pad"], SHAPE["scale"] = 13, 100, 0.5
WEIGHTS = [[w * (t + k) for k, w in enumerate([1.0, -2.0, 0.5, 4.0, 8.0])] for t in range(40)]
FEW = np.arange(32, dtype=np.float32)
#: Kernel, grid, block, first array before, other arguments, first array afterwards.
CASES: list[tuple[str, Any, Any, Array, list[Any], list[Any]]] = [
    ("by_value", (2, 3, 2), (4, 3, 2), np.zeros(288, np.float32), [SHAPE[0], np.int8(-3)],
     [(i % 13) * 0.5 - 3 + 100 for i in range(288)]),
    # a table with initial values, copied to local memory for an index at run time
    ("tables", 1, 40, np.zeros(40, np.float32), [np.zeros(1, np.int32)],
     [v[t % 5] + v[(t + 2) % 5] for t, v in enumerate(WEIGHTS)]),
    ("hinted", 1, 32, np.zeros(96, np.float32), [FEW], [*FEW * 6, *FEW * 5, *FEW]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "grid", "block", "initial", "arguments", "expected"), CASES, ids=[c[0] for c in CASES]
)
def test_outputs_are_exact(
    entry: str, grid: Any, block: Any, initial: Array, arguments: list[Any], expected: list[Any]
) -> None:
    out = initial.copy()
    assert launch(entry, grid, block, out, *arguments).totals()["store_requests"]
    assert out.tolist() == expected


def test_vector_accesses_have_their_sectors() -> None:
    source = np.arange(512, dtype=np.float32).reshape(128, 4)
    out, wide, shorts = np.zeros_like(source), np.zeros((128, 2)), np.zeros((128, 2), np.int16)
    data = np.random.default_rng(1).integers(0, 256, (128, 4), dtype=np.uint8)
    totals = launch("vectors", 2, 64, out, source, wide, data, shorts).totals()
    np.testing.assert_array_equal(out, source[:, ::-1])
    np.testing.assert_array_equal(wide, source[:, :2])
    x, y, z, w = data.astype(np.int16).T
    np.testing.assert_array_equal(shorts, np.stack([x - w, y + z], axis=1))
    assert totals["store_sectors"] == 4 * (16 + 16 + 4)


def test_shared_variables_do_not_overlap() -> None:
    out = np.zeros((2, 32))
    launch("mixed_shared", 2, 32, out, dynamic_shared=64)
    assert out[0].tolist() == [(31 - t) * 0.5 + 10 + t % 3 + 100 * (t ^ 1) for t in range(32)]


def test_nanosleep_keeps_its_operand() -> None:
    body = """
        ld.param.u64 %rd1, [p0]; mad.wide.u32 %rd1, %r0, 4, %rd1;
        setp.lt.u32 %p1, %r0, 16; @%p1 bra LOW; mov.u32 %r1, 1; bra MEET;
        LOW: mov.u32 %r1, 2;
        MEET: nanosleep.u32 %r1; st.global.u32 [%rd1], %r1;
    """
    out = np.zeros(32, np.uint32)
    execute_snippet(module(body, 1), [out])
    assert out.tolist() == [2] * 16 + [1] * 16


def test_hints_cost_nothing() -> None:
    body = """
        ld.param.u64 %rd1, [p0]; prefetch.global.L2 [%rd1]; prefetchu.L1 [%rd1]; fence.acq_rel.gpu; membar.gl;
        applypriority.global.L2::evict_normal [%rd1], 128; discard.global.L2 [%rd1], 128;
    """
    assert not execute_snippet(module(body, 1), [np.zeros(32, np.uint32)]).accesses
