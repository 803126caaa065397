"""Which threads of a chunk run next: divergence, reconvergence, barriers and the step limit."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .bind_warp import Barrier
from .chunk import EVERYONE, Chunk
from .errors import DivergentBarrierError, Source, StepLimitExceededError, TimeLimitExceededError
from .flow import End, Flow
from .operands import Step, as_array
from .program import TYPES, Register
from .values import dense
from .warps import LANES, lanes_by_warp, occupancy, spread

Array = npt.NDArray[Any]
_PRED, _U32 = TYPES["pred"], TYPES["u32"]
#: How often the blocks of a chunk may part ways and go on as chunks of their own: a chunk's interior leaves its edge
#: at the first bounds check, and blocks without work at the second. Fewer blocks than a crowd are better together.
_PARTINGS = 2
_CROWD = 16
#: How often threads may ask for a lock before those that wait elsewhere go on: at first, and later.
_PATIENCE, _IMPATIENCE = 200, 4


@dataclass(frozen=True)
class Code:
    """A basic block as steps, each with the registers that nobody reads afterwards, and how it ends.

    Attributes
    ----------
    steps : tuple
        What its instructions do, and which registers die there.
    successors : tuple of int
        The blocks that follow: the next one, then the target of a branch.
    end : End
        How it ends.
    guard : Register or None
        The predicate of a branch or of leaving.
    source : Source
        Its last instruction.
    idle : bool
        It does nothing but jump.
    barrier : Barrier or None
        What its threads wait for at its end, if they do.
    """

    steps: tuple[tuple[Step, tuple[str, ...]], ...]
    successors: tuple[int, ...]
    end: End
    guard: Register | None
    source: Source
    idle: bool
    barrier: Barrier | None = None


class _Come(NamedTuple):
    """Threads that have come to a barrier that waits for a number of them; where they wait, unless they go on."""

    barrier: int
    wanted: int
    threads: Array
    at: int | None


class Schedule:
    """The threads of one chunk by the basic block that they wait for.

    Parameters
    ----------
    chunk : Chunk
        The blocks to run.
    code, flow : list of Code, Flow
        The kernel.
    """

    def __init__(self, chunk: Chunk, code: list[Code], flow: Flow) -> None:
        self._chunk, self._code, self._flow = chunk, code, flow
        self._waiting: dict[int, Array] = {0: EVERYONE}
        self._parked: dict[int, Array] = {}
        self._come: list[_Come] = []
        self._past: Array | None = None
        self._patience = _PATIENCE
        self._partings = 0

    def run(self) -> list[Schedule]:
        """Run until all threads have left, or the blocks part ways; the schedules that go on then."""
        rank = self._flow.rank
        while self._waiting or self._parked or any(each.at is not None for each in self._come):
            if not self._waiting and not self._release_counted():
                self._release()
            index = min(self._waiting, key=rank.__getitem__)
            if self._chunk.spins > self._patience and len(self._waiting) > 1:  # a lock's holder may be among the others
                index = next(iter(self._waiting))
                self._chunk.spins, self._patience = 0, _IMPATIENCE
            active = self._waiting.pop(index)
            if self._parked and not self._code[index].idle:
                self._pass_barriers(index, active)
            parts = self._execute(index, active)
            if parts:
                return parts
        return []

    def _pass_barriers(self, index: int, active: Array) -> None:
        """Note the threads that run on behind a barrier at which others of their block wait."""
        for at, threads in self._parked.items():
            if self._flow.beyond(at)[index]:
                past = active & threads.any(axis=1, keepdims=True)
                self._past = past if self._past is None else self._past | past

    def _execute(self, index: int, active: Array) -> list[Schedule]:
        chunk, code = self._chunk, self._code[index]
        chunk.active, chunk.kept = active, self._needed()
        count = len(code.steps)
        chunk.steps += count + 1
        if chunk.steps > chunk.context.step_limit:
            text = f"{chunk.context.step_limit} instructions"
            raise chunk.fault(StepLimitExceededError, code.source, chunk.first_active(), text)
        if time.monotonic() > chunk.context.deadline:
            text = "it has not ended in the time that it was given"
            raise chunk.fault(TimeLimitExceededError, code.source, chunk.first_active(), text)
        counters = chunk.context.counters
        on = occupancy(active, chunk.shape)
        counters.thread_instructions += count * on.threads
        counters.warp_instructions += count * on.requests
        for step, dead in code.steps:
            step(chunk)
            for name in dead:
                chunk.registers.pop(name, None)
        if code.end is End.BARRIER:
            self._stop(index, code, active)
        elif code.guard is None:
            if code.end is not End.LEAVE:
                self._join(self._waiting, code.successors[-1], active)
        else:
            return self._branch(index, code.guard, active)
        return []

    def _needed(self) -> frozenset[str]:
        """The registers that threads need which wait elsewhere."""
        behind = [*self._parked, *(each.at for each in self._come if each.at is not None)]
        return self._flow.needed(frozenset([*self._waiting, *(self._code[at].successors[0] for at in behind)]))

    def _stop(self, index: int, code: Code, active: Array) -> None:
        """Threads come to a barrier: they wait there, unless they only arrive."""
        barrier, shape = code.barrier, self._chunk.shape
        if barrier is not None and barrier.threads is not None:
            keys = [as_array(read(self._chunk), _U32) for read in (barrier.number, barrier.threads)]
            number, count = (spread(key, shape) for key in keys)
            on = spread(active, shape)
            for pair in sorted({*zip(number[on].tolist(), count[on].tolist(), strict=True)}):
                mine = on & (number == pair[0]) & (count == pair[1])
                self._come.append(_Come(*pair, mine, index if barrier.waits else None))
            if not barrier.waits:
                self._join(self._waiting, code.successors[0], active)
        else:
            self._join(self._parked, index, active)

    def _release_counted(self) -> bool:
        """Let go whoever waits at a barrier to which as many threads have come as it waits for: whole warps count."""
        for number, count in sorted({(each.barrier, each.wanted) for each in self._come}):
            here = [each for each in self._come if (each.barrier, each.wanted) == (number, count)]
            lanes = lanes_by_warp(np.logical_or.reduce([each.threads for each in here]), self._chunk.shape[1])
            warps = np.asarray(lanes.any(axis=2).sum(axis=1, keepdims=True))
            full: Array = (warps * LANES >= count) & (warps > 0)
            if full.any():
                rest = [each._replace(threads=each.threads & ~full) for each in here]
                self._come = [each for each in self._come if (each.barrier, each.wanted) != (number, count)]
                self._come += [each for each in rest if each.threads.any()]
                self._chunk.shared.barrier(full)
                for each in here:
                    if each.at is not None and (each.threads & full).any():
                        self._join(self._waiting, self._code[each.at].successors[0], each.threads & full)
                return True
        return False

    def _branch(self, index: int, guard: Register, active: Array) -> list[Schedule]:
        """Threads whose guard is true go to the last successor, or leave; the others go on."""
        predicate = dense(self._chunk.read(guard.name, _PRED))
        taken = ~predicate if guard.negated else predicate
        alone = active.size == 1 and not self._waiting and not self._parked and not self._come
        if alone and taken.shape[0] >= _CROWD and self._partings < _PARTINGS and not self._chunk.context.together:
            rows = np.count_nonzero(taken, axis=1)
            kinds = [rows == taken.shape[1], rows == 0, (rows > 0) & (rows < taken.shape[1])]
            groups = [np.flatnonzero(kind) for kind in kinds if kind.any()]
            if len(groups) > 1:
                return [self._part(index, group, taken[group]) for group in groups]
        self._part_threads(index, active, taken)
        return []

    def _part_threads(self, index: int, active: Array, taken: Array) -> None:
        code, on, off = self._code[index], active & taken, active & ~taken
        if on.any() and off.any() and self._flow.beyond(index)[index]:
            self._leave_loop(index, on, off)
        if off.any():
            self._join(self._waiting, code.successors[0], EVERYONE if off.all() else off)
        if code.end is End.BRANCH and on.any():
            self._join(self._waiting, code.successors[-1], EVERYONE if on.all() else on)

    def _leave_loop(self, index: int, on: Array, off: Array) -> None:
        """Note where threads of a warp come to that leave a loop in which others of it stay."""
        shape, left = self._chunk.shape, self._chunk.context.left
        out = {each for each in self._code[index].successors if not self._flow.beyond(each)[index]}
        if out - left:
            warps = [lanes_by_warp(spread(each, shape), shape[1]).any(axis=2) for each in (on, off)]
            left |= out if (warps[0] & warps[1]).any() else set()

    def _part(self, index: int, rows: Array, taken: Array) -> Schedule:
        part = Schedule(self._chunk.select(rows), self._code, self._flow)
        part._waiting, part._partings = {}, self._partings + 1
        part._part_threads(index, EVERYONE, taken)
        return part

    @staticmethod
    def _join(place: dict[int, Array], index: int, threads: Array) -> None:
        if index in place:
            threads = place[index] | threads
            threads = EVERYONE if threads.all() else threads
        place[index] = threads

    def _release(self) -> None:
        """All threads that have not left wait at barriers: let them go on if each block waits at one."""
        chunk = self._chunk
        seen: Array | None = None
        for number, count, threads, at in self._come:
            if at is not None:
                blocks = np.asarray(threads.any(axis=1, keepdims=True))
                seen = blocks if seen is None else seen | blocks
                if not self._parked:
                    text = f"it waits at barrier {number} for {count} threads, which do not come"
                    self._divergent(at, threads, text)
        own = {index: threads for index, threads in self._parked.items() if not self._of_cluster(index)}
        parked = own or self._parked  # clusters wait until none of their blocks waits for itself
        for index, threads in parked.items():
            blocks = np.asarray(threads.any(axis=1, keepdims=True))
            if seen is not None and (seen & blocks).any():
                self._divergent(index, seen & blocks & threads, "others of its block wait at another barrier")
            seen = blocks if seen is None else seen | blocks
            if self._past is not None:
                missed = self._past & ~threads & blocks
                if missed.any():
                    self._divergent(index, missed, "it went past the barrier at which others of its block wait")
            chunk.shared.barrier(threads)
            self._join(self._waiting, self._code[index].successors[0], threads)
        self._parked = {index: threads for index, threads in self._parked.items() if index not in parked}
        self._past = None

    def _of_cluster(self, index: int) -> bool:
        barrier = self._code[index].barrier
        return barrier is not None and barrier.cluster

    def _divergent(self, index: int, threads: Array, text: str) -> None:
        self._chunk.active = threads
        last = self._code[index]
        raise self._chunk.fault(DivergentBarrierError, last.source, self._chunk.first_active(), text)
