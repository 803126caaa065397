"""Barriers in shared memory, bulk copies, clusters and their launch control, cooperative grids, and warpgroups."""

from typing import Any

import numpy as np
import pytest

import ptxcount
from ptxcount.engine.execute import execute_kernel
from ptxcount.engine.launch_limits import count_resident_blocks
from ptxcount.util.errors import (
    KernelFaultError,
    LaunchError,
    MisalignedError,
    OutOfBoundsError,
    UninitializedReadError,
)
from tests.ptxcount import sources
from tests.ptxcount.snippets import execute_snippet, module

RNG = np.random.default_rng(3)
BULK = "cp.async.bulk.shared::cluster.global"


@pytest.mark.parametrize("rounds", [1, 2, 7])
def test_ring_of_buffers_has_no_race(rounds: int) -> None:
    """A lane adds up the values that the opposite lane of another warp passes in each round."""
    values, out = RNG.integers(0, 99, (3, rounds, 32)).astype(np.int32), np.zeros((3, 32), np.int32)
    counters = sources.execute("clusters", "ring", [out, values, np.int32(rounds)], threads=64, blocks=3)
    np.testing.assert_array_equal(out, values.sum(axis=1)[:, ::-1])
    assert not counters.findings


def test_launch_without_clusters_has_rank_0() -> None:
    """A block adds 1 to its own word, which holds 7, by the cluster address of rank 0. Rank 1 has no block."""
    body = """ld.param.u64 %rd1, [p0]; mov.u32 %r1, 7; st.shared.u32 [b+4], %r1; mov.u32 %r2, b;
        mapa.shared::cluster.u32 %r3, %r2, RANK; atom.shared::cluster.add.u32 %r4, [%r3+4], 1;
        getctarank.shared::cluster.u32 %r5, %r3; add.u32 %r5, %r5, %r4; st.global.u32 [%rd1], %r5;"""
    text, out = module(body, 1, ".shared .b32 b[2];"), np.zeros(1, np.uint32)
    totals = execute_snippet(text.replace("RANK", "0"), [out], threads=1).totals()
    assert out[0] == 7 + 0  # the old value plus the rank
    assert (totals["shared_atomic_requests"], totals.get("cluster_atomic_requests", 0)) == (1, 0)
    with pytest.raises(OutOfBoundsError):
        execute_snippet(text.replace("RANK", "1"), [out], threads=1)


#: Accesses to the block of rank 2: %r1 is the address of an mbarrier of this block, and s that of one of the own block.
OUTSIDE = {
    "store": "st.shared::cluster.u32 [%r1], 5;",
    "load": "ld.shared::cluster.u32 %r2, [%r1];",
    "arrival": "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];",
    "bulk copy": f"{BULK}.mbarrier::complete_tx::bytes [%r1+16], [%rd1], 16, [s];",
    "mbarrier of a bulk copy": f"{BULK}.mbarrier::complete_tx::bytes [s+16], [%rd1], 16, [%r1];",
    "multicast": f"{BULK}.mbarrier::complete_tx::bytes.multicast::cluster [s+16], [%rd1], 16, [s], %rs1;",
}


@pytest.mark.parametrize("code", OUTSIDE.values(), ids=OUTSIDE)
def test_block_outside_of_the_cluster_is_out_of_bounds(code: str) -> None:
    """The grid has two clusters of two blocks. Rank 2 of the first cluster is no block of the second cluster."""
    body = f"""ld.param.u64 %rd1, [p0]; mov.u32 %r1, s; mapa.shared::cluster.u32 %r1, %r1, 2; mov.b16 %rs1, 0b100;
        mbarrier.init.shared.b64 [s], 1; {code}"""
    text = module(body, 1, ".shared .align 16 .b8 s[32]; .reg .b16 %rs<2>;", target="9.0 sm_90")
    with pytest.raises(OutOfBoundsError, match="of the block with rank 2; the ranks of the cluster are 0 to 1"):
        execute_snippet(text, [np.zeros(4, np.uint32)], threads=1, blocks=4, cluster=(2, 1, 1))


