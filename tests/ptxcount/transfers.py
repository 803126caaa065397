"""Launches of one warp of ``tests/kernels/transfers.cu``, and their counters by Nsight Compute's names."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ptxcount import TensorMap
from tests.ptxcount.chip_counters import ChipLaunch, CounterPair

LANES = np.arange(32)
#: Index of the word that each lane accesses.
PLACES = {
    "stride 1": LANES, "stride 2": 2 * LANES, "stride 8": 8 * LANES, "stride 33": 33 * LANES, "one": 0 * LANES + 5,
    "pairs": LANES // 2, "modulo 8": LANES % 8, "random": np.random.default_rng(6).integers(0, 1024, 32),
}  # fmt: skip


class BulkCopy(NamedTuple):
    """A bulk copy: offsets in global and shared memory, bytes, active lanes, and number of different addresses."""

    global_offset: int = 0
    shared_offset: int = 0
    size: int = 1024
    lanes: int = 1
    addresses: int = 1


class Multicast(NamedTuple):
    """A multicast copy: offsets in global and shared memory, bytes, and the mask of receiving blocks."""

    global_offset: int
    shared_offset: int
    size: int
    mask: int


class Tile(NamedTuple):
    """A tile: dtype and shape of the tensor, box, swizzle, and start."""

    dtype: str
    shape: tuple[int, int]
    box: tuple[int, int]
    swizzle: int = 0
    x: int = 0
    y: int = 0


#: Bulk copy by 32 lanes with equal operands.
WARP_COPY = BulkCopy(lanes=32)
COPIES = [
    BulkCopy(), BulkCopy(16, 0), BulkCopy(16, 16), BulkCopy(0, 16), BulkCopy(112, 48, size=112),
    BulkCopy(48, 80, size=16), WARP_COPY, BulkCopy(lanes=32, addresses=2), BulkCopy(16, lanes=32, addresses=32),
    BulkCopy(size=512, lanes=5, addresses=3),
]  # fmt: skip
MULTICASTS = [
    *(Multicast(start, to, 1024, mask) for start in (0, 16, 32, 48) for to in (0, 16)
      for mask in (0b1, 0b11, 0b1111)),
    Multicast(0, 0, 1024, 0b10), Multicast(16, 0, 64, 0b101), Multicast(16, 32, 96, 0b111),
    Multicast(96, 48, 512, 0b110), Multicast(0, 0, 4096, 0b11), Multicast(16, 0, 4096, 0b1111),
]  # fmt: skip
PLAIN_TILE = Tile("u4", (64, 64), (16, 32))
CLIPPED_TILE = Tile("u4", (64, 100), (8, 64), x=60, y=60)
TILE_BEFORE_START = Tile("u4", (64, 68), (16, 36), x=-4, y=-2)
SWIZZLED_TILE = Tile("u4", (64, 68), (16, 32), swizzle=128, x=4, y=3)
TILE_OF_HALVES = Tile("u2", (64, 72), (32, 8), x=24, y=1)
TILE_OF_DOUBLES = Tile("u8", (64, 34), (16, 6), x=2, y=1)
TILES = [
    PLAIN_TILE, Tile("u4", (64, 68), (16, 32), x=4, y=3), CLIPPED_TILE, SWIZZLED_TILE, TILE_OF_HALVES,
    Tile("u1", (64, 80), (32, 16), x=16), TILE_BEFORE_START, TILE_OF_DOUBLES,
]  # fmt: skip
#: Kernels that reach another block -> kind of access.
REMOTE = {
    "remote_load": "load", "remote_load_quad": "load", "remote_store": "store", "remote_store_pair": "store",
    "remote_atom": "atomic", "remote_red": "atomic", "remote_async": "atomic",
}  # fmt: skip
#: Counter -> metrics of Nsight Compute that add up to it.
METRICS = {
    "bulk_load_sectors": ["l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum"],
    "bulk_store_sectors": [f"l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_{op}.sum" for op in ("st", "red")],
    "bulk_load_requests": ["smsp__inst_executed_op_tma_ld.sum"],
    "bulk_store_requests": ["smsp__inst_executed_op_tma_st.sum"],
    **{
        f"{space}_{kind}_{what}": [f"l1tex__t_{what}_pipe_lsu_mem_{memory}_op_{op}.sum"]
        for space, memory, ops in (
            ("cluster", "dshared", {"load": "ld", "store": "st", "atomic": "atom"}),
            ("local", "local", {"load": "ld", "store": "st"}),
        )
        for kind, op in ops.items()
        for what in ("requests", "sectors")
    },
    # One of the three metrics counts asynchronous stores.
    **{
        f"cluster_{what}": [f"l1tex__t_{what}_pipe_lsu_mem_dshared_op_{op}.sum" for op in ("ld", "st", "atom")]
        for what in ("requests", "sectors")
    },
}


_BULK_LOADS = ["bulk_load_sectors", "bulk_load_requests"]


def _make_launch(name: str, kernel: str, arguments: Sequence[Any], counters: Sequence[str]) -> ChipLaunch:
    """Make a launch of one block, or of a cluster if its blocks access each other's memory."""
    blocks = 4 if kernel.startswith("multicast") else 2 if kernel in REMOTE else 1
    return ChipLaunch("transfers", name, kernel, arguments, counters, blocks)


