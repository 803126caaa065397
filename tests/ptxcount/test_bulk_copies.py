"""Bulk copies and tiles: splitting at 128 bytes of shared memory, copies of a warp, conditions; and advice."""

from typing import Any

import numpy as np
import pytest

import ptxcount
from ptxcount.report.listing import describe_cost
from ptxcount.util.errors import LaunchError, MisalignedError, OutOfBoundsError, UnsupportedInstructionError
from tests.ptxcount import sources, transfers
from tests.ptxcount.chip_counters import ChipLaunch
from tests.ptxcount.snippets import execute_snippet, module

TILE = ".shared .align 1024 .b8 s[40000]; .shared .align 8 .b64 b;"
_PLACES = "ld.param.u64 %rd1, [p0]; add.u64 %rd1, %rd1, {to}; mov.u32 %r1, s; add.u32 %r1, %r1, {tile};"
STORE = _PLACES + "{lanes} cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], {size};"


def _store(size: int, to: int, tile: int, lanes: str = "", threads: int = 1) -> ptxcount.LaunchCounters:
    """Count a bulk copy of bytes from offset `tile` of shared memory to offset `to` of an array."""
    text = module(STORE.format(size=size, to=to, tile=tile, lanes=lanes), 1, TILE)
    return execute_snippet(text, [np.zeros(1 << 16, np.uint8)], threads=threads, unwritten="off")


