"""Order in which the threads of a chunk run: divergence, reconvergence, barriers and the step limit."""

from __future__ import annotations

import hashlib
import time
from typing import NoReturn

import numpy as np

from ..isa.operands import as_array
from ..lanes.symbolic_values import dense
from ..lanes.warps import ALL_THREADS, LANES, Array, find_active_lanes
from ..machine.chunk import Chunk
from ..machine.warp_clocks import FULL
from ..ptx.flow import End, Flow
from ..ptx.program import TYPES, Register
from ..util.errors import (
    DivergentBarrierError,
    KernelFaultError,
    NoProgressError,
    StepLimitExceededError,
    TimeLimitExceededError,
)
from ..util.grammar import choose_form, count_noun
from .barriers import BarrierQueue, Resumed
from .executable import CodeBlock
from .reconvergence import Order
from .yielded_warps import YieldedWarps

_PRED, _U32 = TYPES["pred"], TYPES["u32"]
#: Maximum splits of a chunk (the thread blocks that run together) by branches that differ between blocks, and minimum
#: blocks for a split. Typically, the first bounds check splits interior from edge blocks, the second splits off idle
#: blocks.
_MAX_DIVERGENCE_DEPTH = 2
_MIN_BLOCKS_PER_SPLIT = 16
#: Failed polls before other threads of the chunk are scheduled: for the first time, and later. These polls are a round.
_FIRST_PATIENCE, _LATER_PATIENCE = 200, 4
#: Rounds without a write before other chunks are scheduled, for each basic block where threads are ready.
_MAX_VAIN_ROUNDS = 8
#: Maximum number of source lines in a message.
_MAX_SHOWN = 4
_WAIT = ("waits", "wait")
_STEP_LIMIT_TEXT = "stopped after {} instructions of a group of blocks; correct an endless loop, or raise --step-limit"