def make_copy(kernel: str, copy: BulkCopy) -> ChipLaunch:
    """Make a launch of ``bulk_load``, ``bulk_store``, ``bulk_reduce`` or ``shared_copy``."""
    if kernel == "shared_copy":  # the kernel waits for the bytes of all copies
        counters = ["bulk_load_sectors", "bulk_store_sectors"]
    elif kernel == "bulk_reduce":
        counters = ["bulk_store_sectors"]
    else:
        counters = [f"{kernel}_sectors", f"{kernel}_requests"]
    return _make_launch(f"{kernel} {copy}", kernel, [np.zeros(1 << 14, np.uint32), *map(np.int32, copy)], counters)


def make_multicast(multicast: Multicast) -> ChipLaunch:
    arguments = [np.zeros(1 << 16, np.uint8), *map(np.int32, multicast)]
    return _make_launch(f"multicast_load {multicast}", "multicast_load", arguments, _BULK_LOADS)


def _make_tile_arguments(tile: Tile, last: int) -> list[Any]:
    array = np.zeros(tile.shape, tile.dtype)
    size = tile.box[0] * tile.box[1] * array.itemsize
    return [TensorMap(array, tile.box, tile.swizzle), *map(np.int32, (tile.x, tile.y, size, last))]


def make_tile(kernel: str, tile: Tile, lanes: int = 1) -> ChipLaunch:
    """Make a launch of ``tile_load``, ``tile_store`` or ``tile_reduce``."""
    counters = ["bulk_load_sectors" if kernel == "tile_load" else "bulk_store_sectors"]
    return _make_launch(f"{kernel} {tile}, {lanes} lanes", kernel, _make_tile_arguments(tile, lanes), counters)


def make_multicast_tile(tile: Tile, mask: int) -> ChipLaunch:
    arguments = _make_tile_arguments(tile, mask)
    return _make_launch(f"multicast_tile {tile} to {mask:#b}", "multicast_tile", arguments, _BULK_LOADS)


def iter_launches() -> Iterator[ChipLaunch]:
    for kind in ("load", "store", "reduce"):
        for copy in COPIES:
            yield make_copy(f"bulk_{kind}", copy)
        for tile in TILES:
            is_valid = kind == "load" or min(tile.x, tile.y) >= 0  # a device ends a kernel that stores before a tensor
            if is_valid and (kind != "reduce" or np.dtype(tile.dtype).itemsize >= 4):  # nothing narrower is added
                yield make_tile(f"tile_{kind}", tile)
        for tile in TILES[:2]:
            yield make_tile(f"tile_{kind}", tile, lanes=32)
    yield make_copy("shared_copy", WARP_COPY)
    yield from map(make_multicast, MULTICASTS)
    clipped = [Tile("u4", (64, 64), (4, 32), x=x) for x in (*range(-28, 0, 4), *range(36, 64, 4))]
    clipped += [Tile("u4", (64, 64), (4, 64), x=x) for x in (-20, 20, 36)]
    for tile, mask in itertools.product([*TILES, *clipped], (0b1, 0b11, 0b1110)):
        yield make_multicast_tile(tile, mask)
    for pattern, index in PLACES.items():
        arrays = [np.zeros(32, np.int32), index.astype(np.int32)]
        for kernel, kind in REMOTE.items():
            prefix = "cluster" if kernel == "remote_async" else f"cluster_{kind}"
            counters = [f"{prefix}_{what}" for what in ("requests", "sectors")]
            yield _make_launch(f"{kernel}, {pattern}", kernel, arrays, counters)
        counters = [name for name in METRICS if name.startswith("local_")]
        yield _make_launch(f"local_words, {pattern}", "local_words", arrays, counters)


LAUNCHES = [*iter_launches()]


def compare_counts(measured: dict[str, dict[str, float]]) -> list[CounterPair]:
    return [
        CounterPair(launch.kernel, launch.name, name, count, measured[launch.name][name])
        for launch in LAUNCHES
        for name, count in launch.count_totals().items()
    ]