def _pieces(size: int, to: int, tile: int) -> int:
    """Count sectors of the array byte by byte, separately for each 128-byte segment of shared memory."""
    return len({((tile + byte) // 128, (to + byte) // 32) for byte in range(size)})


@pytest.mark.parametrize("size", [0, 16, 112, 128, 1024])
def test_copies_split_at_128_bytes(size: int) -> None:
    for to in range(0, 128, 16):
        for tile in range(0, 128, 16):
            assert _store(size, to, tile).totals()["bulk_store_sectors"] == _pieces(size, to, tile)


#: Offsets in array and shared memory of a copy of 1,024 bytes, its sectors, and the advice.
ADVICE = [
    (16, 0, 40, "; 33.00 instead of 40.00 if the shared buffer is moved by 16 bytes"),
    (16, 16, 33, ""), (0, 0, 32, ""),
    (0, 16, 40, "; 32.00 instead of 40.00 if the shared buffer is moved by 16 bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("to", "tile", "sectors", "advice"), ADVICE)
def test_advice_names_a_better_offset_or_none(to: int, tile: int, sectors: int, advice: str) -> None:
    (access,) = _store(1024, to, tile).accesses
    assert access.sectors == sectors
    assert describe_cost(access) == f"bulk store: {sectors}.00 sectors per request{advice}"


#: Code that changes addresses by lane -> number of copies of two warps.
LANES = {
    "": 2,
    "and.b32 %r2, %r0, 1; mul.wide.u32 %rd2, %r2, 1024; add.u64 %rd1, %rd1, %rd2;": 4,
    "mul.wide.u32 %rd2, %r0, 1024; add.u64 %rd1, %rd1, %rd2;": 64,
    "and.b32 %r2, %r0, 3; mad.lo.u32 %r1, %r2, 128, %r1;": 8,
    "setp.eq.u32 %p1, %r0, 5; @%p1": 1,
}


@pytest.mark.parametrize("lanes", LANES)
def test_only_equal_lanes_share_a_store(lanes: str) -> None:
    totals = _store(1024, 0, 0, lanes, threads=64).totals()
    assert (totals["bulk_store_requests"], totals["bulk_store_sectors"]) == (LANES[lanes], 32 * LANES[lanes])


#: Launches of ``transfers.py`` with equal operands in all lanes -> requests and sectors. Machine code of nvcc 13.0.88
#: for sm_90 serves loads and reductions lane by lane, and stores of equal lanes together.
WARPS = {
    "bulk_load (0, 0, 1024, 32, 1)": (32, 1024), "bulk_reduce (0, 0, 1024, 32, 1)": (32, 1024),
    "bulk_store (0, 0, 1024, 32, 1)": (1, 32), "bulk_store (0, 0, 1024, 32, 2)": (2, 64),
    "tile_load u4 (64, 64) (16, 32) 0 0 0 32 lanes": (32, 2048),
    "tile_store u4 (64, 64) (16, 32) 0 0 0 32 lanes": (1, 64),
    "tile_reduce u4 (64, 64) (16, 32) 0 0 0 32 lanes": (32, 2048), "shared_copy (0, 0, 1024, 32, 1)": (0, 0),
}  # fmt: skip


def _find_launch(name: str) -> ChipLaunch:
    (launch,) = (launch for launch in transfers.LAUNCHES if launch.name == name)
    return launch


@pytest.mark.parametrize("name", WARPS)
def test_equal_lanes_share_stores_only(name: str) -> None:
    totals = _find_launch(name).execute().totals()
    for what, count in zip(("requests", "sectors"), WARPS[name], strict=True):
        assert sum(totals.get(f"bulk_{kind}_{what}", 0) for kind in ("load", "store")) == count


def test_equal_lanes_each_reduce() -> None:
    reduction = "st.shared.u32 [%r1], 3; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32"
    body = STORE.replace("cp.async.bulk.global.shared::cta.bulk_group", reduction)
    out = np.zeros(1 << 10, np.uint32)
    text = module(body.format(size=16, to=0, tile=0, lanes=""), 1, TILE)
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
    if code != "load":
        with pytest.raises(LaunchError, match="needs a launch with clusters; set cluster=1"):
            execute_snippet(text, [out], unwritten="off")


#: Launches of ``transfers.py``: ``multicast_load`` (offsets in global and shared memory, bytes, mask of receiving
#: blocks), or a tile's type, shape, box, swizzle, x, y and for ``multicast_tile`` the mask -> sectors measured on an
#: H200 (driver 580.159.04, Nsight Compute 2025.3.1, 2026-11-29).
READ_SECTORS = {
    **{
        f"multicast_load ({start}, {to}, 1024, {mask})": sectors * blocks
        for (start, to), sectors in {
            (0, 0): 32, (16, 0): 48, (32, 0): 40, (48, 0): 40, (0, 16): 48, (16, 16): 34, (32, 16): 49, (48, 16): 42,
        }.items()
        for mask, blocks in {1: 1, 3: 2, 15: 4}.items()
    },
    "multicast_load (0, 0, 4096, 3)": 256, "multicast_load (16, 0, 4096, 15)": 768,
    "multicast_load (16, 0, 64, 5)": 6, "multicast_load (16, 32, 96, 7)": 12, "multicast_load (96, 48, 512, 6)": 42,
    "tile_load u4 (64, 100) (8, 64) 0 60 60": 68, "tile_load u4 (64, 68) (16, 36) 0 -4 -2": 99,
    "multicast_tile u4 (64, 68) (16, 32) 128 4 3 14": 240, "multicast_tile u2 (64, 72) (32, 8) 0 24 1 3": 128,
    "multicast_tile u8 (64, 34) (16, 6) 0 2 1 1": 44, "multicast_tile u4 (64, 100) (8, 64) 0 60 60 14": 213,
    "multicast_tile u4 (64, 68) (16, 36) 0 -4 -2 3": 280, "multicast_tile u4 (64, 64) (4, 32) 0 -16 0 1": 20,
    "multicast_tile u4 (64, 64) (4, 32) 0 -20 0 1": 20, "multicast_tile u4 (64, 64) (4, 64) 0 36 0 14": 132,
}  # fmt: skip


@pytest.mark.parametrize("name", READ_SECTORS)
def test_multicasts_and_clipped_tiles_as_on_h200(name: str) -> None:
    assert _find_launch(name).execute().totals()["bulk_load_sectors"] == READ_SECTORS[name]


#: Bytes of a copy, its offsets in array and shared memory, and the error.
CROOKED = [
    (24, 0, 0, "24 bytes: a multiple of 16 is needed; an H200 stores 16 of them"),
    (32, 0, 8, "shared address 8: a multiple of 16 is needed"),
    (32, 8, 0, "is not a multiple of 16"),
]


@pytest.mark.parametrize(("size", "to", "tile", "message"), CROOKED)
def test_misaligned_copies_are_refused(size: int, to: int, tile: int, message: str) -> None:
    """Addresses and sizes must be multiples of 16 bytes (PTX ISA, ``cp.async.bulk``)."""
    with pytest.raises(MisalignedError, match=message):
        _store(size, to, tile)


def _boxes(x: int, y: int, array: Any) -> ptxcount.LaunchCounters:
    whole = array if array.base is None else array.base
    arrays = (array, *(whole.copy()[:, : array.shape[1]] for _ in range(2)))
    maps = [ptxcount.TensorMap(array, (32, 32)) for array in arrays]
    arguments: list[Any] = [*maps, np.zeros((32, 32), np.float32), np.int32(x), np.int32(y)]
    return sources.execute("clusters", "boxes", arguments, threads=128)


#: Columns of a matrix, elements from a row to the next, and column and row where a tile begins.
TILES = [(64, 64, 0, 0), (68, 68, 4, 3), (68, 68, 44, 50), (68, 68, 100, 0), (64, 64, 32, 200), (68, 84, 44, 50)]


@pytest.mark.parametrize(("columns", "pitch", "x", "y"), TILES)
def test_rows_of_tiles_split_separately(columns: int, pitch: int, x: int, y: int) -> None:
    totals = _boxes(x, y, np.zeros((64, pitch), np.float32)[:, :columns]).totals()
    places = [(row, column) for row in range(y, y + 32) for column in range(x, x + 32)]
    inside = [(row, column) for row, column in places if 0 <= row < 64 and 0 <= column < columns]
    # A row of the box takes 128 bytes of shared memory: it is not split.
    sectors = {(row, (row * pitch + column) * 4 // 32) for row, column in inside}
    zeros = {(row, (column - x) * 4 // 32) for row, column in places if (row, column) not in inside}
    assert (totals["bulk_load_sectors"], totals["bulk_store_sectors"]) == (len(sectors) + len(zeros), 2 * len(sectors))


@pytest.mark.parametrize(("x", "y"), [(-4, 0), (-8, -3), (0, -1)])
def test_tile_store_with_negative_start_faults(x: int, y: int) -> None:
    """An H200 faults, too (CUDA guide, "Writing")."""
    with pytest.raises(OutOfBoundsError, match=rf"the tile store starts at \({x}, {y}\); no coordinate may be below 0"):
        _boxes(x, y, np.zeros((64, 64), np.float32))


def test_reduction_needs_numbers() -> None:
    message = r"the elements of the tensor map are \|V4; a reduction needs"
    with pytest.raises(UnsupportedInstructionError, match=message):
        _boxes(0, 0, np.zeros((64, 64), "V4"))
