"""Bulk copies and tiles: splitting at 128 bytes of shared memory, copies of a warp, conditions; and advice."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ptxcount
from ptxcount.report.listing import describe_cost
from ptxcount.util.errors import LaunchError, UnsupportedInstructionError
from tests.ptxcount import sources, transfers
from tests.ptxcount.chip_counters import ChipLaunch
from tests.ptxcount.snippets import execute_snippet, module
from tests.ptxcount.transfers import (
    PLAIN_TILE,
    WARP_COPY,
    BulkCopy,
    Multicast,
    Tile,
    make_copy,
    make_multicast,
    make_multicast_tile,
    make_tile,
)

TILE = ".shared .align 1024 .b8 s[40000]; .shared .align 8 .b64 b;"
_PLACES = "ld.param.u64 %rd1, [p0]; add.u64 %rd1, %rd1, {to}; mov.u32 %r1, s; add.u32 %r1, %r1, {tile};"
STORE = _PLACES + " cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], {size};"


def _store(size: int, to: int, tile: int, threads: int = 1) -> ptxcount.LaunchCounters:
    """Count a bulk copy of `size` bytes from offset `tile` of shared memory to offset `to` of an array."""
    text = module(STORE.format(size=size, to=to, tile=tile), 1, TILE)
    return execute_snippet(text, [np.zeros(1 << 16, np.uint8)], threads=threads, unwritten="off")


def _count_sectors(size: int, to: int, tile: int) -> int:
    """Count sectors of the array byte by byte, separately for each 128-byte segment of shared memory."""
    return len({((tile + byte) // 128, (to + byte) // 32) for byte in range(size)})


@pytest.mark.parametrize("size", [0, 16, 112, 128, 1024])
def test_copies_split_at_128_bytes(size: int) -> None:
    for to in range(0, 128, 16):
        for tile in range(0, 128, 16):
            assert _store(size, to, tile).totals()["bulk_store_sectors"] == _count_sectors(size, to, tile)


#: Offsets in array and shared memory of a copy of 1,024 bytes, its sectors, and the advice. Sums are over its parts in
#: 128-byte segments of shared memory.
ADVICE = [
    (16, 0, 8 * 5, "; 33.00 instead of 40.00 if the shared buffer is moved by 16 bytes"),
    (16, 16, 4 + 7 * 4 + 1, ""), (0, 0, 8 * 4, ""),
    (0, 16, 4 + 7 * 5 + 1, "; 32.00 instead of 40.00 if the shared buffer is moved by 16 bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("to", "tile", "sectors", "advice"), ADVICE)
def test_advice_names_a_better_offset_or_none(to: int, tile: int, sectors: int, advice: str) -> None:
    (access,) = _store(1024, to, tile).accesses
    assert access.sectors == sectors
    assert describe_cost(access) == f"bulk store: {sectors}.00 sectors per request{advice}"


def test_each_warp_stores() -> None:
    assert _store(1024, 0, 0, threads=64).totals()["bulk_store_requests"] == 2


#: Launches of 32 lanes with equal operands, or with two addresses; requests and sectors. Machine code of nvcc 13.0.88
#: for sm_90 serves loads and reductions lane by lane, and stores of equal lanes together. A copy of 1,024 bytes has 32
#: sectors, the tile of 32 rows of 64 bytes 64 sectors.
WARPS = [
    (make_copy("bulk_load", WARP_COPY), 32, 32 * 32), (make_copy("bulk_reduce", WARP_COPY), 32, 32 * 32),
    (make_copy("bulk_store", WARP_COPY), 1, 32), (make_copy("bulk_store", BulkCopy(lanes=32, addresses=2)), 2, 2 * 32),
    (make_tile("tile_load", PLAIN_TILE, lanes=32), 32, 32 * 64), (make_tile("tile_store", PLAIN_TILE, lanes=32), 1, 64),
    (make_tile("tile_reduce", PLAIN_TILE, lanes=32), 32, 32 * 64), (make_copy("shared_copy", WARP_COPY), 0, 0),
]  # fmt: skip


@pytest.mark.parametrize(("launch", "requests", "sectors"), WARPS, ids=[launch.name for launch, *_ in WARPS])
def test_equal_lanes_share_no_load_or_reduction(launch: ChipLaunch, requests: int, sectors: int) -> None:
    totals = launch.execute().totals()
    for name, count in (("requests", requests), ("sectors", sectors)):
        assert sum(totals.get(f"bulk_{kind}_{name}", 0) for kind in ("load", "store")) == count


def test_equal_lanes_each_reduce() -> None:
    reduction = "st.shared.u32 [%r1], 3; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32"
    body = STORE.replace("cp.async.bulk.global.shared::cta.bulk_group", reduction)
    out = np.zeros(1 << 10, np.uint32)
    text = module(body.format(size=16, to=0, tile=0), 1, TILE)
    totals = execute_snippet(text, [out], unwritten="off").totals()
    assert (totals["bulk_store_requests"], totals["bulk_store_sectors"], out[0]) == (32, 32, 32 * 3)


#: Name -> copy of 1,024 bytes to shared memory.
ARRIVING = {
    "load": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 1024, [%r3];",
    "copy": "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1+2048], [%r1], 1024, [%r3];",
    "reduction": "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r1+2048], "
                 "[%r1], 1024, [%r3];",
}  # fmt: skip


@pytest.mark.parametrize("code", ARRIVING)
@pytest.mark.parametrize(("copies", "phase"), [(32, 1), (33, 0)])
def test_barrier_counts_all_copies(copies: int, phase: int, code: str) -> None:
    """Each of 32 lanes copies 1,024 bytes; a barrier that expects a 33rd copy stays in phase 0."""
    load = f"""
    ld.param.u64 %rd1, [p0]; mov.u32 %r1, s; mov.u32 %r3, b; setp.eq.u32 %p1, %r0, 0;
    @%p1 mbarrier.init.shared.b64 [b], 1;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd2, [b], {1024 * copies};
    bar.sync 0;
    {ARRIVING[code]}
    mbarrier.test_wait.parity.shared.b64 %p2, [b], 0; selp.u32 %r4, 1, 0, %p2; st.global.u32 [%rd1], %r4;
    """
    out = np.zeros(256, np.uint32)
    text = module(load, 1, TILE)
    execute_snippet(text, [out], unwritten="off", cluster=(1, 1, 1))
    assert out[0] == phase
    if code != "load":  # an H200 faults without clusters
        with pytest.raises(LaunchError, match="needs a launch with clusters; set cluster=1"):
            execute_snippet(text, [out], unwritten="off")


def _iter_measured_sectors() -> Iterator[tuple[ChipLaunch, int]]:
    """Yield launches and their sectors on an H200 (driver 580.159.04, Nsight Compute 2025.3.1, 2026-11-29)."""
    sectors_by_offsets = {
        (0, 0): 32, (16, 0): 48, (32, 0): 40, (48, 0): 40, (0, 16): 48, (16, 16): 34, (32, 16): 49, (48, 16): 42,
    }  # fmt: skip
    for (start, to), sectors in sectors_by_offsets.items():
        for mask in (0b1, 0b11, 0b1111):
            yield make_multicast(Multicast(start, to, 1024, mask)), sectors * mask.bit_count()
    yield make_multicast(Multicast(0, 0, 4096, 0b11)), 256
    yield make_multicast(Multicast(16, 0, 4096, 0b1111)), 768
    yield make_multicast(Multicast(16, 0, 64, 0b101)), 6
    yield make_multicast(Multicast(16, 32, 96, 0b111)), 12
    yield make_multicast(Multicast(96, 48, 512, 0b110)), 42
    yield make_tile("tile_load", transfers.CLIPPED_TILE), 68
    yield make_tile("tile_load", transfers.TILE_BEFORE_START), 99
    yield make_multicast_tile(transfers.SWIZZLED_TILE, 0b1110), 240
    yield make_multicast_tile(transfers.TILE_OF_HALVES, 0b11), 128
    yield make_multicast_tile(transfers.TILE_OF_DOUBLES, 0b1), 44
    yield make_multicast_tile(transfers.CLIPPED_TILE, 0b1110), 213
    yield make_multicast_tile(transfers.TILE_BEFORE_START, 0b11), 280
    yield make_multicast_tile(Tile("u4", (64, 64), (4, 32), x=-16), 0b1), 20
    yield make_multicast_tile(Tile("u4", (64, 64), (4, 32), x=-20), 0b1), 20
    yield make_multicast_tile(Tile("u4", (64, 64), (4, 64), x=36), 0b1110), 132


READ_SECTORS = [*_iter_measured_sectors()]


@pytest.mark.parametrize(("launch", "sectors"), READ_SECTORS, ids=[launch.name for launch, _ in READ_SECTORS])
def test_multicasts_and_clipped_tiles_as_on_h200(launch: ChipLaunch, sectors: int) -> None:
    assert launch.execute().totals()["bulk_load_sectors"] == sectors


def test_measured_launches_run_on_a_gpu() -> None:
    """`tests/gpu/test_transfers.py` measures the launches of `transfers.LAUNCHES`."""
    launches = [launch for launch, _, _ in WARPS] + [launch for launch, _ in READ_SECTORS]
    assert {launch.name for launch in launches} <= {launch.name for launch in transfers.LAUNCHES}


def _copy_boxes(x: int, y: int, array: Any) -> ptxcount.LaunchCounters:
    """Copy a box of 32 x 32 from an array, and store it in one copy of the array and add it to another."""
    whole = array if array.base is None else array.base  # copies have the same padding
    arrays = (array, *(whole.copy()[:, : array.shape[1]] for _ in range(2)))
    maps = [ptxcount.TensorMap(array, (32, 32)) for array in arrays]
    arguments: list[Any] = [*maps, np.zeros((32, 32), np.float32), np.int32(x), np.int32(y)]
    return sources.execute("clusters", "boxes", arguments, threads=128)


#: Columns of a matrix of 64 rows, elements from a row to the next, and column and row where a tile of 32 x 32 begins.
TILES = [
    (64, 64, 0, 0), (68, 68, 4, 3), (68, 68, 44, 50), (68, 84, 44, 50),
    (68, 68, 100, 0), (64, 64, 32, 200),  # entirely outside
]  # fmt: skip


@pytest.mark.parametrize(("columns", "pitch", "x", "y"), TILES)
def test_each_row_of_a_tile_counts_its_own_sectors(columns: int, pitch: int, x: int, y: int) -> None:
    totals = _copy_boxes(x, y, np.zeros((64, pitch), np.float32)[:, :columns]).totals()
    places = [(row, column) for row in range(y, y + 32) for column in range(x, x + 32)]
    inside = [(row, column) for row, column in places if 0 <= row < 64 and 0 <= column < columns]
    # A row of the box takes 128 bytes of shared memory, so it is one segment.
    sectors = {(row, (row * pitch + column) * 4 // 32) for row, column in inside}
    # A load also counts sectors that it fills with zeros. There are two stores: a copy and a reduction.
    zeros = {(row, (column - x) * 4 // 32) for row, column in places if (row, column) not in inside}
    assert (totals["bulk_load_sectors"], totals["bulk_store_sectors"]) == (len(sectors) + len(zeros), 2 * len(sectors))


def test_reduction_needs_numbers() -> None:
    message = r"the elements of the tensor map are \|V4; a reduction needs"
    with pytest.raises(UnsupportedInstructionError, match=message):
        _copy_boxes(0, 0, np.zeros((64, 64), "V4"))
