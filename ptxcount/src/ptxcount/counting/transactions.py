"""Memory transactions of addresses, as Nsight Compute counts them.

A *request* is one load or store of one warp with at least one active lane (``l1tex__t_requests``); it takes as many
*sectors* as the 32-byte pieces of memory it touches (``l1tex__t_sectors``), in as many *lines* as the 128-byte pieces.
The L1 cache has a tag for each line, and fetches sectors. Both are counted over the whole warp, whatever the width, as
the chip's ``l1tex__t_set_accesses`` counts lines.

In shared memory a request takes *wavefronts* (``l1tex__data_pipe_lsu_wavefronts_mem_shared``): for each group of lanes
served together (32 lanes of up to 4 bytes, 16 of 8, 8 of 16; twice as many where lanes share addresses,
`count_load_wavefronts`), as many as the most loaded of the 32 four-byte banks has distinct words. *Bank conflicts* are
the wavefronts in excess of one for each group.

An atomic in global memory takes, for each 32-byte piece, as many sectors as the most lanes on one of its addresses;
lanes that ptxas sums are one. One in shared memory takes wavefronts by its operation: see `turns.find_turns`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..lanes.warps import LANES, Array

SECTOR = 32
LINE = 128
BANKS = 32
WORD = 4
#: The most bytes a lane that one instruction reads of constant memory.
CONSTANT = 8
_ONE_IN_EACH_BYTE = np.uint64(0x0101010101010101)


def _count_true(flags: Array) -> Array:
    """Count the true flags of each row; of 32, eight are summed at once, as they are bytes."""
    if flags.shape[1] != LANES:
        return np.asarray(np.count_nonzero(flags, axis=1))
    words = np.ascontiguousarray(flags).view(np.uint64)
    sums = words[:, 0] + words[:, 1] + words[:, 2] + words[:, 3]
    return np.asarray((sums * _ONE_IN_EACH_BYTE >> np.uint64(56)).astype(np.int64))


def _count_pieces(units: Array, lanes: Array | None, *sizes: int) -> list[Array]:
    """Count the distinct pieces of each size, a power of two, that the active lanes of each request touch.

    One pass over all rows takes a third of the time of a pass for each row.
    """
    if units.size and int(units.min()) >> 32 == (int(units.max()) + LINE) >> 32:  # no lane is on the line of -1
        units = units.astype(np.int32)  # in which all take half the time
    if lanes is not None:
        units = units | (lanes.view(np.int8) - np.int8(1))  # -1 for idle lanes: they come together, as one more piece
    width = units.shape[1]
    descends = units.reshape(-1)[1:] < units.reshape(-1)[:-1]
    descends[width - 1 :: width] = False
    flat = (np.sort(units, axis=1) if descends.any() else units).reshape(-1)
    changes = np.empty(units.shape, flat.dtype)
    np.bitwise_xor(flat[1:], flat[:-1], out=changes.reshape(-1)[1:])
    changes = changes.view(f"u{flat.itemsize}")
    idle_pieces = 0 if lanes is None else _count_true(lanes) < width
    counts = []
    for size in sizes:
        is_new = changes >= size
        is_new[:, 0] = True
        counts.append(_count_true(is_new) - idle_pieces)
    return counts


def _count_distinct(units: Array, lanes: Array | None) -> Array:
    """Count the distinct units that the active lanes of each request touch."""
    return _count_pieces(units, lanes, 1)[0]


def count_sectors(addresses: Array, lanes: Array | None, width: int) -> Array:
    """Count the sectors of each request. A lane touches one: its address is a multiple of its width, at most 32 bytes.

    Addresses are bytes, (requests, 32); lanes are the active ones, of the same shape, or None for all; the width is in
    bytes a lane. The result has a number for each request. The other rules take and give the same.
    """
    return _count_distinct(addresses >> 5, lanes)


def count_global(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """Count sectors and lines, and the fewest that hold the bytes of each request; parameters as of `count_sectors`."""
    distinct, sectors, lines = _count_pieces(addresses, lanes, 1, SECTOR, LINE)
    needed_bytes = distinct * width
    return [sectors, lines, -(-needed_bytes // SECTOR), -(-needed_bytes // LINE)]


def count_piece_sectors(
    places: Array,
    offsets: Array,
    shift: int = 0,
    *,
    inside: Array | None = None,
    is_store: bool = False,
    is_multicast: bool = False,
) -> int:
    """Count the sectors of a bulk copy, which the chip cuts where its shared address is a multiple of 128 bytes.

    Each piece takes the sectors that it touches: so it is on H100s and H200s in 456 bulk copies and 280 tiles (Nsight
    Compute 2025.3.1, 2026-11). Zeros that a load puts beyond a tensor count as the sectors of shared memory that they
    fill; a store drops such elements. A multicast is cut at multiples of 128 of the global address, too; its pieces
    take at least two sectors, those of zeros three (an H200, 105 launches, docs/evidence/memory.md).

    Parameters
    ----------
    places, offsets : ndarray of int
        The address in global memory of each part of a sector that moves, and its address in shared memory; 2-D where
        rows of a tile are cut each by itself.
    shift : int
        The bytes by which the shared address would be greater.
    inside : ndarray of bool, optional
        The parts within the tensor; all unless given.
    is_store : bool
        Whether the copy goes to global memory.
    is_multicast : bool
        Whether the copy has a mask of blocks; the result is that of one destination.
    """
    rows = np.broadcast_to(np.arange(len(places))[:, None] if places.ndim > 1 else 0, places.shape)
    offsets, within = offsets + shift, np.full(places.shape, True) if inside is None else inside
    lines = np.where(within, places // LINE if is_multicast else 0, -1)
    sectors = np.where(within, places // SECTOR, -1 - offsets // SECTOR)
    keys = np.stack([rows, offsets // LINE, lines, sectors])
    keys = np.unique(keys[:, within] if is_store else keys.reshape(4, -1), axis=1)
    parts, counts = np.unique(keys[:3], axis=1, return_counts=True)
    return int((np.maximum(counts, np.where(parts[2] < 0, 3, 2)) if is_multicast else counts).sum())


def count_local_sectors(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """Count the sectors of local memory: for each word, those of eight lanes lie together; as of `count_sectors`.

    Each word of four bytes of an access is a request. So it is on an H200 in 54 launches (driver 580.159.04, 2026-11).
    """
    octets = (addresses >> 2) * (LANES // 8) + np.arange(LANES) // 8
    return [_count_distinct(octets, lanes) * max(width // WORD, 1)]


def count_constant_addresses(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """Count the different addresses of each request to constant memory; as of `count_sectors`.

    So it is on an H200 (``idc__requests``, 64 launches). An access of 16 bytes is two instructions of 8 bytes.
    """
    return [_count_distinct(addresses, lanes) * max(width // CONSTANT, 1)]


def count_wavefronts(addresses: Array, lanes: Array | None, width: int) -> Array:
    """Count the shared memory wavefronts of each request; parameters and result as of `count_sectors`."""
    return _count_turns(addresses, np.ones(addresses.shape, bool) if lanes is None else lanes, width, BANKS)


def _count_turns(addresses: Array, active: Array, width: int, word_count: int) -> Array:
    """Count the wavefronts of requests of which so many words are served together."""
    words = (addresses >> 2)[:, :, None] + np.arange(max(width // WORD, 1))
    words = np.sort(np.where(active[:, :, None], words, -1).reshape(-1, word_count), axis=1)
    new = words >= 0
    new[:, 1:] &= words[:, 1:] != words[:, :-1]
    row, column = np.nonzero(new)
    bank_load = np.bincount(row * BANKS + words[row, column] % BANKS, minlength=len(words) * BANKS).reshape(-1, BANKS)
    return np.asarray(bank_load.max(axis=1).reshape(len(addresses), -1).sum(axis=1))


def count_groups(addresses: Array, lanes: Array | None, width: int) -> Array:
    """Count the wavefronts of each request without bank conflicts: the groups of lanes with an active one."""
    active = np.ones(addresses.shape, bool) if lanes is None else lanes
    lane_count = BANKS * WORD // max(width, WORD)
    return np.asarray(active.reshape(len(active), -1, lane_count).any(axis=2).sum(axis=1))


def count_store_wavefronts(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """Count the wavefronts of each request, and those without bank conflicts."""
    return [count_wavefronts(addresses, lanes, width), count_groups(addresses, lanes, width)]


def count_load_wavefronts(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """Count as `count_store_wavefronts`; twice as many lanes of 8 or 16 bytes are served together where pairs agree.

    Those are all active lanes n and n ^ 1 with one address, or all n and n ^ 2. Where it saves no wavefront, it is no
    reason to call some of them conflicts. So it is on an H100 in all regular patterns
    of addresses (driver 580.159.04, nvcc 13.0.88, 2026-11).
    """
    served = count_store_wavefronts(addresses, lanes, width)
    if width > WORD:
        active, lane = np.ones(addresses.shape, bool) if lanes is None else lanes, np.arange(LANES)
        pairs = [(addresses == addresses[:, lane ^ n]) | ~active | ~active[:, lane ^ n] for n in (1, 2)]
        agreeing = np.flatnonzero(pairs[0].all(axis=1) | pairs[1].all(axis=1))
        if agreeing.size:
            turns = _count_turns(addresses[agreeing], active[agreeing], width, 2 * BANKS)
            gains = turns < served[0][agreeing]  # where nothing is gained, more lanes at once are no conflict
            agreeing = agreeing[gains]
            served[0][agreeing] = turns[gains]
            served[1][agreeing] = count_groups(addresses, active, width // 2)[agreeing]
    return served


def _group_lanes(keys: Array, lanes: Array | None) -> tuple[Array, Array, Array]:
    """Lanes with the same key: of each such group in each request the request, the key, and the number of lanes."""
    row, lane = np.nonzero(np.ones(keys.shape, bool) if lanes is None else lanes)
    (row, group_keys), counts = np.unique(np.stack([row, keys[row, lane]]), axis=1, return_counts=True)
    return row, group_keys, counts


def _find_maxima(requests: int, row: Array, counts: Array) -> Array:
    """Return the greatest number of each request."""
    maxima = np.zeros(requests, np.int64)
    np.maximum.at(maxima, row, counts)
    return maxima


def count_global_atomics(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """Count the most lanes of each request on one address; the same of each sector, summed; then as `count_global`."""
    row, address, counts = _group_lanes(addresses, lanes)
    is_first = np.ones(len(row), bool)
    is_first[1:] = (row[1:] != row[:-1]) | (address[1:] // SECTOR != address[:-1] // SECTOR)
    first = np.flatnonzero(is_first)
    sums = np.bincount(row[first], np.maximum.reduceat(counts, first), len(addresses)).astype(np.int64)
    return [_find_maxima(len(addresses), row, counts), sums, *count_global(addresses, lanes, width)[1:]]


def count_shared_atomics(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """Count the most lanes of each request on one address, and three kinds of turns; then the fewest of each kind.

    Turns are lanes in one bank, summed over the groups of lanes that are served together; such groups in the rounds of
    a loop; and wavefronts of loads.
    """
    count, active = len(addresses), np.full(len(addresses), LANES) if lanes is None else np.count_nonzero(lanes, axis=1)
    most_lanes = _find_maxima(count, *_group_lanes(addresses, lanes)[::2])
    group_size = BANKS * WORD // max(width, WORD)
    bank_keys = ((addresses >> 2) % BANKS).reshape(-1, group_size)
    row, _, lane_counts = _group_lanes(bank_keys, None if lanes is None else lanes.reshape(-1, group_size))
    banks = _find_maxima(len(bank_keys), row, lane_counts).reshape(count, -1).sum(axis=1)
    rounds = np.sum([count_groups(addresses, mask, width) for mask in _iter_rounds(addresses, lanes, width)], axis=0)
    fewest = -(-active * width // (BANKS * WORD))
    groups = count_groups(addresses, lanes, width)
    return [most_lanes, banks, rounds, count_wavefronts(addresses, lanes, width), groups, groups, fewest]


def count_loop_loads(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """Count the loads of a loop behind its first; the wavefronts of all, and those without bank conflicts.

    ptxas makes it of atomics on floats and 64 bits in shared memory: each round is ``LDS`` and ``ATOMS.CAST.SPIN``
    (nvcc 13.0.88, sm_90).
    """
    rounds = [
        [mask.any(axis=1), *count_load_wavefronts(addresses, mask, width)]
        for mask in _iter_rounds(addresses, lanes, width)
    ]
    loads, wavefronts, groups = np.array(rounds, np.int64).sum(axis=0)
    return [loads - 1, wavefronts, groups]


def _iter_rounds(addresses: Array, lanes: Array | None, width: int) -> Iterator[Array]:
    """Yield the pending lanes in each round of a loop of compare-and-swap, which changes the word.

    A round ends for the lowest pending lane on each bank, in each group of lanes that are served together, unless a
    group before changed the same word. Measured: H200, 72 launches of one warp, all three counters equal.
    """
    pending = np.ones(addresses.shape, bool) if lanes is None else lanes.copy()
    group, earlier = np.arange(LANES) // (BANKS * WORD // width), np.tri(LANES, k=-1, dtype=bool)
    banks, is_equal = (addresses >> 2) % BANKS, addresses[:, :, None] == addresses[:, None, :]
    blocks = (banks[:, :, None] == banks[:, None, :]) & earlier & (group[:, None] == group)
    fails = is_equal & (group[:, None] > group)
    while pending.any():
        yield pending.copy()
        first = pending & ~(blocks & pending[:, None, :]).any(axis=2)
        pending &= ~first | (fails & first[:, None, :]).any(axis=2)
