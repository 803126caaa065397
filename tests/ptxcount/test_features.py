"""Kernels that nvcc compiled, one for each feature of the language, against NumPy or plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxcount.counters import LaunchCounters
from ptxcount.execute import run
from tests.ptxcount import sources

Array = npt.NDArray[Any]
Index3 = tuple[int, int, int]


def launch(entry: str, grid: int | Index3, block: int | Index3, *args: Any, dynamic_shared: int = 0) -> LaunchCounters:
    """Launch a kernel of ``tests/kernels/features.cu``."""
    sizes = [(n, 1, 1) if isinstance(n, int) else n for n in (grid, block)]
    return run(sources.ptx("features"), entry, sizes[0], sizes[1], list(args), dynamic_shared=dynamic_shared)


def _collatz(x: int) -> int:
    return 0 if x == 1 else 1 + _collatz(3 * x + 1 if x % 2 else x // 2)


def test_loop_of_different_lengths() -> None:
    """Threads leave a loop one by one and meet again behind it; the last block is not full."""
    start, steps = np.arange(1, 501, dtype=np.int32), np.zeros(500, np.int32)
    counters = launch("collatz", 4, 128, steps, start, np.int32(500))
    assert steps.tolist() == [_collatz(x) for x in range(1, 501)]
    assert counters.totals()["store_requests"] == 16, "threads of a warp store together"
    assert counters.caveats() == {"global store": "requests may be split"}


def _nested(i: int) -> int:
    total = 0
    for a in range(i % 7):
        if a == 5:
            continue
        for b in range(100):
            if b * a > i % 11:
                break
            if b > 20:
                return total
            total += a ^ b
        total = total * 3 + 1
    return total


def test_nested_loops() -> None:
    """Loops in loops with ``continue``, ``break`` and ``goto``."""
    out = np.full(300, -9, np.int32)
    totals = launch("nested", 5, 64, out, np.int32(290)).totals()
    assert totals["store_requests"] == 10, "threads of a warp store together"
    assert out.tolist() == [_nested(i) for i in range(290)] + [-9] * 10


def test_switch() -> None:
    """A switch with a fall-through and a return."""
    values = np.array([0, 1, 2, 9, 5, 1, 9, 0] * 5, np.int32)
    out = np.zeros(40, np.int32)
    launch("switched", 1, 40, out, values)
    assert out.tolist() == [{0: 10, 1: 12, 2: 7, 9: -1, 5: -5}[v] for v in values.tolist()]


def test_atomics() -> None:
    """Every atomic operation, with all threads at one address."""
    n = 96
    total, least = np.zeros(1, np.int32), np.array([99, 0, -1, 0, 0], np.int32)
    ticket, order = np.zeros(3, np.uint32), np.zeros(n, np.uint32)
    big, real, flag = np.zeros(1, np.uint64), np.zeros(1, np.float32), np.zeros(3, np.int32)
    launch("atomics", 3, 32, total, least, ticket, order, big, real, flag)
    assert total.tolist() == [n * (n - 1) // 2]
    xor = 0
    for i in range(n):
        xor ^= i
    assert least.tolist() == [50 - n + 1, 3 * (n - 1), ~31, 511, xor]
    assert sorted(order.tolist()) == list(range(n))
    down = 0
    for _ in range(n):
        down = 7 if down == 0 or down > 7 else down - 1
    assert ticket.tolist() == [n, down, n % 7]
    assert (big.tolist(), real.tolist()) == ([n << 33], [n / 2])
    assert flag.tolist() == [flag[1] + 1, flag[1], 77]


def test_parameters_by_value_and_three_dimensions() -> None:
    """A structure, a signed byte, and every component of the indices."""
    out = np.zeros(2 * 3 * 2 * 4 * 3 * 2, np.float32)
    shape = np.zeros(1, np.dtype([("columns", "i4"), ("pad", "i2"), ("scale", "f4")], align=True))
    shape["columns"], shape["pad"], shape["scale"] = 13, 100, 0.5
    launch("by_value", (2, 3, 2), (4, 3, 2), out, shape[0], np.int8(-3))
    assert out.tolist() == [(i % 13) * 0.5 - 3 + 100 for i in range(out.size)]


def test_vectors() -> None:
    """Loads and stores of 4, 8 and 16 bytes a thread as vectors."""
    source = np.arange(512, dtype=np.float32).reshape(128, 4)
    out, wide, shorts = np.zeros_like(source), np.zeros((128, 2)), np.zeros((128, 2), np.int16)
    data = np.random.default_rng(1).integers(0, 256, (128, 4), dtype=np.uint8)
    totals = launch("vectors", 2, 64, out, source, wide, data, shorts).totals()
    np.testing.assert_array_equal(out, source[:, ::-1])
    np.testing.assert_array_equal(wide, source[:, :2])
    x, y, z, w = data.astype(np.int16).T
    np.testing.assert_array_equal(shorts, np.stack([x - w, y + z], axis=1))
    assert totals["store_sectors"] == 4 * (16 + 16 + 4)


def test_constant_global_and_local_memory() -> None:
    """Tables with initial values, and an array in local memory that is indexed at run time."""
    out, seen = np.zeros(40, np.float32), np.zeros(1, np.int32)
    launch("tables", 1, 40, out, seen)
    weights = [1.0, -2.0, 0.5, 4.0, 8.0]
    values = [[w * (t + k) for k, w in enumerate(weights)] for t in range(40)]
    assert out.tolist() == [v[t % 5] + v[(t + 2) % 5] for t, v in enumerate(values)]
    assert seen.tolist() == [3]


def test_cache_hints() -> None:
    """Hints change nothing but the caches."""
    source, out = np.arange(32, dtype=np.float32), np.zeros(96, np.float32)
    launch("hinted", 1, 32, out, source)
    assert out.tolist() == [*(source * 6).tolist(), *(source * 5).tolist(), *source.tolist()]


def test_threads_that_leave_early() -> None:
    """Threads that have left do not hold up a barrier."""
    out = np.full(64, -1, np.int32)
    launch("early_exit", 1, 64, out, np.int32(40))
    assert out.tolist() == [*reversed(range(40)), *[-1] * 24]


def test_guards() -> None:
    """Instructions behind a predicate leave the registers of other threads alone."""
    out = np.full(64, -1, np.int32)
    launch("guarded_stores", 2, 32, out, np.int32(50))
    assert out.tolist() == [i + 5 if i < 50 else 0 for i in range(64)]


def test_generic_addresses() -> None:
    """One load instruction reads shared memory or global memory, as its addresses say, and counts as such."""
    source, out = np.arange(64, dtype=np.int32) * 7, np.zeros(64, np.int32)
    totals = launch("generic_pointers", 1, 64, out, source, np.int32(1)).totals()
    assert out.tolist() == [2 * (63 - t) for t in range(64)]
    assert (totals["load_requests"], totals["shared_load_requests"]) == (0, 2)
    totals = launch("generic_pointers", 1, 64, out, source, np.int32(0)).totals()
    assert out.tolist() == [7 * (63 - t) for t in range(64)]
    assert (totals["load_requests"], totals["shared_load_requests"]) == (2, 0)


def test_shared_variables_side_by_side() -> None:
    """Static variables of different alignment and a dynamic one share the memory of a block."""
    out = np.zeros((2, 32))
    launch("mixed_shared", 2, 32, out, dynamic_shared=64)
    assert out[0].tolist() == [(31 - t) * 0.5 + 10 + t % 3 + 100 * (t ^ 1) for t in range(32)]


def test_register_that_is_only_read() -> None:
    """The first operand of ``nanosleep`` is not written: what each thread put there before stays."""
    text = """
    .entry k(.param .u64 out) {
        .reg .b64 %rd1; .reg .b32 %r<3>; .reg .pred %p1;
        ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x; mad.wide.u32 %rd1, %r0, 4, %rd1;
        setp.lt.u32 %p1, %r0, 16;
        @%p1 bra LOW;
        mov.u32 %r1, 1;
        bra MEET;
    LOW: mov.u32 %r1, 2;
    MEET: nanosleep.u32 %r1;
        st.global.u32 [%rd1], %r1;
        ret;
    }
    """
    out = np.zeros(32, np.uint32)
    run(text, "k", (1, 1, 1), (32, 1, 1), [out])
    assert out.tolist() == [2] * 16 + [1] * 16


def test_hints_without_effect() -> None:
    """Prefetches, priorities and fences move nothing that is counted."""
    text = """
    .entry k(.param .u64 out) {
        .reg .b64 %rd1;
        ld.param.u64 %rd1, [out];
        prefetch.global.L2 [%rd1];
        prefetchu.L1 [%rd1];
        applypriority.global.L2::evict_normal [%rd1], 128;
        discard.global.L2 [%rd1], 128;
        fence.acq_rel.gpu;
        membar.gl;
        ret;
    }
    """
    assert not run(text, "k", (1, 1, 1), (32, 1, 1), [np.zeros(32, np.uint32)]).accesses
