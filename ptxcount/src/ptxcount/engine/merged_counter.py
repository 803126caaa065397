"""Counting of accesses to shared memory that ptxas merges (`merging`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial

import numpy as np

from ..counting.rule_sums import sum_rules
from ..counting.transactions import count_load_wavefronts, count_store_wavefronts
from ..isa.operands import add_offset
from ..lanes.symbolic_values import Sum, Value
from ..lanes.warps import find_active_lanes
from ..machine.chunk import Chunk
from ..ptx.program import TYPES
from .merging import MergeableGroup


class MergedCounter:
    """Counts requests and wavefronts of merged accesses, each when the first of its instructions is executed.

    If the group has a `store`, they are counted when this store is executed, for the threads that store.
    """

    def __init__(self, group: MergeableGroup) -> None:
        self.kind, self.requests, self.wavefronts = group.kind, 0, 0
        #: Offset from its address, and bytes, of each merged access that an instruction begins; by the ``id``.
        self._begun = defaultdict[int, list[tuple[int, int]]](list)
        for start, width, (first, *_) in group.list_replacements():
            self._begun[group.instructions[first]].append((start - group.accesses[first].offset, width))
        #: Addresses of loads for the `store`, by the instruction's ``id``.
        self._addresses: dict[int, Value] = {}
        act = self._record if group.store is None else self._keep_address
        #: Functions to call at an instruction, with the chunk and the address, by the instruction's ``id``.
        self.recorders: dict[int, Callable[[Chunk, Value], None]] = {
            identity: partial(act, identity) for identity in self._begun
        }
        if group.store is not None:
            self.recorders[group.store] = self._record_kept

    def _keep_address(self, identity: int, chunk: Chunk, address: Value) -> None:
        self._addresses[identity] = address

    def _record_kept(self, chunk: Chunk, address: Value) -> None:
        for identity, kept in self._addresses.items():
            self._record(identity, chunk, kept)

    def _record(self, identity: int, chunk: Chunk, address: Value) -> None:
        """Count the accesses that an instruction begins, by the active threads of a chunk."""
        size = address.block.itemsize if isinstance(address, Sum) else address.itemsize
        rules = count_load_wavefronts if self.kind == "load" else count_store_wavefronts
        for shift, width in self._begun[identity]:
            offset = np.full((1, 1), shift).astype(f"i{size}")
            start = add_offset(TYPES[f"u{8 * size}"], address, offset) if shift else address
            self.requests += find_active_lanes(chunk.active, chunk.shape).requests
            self.wavefronts += sum_rules(rules, start, chunk.active, chunk.shape, width)[0]
