"""Barriers of a chunk's blocks, clusters and warps: arrivals, and the release of waiting threads."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from ..isa.block_barriers import Barrier
from ..isa.operands import as_array
from ..lanes.warps import ALL_THREADS, LANES, Array, by_thread, find_active_lanes, lanes_by_warp, spread
from ..machine.chunk import Chunk
from ..ptx.flow import End, find_reachable
from ..ptx.program import TYPES
from ..util.errors import DivergentBarrierError, Source
from .barrier_arrivals import ALL, CLUSTER, ELECT, WARP, BarrierArrival, BarrierKey, select_waiting, union
from .executable import CodeBlock

_U32 = TYPES["u32"]
_REMEDY = "let all of them reach one barrier"
#: Basic block where threads continue, and the mask of these threads.
Resumed = tuple[int, Array]


class BarrierQueue:
    """The arrivals at the barriers of one chunk."""

    def __init__(self, chunk: Chunk, code: list[CodeBlock]) -> None:
        self._chunk, self._code = chunk, code
        self._arrivals: list[BarrierArrival] = []
        #: Threads that have skipped a block barrier: they run code behind it while other threads wait there.
        self._bypassing = np.zeros((1, 1), bool)
        #: Results of `_is_bypass`.
        self._bypasses: dict[tuple[int, int], bool] = {}

    def __bool__(self) -> bool:
        return bool(self._arrivals)

    @property
    def waiting(self) -> list[tuple[int, BarrierArrival]]:
        """Pairs of a basic block's index and an arrival that waits at the end of this block."""
        return select_waiting(self._arrivals)

    def add_arrivals(self, index: int, barrier: Barrier, active: Array) -> None:
        """Add the threads that arrive at the block or cluster barrier of a basic block."""
        numbers = np.full((1, 1), CLUSTER) if barrier.number is None else as_array(barrier.number(self._chunk), _U32)
        counts = np.full((1, 1), ALL) if barrier.threads is None else as_array(barrier.threads(self._chunk), _U32)
        numbers, counts = np.broadcast_arrays(numbers, counts)
        for key in sorted({*map(BarrierKey, numbers.ravel().tolist(), counts.ravel().tolist())}):
            arrived = active & (numbers == key.number) & (counts == key.expected)
            if arrived.any():
                self._arrivals.append(BarrierArrival(key, arrived, index if barrier.waits else None))

    def record_bypass(self, index: int, active: Array) -> None:
        """Record threads that run a basic block behind a block barrier while other threads wait at the barrier."""
        for stop, arrival in self.waiting:
            if arrival.key.is_whole_block:
                if (stop, index) not in self._bypasses:
                    self._bypasses[stop, index] = self._is_bypass(stop, index)
                if self._bypasses[stop, index]:
                    self._bypassing = self._bypassing | active

    def _is_bypass(self, stop: int, index: int) -> bool:
        """Tell if threads at basic block ``index`` have skipped the barrier at the end of basic block ``stop``.

        The barrier must be aligned, every path from it must reach block ``index``, and this block must load from
        memory. A block that only stores may be an early return, which is legal: the compiler merges the stores of two
        paths. So only the strict check takes a store for a skipped barrier.
        """
        barrier = self._code[stop].barrier
        if barrier is None or not barrier.aligned:
            return False
        before = find_reachable(lambda block: self._code[block].successors, self._code[stop].successors, {index})
        if any(self._code[block].end is End.EXIT for block in before):
            return False
        code = (instruction for instruction, *_ in self._code[index].steps)
        opcodes = ("ld", "st", "atom", "red") if self._chunk.context.races == "strict" else ("ld",)
        return any(instruction.opcode in opcodes and "param" not in instruction.modifiers for instruction in code)

    def add_warp_arrivals(self, index: int, masks: Array, active: Array, *, orders_memory: bool) -> list[BarrierKey]:
        """Add the threads that arrive at the warp barrier of a basic block, by their ``masks``; return the keys."""
        masks = np.where(active, masks, 0)  # masks of inactive threads are undefined
        number = WARP if orders_memory else ELECT
        keys = [BarrierKey(number, int(mask)) for mask in np.unique(masks)]
        arrivals = [BarrierArrival(key, active & (masks == key.expected), index) for key in keys]
        arrivals = [arrival for arrival in arrivals if arrival.threads.any()]
        self._arrivals += arrivals
        return [arrival.key for arrival in arrivals]

    def list_keys(self) -> list[BarrierKey]:
        """Return the keys of all barriers with arrivals; cluster barriers come last."""
        return sorted({arrival.key for arrival in self._arrivals}, reverse=True)

    def release(self, key: BarrierKey, ready: Iterable[Array]) -> list[Resumed] | None:
        """Release the blocks whose expected threads have arrived; return where threads continue, None if none do.

        A block barrier expects all threads that have not exited, or the given number, counted in whole warps. A cluster
        barrier is always released: call this when no thread can run. ``ready`` has the masks of the threads that wait
        at no barrier. Raises `DivergentBarrierError` if lanes of a warp wait for all threads at different instructions,
        of which one is aligned.
        """
        if key.is_warp:
            return self.release_warps(key, ready, late=False)
        arrivals, others = self._split_arrivals(key)
        arrived = union(arrival.threads for arrival in arrivals)
        if key.is_cluster:
            released = ALL_THREADS
        elif key.is_whole_block:
            elsewhere = [*ready, *(arrival.threads for _, arrival in select_waiting(others))]
            released = np.asarray(arrived.any(axis=1, keepdims=True))
            if elsewhere:
                released = released & ~union(elsewhere).any(axis=1, keepdims=True)
        else:
            warps = np.count_nonzero(lanes_by_warp(arrived, self._chunk.shape[1]).any(axis=2), axis=1, keepdims=True)
            released = np.asarray((warps * LANES >= key.expected) & (warps > 0))
        if not released.any():
            return None
        if key.is_whole_block:
            self._report_bypass(arrivals, arrived & released)
            self._bypassing = self._bypassing & ~released
            self._report_split_arrivals([arrival._replace(threads=arrival.threads & released) for arrival in arrivals])
        resumed = self._remove(arrivals, others, released)
        self._chunk.shared.reset_races(released)
        self._chunk.order_blocks(released)
        if key.is_cluster:
            self._chunk.shared.order_blocks(released)
        self._chunk.context.progress.note_progress()
        return resumed

    def release_warps(self, key: BarrierKey, ready: Iterable[Array], *, late: bool) -> list[Resumed] | None:
        """Release the warps in which all lanes of the mask have arrived or exited; return as `release` does.

        With ``late``, release all waiting warps: the other lanes never arrive. Report those that wait elsewhere.
        """
        chunk = self._chunk
        arrivals, others = self._split_arrivals(key)
        elsewhere = [*ready, *(arrival.threads for _, arrival in select_waiting(others))]
        warps = np.asarray(lanes_by_warp(union(arrival.threads for arrival in arrivals), chunk.shape[1]).any(axis=2))
        if elsewhere and late:
            self._report_late_lanes(arrivals, others)
        elif elsewhere:
            in_mask = (key.expected >> np.arange(LANES) & 1).astype(bool)
            is_incomplete = (lanes_by_warp(union(elsewhere), chunk.shape[1]) & in_mask).any(axis=2)
            warps = warps & ~is_incomplete
        if not warps.any():
            return None
        released = by_thread(spread(warps[:, :, None], (*warps.shape, LANES)), chunk.shape[1])
        if key.number == WARP:
            chunk.shared.order_lanes(warps, key.expected)
        return self._remove(arrivals, others, released)

    def _split_arrivals(self, key: BarrierKey) -> tuple[list[BarrierArrival], list[BarrierArrival]]:
        arrivals = [arrival for arrival in self._arrivals if arrival.key == key]
        return arrivals, [arrival for arrival in self._arrivals if arrival.key != key]

    def _remove(self, arrivals: list[BarrierArrival], others: list[BarrierArrival], released: Array) -> list[Resumed]:
        """Keep ``others``, and ``arrivals`` without ``released`` threads; return where released threads continue."""
        remaining = [arrival._replace(threads=arrival.threads & ~released) for arrival in arrivals]
        self._arrivals = others + [arrival for arrival in remaining if arrival.threads.any()]
        waiting = select_waiting(arrivals)
        return [(self._code[stop].successors[0], arrival.threads & released) for stop, arrival in waiting]

    def _report_late_lanes(self, arrivals: list[BarrierArrival], others: list[BarrierArrival]) -> None:
        (stop, first), (other_stop, _) = select_waiting(arrivals)[0], select_waiting(others)[0]
        place = self._code[other_stop].source
        mask = f"{first.key.expected:#010x}"
        text = f"it waits for all lanes in the mask {mask}; some of them wait at the barrier in {place}"
        self._report_divergence(first.threads, self._code[stop].source, text)

    def _report_bypass(self, arrivals: list[BarrierArrival], arrived: Array) -> None:
        """Report lanes that wait at a block barrier which other lanes of their warp have skipped."""
        bypassing = self._bypassing & ~arrived
        waiting = select_waiting(arrivals)
        if not waiting or not bypassing.any():
            return
        chunk, threads = self._chunk, self._chunk.shape[1]
        is_bypassed = lanes_by_warp(spread(bypassing, chunk.shape), threads).any(axis=2, keepdims=True)
        waiting_lanes = lanes_by_warp(spread(arrived, chunk.shape), threads) & is_bypassed
        if waiting_lanes.any():
            text = "other lanes of its warp skip the barrier and then access memory"
            self._report_divergence(by_thread(waiting_lanes, threads), self._code[waiting[0][0]].source, text)

    def _report_split_arrivals(self, arrivals: list[BarrierArrival]) -> None:
        """Report blocks whose warps wait at different barriers; raise `DivergentBarrierError` if lanes of a warp do."""
        waiting = [(stop, arrival) for stop, arrival in select_waiting(arrivals) if arrival.threads.any()]
        for (first_stop, first), (second_stop, second) in pairwise(waiting):
            barriers, chunk = [self._code[stop].barrier for stop in (first_stop, second_stop)], self._chunk
            if first_stop == second_stop or not any(barrier and barrier.aligned for barrier in barriers):
                continue  # barriers that are not aligned may differ
            in_both = first.threads.any(axis=1, keepdims=True) & second.threads.any(axis=1, keepdims=True)
            if not in_both.any():  # no block waits at both
                continue
            first_lanes, second_lanes = (
                lanes_by_warp(spread(arrival.threads & in_both, chunk.shape), chunk.shape[1])
                for arrival in (first, second)
            )
            is_split = np.asarray(first_lanes.any(axis=2) & second_lanes.any(axis=2))
            place, source = (self._code[stop].source for stop in (first_stop, second_stop))
            if is_split.any():
                chunk.active = by_thread(second_lanes & is_split[:, :, None], chunk.shape[1])
                text = f"other lanes of its warp wait at the barrier in {place}; {_REMEDY}"
                raise chunk.make_fault(DivergentBarrierError, text, source=source)
            text = f"other warps of its block wait at the barrier in {place}"
            self._report_divergence(second.threads & in_both, source, text)

    def _report_divergence(self, threads: Array, source: Source, text: str) -> None:
        """Add a finding on threads at a divergent barrier; CUDA does not define what happens there."""
        self._chunk.active = threads
        fault = self._chunk.make_fault(DivergentBarrierError, f"{text}: undefined in CUDA; {_REMEDY}", source=source)
        count = find_active_lanes(threads, self._chunk.shape).threads
        self._chunk.context.add_finding("divergent-barrier", source, fault.what, count)
