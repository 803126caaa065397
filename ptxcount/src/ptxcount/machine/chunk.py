"""A chunk: thread blocks of a launch that run together, with their registers and memories."""

from __future__ import annotations

from copy import copy
from math import prod
from typing import Any

import numpy as np

from ..counting.atomic_costs import AtomicCost
from ..counting.counters import Access
from ..lanes.symbolic_values import Sum, Value, add_column_row, dense
from ..lanes.warps import ALL_THREADS, LANES, Array, choose, find_active_lanes, spread, unsigned
from ..ptx.program import CALL_SPACE, Instruction, Type
from ..util.errors import KernelFaultError, Source, TensorMemoryError
from .block_memory import SharedMemory
from .cluster_addresses import make_ranked
from .context import Context
from .global_races import AccessEvent, WarpOrder
from .local_memory import LocalMemory
from .reporter import Reporter
from .special_registers import SPECIALS, split_index
from .tensor_memory import TensorMemory
from .warp_clocks import WarpClocks

NO_REGISTERS: frozenset[str] = frozenset()
_ZEROS = {size: np.zeros((1, 1), unsigned(size)) for size in (1, 2, 4, 8, 16)}
#: Maximum thread number in the race check of global memory; later threads share the numbers of earlier ones.
_MAX_THREAD_NUMBER = (1 << 31) - 2
_FALSE = np.zeros((1, 1), bool)
#: Attributes of `Context` with the memory of each state space that blocks share.
_MEMORIES = {"global": "memory", "constant": "constants", "parameter": "parameters"}
_CLOCKS = {"%clock": "u4", "%clock64": "u8", "%globaltimer": "u8", "%globaltimer_lo": "u4"}


