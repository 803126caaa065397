"""Memory transactions of addresses, as Nsight Compute counts them.

A *request* is one load or store of one warp with at least one active lane (``l1tex__t_requests``). Wide accesses to
local and constant memory take several, and textures and surfaces have one per 4 or 8 lanes. A request's *sectors* are
the distinct 32-byte segments that it touches (``l1tex__t_sectors``). Its *lines* are the distinct 128-byte segments
(``l1tex__t_set_accesses``). The L1 cache has a tag per line, and fetches sectors. Both are counted for the whole warp,
for any access width.

In shared memory, lanes are served in groups: 32 lanes for up to 4 bytes, 16 for 8 bytes, 8 for 16 bytes. Each group
takes one *wavefront* (``l1tex__data_pipe_lsu_wavefronts_mem_shared``) per distinct 4-byte word on its busiest bank. A
load with paired lanes may use groups of twice the size: see `count_load_wavefronts`. *Bank conflicts* are the
wavefronts in excess of one per group.

A global atomic costs, for each 32-byte segment, the largest number of lanes on one address. Lanes that ptxas aggregates
count as one. The wavefronts of a shared atomic depend on its operation: see `atomic_costs.find_atomic_cost`.

Each rule takes byte addresses, (requests, 32), the mask of active lanes in the same shape, or None for all, and the
bytes per lane. Each of its counts is an array with one number per request.
"""

from collections.abc import Iterator

import numpy as np

from ..lanes.warps import LANES, Array

SECTOR = 32
LINE = 128
BANKS = 32
WORD = 4
#: Maximum bytes per lane of one constant load (LDC.64).
CONSTANT_BYTES = 8
_ONE_IN_EACH_BYTE = np.uint64(0x0101010101010101)


def _count_true(flags: Array) -> Array:
    """Count the true flags of each row. In rows of 32 flags, eight bytes are added as one 64-bit word."""
    if flags.shape[1] != LANES:
        return np.asarray(np.count_nonzero(flags, axis=1))
    words = np.ascontiguousarray(flags).view(np.uint64)
    sums = words[:, 0] + words[:, 1] + words[:, 2] + words[:, 3]
    return np.asarray((sums * _ONE_IN_EACH_BYTE >> np.uint64(56)).astype(np.int64))


def _count_segments(units: Array, lanes: Array | None, *sizes: int) -> list[Array]:
    """Count the distinct aligned segments that the active lanes of each request touch.

    ``units`` are addresses or indices, (requests, lanes). Segment sizes are powers of two, in the same unit. The result
    has one array per size, with one number per request.
    """
    if units.size and int(units.min()) >> 32 == (int(units.max()) + LINE) >> 32:  # no lane is on the line of -1
        units = units.astype(np.int32)  # 32-bit arithmetic takes half the time
    if lanes is not None:
        units = units | (lanes.view(np.int8) - np.int8(1))  # -1: inactive lanes add one segment, subtracted below
    width = units.shape[1]
    descends = units.reshape(-1)[1:] < units.reshape(-1)[:-1]
    descends[width - 1 :: width] = False  # the last lane of a request, and the first of the next
    flat = (np.sort(units, axis=1) if descends.any() else units).reshape(-1)
    changes = np.empty(units.shape, flat.dtype)
    np.bitwise_xor(flat[1:], flat[:-1], out=changes.reshape(-1)[1:])
    changes = changes.view(f"u{flat.itemsize}")
    inactive_segments = 0 if lanes is None else _count_true(lanes) < width
    counts = []
    for size in sizes:
        is_new = changes >= size  # neighbors in one segment differ only in bits below its size
        is_new[:, 0] = True
        counts.append(_count_true(is_new) - inactive_segments)
    return counts


def _count_distinct(units: Array, lanes: Array | None) -> Array:
    return _count_segments(units, lanes, 1)[0]


def count_sectors(addresses: Array, lanes: Array | None, width: int) -> Array:
    """Count the sectors. A lane touches one, because accesses are naturally aligned and at most 32 bytes wide."""
    return _count_distinct(addresses >> 5, lanes)


