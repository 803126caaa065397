"""Which threads of a chunk run next: divergence, reconvergence, barriers and the step limit."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import NamedTuple, NoReturn

import numpy as np

from ..isa.block_barriers import Barrier
from ..isa.operands import as_array
from ..isa.registry import Step
from ..lanes.symbolic_values import dense
from ..lanes.warps import LANES, Array, by_thread, find_occupancy, lanes_by_warp, spread
from ..machine.chunk import ALL_THREADS, Chunk
from ..machine.warp_clocks import FULL, find_warps
from ..ptx.flow import End, Flow
from ..ptx.program import TYPES, Instruction, Register
from ..util.errors import (
    DivergentBarrierError,
    KernelFaultError,
    NoProgressError,
    Source,
    StepLimitExceededError,
    TimeLimitExceededError,
)

_PRED, _U32 = TYPES["pred"], TYPES["u32"]
#: How often the blocks of a chunk may part ways and go on as chunks of their own: a chunk's interior leaves its edge
#: at the first bounds check, and blocks without work at the second. Fewer blocks than a crowd are better together.
_PARTINGS = 2
_CROWD = 16
#: How often threads may ask for a lock before those that wait elsewhere go on: at first, and later.
_PATIENCE, _IMPATIENCE = 200, 4
#: How often they all may ask in vain before the blocks of other schedules go on.
_IN_VAIN = 8
#: The number of the barrier of a cluster, what stands for all threads of a block, and how many places are named.
_CLUSTER, _ALL, _SHOWN = -1, -1, 4
#: What stands for the number of a barrier of a warp; its mask stands for the threads.
_WARP = 1 << 32


@dataclass(frozen=True)
class Code:
    """A basic block as steps, each with the registers that nobody reads afterwards, and how it ends."""

    #: Its instructions, what they do, and which registers die there.
    steps: list[tuple[Instruction, Step, list[str]]]
    #: The blocks that follow: the next one, then the target of a branch.
    successors: list[int]
    #: How it ends.
    end: End
    #: The predicate of a branch or of leaving.
    guard: Register | None
    #: Its last instruction.
    source: Source
    #: What its threads wait for at its end, if they do.
    barrier: Barrier | None = None


class _Come(NamedTuple):
    """Threads that have come to a barrier of a number, which waits for so many, or for all of a block.

    ``at`` is the block of code at whose end they wait; None if they go on.
    """

    key: tuple[int, int]
    threads: Array
    at: int | None


class Schedule:
    """The threads of one chunk by the basic block of a kernel that they wait for."""

    def __init__(self, chunk: Chunk, code: list[Code], flow: Flow) -> None:
        self._chunk, self._code, self._flow = chunk, code, flow
        self._waiting: dict[int, Array] = {0: ALL_THREADS}
        self._come: list[_Come] = []
        self._patience, self._polls = _PATIENCE, 0
        self._partings = 0
        self.moved = False

    def run(self) -> list[Schedule]:
        """Run until all threads have left, or the blocks part ways, or wait for others; the schedules that go on then.

        One that waits for others gives itself; ``moved`` says whether it has written anything since it began to run.
        """
        rank, self.moved, self._polls = self._flow.rank, False, 0
        while self._waiting or any(each.at is not None for each in self._come):
            if not self._waiting and not self._release() and not self._give_up_lanes():
                self.stop()
            index = min(self._waiting, key=rank.__getitem__)
            if self._chunk.spins > self._patience:  # who is waited for may be among the others
                if self._is_stuck():
                    return [self]
                index = next(iter(self._waiting))
            parts = self._execute(index, self._waiting.pop(index))
            if parts:
                return parts
        return []

    def _is_stuck(self) -> bool:
        """Let go the blocks that stand at a barrier; whether all others have asked in vain again and again."""
        chunk = self._chunk
        self._polls = 0 if chunk.has_written else self._polls + 1
        self.moved |= chunk.has_written
        self._patience, chunk.spins, chunk.has_written = _IMPATIENCE, 0, False
        return not self._release() and self._polls > _IN_VAIN * len(self._waiting)

    def stop(self) -> None:
        """Raise that there is no progress, and who waits where."""
        for index, threads in self._waiting.items():
            self._raise(NoProgressError, index, threads, "it asks again and again for what nobody writes")
        for (number, wanted), threads, at in self._come:
            if at is not None:
                who = "all threads" if wanted == _ALL else f"{wanted} threads"
                text = f"it waits at barrier {number} for {who}, which do not come"
                self._raise(DivergentBarrierError, at, threads, text)

    def _raise(self, error: type[KernelFaultError], index: int, threads: Array, text: str) -> NoReturn:
        self._chunk.active = threads
        raise self._chunk.make_fault(error, f"{text}; {self._where()}", source=self._code[index].source)

    def _where(self, running: int | None = None) -> str:
        """Who waits where, and who is at the block of code that runs."""
        places = [] if running is None else [(running, self._chunk.active, "are at")]
        places += [(index, threads, "wait before") for index, threads in self._waiting.items()]
        places += [(each.at, each.threads, "wait at the barrier in") for each in self._come if each.at is not None]
        counts = [f"{find_occupancy(threads, self._chunk.shape).threads} threads {how} {self._code[index].source}"
                  for index, threads, how in places]  # fmt: skip
        return ", ".join(counts[:_SHOWN])

    def _execute(self, index: int, active: Array) -> list[Schedule]:
        chunk, code = self._chunk, self._code[index]
        chunk.active, chunk.live_elsewhere = active, self._needed()
        chunk.enter_block(index)
        count = len(code.steps)
        chunk.steps += count + 1
        if chunk.steps > chunk.context.step_limit:
            text = "; ".join(filter(None, [f"{chunk.context.step_limit} instructions", self._where()]))
            raise chunk.make_fault(StepLimitExceededError, text, source=code.source)
        if time.monotonic() > chunk.context.deadline:
            text = "it has not ended in the time that it was given"
            raise chunk.make_fault(TimeLimitExceededError, text, source=code.source)
        if code.end is End.LEAVE:
            chunk.context.progress.note_progress()
        elif chunk.context.progress.is_stalled():
            seconds = f"{chunk.context.progress.limit:g} s without progress; --time-limit SECONDS allows more"
            raise chunk.make_fault(NoProgressError, f"{seconds}; {self._where(index)}", source=code.source)
        counters = chunk.context.counters
        on = find_occupancy(active, chunk.shape)
        counters.thread_instructions += count * on.threads
        counters.warp_instructions += count * on.requests
        for chunk.instruction, step, dead in code.steps:
            step(chunk)
            for name in dead:
                chunk.registers.pop(name, None)
        if code.end is End.BARRIER:
            self._stop(index, code, active)
        elif code.guard is None:
            if code.end is not End.LEAVE:
                self._join(code.successors[-1], active)
        else:
            return self._branch(index, code.guard, active)
        return []

    def _needed(self) -> frozenset[str]:
        """The registers that threads need which wait elsewhere."""
        behind = [self._code[each.at].successors[0] for each in self._come if each.at is not None]
        return self._flow.needed(frozenset([*self._waiting, *behind]))

    def _stop(self, index: int, code: Code, active: Array) -> None:
        """Threads come to a barrier: they wait there, unless they only arrive."""
        barrier = code.barrier
        if barrier is None:
            return
        if barrier.of_warp and barrier.number is not None:
            self._stop_at_warp_barrier(index, as_array(barrier.number(self._chunk), _U32), active)
            return
        numbers, counts = (
            np.full((1, 1), otherwise) if each is None else as_array(each(self._chunk), _U32)
            for each, otherwise in ((barrier.number, _CLUSTER), (barrier.threads, _ALL))
        )
        for key in sorted(
            {*zip(*(each.ravel().tolist() for each in np.broadcast_arrays(numbers, counts)), strict=True)}
        ):
            mine = active & (numbers == key[0]) & (counts == key[1])
            if mine.any():
                self._come.append(_Come(key, mine, index if barrier.waits else None))
        if not barrier.waits:
            self._join(code.successors[0], active)

    def _stop_at_warp_barrier(self, index: int, masks: Array, active: Array) -> None:
        """Threads come to a barrier of their warps' lanes in masks, which go on as soon as all of them have come."""
        if masks.size == 1 and int(masks.flat[0]) == FULL and not (self._waiting or self._come):
            self._chunk.shared.order_lanes(find_warps(active, self._chunk.shape[1]), FULL)
            self._join(self._code[index].successors[0], active)
            return
        masks = np.where(active, masks, 0)  # of others nothing is known
        keys = [(_WARP, int(mask)) for mask in np.unique(masks)]
        arrivals = [_Come(key, active & (masks == key[1]), index) for key in keys]
        arrivals = [each for each in arrivals if each.threads.any()]
        self._come += arrivals
        for each in arrivals:
            self._release_warps(each.key, late=False)

    def _release_warps(self, key: tuple[int, int], *, late: bool) -> bool:
        """Let go the warps of which all lanes in a mask have come, or of all if those that are late never come."""
        chunk = self._chunk
        here = [each for each in self._come if each.key == key]
        others = [each for each in self._come if each.key != key]
        elsewhere = [*self._waiting.values(), *(each.threads for each in others if each.at is not None)]
        together = _any([each.threads for each in here])
        lanes = lanes_by_warp(together, chunk.shape[1])
        ready = np.asarray(lanes.any(axis=2))
        if elsewhere:
            in_mask = (key[1] >> np.arange(LANES) & 1).astype(bool)
            missing = (lanes_by_warp(_any(elsewhere), chunk.shape[1]) & in_mask).any(axis=2)
            if late:
                self._report_late_lanes(here, others)
            else:
                ready = ready & ~missing
        if not ready.any():
            return False
        full = by_thread(spread(ready[:, :, None], (*ready.shape, LANES)), chunk.shape[1])
        left = [each._replace(threads=each.threads & ~full) for each in here]
        self._come = others + [each for each in left if each.threads.any()]
        chunk.shared.order_lanes(ready, key[1])
        for each in here:
            if each.at is not None:
                self._join(self._code[each.at].successors[0], each.threads & full)
        return True

    def _report_late_lanes(self, here: list[_Come], others: list[_Come]) -> None:
        """Report threads that wait at a barrier of their warp for lanes that wait at another barrier."""
        chunk, (one, *_) = self._chunk, here
        other = next(each for each in others if each.at is not None)
        chunk.active, source = one.threads, self._code[one.at or 0].source
        text = (
            f"it waits for all lanes in the mask {one.key[1]:#010x}, others of which wait at the barrier in "
            f"{self._code[other.at or 0].source}: undefined in CUDA"
        )
        fault = chunk.make_fault(DivergentBarrierError, text, source=source)
        chunk.context.add_finding(
            "divergent-barrier", source, fault.what, find_occupancy(one.threads, chunk.shape).threads
        )

    def _give_up_lanes(self) -> bool:
        """Let go who waits for lanes of a warp that never come; whether there are any."""
        keys = sorted({each.key for each in self._come if each.key[0] == _WARP})
        return bool(keys) and self._release_warps(keys[0], late=True)

    def _release(self) -> bool:
        """Let go whoever waits at a barrier to which all have come that it waits for; whether there are any.

        Those are all threads of a block that have not left, or a number, of which whole warps count. Clusters wait
        until nobody else does.
        """
        found = False
        for key in sorted({each.key for each in self._come}, reverse=True):
            if key[0] != _CLUSTER or not (found or self._waiting):
                found |= self._release_at(key)
        return found

    def _release_at(self, key: tuple[int, int]) -> bool:
        if key[0] == _WARP:
            return self._release_warps(key, late=False)
        here = [each for each in self._come if each.key == key]
        others = [each for each in self._come if each.key != key]
        together, full = _any([each.threads for each in here]), ALL_THREADS
        whole = key[0] != _CLUSTER and key[1] == _ALL
        if whole:
            elsewhere = [*self._waiting.values(), *(each.threads for each in others if each.at is not None)]
            full = np.asarray(together.any(axis=1, keepdims=True))
            full = full & ~_any(elsewhere).any(axis=1, keepdims=True) if elsewhere else full
        elif key[0] != _CLUSTER:
            warps = np.count_nonzero(lanes_by_warp(together, self._chunk.shape[1]).any(axis=2), axis=1, keepdims=True)
            full = np.asarray((warps * LANES >= key[1]) & (warps > 0))
        if not full.any():
            return False
        come = [each._replace(threads=each.threads & full) for each in here]
        if whole:
            self._expect_one_place(come)
        left = [each._replace(threads=each.threads & ~full) for each in here]
        self._come = others + [each for each in left if each.threads.any()]
        self._chunk.shared.reset_races(full)
        self._chunk.order_blocks(full)
        if key[0] == _CLUSTER:
            self._chunk.shared.order_blocks(full)
        self._chunk.context.progress.note_progress()
        for each in come:
            if each.at is not None:
                self._join(self._code[each.at].successors[0], each.threads)
        return True

    def _expect_one_place(self, here: list[_Come]) -> None:
        """Report warps that meet from several places, where the barrier is one for all threads at one place."""
        places = [each for each in here if each.at is not None and each.threads.any()]
        for one, other in pairwise(places):
            barrier, chunk = self._code[other.at or 0].barrier, self._chunk
            if barrier is None or not barrier.aligned or one.at == other.at:
                continue
            met = one.threads.any(axis=1, keepdims=True) & other.threads.any(axis=1, keepdims=True)
            if not met.any():
                continue
            warps = [lanes_by_warp(spread(each.threads & met, chunk.shape), chunk.shape[1]) for each in (one, other)]
            both = np.asarray(warps[0].any(axis=2) & warps[1].any(axis=2))
            text, source = f"wait at the barrier in {self._code[one.at or 0].source}", self._code[other.at or 0].source
            if both.any():
                chunk.active = by_thread(warps[1] & both[:, :, None], chunk.shape[1])
                raise chunk.make_fault(DivergentBarrierError, f"others of its warp {text}", source=source)
            chunk.active = other.threads & met
            fault = chunk.make_fault(
                DivergentBarrierError, f"other warps of its block {text}: undefined in CUDA", source=source
            )
            chunk.context.add_finding(
                "divergent-barrier", source, fault.what, find_occupancy(chunk.active, chunk.shape).threads
            )

    def _branch(self, index: int, guard: Register, active: Array) -> list[Schedule]:
        """Threads whose guard is true go to the last successor, or leave; the others go on."""
        predicate = dense(self._chunk.read(guard.name, _PRED))
        taken = ~predicate if guard.negated else predicate
        alone = active.size == 1 and not self._waiting and not self._come
        if alone and taken.shape[0] >= _CROWD and self._partings < _PARTINGS and not self._chunk.context.may_wait:
            rows = np.count_nonzero(taken, axis=1)
            kinds = [rows == taken.shape[1], rows == 0, (rows > 0) & (rows < taken.shape[1])]
            groups = [np.flatnonzero(kind) for kind in kinds if kind.any()]
            if len(groups) > 1:
                return [self._part(index, group, taken[group]) for group in groups]
        self._part_threads(index, active, taken)
        return []

    def _part_threads(self, index: int, active: Array, taken: Array) -> None:
        code, on, off = self._code[index], active & taken, active & ~taken
        if not np.count_nonzero(off):  # the same mask: what is known of it stays known
            on = active
        elif not np.count_nonzero(on):
            off = active
        self._join(code.successors[0], off)
        if code.end is End.BRANCH:
            self._join(code.successors[-1], on)

    def _part(self, index: int, rows: Array, taken: Array) -> Schedule:
        part = Schedule(self._chunk.select(rows), self._code, self._flow)
        part._waiting, part._partings = {}, self._partings + 1
        part._part_threads(index, ALL_THREADS, taken)
        return part

    def _join(self, index: int, threads: Array) -> None:
        """Let threads, if there are any, wait for a block of code."""
        if index in self._waiting:
            threads = self._waiting[index] | threads
        count = np.count_nonzero(threads)
        if count:
            self._waiting[index] = ALL_THREADS if count == threads.size else threads


def _any(masks: list[Array]) -> Array:
    """The threads in any of some masks."""
    return np.asarray(reduce(np.logical_or, masks))
