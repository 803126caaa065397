"""``red.async`` and ``st.bulk``, and small forms of barriers, copies and atomics that CCCL's ``cuda/ptx`` lists."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest

import ptxcount
from ptxcount.util.errors import LaunchError, MisalignedError
from tests.ptxcount.small_floats import ml_dtypes
from tests.ptxcount.snippets import list_registers, module

_SHARED = ".shared .align 16 .b8 cells[256]; .shared .align 8 .b64 bar; .reg .b16 %h<9>;"
#: Number that each lane has in its 8 bytes at first.
_INITIAL = 12
#: Code that stores it. %r1 is the address of the first lane's bytes, %r2 of the own ones, and %r5 of an mbarrier.
_START = f"""
setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared.b64 [bar], 1; mov.u32 %r5, bar;
mov.u32 %r1, cells; mad.lo.u32 %r2, %r0, 8, %r1; mov.u64 %rd3, {_INITIAL}; st.shared.u64 [%r2], %rd3; bar.sync 0;
"""
_END = """
bar.sync 0; ld.shared.u64 %rd2, [%r2];
ld.param.u64 %rd1, [p0]; mad.wide.u32 %rd1, %r0, 8, %rd1; st.global.u64 [%rd1], %rd2;
"""
_RED_ASYNC = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes"


def _count(body: str, cluster: int | None = 1) -> tuple[Any, ptxcount.LaunchCounters]:
    """Run code between `_START` and `_END`; return the 8 bytes of each lane as a number."""
    out = np.zeros(32, np.uint64)
    return out, ptxcount.count(module(_START + body + _END, 1, _SHARED), None, 1, 32, [out], cluster=cluster)


#: Operation -> function of the old value and a lane's operand.
REDUCTIONS: dict[str, Callable[[int, int], int]] = {
    "inc.u32": lambda old, n: 0 if old >= n else old + 1,
    "dec.u32": lambda old, n: n if old == 0 or old > n else old - 1,
    "min.u32": min, "max.s32": max, "add.s32": lambda old, n: old + n, "and.b32": lambda old, n: old & n,
    "xor.b32": lambda old, n: old ^ n, "add.u64": lambda old, n: old + n,
}  # fmt: skip


@pytest.mark.parametrize("operation", REDUCTIONS)
def test_red_async_reduces_all_lanes(operation: str) -> None:
    width = int(operation[-2:]) // 8
    operand = "%rd4" if width == 8 else "%r0"
    out, _ = _count(
        f"cvt.u64.u32 %rd4, %r0;\n@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], {32 * width};\n"
        f"{_RED_ASYNC}.{operation} [%r1], {operand}, [%r5];\n"
        "WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;"
    )
    assert out.tolist() == [reduce(REDUCTIONS[operation], range(32), _INITIAL), *[_INITIAL] * 31]


@pytest.mark.parametrize("operation", REDUCTIONS)
def test_red_async_costs_as_much_as_red(operation: str) -> None:
    """Lanes of ``red.async`` are never aggregated by ptxas: on one address, they cost a wavefront each.

    With 64 bits, they cost three each.
    """
    operand = "%rd3" if operation.endswith("64") else "%r0"
    _, asynchronous = _count(f"{_RED_ASYNC}.{operation} [%r2], {operand}, [%r5];")
    _, synchronous = _count(f"red.shared.{operation} [%r2], {operand};")
    assert asynchronous.shared_atomics.wavefronts == synchronous.shared_atomics.wavefronts > 0
    _, one_address = _count(f"{_RED_ASYNC}.{operation} [%r1], {operand}, [%r5];")
    assert one_address.shared_atomics.wavefronts == 32 * (3 if operation.endswith("64") else 1)


@pytest.mark.parametrize("form", [f"{_RED_ASYNC}.inc.u32", "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32"])
def test_async_stores_need_clusters(form: str) -> None:
    """Without clusters, an H200 reports an illegal instruction."""
    with pytest.raises(LaunchError, match=r"async needs a launch with clusters; set cluster=1"):
        _count(f"{form} [%r1], %r0, [%r5];", None)


@pytest.mark.parametrize("form", ["st.bulk.weak.shared::cta [%r1+16], 64, 0;", "st.bulk [%rd5], %rd6, 0;"])
def test_st_bulk_stores_zeros(form: str) -> None:
    out, _ = _count(
        f"cvt.u64.u32 %rd5, %r1; cvta.shared.u64 %rd5, %rd5; add.u64 %rd5, %rd5, 16; mov.u64 %rd6, 64; {form}"
    )
    expected = [_INITIAL] * 32
    expected[2:10] = [0] * 8  # 64 bytes from byte 16 on, as numbers of 8 bytes
    assert out.tolist() == expected


def test_misaligned_st_bulk_is_refused() -> None:
    with pytest.raises(MisalignedError, match="64 bytes at shared address 4; both must be multiples of 8"):
        _count("st.bulk.shared::cta [%r1+4], 64, 0;")


#: Code -> the numbers of the first two lanes after it. The array has sevens, which the last one copies.
FORMS = {
    "@%p1 mbarrier.arrive.shared.b64 %rd4, [bar]; @%p1 mbarrier.pending_count.b64 %r4, %rd4;"
    "@%p1 st.shared.u32 [%r1], %r4;": [1, _INITIAL],  # one arrival was pending before this one
    "mov.u32 %r4, %clock_hi; cvt.u64.u32 %rd4, %r4; st.shared.u64 [%r2], %rd4;": [0, 0],  # the clock is below 2**32
    "mov.u32 %r4, %globaltimer_hi; mov.u64 %rd4, %current_graph_exec; st.shared.u64 [%r2], %rd4;": [0, 0],  # no graph
    "ld.param.u64 %rd7, [p0]; setp.lt.u32 %p3, %r0, 1; cp.async.ca.shared.global [%r2], [%rd7], 8, %p3;"
    "cp.async.mbarrier.arrive.b64 [%r5]; cp.async.wait_all;": [0, 7],  # lane 0 ignores the source
}  # fmt: skip


@pytest.mark.parametrize("code", FORMS)
def test_small_forms_give_expected_words(code: str) -> None:
    out = np.full(32, 7, np.uint64)
    ptxcount.count(module(_START + code + _END, 1, _SHARED), None, 1, 32, [out], races="off")
    assert out[:2].tolist() == FORMS[code]


@pytest.mark.parametrize(("kind", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
@pytest.mark.parametrize("name", ["min", "max"])
def test_red_of_vectors_takes_the_extreme(name: str, kind: str, dtype: Any) -> None:
    """Each lane has eight halves, in eight or four registers. All lanes update the same eight halves."""
    values = np.random.default_rng(4).normal(size=(32, 8)).astype(dtype)
    expected = getattr(values.astype(np.float32), name)(axis=0).astype(dtype)
    for vector, count in ((f"v8.{kind}", 8), (f"v4.{kind}x2", 4)):
        bits = 16 if count == 8 else 32
        body = (
            "ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; mad.wide.u32 %rd1, %r0, 16, %rd1;"
            + "".join(f"ld.global.b{bits} %x{k}, [%rd1+{k * bits // 8}];" for k in range(count))
            + f"red.global.{vector}.{name}.noftz [%rd2], {list_registers('%x', count)};"
        )
        out = values[0].copy()
        text = module(body, 2, f".reg .b{bits} %x<8>;")
        ptxcount.count(text, None, 1, 32, [values.view(np.uint16), words := out.view(np.uint16)])
        assert words.tolist() == expected.view(np.uint16).tolist()


#: Copies to, and reads of, a thread's word in two parts of shared memory.
_COPY, _COPY_FAR = (f"cp.async.ca.shared.global [%r6+{offset}], [%rd1], 4;" for offset in (0, 512))
_READ, _READ_FAR = (f"ld.shared.u32 %r7, [%r6+{offset}];" for offset in (0, 512))
_COMMIT = "cp.async.commit_group;"
_TWO_GROUPS = f"{_COPY} {_COMMIT} {_COPY_FAR} {_COMMIT}"
_IS_BLOCK_1 = "mov.u32 %r4, %ctaid.x; setp.eq.u32 %p1, %r4, 1;"
#: Code that reads shared memory which ``cp.async`` writes -> the first of three blocks that reads too early.
WAITS = {
    f"{_COPY} {_READ}": 0,
    f"{_COPY} {_COMMIT} bar.sync 0; {_READ}": 0,
    f"{_COPY} cp.async.wait_all; {_READ}": None,
    f"{_COPY} cp.async.wait_group 0; {_READ}": 0,  # no group has the copy
    f"{_TWO_GROUPS} cp.async.wait_group 1; {_READ}": None,
    f"{_TWO_GROUPS} cp.async.wait_group 1; {_READ_FAR}": 0,
    f"{_TWO_GROUPS} cp.async.wait_group 0; {_READ_FAR}": None,
    f"{_COPY} cp.async.mbarrier.arrive.shared.b64 [bar]; {_READ}": None,  # counts as a wait
    f"{_COPY} {_IS_BLOCK_1} @%p1 cp.async.wait_all; {_READ}": 0,
    f"{_IS_BLOCK_1} @%p1 {_COPY} {_READ}": 0,  # block 0 writes nothing
    f"{_IS_BLOCK_1} st.shared.u32 [%r6], 1; @%p1 {_COPY} {_READ}": 1,
    f"{_IS_BLOCK_1} @%p1 bra A; {_COPY} cp.async.wait_all; bra B; A: {_COPY} B: {_READ}": 1,
}


@pytest.mark.parametrize(("code", "block"), WAITS.items())
def test_early_read_of_a_copy_is_unwritten(code: str, block: int | None) -> None:
    """Each of 64 threads in three blocks copies to, and reads, its own words. ``%p1`` is true in block 1."""
    start = "ld.param.u64 %rd1, [p0]; mov.u32 %r5, cells; mad.lo.u32 %r6, %r0, 4, %r5; "
    start += "setp.eq.u32 %p2, %r0, 0; @%p2 mbarrier.init.shared.b64 [bar], 64; bar.sync 0; "
    shared = ".shared .align 16 .b8 cells[1024]; .shared .align 8 .b64 bar;"
    counters = ptxcount.count(module(start + code, 1, shared), None, 3, 64, [np.ones(64, np.uint32)])
    assert len(counters.findings) == (block is not None)
    for finding in counters.findings:
        assert finding.code == "unwritten-read"
        assert f"block ({block}, 0, 0), thread (0, 0, 0)" in finding.message
        assert finding.message.endswith("cp.async was not waited for")