class Schedule:
    """The threads of one chunk by the basic block that they run next, and the barriers where threads wait."""

    def __init__(self, chunk: Chunk, code: list[CodeBlock], flow: Flow, order: Order) -> None:
        self._chunk, self._code, self._flow, self._order = chunk, code, flow, order
        self._yielded = YieldedWarps.begin(order.yielding_loops, chunk.shape) if order.yielding_loops else None
        #: Masks of the threads that wait at no barrier, by the basic block that they run next; the oldest first. The
        #: number of blocks is added to the block of threads that wait for no others.
        self._ready: dict[int, Array] = {0: ALL_THREADS}
        self._barriers = BarrierQueue(chunk, code)
        self._patience, self._vain_rounds = _FIRST_PATIENCE, 0
        self._divergence_depth = 0
        #: True if a thread has written to memory during the last `run_turn`.
        self.has_progress = False

    def run_turn(self) -> list[Schedule] | None:
        """Run until all threads exit, a branch splits the chunk, or all threads wait for other chunks.

        Return the schedules of the parts, none if all threads have exited; None if threads wait for other chunks.
        Raises `KernelFaultError` for a fault, a deadlock or a limit.
        """
        self.has_progress, self._vain_rounds = False, 0
        while self._ready or self._barriers.waiting:
            if not self._ready and not self._release_complete() and not self._release_late_lanes():
                self.report_stall()
            if self._chunk.spins > self._patience:
                if self._end_round():
                    return None
                place = next(iter(self._ready))  # the threads that have been ready longest may end the wait
            else:
                place = min(self._ready, key=self._order.rank.__getitem__)
            has_waited, index = place < len(self._code), place % len(self._code)
            parts = self._execute_block(index, self._ready.pop(place), has_waited=has_waited)
            if parts:
                return parts
        self._chunk.check_tensor_leak()
        return []

    def _end_round(self) -> bool:
        """End a round of failed polls: release complete barriers. Tell if all ready threads keep polling in vain."""
        chunk = self._chunk
        self._vain_rounds = 0 if chunk.has_written else self._vain_rounds + 1
        self.has_progress |= chunk.has_written
        self._patience, chunk.spins, chunk.has_written = _LATER_PATIENCE, 0, False
        return not self._release_complete() and self._vain_rounds > _MAX_VAIN_ROUNDS * len(self._ready)

    def hash_state(self) -> str:
        """Return a hash of the registers, and of the threads that are ready. Memory is left out."""
        digest = hashlib.sha256(repr([*self._ready]).encode())
        for threads in self._ready.values():
            digest.update(threads.tobytes())
        for name, value in sorted(self._chunk.registers.items()):
            digest.update(name.encode() + dense(value).tobytes())
        return digest.hexdigest()

    def report_stall(self) -> NoReturn:
        """Raise `NoProgressError` or `DivergentBarrierError`, with the source lines of waiting threads."""
        if self._ready:
            place, threads = next(iter(self._ready.items()))
            index = place % len(self._code)
            waits = self._describe_wait(threads)
            cause = "waits for an mbarrier" if waits else "polls a location for a value that no thread will write"
            self._raise_fault(NoProgressError, index, threads, f"deadlock: it {cause}")
        stop, arrival = self._barriers.waiting[0]
        self._raise_fault(DivergentBarrierError, stop, arrival.threads, arrival.describe())

    def _raise_fault(self, error: type[KernelFaultError], index: int, threads: Array, text: str) -> NoReturn:
        self._chunk.active = threads
        raise self._chunk.make_fault(error, f"{text}; {self._describe_places()}", source=self._code[index].source)

    def _describe_places(self, running: int | None = None) -> str:
        """Describe where threads run, are ready, and wait at barriers; ``running`` is the running basic block."""
        texts = [] if running is None else [self._describe_place(running, self._chunk.active, ("is", "are"), "at")]
        for place, threads in self._ready.items():
            wait = self._describe_wait(threads)
            texts.append(
                self._describe_place(place % len(self._code), threads, _WAIT, "at") + (f" for {wait}" if wait else "")
            )
        for stop, arrival in self._barriers.waiting:
            texts.append(self._describe_place(stop, arrival.threads, _WAIT, "at the barrier in"))
        return ", ".join(texts[:_MAX_SHOWN])

    def _describe_place(self, index: int, threads: Array, verbs: tuple[str, str], where: str) -> str:
        count = find_active_lanes(threads, self._chunk.shape).threads
        return f"{count_noun(count, 'thread')} {choose_form(count, *verbs)} {where} {self._code[index].source}"

    def _describe_wait(self, threads: Array) -> str:
        """Describe the mbarrier that the first of some threads waits for; empty if that thread waits for none."""
        if not self._chunk.barrier_waits.size:
            return ""
        from ..isa.hopper.mbarriers import describe_wait  # noqa: PLC0415 -- which most kernels do without

        return describe_wait(self._chunk, threads)

    def _execute_block(self, index: int, active: Array, *, has_waited: bool) -> list[Schedule]:
        """Execute a basic block; if its branch splits the chunk, return the schedules of the parts."""
        chunk, code = self._chunk, self._code[index]
        chunk.active = active
        continuations = [self._code[stop].successors[0] for stop, _ in self._barriers.waiting]
        ready = [place % len(self._code) for place in self._ready]
        chunk.live_elsewhere = self._flow.find_live(frozenset([*ready, *continuations]))
        chunk.enter_block(index)
        if self._barriers:
            self._barriers.record_bypass(index, active)
        chunk.steps += len(code.steps) + 1
        self._check_limits(index, code)
        counters = chunk.context.counters
        occupancy = find_active_lanes(active, chunk.shape)
        if self._yielded:
            self._yielded.note_run(index, active, occupancy.warps, has_waited=has_waited)
        counters.thread_instructions += code.weight * occupancy.threads
        counters.warp_instructions += code.weight * occupancy.requests
        for chunk.instruction, step, dead in code.steps:
            step(chunk)
            for name in dead:
                chunk.registers.pop(name, None)
        if code.end is End.BARRIER:
            self._arrive(index, code, active)
        elif code.guard is not None:
            return self._branch(index, code.guard, active)
        elif code.end is not End.EXIT:
            self._schedule_threads(code.successors[-1], active, index)
        return []

    def _check_limits(self, index: int, code: CodeBlock) -> None:
        chunk, context = self._chunk, self._chunk.context
        if chunk.steps > context.step_limit:
            text = "; ".join(filter(None, [_STEP_LIMIT_TEXT.format(context.step_limit), self._describe_places()]))
            raise chunk.make_fault(StepLimitExceededError, text, source=code.source)
        if time.monotonic() > context.deadline:
            text = f"it did not end within --time-limit {context.time_limit:g} s; raise it, or use a smaller grid"
            raise chunk.make_fault(TimeLimitExceededError, text, source=code.source)
        if code.end is End.EXIT:
            context.progress.note_progress()
        elif context.progress.is_stalled():
            seconds = f"{context.progress.limit:g} s without progress; --time-limit SECONDS allows more"
            raise chunk.make_fault(NoProgressError, f"{seconds}; {self._describe_places(index)}", source=code.source)

    def _arrive(self, index: int, code: CodeBlock, active: Array) -> None:
        """Let threads arrive at the barrier of a basic block, and wait there, except for ``bar.arrive``."""
        barrier = code.barrier
        if barrier is None:  # unsupported: the step has raised an error
            return
        if barrier.of_warp and barrier.number is not None:
            masks = as_array(barrier.number(self._chunk), _U32)
            self._arrive_at_warp_barrier(index, masks, active, orders_memory=barrier.orders_memory)
            return
        self._barriers.add_arrivals(index, barrier, active)
        if not barrier.waits:
            self._schedule_threads(code.successors[0], active)

    def _arrive_at_warp_barrier(self, index: int, masks: Array, active: Array, *, orders_memory: bool) -> None:
        arrived = find_active_lanes(active, self._chunk.shape)
        is_whole = arrived.threads == LANES * arrived.requests
        if masks.size == 1 and int(masks.flat[0]) == FULL and (is_whole or not (self._ready or self._barriers)):
            # All lanes of these warps arrive at once: order them and go on.
            if orders_memory:
                self._chunk.shared.order_lanes(arrived.warps, FULL)
            self._schedule_threads(self._code[index].successors[0], active)
            return
        for key in self._barriers.add_warp_arrivals(index, masks, active, orders_memory=orders_memory):
            self._resume(self._barriers.release_warps(key, self._ready.values(), late=False))

    def _release_late_lanes(self) -> bool:
        """Release threads that wait at a warp barrier for lanes that never arrive; tell if there are any."""
        keys = [key for key in self._barriers.list_keys() if key.is_warp]
        return bool(keys) and self._resume(self._barriers.release_warps(keys[-1], self._ready.values(), late=True))

    def _release_complete(self) -> bool:
        """Release all complete barriers; tell if there are any. Cluster barriers wait until no thread can run."""
        is_released = False
        for key in self._barriers.list_keys():
            if not key.is_cluster or not (is_released or self._ready):
                is_released |= self._resume(self._barriers.release(key, self._ready.values()))
        return is_released

    def _resume(self, resumed: list[Resumed] | None) -> bool:
        """Resume released threads; tell if a barrier was released."""
        for index, threads in resumed or ():
            self._schedule_threads(index, threads)
        return resumed is not None

    def _branch(self, index: int, guard: Register, active: Array) -> list[Schedule]:
        """Let threads whose guard is true jump or exit; if that splits the chunk, return the schedules of the parts."""
        predicate = dense(self._chunk.read(guard.name, _PRED))
        is_taken = ~predicate if guard.negated else predicate
        is_only_mask = active.size == 1 and not self._ready and not self._barriers
        if (
            is_only_mask
            and is_taken.shape[0] >= _MIN_BLOCKS_PER_SPLIT
            and self._divergence_depth < _MAX_DIVERGENCE_DEPTH
            and not self._chunk.context.has_concurrent_blocks
        ):
            counts, threads = np.count_nonzero(is_taken, axis=1), is_taken.shape[1]
            outcomes = [counts == threads, counts == 0, (counts > 0) & (counts < threads)]  # all, none, some jump
            groups = [np.flatnonzero(outcome) for outcome in outcomes if outcome.any()]
            if len(groups) > 1:
                return [self._split_blocks(index, group, is_taken[group]) for group in groups]
        self._split_threads(index, active, is_taken)
        return []

    def _split_threads(self, index: int, active: Array, is_taken: Array) -> None:
        """Schedule active threads after a branch or predicated exit; those in the mask ``is_taken`` jump or exit."""
        code, jumping, continuing = self._code[index], active & is_taken, active & ~is_taken
        if not np.count_nonzero(continuing):  # the same mask object keeps its cached `ActiveLanes`
            jumping = active
        elif not np.count_nonzero(jumping):
            continuing = active
        self._schedule_threads(code.successors[0], continuing, index)
        if code.end is End.BRANCH:
            self._schedule_threads(code.successors[-1], jumping, index)

    def _split_blocks(self, index: int, rows: Array, is_taken: Array) -> Schedule:
        part = Schedule(self._chunk.select(rows), self._code, self._flow, self._order)
        part._ready, part._divergence_depth = {}, self._divergence_depth + 1
        part._yielded = self._yielded.select(rows) if self._yielded else None
        part._split_threads(index, ALL_THREADS, is_taken)
        return part

    def _schedule_threads(self, index: int, threads: Array, source: int = -1) -> None:
        """Schedule threads that come from basic block ``source``; -1 if they come from a barrier."""
        if self._yielded:
            self._yielded.note_step(source, index, threads)
        alone = self._yielded.find_threads(index) if self._yielded else None
        if alone is None:
            self._add_ready(index, threads)
        else:
            self._add_ready(index, threads & ~alone)
            self._add_ready(index + len(self._code), threads & alone)

    def _add_ready(self, place: int, threads: Array) -> None:
        if place in self._ready:
            threads = self._ready[place] | threads
        count = np.count_nonzero(threads)
        if count:
            self._ready[place] = ALL_THREADS if count == threads.size else threads
