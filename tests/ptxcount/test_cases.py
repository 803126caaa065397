"""Compiled kernels, for features of the language and of earlier defects: their outputs and findings."""

from typing import Any

import numpy as np
import pytest

from ptxcount.engine.execute import execute_kernel
from ptxcount.util import errors
from tests.ptxcount import sources
from tests.ptxcount.snippets import execute_snippet, module

F, INT = np.float32, np.int32


def _zeros(*shape: int, dtype: Any = INT) -> Any:
    return np.zeros(shape, dtype)


def _bits(*numbers: float) -> Any:
    """Return the upper 16 bits of singles, which are bfloat16."""
    return (np.array(numbers, F).view(np.uint32) >> 16).astype(np.uint16)


T = np.arange(64)
COLUMNS = np.arange(160, dtype=F).reshape(5, 32)
#: Number of each thread's partner, which it reads from shared memory after a barrier; some threads add 100.
SWAPPED = np.r_[T[32:], T[:32] + 100]
PAIRS = np.where(T % 2, T ^ 33, (T ^ 33) + 100)
A, B = np.array([-1, 1, -2, 2, np.nan], F), np.array([1, -1, -1, 1, 1], F)
#: Kernel of cases.cu, blocks, threads, arguments, arguments afterwards by index, and findings.
CASES: list[tuple[str, int, int, list[Any], dict[int, Any], list[str]]] = [
    ("wait_for_next", 2, 64, [_zeros(1), _zeros(1)], {1: [1]}, []),
    ("wait_for_next", 5000, 64, [_zeros(1), _zeros(1)], {1: [1]}, []),  # in several chunks
    # each block appends a digit to y when the turn counter, argument 0, reaches it; with INT(1) the last block begins
    ("in_turn", 3, 64, [_zeros(1), _zeros(64, dtype=F), INT(0)], {1: [123] * 64}, []),
    ("in_turn", 3, 64, [_zeros(1), _zeros(64, dtype=F), INT(1)], {1: [123] * 64}, []),
    ("in_turn", 40, 32, [_zeros(1), _zeros(32, dtype=F), INT(1)], {0: [40]}, []),  # blocks diverge
    ("polled_together", 3, 64, [_zeros(1), _zeros(64, dtype=F)], {1: [123] * 64}, []),
    ("halves", 2, 64, [_zeros(64, dtype=F)], {0: SWAPPED}, ["divergent-barrier"]),  # __syncthreads() twice
    ("named", 1, 64, [_zeros(64, dtype=F)], {0: SWAPPED}, []),
    ("unaligned", 1, 64, [_zeros(64, dtype=F)], {0: PAIRS}, []),
    ("leaves_early", 1, 64, [_zeros(64), INT(3)], {0: [-1] * 32 + [4] * 32}, []),  # turns add 0, 1, 3
    ("pipelined_sum", 1, 32, [COLUMNS, _zeros(32, dtype=F), INT(5)], {1: COLUMNS.sum(axis=0)}, []),
    ("pipelined_sum", 1, 32, [COLUMNS, _zeros(32, dtype=F), INT(1)], {1: COLUMNS[0]}, ["unwritten-read"]),  # unused
    ("greater", 1, 5, [_zeros(5), A, B], {0: A > B}, []),
    # floor, ceil, rint
    ("rounded", 1, 1, [_zeros(3, dtype=np.uint16), _bits(-1.5, 1.5, 2.5)], {0: _bits(-2, 2, 2)}, []),
    ("flushed", 1, 1, [np.ones(1, np.float16), np.array([6e-8, 6e-8], np.float16)], {0: [0]}, []),  # subnormal
    ("on_stack", 1, 32, [_zeros(32)], {0: [t * (t + 1) // 2 for t in range(32)]}, []),
    # each of 32 lanes adds 1 to 4, and 5 and 6
    ("wide_sums", 1, 32, [_zeros(4, dtype=F), _zeros(2, dtype=F)], {0: 32 * T[1:5], 1: 32 * T[5:7]}, []),
    ("wide_swap", 1, 3, [np.array([1, 2]), _zeros(3, dtype=np.int64)], {0: [3, 4], 1: [1, 3, 3]}, []),  # thread 0 swaps
    ("two_spaces", 1, 64, [_zeros(64), np.arange(64, dtype=INT)],
     {0: np.where(T % 2, T ^ 2, 1000 + (T ^ 2))}, []),
    ("histogram", 4, 64, [np.arange(256, dtype=INT), _zeros(16)], {}, ["global-race"]),
    ("neighbours", 4, 64, [np.arange(257, dtype=F)], {}, ["global-race"]),
    ("parted_barriers", 2, 64, [_zeros(1)], {0: [2]}, []),  # block 1 leaves before
    ("behind_a_barrier", 2, 1, [_zeros(2)], {}, ["global-race"]),  # it does not order blocks
    ("read_twice", 1, 32, [_zeros(32)], {}, ["unwritten-read"]),  # one finding
    ("pieces_of_the_heap", 2, 32, [np.ones(32, INT)], {0: _zeros(32)}, []),  # addresses modulo 16
    ("warps_leave", 1, 64, [np.ones(128, INT), INT(8)], {0: [1] * 64 + [8] * 32 + [2 * 8] * 32}, []),
    ("column_sums", 1, 32, [_zeros(32, dtype=F), COLUMNS, INT(5), INT(32)], {0: COLUMNS.sum(axis=0)}, []),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "blocks", "threads", "arguments", "expected", "codes"), CASES)
def test_kernels_end_with_right_values(
    kernel: str, blocks: int, threads: int, arguments: list[Any], expected: dict[int, Any], codes: list[str]
) -> None:
    copies = [argument.copy() for argument in arguments]
    counters = sources.execute("cases", kernel, copies, threads=threads, blocks=blocks, distinct=True)
    for place, values in expected.items():
        np.testing.assert_array_equal(copies[place], values)
    assert [finding.code for finding in counters.findings] == codes


def test_deadlock_names_threads_and_line() -> None:
    with pytest.raises(errors.NoProgressError, match=r"cases.cu:\d+ .*32 threads wait at .*, 32 threads wait at the"):
        sources.execute("cases", "nobody_comes", [_zeros(1)], threads=64)


@pytest.mark.parametrize(("races", "codes"), [("report", []), ("strict", ["global-race"])])
def test_equal_stores_race_only_if_strict(races: str, codes: list[str]) -> None:
    """Two blocks store 7 in one element."""
    options: dict[str, Any] = {"threads": 1, "blocks": 2, "races": races, "distinct": True}
    counters = sources.execute("cases", "one_by_one", [_zeros(1), INT(1)], **options)
    assert [finding.code for finding in counters.findings] == codes


@pytest.mark.parametrize(("matrix", "per_request"), [
    (np.zeros((64, 32), F), 4), (np.asfortranarray(np.zeros((32, 64), F)).T, 4), (np.zeros((64, 64), F)[:, 32:], 4),
    (np.zeros((64, 65), F)[:, 1:33], 5),  # 128 bytes from byte 4 of the array on
])  # fmt: skip
def test_views_begin_at_their_first_element(matrix: Any, per_request: int) -> None:
    matrix[0, 0] = 7
    out: Any = _zeros(32, dtype=F)
    counters = sources.execute("cases", "column_sums", [out, matrix, INT(1), INT(32)])
    assert out[0] == 7
    assert counters.loads.sectors_per_request == per_request


#: Step, where thread t reads element step * t of its local array, and sectors per request (H200, driver 580.159.04).
@pytest.mark.parametrize(("step", "sectors"), [(0, 4), (1, 32), (2, 32), (16, 16), (32, 8)])
def test_local_memory_interleaves_lanes(step: int, sectors: int) -> None:
    arguments: list[Any] = [np.arange(128, dtype=INT), INT(step)]
    totals = sources.execute("cases", "local_array", arguments).totals()
    assert arguments[0][:32].tolist() == [step * t & 63 for t in range(32)]
    assert (totals["local_load_requests"], totals["local_load_sectors"]) == (1, sectors)
    assert (totals["local_store_requests"], totals["local_store_sectors"]) == (64, 64 * 4)


def test_race_in_a_loop_is_one_finding() -> None:
    counters = sources.execute("cases", "scan", [_zeros(256), np.ones(256, INT)], threads=256)
    (finding,) = counters.findings
    lines = (sources.FOLDER / "cases.cu").read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if "without a barrier" in text)
    assert finding.source.line == line
    # the other access, the load of s[t - d], is on the line before; nvcc may move it
    assert f"cases.cu:{line}" in finding.message or f"cases.cu:{line - 1}" in finding.message


SHAPE = np.zeros(1, np.dtype([("columns", "i4"), ("pad", "i2"), ("scale", "f4")], align=True))
SHAPE["columns"], SHAPE["pad"], SHAPE["scale"] = 13, 100, 0.5
WEIGHTS = [[w * (t + k) for k, w in enumerate([1.0, -2.0, 0.5, 4.0, 8.0])] for t in range(40)]
FEW = np.arange(32, dtype=F)
#: Kernel of features.cu, grid, block, arguments behind the output, and the output.
FEATURES: list[tuple[str, tuple[int, int, int], tuple[int, int, int], list[Any], list[Any]]] = [
    # i % columns * scale + bias + pad
    ("by_value", (2, 3, 2), (4, 3, 2), [SHAPE[0], np.int8(-3)], [(i % 13) * 0.5 - 3 + 100 for i in range(288)]),
    # a table with initial values, copied to local memory for an index at run time
    ("tables", (1, 1, 1), (40, 1, 1), [_zeros(1)], [v[t % 5] + v[(t + 2) % 5] for t, v in enumerate(WEIGHTS)]),
    # five loads and a sixth: all of them, the five, and the sixth
    ("hinted", (1, 1, 1), (32, 1, 1), [FEW], [*FEW * 6, *FEW * 5, *FEW]),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "grid", "block", "arguments", "expected"), FEATURES)
def test_features_give_right_values(entry: str, grid: Any, block: Any, arguments: Any, expected: list[Any]) -> None:
    out = np.zeros(len(expected), F)
    assert execute_kernel(sources.ptx("features"), entry, grid, block, [out, *arguments]).totals()["store_requests"]
    assert out.tolist() == expected


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


def test_hints_and_fences_are_no_accesses() -> None:
    body = """
        ld.param.u64 %rd1, [p0]; prefetch.global.L2 [%rd1]; prefetchu.L1 [%rd1]; fence.acq_rel.gpu; membar.gl;
        applypriority.global.L2::evict_normal [%rd1], 128; discard.global.L2 [%rd1], 128;
    """
    assert not execute_snippet(module(body, 1), [np.zeros(32, np.uint32)]).accesses
