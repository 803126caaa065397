"""Copies by ``cp.async`` that their threads have not waited for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..lanes.warps import Array


class PendingCopies:
    """The pending copies of the threads of a chunk. One row represents all blocks while all blocks do the same."""

    def __init__(self) -> None:
        #: Number of groups that each thread has committed.
        self._commits = np.zeros((1, 1), np.int64)
        #: For each instruction: the address to which each thread copies, -1 for none; its group; bytes per thread.
        self._copies: list[tuple[Array, Array, int]] = []

    def __bool__(self) -> bool:
        return bool(self._copies)

    def select(self, rows: Array) -> PendingCopies:
        """Return the copies of the blocks ``rows``."""
        part = PendingCopies()
        part._commits = _select_rows(self._commits, rows)
        part._copies = [(_select_rows(at, rows), _select_rows(group, rows), size) for at, group, size in self._copies]
        return part

    def add(self, addresses: Array, active: Array, size: int) -> Array:
        """Add one instruction's copies; return the address to which each active thread copies, -1 for the others."""
        active_addresses = np.where(active, addresses, -1)
        self._copies.append((active_addresses, self._commits, size))
        return active_addresses

    def commit_group(self, active: Array) -> None:
        """Commit the pending copies of the active threads as a group."""
        self._commits = self._commits + active

    def complete(self, active: Array, kept_groups: int | None) -> Iterator[tuple[Array, int]]:
        """Complete copies of active threads in committed groups, except each thread's last ``kept_groups`` groups.

        With None, also complete uncommitted copies. For each instruction that copied, yield the address of each
        thread's completed copy, -1 for none, and the bytes per thread.
        """
        pending, self._copies = self._copies, []
        for addresses, groups, size in pending:
            is_done = active if kept_groups is None else active & (groups < self._commits - kept_groups)
            yield np.where(is_done, addresses, -1), size
            remaining = np.where(is_done, -1, addresses)
            if (remaining >= 0).any():
                self._copies.append((remaining, groups, size))


def _select_rows(values: Array, rows: Array) -> Array:
    return values[rows] if len(values) > 1 else values
