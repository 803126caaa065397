"""Some thread blocks of a launch while they run: their registers, memories and position."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .counters import Access, LaunchCounters
from .errors import Index3, KernelFaultError, SharedRaceError, Source
from .findings import Finding
from .memory import ArrayMemory, Report
from .program import Instruction, Type
from .shared import LocalMemory, SharedMemory
from .values import Sum, Value, dense, summed
from .warps import LANES, spread, warp_count

Array = npt.NDArray[Any]
EVERYONE = np.ones((1, 1), bool)
_ZEROS = {size: np.zeros((1, 1), f"u{size}") for size in (1, 2, 4, 8)}
_NO = np.zeros((1, 1), bool)
_CLOCKS = {"%clock": "u4", "%clock_hi": "u4", "%clock64": "u8", "%globaltimer": "u8", "%globaltimer_lo": "u4"}


#: Where a cooperative launch says its workspace is, upper and lower half: `Context.together` if a kernel asks.
GRID_REGISTERS = ("%envreg1", "%envreg2")
GRID_WORKSPACE = "workspace of a cooperative launch"
#: Where cooperative groups keep what several warps exchange, and its bytes: before the kernel's own shared memory.
RESERVED_REGISTER, RESERVED = "%reserved_smem_offset_1", 1024


def linear(index: int | Array, extent: Index3) -> tuple[Any, Any, Any]:
    """A linear index as (x, y, z), x fastest."""
    return index % extent[0], index // extent[0] % extent[1], index // (extent[0] * extent[1])


@dataclass
class Context:
    """What all chunks of a launch share.

    Attributes
    ----------
    memory, constants, arguments : ArrayMemory
        Global and constant memory, and parameters that are read by an address.
    parameters : dict
        The bytes of each parameter by its name.
    symbols, refused : dict
        The addresses of variables by their names, and why others have none.
    shared_size, local_size : int
        Bytes of a block's shared memory, and of a thread's local memory.
    shared_unit : int
        The smallest access to shared memory in bytes.
    step_limit, deadline : int, float
        Instructions that a chunk may execute, and when all must have ended, by `time.monotonic`.
    races : str
        What is done about races in shared memory, one of `findings.RACES`.
    accesses : dict
        The counters of each memory instruction and state space.
    findings : dict
        What was found, by its code and instruction.
    printed : list of str
        What the kernel printed, a call each.
    bound : dict
        What handles of textures, surfaces and tensors stand for.
    cluster : tuple of int
        Blocks of a cluster.
    together : bool
        Whether the blocks of a chunk may wait for each other, so that they must not part.
    local_extents : dict
        The bytes of local variables by their names.
    merged : dict
        By the first of some instructions that ptxas may merge: what counts them so.
    left : set of int
        The basic blocks that threads of a warp came to out of a loop at different times.
    reserved : int
        The first bytes of shared memory that are none of the kernel's own, and zero at first.
    dynamic : str
        What is said of dynamic shared memory where an access lies beyond, if the kernel has any.
    heap, heap_used : int
        The address of the memory that ``malloc`` gives, none so far, and how much of it is given.
    """

    grid: Index3
    block: Index3
    memory: ArrayMemory
    constants: ArrayMemory
    arguments: ArrayMemory
    parameters: dict[str, bytes]
    symbols: dict[str, int]
    refused: dict[str, str]
    shared_size: int
    shared_unit: int
    local_size: int
    step_limit: int
    races: str
    counters: LaunchCounters
    accesses: dict[tuple[int, str], Access]
    findings: dict[tuple[str, Source], Finding]
    printed: list[str]
    bound: dict[int, Any] = field(default_factory=dict)
    cluster: Index3 = (1, 1, 1)
    together: bool = False
    local_extents: dict[str, int] = field(default_factory=dict)
    reserved: int = 0
    dynamic: str = ""
    heap: int = 0
    heap_used: int = 0
    deadline: float = float("inf")
    merged: dict[int, Any] = field(default_factory=dict)
    left: set[int] = field(default_factory=set)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return int(np.prod(self.block))

    def access(self, instruction: Instruction, space: str, kind: str, width: int) -> Access:
        """The counters of one memory instruction in one state space."""
        key = (id(instruction), space)
        if key not in self.accesses:
            self.accesses[key] = Access(instruction.source, space, kind, width)
        return self.accesses[key]

    def find(self, code: str, source: Source, message: str, times: int) -> None:
        """Note something that is wrong but stops nothing; the first message of an instruction is kept."""
        self.findings.setdefault((code, source), Finding(code, source, message)).times += times


class Chunk:
    """Whole thread blocks that run together.

    Attributes
    ----------
    active : ndarray of bool
        The threads that execute the current instruction, broadcastable to (blocks, threads).
    merging : bool
        Whether other threads wait elsewhere, so that a write must leave their registers alone.
    spins : int
        How often in turn threads asked for a lock or a flag, and nothing was written: they may wait for others.
    """

    def __init__(self, context: Context, block_ids: Array) -> None:
        self.context, self.block_ids = context, block_ids
        self.shape = (len(block_ids), context.threads)
        self.registers: dict[str, Value] = {}
        self.shared = SharedMemory(*self.shape, context.shared_size, context.shared_unit, int(np.prod(context.cluster)))
        self.shared.reserve(context.reserved)
        self.local = LocalMemory(*self.shape, context.local_size)
        self.active = EVERYONE
        self.merging = False
        self.steps = self.spins = 0
        self._specials: dict[str, Array] = {}

    def select(self, rows: Array) -> Chunk:
        """The state of some of the blocks, as a chunk of its own."""
        part = object.__new__(Chunk)
        part.context, part.block_ids = self.context, self.block_ids[rows]
        part.shape = (len(rows), self.shape[1])
        part.registers = {name: _select(value, rows) for name, value in self.registers.items()}
        part.shared, part.local = self.shared.select(rows), self.local.select(rows)
        part.active, part.merging, part.steps = EVERYONE, False, self.steps
        part.spins, part._specials = self.spins, {}
        return part

    def read(self, name: str, kind: Type) -> Value:
        """A register; one that was never written reads as zero."""
        value = self.registers.get(name)
        if value is not None:
            return value
        return _NO if kind.kind == "p" else _ZEROS[kind.size]

    def write(self, name: str, value: Value, keep: bool) -> None:
        """Set a register for the active threads; ``keep``: the others may still need what it held."""
        if keep and self.merging and name in self.registers:
            new, old = dense(value), dense(self.registers[name])
            value = np.where(self.active, new, old.view(new.dtype))
        self.registers[name] = value

    def special(self, name: str) -> Array | None:
        """A special register (PTX ISA, "Special Registers"), as u32 or u64; None for one that is not known.

        Clocks count instructions: they grow, and no more is to be read from them.
        """
        if not self._specials:
            self._specials = self._special_registers()
        return np.full((1, 1), self.steps, _CLOCKS[name]) if name in _CLOCKS else self._specials.get(name)

    def _special_registers(self) -> dict[str, Array]:
        grid, block, threads = self.context.grid, self.context.block, self.shape[1]
        thread = np.arange(threads)[None, :]
        values: dict[str, Any] = {}
        for place, axis in enumerate("xyz"):
            values[f"%tid.{axis}"] = linear(thread, block)[place]
            values[f"%ctaid.{axis}"] = linear(self.block_ids[:, None], grid)[place]
            values[f"%ntid.{axis}"], values[f"%nctaid.{axis}"] = block[place], grid[place]
        cluster, at = self.context.cluster, linear(self.block_ids[:, None], grid)
        for each, axis in enumerate("xyz"):
            values[f"%cluster_ctaid.{axis}"], values[f"%clusterid.{axis}"] = (
                at[each] % cluster[each],
                at[each] // cluster[each],
            )
            values[f"%cluster_nctaid.{axis}"], values[f"%nclusterid.{axis}"] = (
                cluster[each],
                grid[each] // cluster[each],
            )
        rank = [values[f"%cluster_ctaid.{axis}"] for axis in "xyz"]
        values["%cluster_ctarank"] = rank[0] + cluster[0] * (rank[1] + cluster[1] * rank[2])
        values["%cluster_nctarank"], values["%is_explicit_cluster"] = int(np.prod(cluster)), int(cluster != (1, 1, 1))
        workspace = self.context.symbols.get(GRID_WORKSPACE, 0)
        values |= dict(zip(GRID_REGISTERS, (workspace >> 32, workspace & 0xFFFFFFFF), strict=True))
        lane = thread % LANES
        bit = np.left_shift(1, lane)
        shared = self.context.shared_size
        values |= {RESERVED_REGISTER: 0, "%smid": 0, "%nsmid": 1, "%gridid": 0, "%total_smem_size": shared}
        values |= {"%laneid": lane, "%warpid": thread // LANES, "%nwarpid": warp_count(threads), "WARP_SZ": LANES}
        values |= {
            "%lanemask_eq": bit,
            "%lanemask_lt": bit - 1,
            "%lanemask_le": 2 * bit - 1,
            "%lanemask_gt": 2**32 - 2 * bit,
            "%lanemask_ge": 2**32 - bit,
        }
        return {name: np.atleast_2d(value).astype(np.uint32) for name, value in values.items()}

    def reporter(self, source: Source) -> Report:
        """What memory calls when the instruction at ``source`` is at fault."""

        def report(error: Any, position: tuple[int, int], text: str, address: int) -> None:
            text += self.context.dynamic if text.endswith("of shared memory") else ""
            fault = self.fault(error, source, position, text, address)
            if error is not SharedRaceError or self.context.races == "error":
                raise fault
            if self.context.races == "report":
                self.context.find("shared-race", source, fault.what, 1)

        return report

    def fault(
        self,
        error: type[KernelFaultError],
        source: Source,
        position: tuple[int, int],
        text: str,
        address: int | None = None,
    ) -> KernelFaultError:
        """A fault of the thread at (block, thread) of the chunk."""
        block = linear(int(self.block_ids[position[0]]), self.context.grid)
        return error(source, block, linear(position[1], self.context.block), text, address)

    def first_active(self) -> tuple[int, int]:
        """The (block, thread) of the first active thread."""
        block, thread = np.nonzero(spread(self.active, self.shape))
        return int(block[0]), int(thread[0])


def _select(value: Value, rows: Array) -> Value:
    if isinstance(value, Sum):
        return summed(value.block[rows], value.thread)
    return value[rows] if value.shape[0] > 1 else value
