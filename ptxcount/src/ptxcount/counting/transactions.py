"""Memory transactions of addresses, as Nsight Compute counts them.

A *request* is one load or store of one warp with at least one active lane (``l1tex__t_requests``); it takes as many
*sectors* as the 32-byte pieces of memory it touches (``l1tex__t_sectors``), in as many *lines* as the 128-byte pieces.
The L1 cache has a tag for each line, and fetches sectors. Both are counted over the whole warp, whatever the width, as
the chip's ``l1tex__t_set_accesses`` counts lines.

In shared memory a request takes *wavefronts* (``l1tex__data_pipe_lsu_wavefronts_mem_shared``): for each group of lanes
served together (32 lanes of up to 4 bytes, 16 of 8, 8 of 16; twice as many where lanes share addresses,
`served_loads`), as many as the most loaded of the 32 four-byte banks has distinct words. *Bank conflicts* are the
wavefronts in excess of one for each group.

Atomics count each lane: `global_atomics` and `shared_atomics` are what their numbers are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from ..lanes.symbolic_values import Value, dense, split_sum
from ..lanes.warps import LANES, Array, by_warp, find_occupancy, lanes_by_warp, spread

SECTOR = 32
LINE = 128
BANKS = 32
WORD = 4
#: The most bytes a lane that one instruction reads of constant memory.
CONSTANT = 8
_EVERYONE = np.ones((1, 1), bool)
#: Addresses of requests that are remembered.
_MOST_KNOWN = 1 << 11
#: Rules further apart than this in the grouping of blocks are counted block by block.
_PERIOD = BANKS * WORD


def _ordered(units: Array, lanes: Array | None) -> Array:
    """The units that the active lanes of each request touch, in order; idle lanes repeat the first active one."""
    if lanes is not None:
        units = np.where(lanes, units, np.take_along_axis(units, lanes.argmax(axis=1)[:, None], axis=1))
    if (units[:, 1:] < units[:, :-1]).any():  # np.diff of unsigned numbers is never below 0
        units = np.sort(units, axis=1)
    return units


def _changes(units: Array) -> Array:
    """How many different ones there are in each row, which is in order."""
    return np.asarray(np.count_nonzero(units[:, 1:] != units[:, :-1], axis=1) + 1)


def _distinct(units: Array, lanes: Array | None) -> Array:
    """The distinct units that the active lanes of each request touch."""
    return _changes(_ordered(units, lanes))


def sectors(addresses: Array, lanes: Array | None, width: int) -> Array:
    """The sectors of each request. A lane touches one: its address is a multiple of its width, of 32 bytes at most.

    Addresses are bytes, (requests, 32); lanes are the active ones, of the same shape, or None for all; the width is in
    bytes a lane. The result has a number for each request. The other rules take and give the same.
    """
    return _distinct(addresses >> 5, lanes)


def global_patterns(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """Sectors and lines, and the fewest that hold what each request asks for; parameters as of `sectors`."""
    places = _ordered(addresses, lanes)
    asked = _changes(places) * width
    return [_changes(places >> 5), _changes(places >> 7), -(-asked // SECTOR), -(-asked // LINE)]


def piece_sectors(places: Array, offsets: Array, shift: int = 0, *, on: Array | None = None) -> int:
    """The sectors of a copy by the chip, which it cuts where its shared address is a multiple of 128 bytes.

    So it is on H100s and H200s in 456 bulk copies and 280 tiles (Nsight Compute 2025.3.1, 2026-11): each piece takes
    the sectors that it touches.

    Parameters
    ----------
    places, offsets : ndarray of int
        The address in global memory of each part of a sector that moves, and its address in shared memory; 2-D where
        rows of a tile are cut each by itself.
    shift : int
        The bytes by which the shared address would be greater.
    on : ndarray of bool, optional
        The parts that move; all unless given.
    """
    rows = np.broadcast_to(np.arange(len(places))[:, None] if places.ndim > 1 else 0, places.shape)
    keys = np.stack([rows, (offsets + shift) // LINE, places // SECTOR])
    return int(np.unique(keys.reshape(3, -1) if on is None else keys[:, on], axis=1).shape[1])


def local_sectors(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """The sectors of local memory: of each word those of the eight lanes that lie together; as of `sectors`.

    Each word of four bytes of an access is a request. So it is on an H200 in 54 launches (driver 580.159.04, 2026-11).
    """
    octets = (addresses >> 2) * (LANES // 8) + np.arange(LANES) // 8
    return [_distinct(octets, lanes) * max(width // WORD, 1)]


def constant_addresses(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """The different addresses of each request to constant memory; as of `sectors`.

    So it is on an H200 (``idc__requests``, 64 launches). An access of 16 bytes is two instructions of 8 bytes.
    """
    return [_distinct(addresses, lanes) * max(width // CONSTANT, 1)]


def wavefronts(addresses: Array, lanes: Array | None, width: int) -> Array:
    """The shared memory wavefronts of each request; parameters and result as of `sectors`."""
    return _turns(addresses, np.ones(addresses.shape, bool) if lanes is None else lanes, width, BANKS)


def _turns(addresses: Array, active: Array, width: int, together: int) -> Array:
    """The wavefronts of requests of which so many words are served together."""
    words = (addresses >> 2)[:, :, None] + np.arange(max(width // WORD, 1))
    words = np.sort(np.where(active[:, :, None], words, -1).reshape(-1, together), axis=1)
    new = words >= 0
    new[:, 1:] &= words[:, 1:] != words[:, :-1]
    row, column = np.nonzero(new)
    load = np.bincount(row * BANKS + words[row, column] % BANKS, minlength=len(words) * BANKS).reshape(-1, BANKS)
    return np.asarray(load.max(axis=1).reshape(len(addresses), -1).sum(axis=1))


def served_groups(addresses: Array, lanes: Array | None, width: int) -> Array:
    """The wavefronts of each request without bank conflicts: the groups of lanes with an active one."""
    active = np.ones(addresses.shape, bool) if lanes is None else lanes
    together = BANKS * WORD // max(width, WORD)
    return np.asarray(active.reshape(len(active), -1, together).any(axis=2).sum(axis=1))


def served_stores(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """The wavefronts of each request, and those without bank conflicts."""
    return [wavefronts(addresses, lanes, width), served_groups(addresses, lanes, width)]


def served_loads(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """As `served_stores`; twice as many lanes of 8 or 16 bytes are served together where pairs of them agree.

    Those are all active lanes n and n ^ 1 with one address, or all n and n ^ 2. Where it saves no wavefront, it is no
    reason to call some of them conflicts. So it is on an H100 in all regular patterns
    of addresses (driver 580.159.04, nvcc 13.0.88, 2026-11).
    """
    found = served_stores(addresses, lanes, width)
    if width > WORD:
        active, lane = np.ones(addresses.shape, bool) if lanes is None else lanes, np.arange(LANES)
        pairs = [(addresses == addresses[:, lane ^ n]) | ~active | ~active[:, lane ^ n] for n in (1, 2)]
        agreed = np.flatnonzero(pairs[0].all(axis=1) | pairs[1].all(axis=1))
        if agreed.size:
            turns = _turns(addresses[agreed], active[agreed], width, 2 * BANKS)
            gains = turns < found[0][agreed]  # where nothing is gained, more lanes at once are no conflict
            agreed = agreed[gains]
            found[0][agreed] = turns[gains]
            found[1][agreed] = served_groups(addresses, active, width // 2)[agreed]
    return found


def _most(keys: Array, lanes: Array | None) -> tuple[Array, Array, Array]:
    """Lanes with the same key: of each such group in each request the request, the key, and the number of lanes."""
    row, lane = np.nonzero(np.ones(keys.shape, bool) if lanes is None else lanes)
    (row, found), counts = np.unique(np.stack([row, keys[row, lane]]), axis=1, return_counts=True)
    return row, found, counts


def _greatest(requests: int, row: Array, counts: Array) -> Array:
    """The greatest of the numbers of each request."""
    found = np.zeros(requests, np.int64)
    np.maximum.at(found, row, counts)
    return found


def global_atomics(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """The most lanes of each request on one address; the same of each sector, summed; then as `global_patterns`."""
    row, address, counts = _most(addresses, lanes)
    opens = np.ones(len(row), bool)
    opens[1:] = (row[1:] != row[:-1]) | (address[1:] // SECTOR != address[:-1] // SECTOR)
    first = np.flatnonzero(opens)
    sums = np.bincount(row[first], np.maximum.reduceat(counts, first), len(addresses)).astype(np.int64)
    return [_greatest(len(addresses), row, counts), sums, *global_patterns(addresses, lanes, width)[1:]]


def shared_atomics(addresses: Array, lanes: Array | None, width: int) -> list[Array]:
    """The most lanes of each request on one address, and in one bank; the wavefronts of 64-bit loops, and of a store.

    Those of loops are four a turn, three where all lanes are on one address.
    """
    count, active = len(addresses), LANES if lanes is None else np.count_nonzero(lanes, axis=1)
    together, banks = (_greatest(count, *_most(keys, lanes)[::2]) for keys in (addresses, (addresses >> 2) % BANKS))
    return [together, banks, together * np.where(together == active, 3, 4), wavefronts(addresses, lanes, width)]


#: From the addresses of requests, their active lanes (None for all) and the bytes of each, numbers for each request.
Rules = Callable[[Array, "Array | None", int], Sequence[Array]]


def totals(rules: Rules, address: Value, active: Array, shape: tuple[int, int], width: int) -> list[int]:
    """Rules, each summed over all requests of a chunk of ``shape`` (blocks, threads).

    No rule gives anything else when all addresses move by 128 bytes. So of blocks alike but for such moves,
    one is counted. ``active`` is broadcastable to the shape; a thread touches ``width`` bytes.
    """
    blocks, threads = shape
    split = split_sum(address, address.itemsize) if isinstance(address, np.ndarray) else address
    on = find_occupancy(active, shape)
    lanes = on.lanes
    if split is None:
        whole = dense(address)
        rows = by_warp(spread(whole.view(f"i{whole.itemsize}"), shape), threads)
        if lanes is None:
            return [int(table.sum()) for table in rules(rows.reshape(-1, LANES), None, width)]
        some = spread(on.warps, rows.shape[:2])
        return [int(table.sum()) for table in rules(rows[some], spread(lanes, rows.shape)[some], width)]
    residues, kind, weights = _alike(split.block.ravel() % _PERIOD)
    columns = by_warp(split.thread, threads)[0]
    moved = columns - columns.min() // _PERIOD * _PERIOD
    exists = lanes_by_warp(_EVERYONE, threads) if threads % LANES else None

    def of_kinds() -> list[Array]:
        """What each kind of block has for each of its warps."""
        every = None if exists is None else spread(exists, (len(residues), *moved.shape))
        tables = _counted(rules, residues[:, None, None] + moved, every, width)
        return [table.reshape(len(residues), -1) for table in tables]

    if lanes is None or active.size == 1:
        return [int((table.sum(axis=1) * weights).sum()) * (blocks // split.block.size) for table in of_kinds()]
    of_block, lanes = spread(kind, (blocks,)), spread(lanes, (blocks, *moved.shape))
    full = (lanes if exists is None else lanes | ~exists).all(axis=2)
    block, warp = np.nonzero(on.warps & ~full)
    found = []
    if len(block):
        tables = _counted(rules, residues[of_block[block]][:, None] + moved[warp], lanes[block, warp], width)
        found.append([int(table.sum()) for table in tables])
    if not found or full.any():
        found.append([int(table[of_block][full].sum()) for table in of_kinds()])
    return [sum(each) for each in zip(*found, strict=True)]


def _counted(rules: Rules, addresses: Array, lanes: Array | None, width: int) -> Sequence[Array]:
    """Rules for each request; loops come to the same few again and again."""
    addresses = addresses.astype(np.int64, copy=False)
    if addresses.size <= _MOST_KNOWN:
        return _known(rules, width, addresses.tobytes(), None if lanes is None else lanes.tobytes())
    return rules(addresses.reshape(-1, LANES), None if lanes is None else lanes.reshape(-1, LANES), width)


@lru_cache(maxsize=1 << 10)
def _known(rules: Rules, width: int, addresses: bytes, lanes: bytes | None) -> Sequence[Array]:
    rows = np.frombuffer(addresses, np.int64).reshape(-1, LANES)
    return rules(rows, None if lanes is None else np.frombuffer(lanes, bool).reshape(-1, LANES), width)


def _alike(residues: Array) -> tuple[Array, Array, Array]:
    """The distinct residues, which of them each block has, and how many blocks have each."""
    if residues.size == 1 or (residues == residues[0]).all():
        return residues[:1], np.zeros(residues.size, np.intp), np.array([residues.size])
    distinct, kind, weights = np.unique(residues, return_inverse=True, return_counts=True)
    return distinct, kind.ravel(), weights