def count_global(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """Count the sectors, lines, ideal sectors and ideal lines."""
    distinct, sectors, lines = _count_segments(addresses, lanes, 1, SECTOR, LINE)
    needed_bytes = distinct * width
    return [sectors, lines, -(-needed_bytes // SECTOR), -(-needed_bytes // LINE)]


def count_bulk_copy_sectors(
    global_addresses: Array,
    shared_addresses: Array,
    shift: int = 0,
    *,
    inside: Array | None = None,
    is_store: bool = False,
    is_multicast: bool = False,
) -> int:
    """Count the sectors of a bulk copy.

    The hardware splits the copy at 128-byte boundaries of the shared address. Each segment costs the sectors that it
    touches (measured: 456 bulk copies and 280 tiles on H100s and H200s). A load fills elements out of bounds with
    zeros: these count as the sectors of shared memory that they fill. A store drops such elements. A multicast is also
    split at 128-byte boundaries of the global address, and zeros are segments of their own. A segment of data costs at
    least two sectors, one of zeros at least three (measured: 105 launches on an H200, docs/evidence/memory.md).

    Parameters
    ----------
    global_addresses, shared_addresses : ndarray of int
        One address for each part of a sector that moves. 2-D if each row of a tile is split separately.
    shift : int
        Bytes added to the shared address.
    inside : ndarray of bool, optional
        Mask of the parts within the tensor. Default: all.
    is_store : bool
        True for a copy to global memory.
    is_multicast : bool
        True for a copy with a mask of destination blocks. The result is for one destination.
    """
    shape, shared_addresses = global_addresses.shape, shared_addresses + shift
    rows = np.broadcast_to(np.arange(shape[0])[:, None] if len(shape) > 1 else 0, shape)
    within = np.full(shape, True) if inside is None else inside
    # A segment is a row, a line of shared memory, and a line of global memory, 0 unless it splits the copy. Zeros have
    # the global line -1, and a negative number for each sector of shared memory.
    lines = np.where(within, global_addresses // LINE if is_multicast else 0, -1)
    sectors = np.where(within, global_addresses // SECTOR, -1 - shared_addresses // SECTOR)
    keys = np.stack([rows, shared_addresses // LINE, lines, sectors])
    keys = np.unique(keys[:, within] if is_store else keys.reshape(4, -1), axis=1)
    segments, sector_counts = np.unique(keys[:3], axis=1, return_counts=True)
    if is_multicast:
        sector_counts = np.maximum(sector_counts, np.where(segments[2] < 0, 3, 2))
    return int(sector_counts.sum())


def count_local_sectors(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """Count the sectors of local memory.

    Local memory interleaves lanes: the same 4-byte word of eight adjacent lanes is one sector. An access of n words is
    n requests (measured: 54 launches on an H200).
    """
    octets = (addresses >> 2) * (LANES // 8) + np.arange(LANES) // 8
    return [_count_distinct(octets, lanes) * max(width // WORD, 1)]


def count_constant_addresses(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """Count the distinct addresses in constant memory.

    A 16-byte access is two instructions of 8 bytes (measured: ``idc__requests`` in 64 launches on an H200).
    """
    return [_count_distinct(addresses, lanes) * max(width // CONSTANT_BYTES, 1)]


def count_wavefronts(addresses: Array, lanes: Array | None, width: int) -> Array:
    """Count the wavefronts of shared memory."""
    active = np.ones(addresses.shape, bool) if lanes is None else lanes
    return _count_grouped_wavefronts(addresses, active, width, BANKS)


def _count_grouped_wavefronts(addresses: Array, active: Array, width: int, word_count: int) -> Array:
    """Count the wavefronts if groups of lanes are served together; a group accesses ``word_count`` words in all."""
    words = (addresses >> 2)[:, :, None] + np.arange(max(width // WORD, 1))
    words = np.sort(np.where(active[:, :, None], words, -1).reshape(-1, word_count), axis=1)
    new = words >= 0
    new[:, 1:] &= words[:, 1:] != words[:, :-1]
    row, column = np.nonzero(new)
    bank_load = np.bincount(row * BANKS + words[row, column] % BANKS, minlength=len(words) * BANKS).reshape(-1, BANKS)
    return np.asarray(bank_load.max(axis=1).reshape(len(addresses), -1).sum(axis=1))


def count_conflict_free(addresses: Array, lanes: Array | None, width: int) -> Array:
    """Count the wavefronts that remain without conflicts: one per group of lanes with an active lane."""
    active = np.ones(addresses.shape, bool) if lanes is None else lanes
    lane_count = BANKS * WORD // max(width, WORD)
    return np.asarray(active.reshape(len(active), -1, lane_count).any(axis=2).sum(axis=1))


def count_store_wavefronts(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """Count the wavefronts, and the conflict-free wavefronts, of stores to shared memory."""
    return [count_wavefronts(addresses, lanes, width), count_conflict_free(addresses, lanes, width)]


def count_load_wavefronts(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """Count the wavefronts, and the conflict-free wavefronts, of loads from shared memory.

    8- and 16-byte loads may be served in groups of twice as many lanes as stores. This needs equal addresses in all
    active lanes n and n ^ 1, or in all n and n ^ 2. The larger group is used only if it takes fewer wavefronts
    (measured on an H100 with all regular address patterns).
    """
    wavefronts, conflict_free = count_store_wavefronts(addresses, lanes, width)
    if width > WORD:
        active, lane = np.ones(addresses.shape, bool) if lanes is None else lanes, np.arange(LANES)
        pairs = [(addresses == addresses[:, lane ^ n]) | ~active | ~active[:, lane ^ n] for n in (1, 2)]
        paired = np.flatnonzero(pairs[0].all(axis=1) | pairs[1].all(axis=1))
        if paired.size:
            in_larger_groups = _count_grouped_wavefronts(addresses[paired], active[paired], width, 2 * BANKS)
            is_fewer = in_larger_groups < wavefronts[paired]
            paired = paired[is_fewer]
            wavefronts[paired] = in_larger_groups[is_fewer]
            conflict_free[paired] = count_conflict_free(addresses, active, width // 2)[paired]
    return [wavefronts, conflict_free]


def _group_lanes(keys: Array, lanes: Array | None) -> tuple[Array, Array, Array]:
    """Group the lanes of each request by key: return the request, the key and the number of lanes of each group."""
    row, lane = np.nonzero(np.ones(keys.shape, bool) if lanes is None else lanes)
    (row, group_keys), counts = np.unique(np.stack([row, keys[row, lane]]), axis=1, return_counts=True)
    return row, group_keys, counts


def _find_maxima(requests: int, row: Array, counts: Array) -> Array:
    """Return the largest count of each request; 0 for a request without counts. ``row`` has each count's request."""
    maxima = np.zeros(requests, np.int64)
    np.maximum.at(maxima, row, counts)
    return maxima


def count_global_atomics(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """Return five counts of a global atomic.

    0. The maximum number of lanes on one address.
    1. Sectors: this maximum within each sector, summed over the sectors.
    2. to 4. Lines, ideal sectors and ideal lines, as `count_global`.
    """
    row, address, counts = _group_lanes(addresses, lanes)
    is_first = np.ones(len(row), bool)  # of a sector
    is_first[1:] = (row[1:] != row[:-1]) | (address[1:] // SECTOR != address[:-1] // SECTOR)
    first = np.flatnonzero(is_first)
    sectors = np.bincount(row[first], np.maximum.reduceat(counts, first), len(addresses)).astype(np.int64)
    return [_find_maxima(len(addresses), row, counts), sectors, *count_global(addresses, lanes, width)[1:]]


def count_shared_atomics(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """Return seven counts of a shared atomic.

    0. The maximum number of lanes on one address.
    1. The maximum number of lanes in one bank, summed over the groups of lanes that are served together.
    2. The number of these groups, summed over the rounds of a CAS loop.
    3. The wavefronts of a store.
    4. to 6. The minimum of counts 1, 2 and 3 without conflicts.
    """
    count = len(addresses)
    lane_count = np.full(count, LANES) if lanes is None else np.count_nonzero(lanes, axis=1)
    row, _, lanes_on_address = _group_lanes(addresses, lanes)
    most_lanes = _find_maxima(count, row, lanes_on_address)
    group_size = BANKS * WORD // max(width, WORD)
    bank_keys = ((addresses >> 2) % BANKS).reshape(-1, group_size)
    row, _, lanes_in_bank = _group_lanes(bank_keys, None if lanes is None else lanes.reshape(-1, group_size))
    banks = _find_maxima(len(bank_keys), row, lanes_in_bank).reshape(count, -1).sum(axis=1)
    masks = _iter_rounds(addresses, lanes, width)
    rounds = np.sum([count_conflict_free(addresses, mask, width) for mask in masks], axis=0)
    fewest = -(-lane_count * width // (BANKS * WORD))
    groups = count_conflict_free(addresses, lanes, width)
    return [most_lanes, banks, rounds, count_wavefronts(addresses, lanes, width), groups, groups, fewest]


def count_loop_loads(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """Return three counts of the loads in a CAS loop: loads after the first; wavefronts; and conflict-free wavefronts.

    ptxas emits such a loop for atomics on floats and on 64 bits in shared memory, except swaps. Each round is ``LDS``
    and ``ATOMS.CAST.SPIN`` (nvcc 13.0.88, sm_90).
    """
    masks = _iter_rounds(addresses, lanes, width)
    rounds = [[mask.any(axis=1), *count_load_wavefronts(addresses, mask, width)] for mask in masks]
    loads, wavefronts, groups = np.array(rounds, np.int64).sum(axis=0)
    return [loads - 1, wavefronts, groups]


def _iter_rounds(addresses: Array, lanes: Array | None, width: int) -> Iterator[Array]:
    """Yield the mask of the pending lanes in each round of a compare-and-swap loop, (requests, 32).

    In each round, the lowest pending lane of each bank tries, in each group of lanes that are served together. A lane
    fails if a lane of an earlier group tries the same word in this round; otherwise it is done. (Measured on an H200:
    84 launches of one warp, all counters equal.)
    """
    pending = np.ones(addresses.shape, bool) if lanes is None else lanes.copy()
    group, earlier = np.arange(LANES) // (BANKS * WORD // width), np.tri(LANES, k=-1, dtype=bool)
    banks, is_equal = (addresses >> 2) % BANKS, addresses[:, :, None] == addresses[:, None, :]
    # Masks (requests, lane, other lane): the other lane is before the lane in its bank, or tries its word earlier.
    is_behind = (banks[:, :, None] == banks[:, None, :]) & earlier & (group[:, None] == group)
    fails_after = is_equal & (group[:, None] > group)
    while pending.any():
        yield pending.copy()
        tried = pending & ~(is_behind & pending[:, None, :]).any(axis=2)
        pending &= ~tried | (fails_after & tried[:, None, :]).any(axis=2)
