"""The state that all chunks of a launch share. A chunk is a number of thread blocks that run together (`chunk`)."""

from dataclasses import dataclass, field
from math import prod
from typing import Any

from ..counting.counters import Access, LaunchCounters
from ..util.errors import Index3, Source
from ..util.findings import Finding
from .global_memory import ArrayMemory
from .launch_progress import STALL_LIMIT, LaunchProgress
from .polls import Poll
from .warp_clocks import Clock


@dataclass
class Context:
    """State that all chunks of a launch share."""

    grid: Index3
    block: Index3
    #: Global memory, constant memory, and kernel parameters.
    memory: ArrayMemory
    constants: ArrayMemory
    parameters: ArrayMemory
    #: Addresses of variables, parameters, functions, the stack and the `GRID_WORKSPACE` by name.
    symbols: dict[str, int]
    #: Reasons why some variables have no address, by the name of the variable.
    unavailable: dict[str, str]
    #: The names of variables in shared memory.
    shared_names: frozenset[str]
    #: Shared memory per block, in bytes.
    shared_size: int
    #: Size of the smallest element in shared memory, in bytes: at most 8; 1 without accesses.
    shared_unit: int
    #: Local memory per thread, in bytes.
    local_size: int
    #: Maximum number of instructions that a chunk executes; each basic block counts as one more.
    step_limit: int
    #: Policies for races (`findings.RACES`), and for reads of unwritten memory (`findings.UNWRITTEN`).
    races: str
    unwritten: str
    counters: LaunchCounters
    #: Descriptors of textures, surfaces and tensors, by handle.
    descriptors: dict[int, Any]
    #: Cluster size in blocks.
    cluster: Index3
    #: True if the launch has clusters, even of one block.
    has_clusters: bool
    #: True for clusters of several blocks and cooperative launches: a chunk must not be split.
    has_concurrent_blocks: bool = False
    #: Maximum blocks of a cooperative launch, if the kernel synchronizes a grid that has more; else 0.
    max_resident_blocks: int = 0
    #: Reserved bytes at the beginning of shared memory, initially zero.
    reserved_shared_bytes: int = 0
    #: Text about dynamic shared memory, appended to messages about accesses out of bounds.
    dynamic_note: str = ""
    #: Dynamic shared memory per block, in bytes.
    dynamic_size: int = 0
    #: True if races in global memory are checked.
    checks_global_races: bool = False
    #: Clock of the race checks: it counts the checked accesses.
    clock: Clock = field(default_factory=Clock)
    #: Source of each checked access to global memory, by its `clock` time.
    access_sources: dict[int, Source] = field(default_factory=dict)
    #: Number of clocks that a warp needs (`warp_clocks.count_ordered_lanes`).
    ordered_lanes: int = 0
    #: Loads and atomics that may wait for other threads in a loop (`polls.find_polls`), by `id` of the instruction.
    polls: dict[int, Poll] = field(default_factory=dict)
    #: `id` of each weak load that ends a loop (`polls.find_scans`).
    scans: frozenset[int] = frozenset()
    #: Maximum seconds of the launch, and its deadline, by `time.monotonic`.
    time_limit: float = float("inf")
    deadline: float = float("inf")
    progress: LaunchProgress = field(default_factory=lambda: LaunchProgress(STALL_LIMIT))
    #: Address of the heap of ``malloc``; 0 before the first call.
    heap: int = 0
    #: Allocated bytes of the heap.
    heap_used: int = 0
    #: Functions that count accesses as ptxas would merge them (`MergedCounter`), by `id` of an instruction.
    merged: dict[int, list[Any]] = field(default_factory=dict)
    #: Handles of tensor maps that the kernel changed, by the fields of the map.
    map_handles: dict[Any, int] = field(default_factory=dict)
    #: Fields of tensor maps that the kernel created, by handle.
    maps: dict[int, Any] = field(default_factory=dict)
    #: Counters of accesses by `id` of the instruction, state space and kind.
    accesses: dict[tuple[int, str, str], Access] = field(default_factory=dict)
    #: Findings by code and source lines.
    findings: dict[tuple[str, frozenset[Any]], Finding] = field(default_factory=dict)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return prod(self.block)

    def add_finding(
        self, code: str, source: Source, message: str, times: int, other_source: Source | None = None
    ) -> None:
        """Add ``times`` occurrences of a finding. Findings with the same code and source lines are merged.

        ``other_source`` is the source of the other access of a race.
        """
        sources = (source, other_source or source)
        lines = frozenset((place.file, place.line) if place.file else place.ptx_line for place in sources)
        self.findings.setdefault((code, lines), Finding(code, source, message)).times += times
