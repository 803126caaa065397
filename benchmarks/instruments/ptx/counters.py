"""Memory transactions as Nsight Compute counts them.

A *request* is one load or store of one warp with at least one active lane (``l1tex__t_requests``); it takes as many
*sectors* as the 32-byte pieces of memory it touches (``l1tex__t_sectors``). In shared memory a request takes
*wavefronts* (``l1tex__data_pipe_lsu_wavefronts_mem_shared``): for each group of lanes served together (32 lanes of up
to 4 bytes, 16 of 8, 8 of 16), as many as the most loaded of the 32 four-byte banks has distinct words. *Bank conflicts*
are the wavefronts beyond one a group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import Source
from .values import Value, dense, parts
from .warps import by_warp, lanes_by_warp, spread, warp_count

Array = npt.NDArray[Any]
SECTOR = 32
BANKS = 32
WORD = 4
#: Patterns further apart than this in the grouping of blocks are counted block by block.
_PERIOD = BANKS * WORD


def _without_idle(units: Array, lanes: Array | None) -> Array:
    """Idle lanes made to repeat the first active one, which changes no count of distinct units."""
    if lanes is None:
        return units
    first = np.take_along_axis(units, lanes.argmax(axis=1)[:, None], axis=1)
    return np.where(lanes, units, first)


def sectors(addresses: Array, lanes: Array | None, width: int) -> Array:
    """The sectors of each request: addresses (requests, 32), active lanes alike or None for all, width in bytes."""
    units = _without_idle(addresses >> 5, lanes)
    steps = np.diff(units, axis=1)
    if (steps < 0).any():
        steps = np.diff(np.sort(units, axis=1), axis=1)
    return np.asarray(np.count_nonzero(steps, axis=1) + 1)


def _groups(values: Array, width: int) -> Array:
    """(requests, 32) as (requests, groups, lanes served together)."""
    lanes = 32 * WORD // max(width, WORD)
    return values.reshape(len(values), -1, lanes)


def wavefronts(addresses: Array, lanes: Array | None, width: int) -> Array:
    """The shared memory wavefronts of each request."""
    words = (addresses >> 2)[:, :, None] + np.arange(max(width // WORD, 1))
    active = np.ones(addresses.shape, bool) if lanes is None else lanes
    words = np.where(active[:, :, None], words, -1).reshape(-1, BANKS)  # a row is a group: 32 words in every case
    words = np.sort(words, axis=1)
    new = words >= 0
    new[:, 1:] &= words[:, 1:] != words[:, :-1]
    row, column = np.nonzero(new)
    load = np.bincount(row * BANKS + words[row, column] % BANKS, minlength=words.size).reshape(-1, BANKS)
    return np.asarray(load.max(axis=1).reshape(len(addresses), -1).sum(axis=1))


def served_groups(addresses: Array, lanes: Array | None, width: int) -> Array:
    """The groups of lanes with an active one: the wavefronts of each request without bank conflicts."""
    active = np.ones(addresses.shape, bool) if lanes is None else lanes
    return np.asarray(_groups(active, width).any(axis=2).sum(axis=1))


Pattern = Callable[[Array, "Array | None", int], Array]


def total(pattern: Pattern, address: Value, active: Array, shape: tuple[int, int], width: int) -> int:
    """A pattern summed over all requests of a chunk.

    Parameters
    ----------
    pattern : callable
        `sectors`, `wavefronts` or `served_groups`, none of which changes when all addresses move by 128 bytes.
        So of blocks whose addresses are the same up to such moves, one is counted.
    address : Value
        Byte addresses.
    active : ndarray of bool
        The active threads, broadcastable to ``shape`` (blocks, threads).
    width : int
        Bytes a thread.
    """
    blocks, threads = shape
    split = parts(address, address.itemsize) if isinstance(address, np.ndarray) else address
    lanes = None if active.size == 1 else lanes_by_warp(spread(active, shape), threads)
    some, every = _occupied(lanes, threads)
    if split is None:
        rows = by_warp(spread(dense(address), shape), threads)
        if lanes is None:
            return int(pattern(rows.reshape(-1, 32), None, width).sum())
        return int(pattern(rows[some], lanes[some], width).sum())
    residues, kind, weights = _alike(split.block.ravel() % _PERIOD)
    columns = by_warp(split.thread, threads)[0]
    patterns = (residues[:, None, None] + columns).reshape(-1, 32)
    table = pattern(patterns, None, width).reshape(len(residues), -1)
    if lanes is None:
        return int((table.sum(axis=1) * weights).sum()) * (blocks // split.block.size)
    of_block = spread(kind, (blocks,))
    whole = int(table[of_block][every].sum())
    block, warp = np.nonzero(some & ~every)
    rows = residues[of_block[block]][:, None] + columns[warp]
    return whole + (int(pattern(rows, lanes[block, warp], width).sum()) if len(block) else 0)


def _alike(residues: Array) -> tuple[Array, Array, Array]:
    """The distinct residues, which of them each block has, and how many blocks have each."""
    if residues.size == 1 or (residues == residues[0]).all():
        return residues[:1], np.zeros(residues.size, np.intp), np.array([residues.size])
    distinct, kind, weights = np.unique(residues, return_inverse=True, return_counts=True)
    return distinct, kind.ravel(), weights


def _occupied(lanes: Array | None, threads: int) -> tuple[Array, Array]:
    """Which warps have an active lane, and in which every lane that exists is active."""
    if lanes is None:
        everyone: Array = np.ones((1, 1), bool)
        return everyone, everyone
    exists = np.arange(lanes.shape[1] * 32).reshape(-1, 32) < threads
    return np.asarray(lanes.any(axis=2)), np.asarray((lanes | ~exists).all(axis=2))


def requests(active: Array, shape: tuple[int, int]) -> int:
    """The warps with at least one active lane."""
    blocks, threads = shape
    if active.size == 1:
        return blocks * warp_count(threads)
    return int(lanes_by_warp(active, threads).any(axis=2).sum() * (blocks // active.shape[0]))


def active_threads(active: Array, shape: tuple[int, int]) -> int:
    """The number of active threads."""
    return int(np.count_nonzero(active)) * int(shape[0] * shape[1] // active.size)


@dataclass
class Access:
    """What one memory instruction did in a launch.

    Attributes
    ----------
    source : Source
        The instruction.
    space, kind : str
        ``global`` or ``shared``; ``load``, ``store`` or ``atomic``.
    width : int
        Bytes a thread.
    requests, sectors, wavefronts : int
        See the module; sectors for global memory, wavefronts for shared memory.
    conflict_free : int
        The wavefronts it would take without bank conflicts.
    useful_bytes : int
        Width times active threads.
    """

    source: Source
    space: str
    kind: str
    width: int
    requests: int = 0
    sectors: int = 0
    wavefronts: int = 0
    conflict_free: int = 0
    useful_bytes: int = 0

    @property
    def ideal_sectors(self) -> int:
        """The sectors of the same useful bytes without gaps and without repetition."""
        return -(-self.useful_bytes // SECTOR)

    @property
    def bank_conflicts(self) -> int:
        """Wavefronts beyond the conflict-free number."""
        return self.wavefronts - self.conflict_free

    def record(self, address: Value, active: Array, shape: tuple[int, int]) -> None:
        """Count one execution by a chunk of (blocks, threads)."""
        count = requests(active, shape)
        self.requests += count
        self.useful_bytes += active_threads(active, shape) * self.width
        if self.space == "global":
            self.sectors += total(sectors, address, active, shape, self.width)
        elif self.space == "shared":
            self.wavefronts += total(wavefronts, address, active, shape, self.width)
            narrow = self.width <= WORD
            self.conflict_free += count if narrow else total(served_groups, address, active, shape, self.width)


@dataclass
class LaunchCounters:
    """The counters of a launch: totals by name, and ``accesses`` by instruction."""

    threads: int
    accesses: list[Access] = field(default_factory=list)
    thread_instructions: int = 0
    warp_instructions: int = 0

    def _sum(self, name: str, space: str, kind: str) -> int:
        return sum(getattr(a, name) for a in self.accesses if (a.space, a.kind) == (space, kind))

    def totals(self) -> dict[str, int]:
        """Every total of the launch, by the names that the command line and the tests use."""
        result = {"threads": self.threads}
        for space, prefix, amounts in _TOTALS:
            for kind in ("load", "store", "atomic"):
                result |= {f"{prefix}{kind}_{name}": self._sum(name, space, kind) for name in amounts}
        return result | {
            "thread_instructions": self.thread_instructions,
            "warp_instructions": self.warp_instructions,
        }

    def by_line(self) -> dict[tuple[str | None, int | None], list[Access]]:
        """The accesses grouped by source file and line."""
        lines: dict[tuple[str | None, int | None], list[Access]] = {}
        for access in self.accesses:
            lines.setdefault((access.source.file, access.source.line), []).append(access)
        return lines


_TOTALS = (
    ("global", "", ("requests", "sectors", "ideal_sectors", "useful_bytes")),
    ("shared", "shared_", ("requests", "wavefronts", "bank_conflicts", "useful_bytes")),
)