class Chunk:
    """Whole thread blocks that run together, all at the same instruction; a mask selects the active threads."""

    context: Context
    #: Number of blocks, and of threads per block.
    shape: tuple[int, int]
    #: The current instruction.
    instruction: Instruction
    #: Mask of the threads that execute the instruction, broadcastable to (blocks, threads).
    active: Array
    #: Registers that inactive threads still need, so writes must be masked. None: all registers.
    live_elsewhere: frozenset[str] | None
    #: Strong loads, failed atomics and (weighted) failed waits at mbarriers since the last write.
    spins: int
    #: True if memory was written since the scheduler last cleared this flag.
    has_written: bool

    def __init__(self, context: Context, block_ids: Array) -> None:
        self.context, self.block_ids = context, block_ids
        self.shape = (len(block_ids), context.threads)
        self.registers: dict[str, Value] = {}
        lanes = context.ordered_lanes
        clocks = WarpClocks(context.threads, lanes, context.clock) if lanes else None
        self.shared = SharedMemory(
            *self.shape, context.shared_size, context.shared_unit, prod(context.cluster), context.races, clocks,
            context.reserved_shared_bytes,
        )  # fmt: skip
        self.local = LocalMemory(*self.shape, context.local_size)
        self._tensor: TensorMemory | None = None
        self.active, self.live_elsewhere = ALL_THREADS, NO_REGISTERS
        #: Executed instructions plus basic blocks; a block adds all of its instructions when it begins.
        self.steps = 0
        self.spins = 0
        self.has_written = False
        #: Time up to which all accesses to global memory are ordered before each block.
        self.last_ordered = np.zeros(len(block_ids), np.int64)
        self._specials: dict[str, Array] = {}
        #: Address of each thread's last access by an instruction that may poll, by `Poll.load`; -1: none since it
        #: entered the loop.
        self._polled_addresses: dict[int, Array] = {}
        #: The address of the mbarrier that each thread waits for, -1 for none; empty until one waits.
        self.barrier_waits = np.zeros((0, 0), np.int64)

    def select(self, rows: Array) -> Chunk:
        """Return the blocks ``rows`` as a new chunk."""
        part = copy(self)
        part.block_ids, part.last_ordered = self.block_ids[rows], self.last_ordered[rows]
        part.shape = (len(rows), self.shape[1])
        part.registers = {name: _select_rows(value, rows) for name, value in self.registers.items()}
        part.shared, part.local = self.shared.select(rows), self.local.select(rows)
        part._tensor = None if self._tensor is None else self._tensor.select(rows)
        part.active, part.live_elsewhere, part._specials = ALL_THREADS, NO_REGISTERS, {}
        part.barrier_waits = self.barrier_waits[rows] if self.barrier_waits.size else self.barrier_waits
        part._polled_addresses = {load: addresses[rows] for load, addresses in self._polled_addresses.items()}
        return part

    def read(self, name: str, kind: Type) -> Value:
        """Read a register; 0 if no instruction has written it."""
        value = self.registers.get(name)
        if value is not None:
            return value
        return _FALSE if kind.kind == "pred" else _ZEROS[kind.size]

    def write(self, name: str, value: Value) -> None:
        """Set a register for the active threads; other threads keep their values only if they may still read them."""
        if (self.live_elsewhere is None or name in self.live_elsewhere) and name in self.registers:
            new, old = dense(value), dense(self.registers[name])
            value = choose(self.active, new, old.view(new.dtype))
        self.registers[name] = value

    def read_special(self, name: str) -> Array | None:
        """Read a special register (PTX ISA, "Special Registers"), as u32 or u64; None for an unknown name.

        Clocks return `steps`, which has no relation to time. Upper halves of clocks return 0.
        """
        if name in _CLOCKS:
            return np.full((1, 1), self.steps, _CLOCKS[name])
        if name not in self._specials and name in SPECIALS:
            self._specials[name] = np.atleast_2d(SPECIALS[name](self)).astype(np.uint32)
        return self._specials.get(name)

    def make_shared_address(self, offset: int) -> Array:
        """Return the shared address of an offset in each block, (1 or blocks, 1); in a cluster, with its rank."""
        if not self.shared.has_cluster:
            return np.array([[offset]])
        return make_ranked(np.array([[offset]]), SPECIALS["%cluster_ctarank"](self).astype(np.int64))

    def find_indices(self, register: str, axis: int) -> Any:
        """Return one component of a special register, broadcastable to (blocks, threads).

        ``register`` is "tid", "ctaid", "clusterid", or "cluster_ctaid": the index of a block within its cluster.
        ``axis`` is 0 for x, 1 for y, 2 for z.
        """
        context, cluster = self.context, self.context.cluster
        if register == "tid":
            return split_index(np.arange(self.shape[1])[None, :], context.block)[axis]
        block = split_index(self.block_ids[:, None], context.grid)[axis]
        return {"ctaid": block, "clusterid": block // cluster[axis], "cluster_ctaid": block % cluster[axis]}[register]

    @property
    def tensor(self) -> TensorMemory:
        """Tensor memory of the blocks, allocated on first use."""
        if self._tensor is None:
            self._tensor = TensorMemory(self.shape[0])
        return self._tensor

    def note_waits(self, threads: Array, places: Value) -> None:
        """Order the blocks of ``threads`` after all earlier accesses: they have waited for mbarriers at ``places``."""
        self.shared.reset_races(threads)
        self.order_blocks(threads)
        self.shared.order_blocks(threads)
        if self._tensor is not None:
            waiting = np.nonzero(spread(threads, self.shape))
            self._tensor.note_waits(waiting[0], spread(self.shared.strip_rank(places), self.shape)[waiting])

    def find_memory(self, space: str) -> Any:
        """Return the memory of a state space."""
        name = _MEMORIES.get(space)
        return getattr(self, space) if name is None else getattr(self.context, name)

    def make_reporter(self, *, is_weak: bool = False) -> Reporter:
        """Return the `Reporter` for faults of the current instruction; see there for ``is_weak``."""
        return Reporter(self, self.instruction.source, is_weak)

    def add_finding(self, code: str, message: str, times: int) -> None:
        """Add a finding of the current instruction."""
        self.context.add_finding(code, self.instruction.source, message, times)

    def find_counters(self, space: str, kind: str, width: int, *, is_matrix: bool = False) -> Access:
        """Return the counters of the current instruction for accesses of a kind to a state space; make them if new."""
        key = (id(self.instruction), space, kind)
        if key not in self.context.accesses:
            self.context.accesses[key] = Access(
                self.instruction.source, space, kind, width, is_matrix=is_matrix, is_retried=self.instruction.is_retried
            )
        return self.context.accesses[key]

    def record(
        self,
        space: str,
        kind: str,
        width: int,
        address: Value,
        *,
        active: Array | None = None,
        cost: AtomicCost | None = None,
        is_replay: bool = False,
        remote_kind: str = "",
        is_matrix: bool = False,
    ) -> None:
        """Count an access of the active threads, or of those in the mask ``active``, by `Access.record`.

        ``remote_kind`` is the kind under which accesses to another block's shared memory count; default: ``kind``.
        Accesses to kernel parameters count as constant memory. Accesses to arguments of calls are not counted: these
        are in registers. ``is_matrix`` as in `Access`.
        """
        if CALL_SPACE in self.instruction.modifiers:
            return
        space = "constant" if space == "parameter" else space
        active = self.active if active is None else active
        has_remote = False
        if space == "shared" and self.shared.has_cluster:
            remote, address = self.shared.find_remote(address) & active, self.shared.strip_rank(address)
            has_remote = bool(remote.any())
        self.context.progress.note_address(id(self.instruction), address)
        if has_remote:
            counters = self.find_counters("cluster", remote_kind or kind, width)
            counters.record(address, remote, self.shape, cost, is_replay)
            active = active & ~remote
            if not active.any():
                return
        if cost is not None and cost.reloads and space == "shared":  # a CAS loop loads before each round
            self.find_counters("shared", "load", width).record(address, active, self.shape, cost)
        counters = self.find_counters(space, kind, width, is_matrix=is_matrix)
        counters.record(address, active, self.shape, cost, is_replay)
        for record_merged in () if has_remote else self.context.merged.get(id(self.instruction), ()):
            record_merged(self, address)

    def record_polling(
        self,
        space: str,
        kind: str,
        width: int,
        address: Value,
        *,
        cost: AtomicCost | None = None,
        may_poll: Array = ALL_THREADS,
    ) -> None:
        """Count an access by `record`, but polls of a wait loop separately.

        An access is a poll if the thread is in the mask ``may_poll``, and repeats the address of its last access by
        this instruction (or by the load's copy before the loop) since it entered the loop.
        """
        poll = self.context.polls.get(id(self.instruction))
        if poll is None:
            self.record(space, kind, width, address, cost=cost)
            return
        last = self._polled_addresses.setdefault(poll.load, np.full(self.shape, -1, np.int64))
        active, addresses = spread(self.active, self.shape), spread(dense(address).astype(np.int64), self.shape)
        is_repeated = active & may_poll & (last == addresses)
        last[active] = addresses[active]
        self.find_counters(space, kind, width).polls += find_active_lanes(is_repeated, self.shape).requests
        if (active != is_repeated).any():
            self.record(space, kind, width, address, active=active & ~is_repeated, cost=cost)
        else:
            self.context.progress.note_address(poll.load, address)

    def enter_block(self, block: int) -> None:
        """Forget the polled addresses of active threads in each wait loop that does not contain the basic block."""
        for load, addresses in self._polled_addresses.items():
            if block not in self.context.polls[load].loop:
                addresses[spread(self.active, self.shape)] = -1

    def order_blocks(self, threads: Array) -> None:
        """Order the blocks of the threads in a mask after all earlier accesses to global memory."""
        if self.context.checks_global_races:
            self.last_ordered[spread(np.asarray(threads.any(axis=1)), (self.shape[0],))] = self.context.clock.now

    def make_event(self, places: Array) -> AccessEvent:
        """Return the facts for the race check of an access by the threads at indices ``places`` of the chunk."""
        rows, threads = places // self.shape[1], places % self.shape[1]
        numbers = (self.block_ids[rows] * self.shape[1] + threads) % _MAX_THREAD_NUMBER + 1
        clocks, warp = self.shared.races.clocks, None
        if clocks is not None:
            lane_counts = np.minimum(self.shape[1] - threads // LANES * LANES, LANES)
            warp = WarpOrder(threads % LANES, lane_counts, clocks.find_ordered_times(rows, threads).lanes)
        context = self.context
        time, is_strict = context.clock.tick(), context.races == "strict"
        context.access_sources[time] = self.instruction.source
        return AccessEvent(time, numbers, self.last_ordered[rows], is_strict, context.access_sources, warp)

    def make_fault(
        self,
        error: type[KernelFaultError],
        text: str,
        *,
        position: tuple[int, int] | None = None,
        address: int | None = None,
        source: Source | None = None,
    ) -> KernelFaultError:
        """Return a fault at (block, thread) of the chunk; default: first active thread, current instruction."""
        row, place = position or self.find_first_active()
        block, thread = split_index(int(self.block_ids[row]), self.context.grid), split_index(place, self.context.block)
        return error(source or self.instruction.source, block, thread, text, address)

    def check_tensor_leak(self) -> None:
        """Raise `TensorMemoryError` if a block whose threads have exited has not deallocated its tensor memory."""
        leak = None if self._tensor is None else self._tensor.find_leak()
        if leak is not None:
            row, columns, source = leak
            text = f"{columns} columns are still allocated when the block ends; use tcgen05.dealloc"
            raise self.make_fault(TensorMemoryError, text, position=(row, 0), source=source)

    def find_first_active(self) -> tuple[int, int]:
        """Return the (block, thread) of the first active thread."""
        return divmod(int(find_active_lanes(self.active, self.shape).places[0]), self.shape[1])


def _select_rows(value: Value, rows: Array) -> Value:
    if isinstance(value, Sum):
        return add_column_row(value.block[rows], value.thread)
    return value[rows] if value.shape[0] > 1 else value
