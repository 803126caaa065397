"""The state that all chunks of a launch share."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from ..counting.counters import Access, LaunchCounters
from ..lanes.warps import Array
from ..util.errors import Index3, Source
from ..util.findings import Finding
from .global_memory import ArrayMemory
from .launch_progress import STALL_LIMIT, LaunchProgress
from .polls import Poll
from .warp_clocks import Clock


def split_index(index: int | Array, extent: Index3) -> tuple[Any, Any, Any]:
    """Split a linear index into (x, y, z), x fastest."""
    return index % extent[0], index // extent[0] % extent[1], index // (extent[0] * extent[1])


@dataclass
class Context:
    """State that all chunks of a launch share."""

    grid: Index3
    block: Index3
    #: Global and constant memory, and the parameters.
    memory: ArrayMemory
    constants: ArrayMemory
    parameters: ArrayMemory
    #: The addresses of variables and parameters by their names, and why others have none.
    symbols: dict[str, int]
    unavailable: dict[str, str]
    #: The names of variables in shared memory.
    shared_names: frozenset[str]
    #: Bytes of a block's shared memory, its smallest access, and bytes of a thread's local memory.
    shared_size: int
    shared_unit: int
    local_size: int
    #: Instructions that a chunk may execute.
    step_limit: int
    #: Policies for races, of `findings.RACES`, and for reads of unwritten memory, of `findings.UNWRITTEN`.
    races: str
    unwritten: str
    counters: LaunchCounters
    #: Descriptors of textures, surfaces and tensors, by handle.
    descriptors: dict[int, Any]
    #: Blocks of a cluster, and True if the launch has clusters, even of one block.
    cluster: Index3
    has_clusters: bool
    #: True if the blocks of a chunk may wait for each other, so that they must not part.
    may_wait: bool = False
    #: Blocks that a cooperative launch may have, if the grid has more; else 0.
    most_blocks: int = 0
    #: The first bytes of shared memory that are none of the kernel's own, and zero at first.
    reserved: int = 0
    #: Note on dynamic shared memory in messages about accesses beyond it, and its bytes.
    dynamic: str = ""
    dynamic_size: int = 0
    #: True if races in global memory are looked for.
    watches_races: bool = False
    #: The accesses that were looked at.
    clock: Clock = field(default_factory=Clock)
    #: The line of each access, by its time.
    access_sources: dict[int, Source] = field(default_factory=dict)
    #: Lanes of a warp that its barriers may tell apart (`warp_clocks.count_ordered_lanes`).
    ordered_lanes: int = 0
    #: The loads that may poll, by their identity.
    polls: dict[int, Poll] = field(default_factory=dict)
    #: The weak loads that end loops, by their identity.
    scans: frozenset[int] = frozenset()
    #: Time by which all must have ended, by `time.monotonic`.
    deadline: float = float("inf")
    #: Progress of the launch.
    progress: LaunchProgress = field(default_factory=lambda: LaunchProgress(STALL_LIMIT))
    #: The address of the memory that ``malloc`` gives, none so far, and how much of it is given.
    heap: int = 0
    heap_used: int = 0
    #: First of some instructions that ptxas may merge -> their counter.
    merged: dict[int, Any] = field(default_factory=dict)
    #: Handles of tensor maps that the kernel changed, by their fields.
    map_handles: dict[Any, int] = field(default_factory=dict)
    #: Fields of maps that the kernel made, by their handles.
    maps: dict[int, Any] = field(default_factory=dict)
    #: The counters of each memory instruction, state space and kind.
    accesses: dict[tuple[int, str, str], Access] = field(default_factory=dict)
    #: Findings by code and lines.
    findings: dict[tuple[str, frozenset[Any]], Finding] = field(default_factory=dict)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return prod(self.block)

    def add_finding(
        self, code: str, source: Source, message: str, times: int, other_source: Source | None = None
    ) -> None:
        """Note something that is wrong but stops nothing, with the line of another; of lines the first is kept."""
        lines = frozenset(
            (place.file, place.line) if place.file else place.ptx_line for place in (source, other_source or source)
        )
        self.findings.setdefault((code, lines), Finding(code, source, message)).times += times
