"""Launches of one warp of ``tests/kernels/transfers.cu``, and their counters by Nsight Compute's names."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ptxcount import TensorMap
from tests.ptxcount.chip_counters import ChipLaunch, CounterPair

LANES = np.arange(32)
#: Index of the word that each lane accesses.
PLACES = {
    "stride 1": LANES, "stride 2": 2 * LANES, "stride 8": 8 * LANES, "stride 33": 33 * LANES, "one": 0 * LANES + 5,
    "pairs": LANES // 2, "modulo 8": LANES % 8, "random": np.random.default_rng(6).integers(0, 1024, 32),
}  # fmt: skip
#: Bulk copy by 32 lanes with equal operands.
WARP_COPY = (0, 0, 1024, 32, 1)
#: Bulk copy: offsets in global and shared memory, bytes, active lanes, and number of different addresses.
COPIES = [
    (0, 0, 1024, 1, 1), (16, 0, 1024, 1, 1), (16, 16, 1024, 1, 1), (0, 16, 1024, 1, 1), (112, 48, 112, 1, 1),
    (48, 80, 16, 1, 1), WARP_COPY, (0, 0, 1024, 32, 2), (16, 0, 1024, 32, 32), (0, 0, 512, 5, 3),
]  # fmt: skip
#: Multicast copy: offsets in global and shared memory, bytes, and receiving blocks.
MULTICASTS = [
    *((from_, to, 1024, mask) for from_ in (0, 16, 32, 48) for to in (0, 16) for mask in (1, 3, 15)),
    (0, 0, 1024, 2), (16, 0, 64, 5), (16, 32, 96, 7), (96, 48, 512, 6), (0, 0, 4096, 3), (16, 0, 4096, 15),
]  # fmt: skip
#: Type, rows and columns of a tensor, box, swizzle, and start of a tile: x, y.
TILES = [
    ("u4", (64, 64), (16, 32), 0, 0, 0), ("u4", (64, 68), (16, 32), 0, 4, 3), ("u4", (64, 100), (8, 64), 0, 60, 60),
    ("u4", (64, 68), (16, 32), 128, 4, 3), ("u2", (64, 72), (32, 8), 0, 24, 1), ("u1", (64, 80), (32, 16), 0, 16, 0),
    ("u4", (64, 68), (16, 36), 0, -4, -2), ("u8", (64, 34), (16, 6), 0, 2, 1),
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


def _make_launch(name: str, kernel: str, arguments: Sequence[Any], counters: Sequence[str]) -> ChipLaunch:
    """Make a launch of one block, or of a cluster if its blocks access each other's memory."""
    blocks = 4 if kernel.startswith("multicast") else 2 if kernel in REMOTE else 1
    return ChipLaunch("transfers", name, kernel, arguments, counters, blocks)


def _make_tile(kernel: str, tile: tuple[Any, ...], last: int, counters: Sequence[str], suffix: str = "") -> ChipLaunch:
    """Make a launch that moves a tile; the last argument is a number of active lanes, or a mask of blocks."""
    dtype, shape, box, swizzle, *place = tile
    array = np.zeros(shape, dtype)
    numbers = map(np.int32, (*place, box[0] * box[1] * array.itemsize, last))
    name = f"{kernel} {' '.join(map(str, tile))}{suffix}"
    return _make_launch(name, kernel, [TensorMap(array, box, swizzle), *numbers], counters)


def iter_launches() -> Iterator[ChipLaunch]:
    for kind in ("load", "store", "reduce"):
        sectors, requests = (f"bulk_{'load' if kind == 'load' else 'store'}_{what}" for what in ("sectors", "requests"))
        for copy_numbers in COPIES:
            arguments = [np.zeros(1 << 14, np.uint32), *map(np.int32, copy_numbers)]
            counted = [sectors] if kind == "reduce" else [sectors, requests]
            yield _make_launch(f"bulk_{kind} {copy_numbers}", f"bulk_{kind}", arguments, counted)
        for tile in TILES:
            is_valid = kind == "load" or min(tile[-2:]) >= 0  # a device ends a kernel that stores before a tensor
            if is_valid and (kind != "reduce" or np.dtype(tile[0]).itemsize >= 4):  # nothing narrower is added
                yield _make_tile(f"tile_{kind}", tile, 1, [sectors])
        for tile in TILES[:2]:
            yield _make_tile(f"tile_{kind}", tile, 32, [sectors], " 32 lanes")
    none = ["bulk_load_sectors", "bulk_store_sectors"]  # the kernel waits for the bytes of all copies
    yield _make_launch(f"shared_copy {WARP_COPY}", "shared_copy", [np.zeros(1), *map(np.int32, WARP_COPY)], none)
    loads = ["bulk_load_sectors", "bulk_load_requests"]
    for multicast in MULTICASTS:
        arguments = [np.zeros(1 << 16, np.uint8), *map(np.int32, multicast)]
        yield _make_launch(f"multicast_load {multicast}", "multicast_load", arguments, loads)
    clipped = [("u4", (64, 64), (4, 32), 0, x, 0) for x in (*range(-28, 0, 4), *range(36, 64, 4))]
    clipped += [("u4", (64, 64), (4, 64), 0, x, 0) for x in (-20, 20, 36)]
    for tile, mask in itertools.product([*TILES, *clipped], (1, 3, 14)):
        yield _make_tile("multicast_tile", tile, mask, loads, f" {mask}")
    for pattern, index in PLACES.items():
        arrays = [np.zeros(32, np.int32), index.astype(np.int32)]
        for kernel, kind in REMOTE.items():
            prefix = "cluster" if kernel == "remote_async" else f"cluster_{kind}"
            both = [f"{prefix}_{what}" for what in ("requests", "sectors")]
            yield _make_launch(f"{kernel}, {pattern}", kernel, arrays, both)
        counted = [name for name in METRICS if name.startswith("local_")]
        yield _make_launch(f"local_words, {pattern}", "local_words", arrays, counted)


LAUNCHES = [*iter_launches()]


def compare_counts(measured: dict[str, dict[str, float]]) -> list[CounterPair]:
    return [
        CounterPair(launch.kernel, launch.name, name, count, measured[launch.name][name])
        for launch in LAUNCHES
        for name, count in launch.count_totals().items()
    ]