def test_grid_counts_clusters() -> None:
    """Each block stores 100 times its rank, 10 times its cluster's index, and the number of clusters along x.

    With ``.blocksareclusters``, a grid of 3 x 2 clusters has 6 x 2 blocks.
    """
    body = """ld.param.u64 %rd1, [p0]; mov.u32 %r1, %nctaid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y;
        mad.lo.u32 %r4, %r3, %r1, %r2; mad.wide.u32 %rd1, %r4, 4, %rd1;
        mov.u32 %r5, %clusterid.x; mov.u32 %r6, %nclusterid.x; mad.lo.u32 %r5, %r5, 10, %r6;
        mov.u32 %r7, %cluster_ctarank; mad.lo.u32 %r5, %r7, 100, %r5; st.global.u32 [%rd1], %r5;"""
    directives = ")\n.blocksareclusters\n.reqntid 1\n.reqnctapercluster 2\n{"
    text, out = module(body, 1, target="9.0 sm_90").replace(")\n{", directives, 1), np.zeros((2, 6), np.uint32)
    counters = ptxcount.count(text, "snippet", (3, 2), 1, [out])
    block = np.arange(6)
    np.testing.assert_array_equal(out, np.tile(100 * (block % 2) + 10 * (block // 2) + 3, (2, 1)))
    assert counters.totals()["store_requests"] == 6 * 2


def test_bulk_copies_count_apart() -> None:
    """The kernel doubles a row in shared memory between two bulk copies."""
    values, out = RNG.normal(size=(5, 1024)).astype(np.float32), np.zeros((5, 1024), np.float32)
    totals = sources.execute("clusters", "rows", [out, values], threads=128, blocks=5).totals()
    np.testing.assert_array_equal(out, values * 2)
    assert (totals["bulk_load_requests"], totals["bulk_load_sectors"], totals["load_requests"]) == (5, 5 * 128, 0)
    assert (totals["bulk_store_sectors"], totals["bulk_store_useful_bytes"]) == (5 * 128, 5 * 4096)


def test_blocks_access_each_others_memory() -> None:
    """Each block stores the next block's array, reversed. All threads of a cluster count in its first block."""
    out, counts = np.zeros((8, 64), np.int32), np.zeros(2, np.int32)
    sources.execute("clusters", "neighbours", [out, counts], threads=64, blocks=8)
    block = np.arange(8)
    following = block // 4 * 4 + (block + 1) % 4  # in a cluster of four
    np.testing.assert_array_equal(out, following[:, None] * 100 + 63 - np.arange(64))
    assert counts.tolist() == [4 * 64] * 2


def test_cluster_must_divide_the_grid() -> None:
    out, counts = np.zeros((6, 64), np.int32), np.zeros(2, np.int32)
    message = r"cluster is \(4, 1, 1\); it must divide the grid \(6, 1, 1\), and have at most 16 blocks"
    with pytest.raises(LaunchError, match=message):
        sources.execute("clusters", "neighbours", [out, counts], threads=64, blocks=6)


#: Operations on an mbarrier of two arrivals, with operands -> parity of its phase after each (PTX ISA, "mbarrier").
PHASES = {
    "arrive arrive arrive arrive": [0, 1, 1, 0],
    "arrive,2 arrive": [1, 1],
    "arrive_drop arrive arrive arrive": [0, 1, 0, 1],  # from the second phase on, one arrival is enough
    "expect_tx,16 arrive arrive complete_tx,8 complete_tx,8": [0, 0, 0, 0, 1],
    "arrive.expect_tx,16 arrive complete_tx,16 arrive": [0, 0, 1, 1],
    "arrive_drop.expect_tx,16 arrive complete_tx,16 arrive": [0, 0, 1, 0],
}


@pytest.mark.parametrize("operations", PHASES)
def test_phase_ends_after_arrivals_and_bytes(operations: str) -> None:
    body = "ld.param.u64 %rd1, [p0]; mbarrier.init.shared.b64 [b], 2;"
    for place, operation in enumerate(operations.split()):
        name, *operand = operation.split(",")
        state = ["%rd2"] if name.startswith("arrive") else []
        body += f"mbarrier.{name}.shared.b64 {', '.join([*state, '[b]', *operand])};"
        body += "mbarrier.test_wait.parity.shared.b64 %p1, [b], 0; selp.u32 %r1, 1, 0, %p1;"
        body += f"st.global.u32 [%rd1+{4 * place}], %r1;"
    out = np.zeros(len(operations.split()), np.uint32)
    execute_snippet(module(body, 1, ".shared .b64 b;"), [out], threads=1)
    assert out.tolist() == PHASES[operations]


def test_st_async_reaches_another_row() -> None:
    """In a cluster of 2 x 2 blocks, a block gets the words of the diagonal one: 1,000 times its rank, plus the lane."""
    out = np.zeros((4, 4, 32), np.int32)
    execute_kernel(sources.ptx("clusters"), "sent", (4, 4, 1), (32, 1, 1), [out])
    y, x = np.indices((4, 4))
    ranks = x % 2 + 2 * (y % 2)
    diagonal_ranks = 3 - ranks
    np.testing.assert_array_equal(out, diagonal_ranks[..., None] * 1000 + np.arange(32))


@pytest.mark.parametrize(
    ("entry", "more"), [("warpgroup", [np.int32(0)]), ("warpgroup", [np.int32(1)]), ("warpgroup_turned", [])]
)
def test_warpgroup_products_are_exact(entry: str, more: list[Any]) -> None:
    """`warpgroup` takes a flag for the swizzle; `warpgroup_turned` has column-major factors and negates the product."""
    a, b = (RNG.integers(-8, 9, (rows, 16)).astype(np.float16) for rows in (64, 32))
    out, expected = np.zeros((64, 32), np.float32), a.astype(np.float32) @ b.T.astype(np.float32)
    if not more:
        a, b, expected = a.T.copy(), b.T.copy(), -expected
    text = sources.ptx("warpgroups", arch="sm_90a")
    execute_kernel(text, entry, (1, 1, 1), (128, 1, 1), [out, a, b, *more])
    np.testing.assert_array_equal(out, expected)


def test_cooperative_grid_meets_at_a_barrier() -> None:
    """In round 3, a thread writes 3 times its index. After the barrier, it reads the number of the opposite thread."""
    out, between = np.zeros(20 * 96, np.int32), np.zeros(20 * 96, np.int32)
    sources.execute("grids", "reversed", [out, between], threads=96, blocks=20)
    np.testing.assert_array_equal(out, np.arange(20 * 96)[::-1] * 3)


def test_barrier_of_too_large_grid_is_refused() -> None:
    """With more blocks than 132 multiprocessors hold, here two each, ``%envreg1`` is 0: a barrier of the grid traps."""
    text = module("mov.b32 %r1, %envreg1; setp.eq.u32 %p1, %r1, 0; GUARD trap;", 0)
    for guard, blocks in (("@%p1", 132), ("@!%p1", 2 * 132 + 1)):  # traps if %envreg1 is 0; traps if it is not 0
        execute_snippet(text.replace("GUARD", guard), [], threads=1024, blocks=blocks)
    with pytest.raises(LaunchError, match=r"has 265 blocks; .* at most 264 blocks of 1024 threads: .* its own __trap"):
        execute_snippet(text.replace("GUARD", "@%p1"), [], threads=1024, blocks=2 * 132 + 1)


@pytest.mark.parametrize(("threads", "shared_bytes", "blocks"), [
    (1024, 0, 64 // 32), (96, 0, 64 // 3), (32, 0, 32), (32, 100 << 10, 228 // (100 + 1)),
])  # fmt: skip
def test_multiprocessors_hold_blocks(threads: int, shared_bytes: int, blocks: int) -> None:
    """Each holds 64 warps, 32 blocks and 228 KiB of shared memory, of which a block reserves 1 KiB."""
    assert count_resident_blocks(threads, shared_bytes) == 132 * blocks


def test_tiles_of_several_warps_have_no_race() -> None:
    """Each tile of 128 threads has its sum, plus 1,000 times its sixth value, plus 1,000,000 times its rank."""
    values, out = RNG.integers(0, 9, 256).astype(np.int32), np.zeros(256, np.int32)
    counters = sources.execute("grids", "large_tiles", [out, values], threads=256)
    tiles = values.reshape(2, 128)
    expected = tiles.sum(axis=1) + 1000 * tiles[:, 5] + 1000000 * np.arange(2)
    np.testing.assert_array_equal(out, expected.repeat(128))
    assert not counters.findings


def test_invalid_map_and_barrier_are_refused() -> None:
    out = np.zeros((32, 32), np.float32)
    zeros = [np.void(bytes(128))] * 3  # instead of tensor maps
    with pytest.raises(LaunchError, match=r"the operand 0x0 is not a tensor map; pass a ptxcount\.TensorMap"):
        sources.execute("clusters", "boxes", [*zeros, out, np.int32(0), np.int32(0)], threads=128)
    text = sources.ptx("clusters").replace("mbarrier.init.shared::cta.b64", "// ")  # a comment
    with pytest.raises(UninitializedReadError):
        execute_kernel(text, "rows", (1, 1, 1), (32, 1, 1), [out, out], unwritten="error")


_REQUEST = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
#: A block adds 1 to its row, then requests the work of further blocks until a request fails.
_WORK = """
ld.param.u64 %rd1, [p0]; mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r0, 0;
@!%p1 mbarrier.init.shared.b64 [bar], 1;
bar.sync 0; {meet}
WORK: mad.wide.u32 %rd2, %r1, 128, %rd1; mad.wide.u32 %rd2, %r0, 4, %rd2; red.global.add.u32 [%rd2], 1;
@%p1 bra WAIT;
{request}.b128 [response], [bar];
mbarrier.arrive.expect_tx.shared.b64 _, [bar], {expected};
WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra WAIT;
ld.shared.b128 %q0, [response];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q0;
@%p3 clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {{%r1, %r2, %r3, _}}, %q0;
clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r4, %q0;
@%p3 bra WORK;
{meet}
"""
_RESPONSE = ".reg .b128 %q0; .shared .align 16 .b8 response[16]; .shared .align 8 .b64 bar;"
_MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"


@pytest.mark.parametrize(("multicast", "cluster"), [("", 1), ("", 2), (".multicast::cluster::all", 2)])
def test_failed_requests_are_a_finding(multicast: str, cluster: int) -> None:
    body = _WORK.format(request=_REQUEST + multicast, expected=16, meet=_MEET if cluster > 1 else "")
    if multicast:  # the first block asks for all, the others only wait
        ask = body.index(_REQUEST)
        body = body[:ask] + "mov.u32 %r5, %cluster_ctarank; setp.eq.u32 %p4, %r5, 0;\n@%p4 " + body[ask:]
    out = np.zeros((4, 32), np.uint32)
    counters = ptxcount.count(module(body, 1, _RESPONSE), None, 4, 32, [out], cluster=cluster)
    assert (out == 1).all()
    times = 4 // cluster if multicast else 4  # the first request of each cluster, or of each block
    assert [(finding.code, finding.times) for finding in counters.findings] == [("failed-cancel", times)]


@pytest.mark.parametrize(("base", "offset", "error", "message"), [
    ("response", 8, MisalignedError, "a response at shared address 8; it must be a multiple of 16"),
    ("300000", 0, OutOfBoundsError, "16 bytes at shared address 300000; the block has 8"),  # without `response`
])  # fmt: skip
def test_misplaced_response_is_refused(base: str, offset: int, error: type[KernelFaultError], message: str) -> None:
    body = f"mbarrier.init.shared.b64 [bar], 1; mov.u32 %r1, {base}; {_REQUEST}.b128 [%r1+{offset}], [bar];"
    with pytest.raises(error, match=message):
        ptxcount.count(module(body, 0, _RESPONSE), None, 1, 1, [])
