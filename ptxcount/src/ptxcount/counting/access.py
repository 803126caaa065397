"""The counters of one memory instruction in a launch."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain, zip_longest

from ..lanes.symbolic_values import Value
from ..lanes.warps import Array, by_thread, find_active_lanes, lanes_by_warp, spread
from ..util.errors import Source
from . import transactions
from .atomic_costs import AtomicCost
from .rule_sums import Rules, sum_rules
from .samples import EXECUTIONS, Sample, sample_warps
from .transactions import CONSTANT_BYTES, SECTOR, WORD

#: Caveats for atomics that compile to CAS loops: 16-bit ones; in shared memory also float and 64-bit, except swaps.
RETRY_CAVEAT = "retries between warps are not counted"
CAS_LOOP_CAVEAT = "a compare-and-swap loop on the 32-bit word: one load, then one request per round"
#: Caveat for atomic swaps that the kernel itself repeats until they succeed.
WINNER_CAVEAT = "the number of tries depends on which lane or warp wins; here threads try in the order of their indices"
_WAVEFRONTS = ("wavefronts", "conflict_free")
_PATTERNS = ("sectors", "lines", "ideal_sectors", "ideal_lines")
#: Counting rules by state space, or by space and kind, each with the names of the counts that it returns. ``loop`` are
#: the loads of an atomic's CAS loop.
_RULES: dict[str, tuple[Rules, tuple[str, ...]]] = {
    "shared loop": (transactions.count_loop_loads, ("requests", *_WAVEFRONTS)),
    "local": (transactions.count_local_sectors, ("sectors",)),
    "constant": (transactions.count_constant_addresses, ("addresses",)),
    **dict.fromkeys(("global", "cluster"), (transactions.count_global, _PATTERNS)),
    **dict.fromkeys(("global atomic", "cluster atomic"), (transactions.count_global_atomics, ("together", *_PATTERNS))),
}
#: Counts of a warp-aggregated request that replace those of the counting rule. It is in `requests` already.
_AGGREGATED = {"requests": 0, "sectors": 1, "wavefronts": 1, "conflict_free": 1}


@dataclass
class Access:
    """The counters of one memory instruction in a launch.

    Attributes
    ----------
    source : Source
        The instruction.
    space, kind : str
        ``global``, ``shared``, ``cluster`` for the shared memory of another block, ``local``, ``constant``,
        ``texture``, ``surface``, or ``bulk`` for the global half of bulk copies; ``load``, ``store``, ``atomic``, or
        ``copy``: the shared half of ``cp.async``, which is in no total.
    width : int
        Bytes per thread. For textures, bytes of a texel; for bulk copies, 16.
    requests, sectors, wavefronts : int
        Counts with Nsight Compute's definitions (atomics: see `caveat`). Wavefronts are set for shared memory; sectors
        for all other memory except constant. ptxas may still keep a local array in registers.
    lines : int
        For global and distributed shared memory: the distinct 128-byte lines of each request, summed.
    conflict_free : int
        The wavefronts without bank conflicts.
    useful_bytes : int
        ``width`` times active threads, without bytes that ``cp.async`` fills with zeros. For bulk copies, the bytes
        of global memory that are copied.
    addresses : int
        For constant memory, and parameters indexed by a register: the distinct addresses of each request, summed. A
        16-byte access is two requests.
    together : int
        Atomics: the maximum number of lanes on one address, summed over the requests.
    aggregated : int
        Atomics: the warp-aggregated requests, which one lane issues for all.
    loops : int
        Atomics: the requests that in shared memory are CAS loops, which repeat while other warps modify the word. In
        global memory, only those of 16 bits are loops.
    ideal_sectors, ideal_lines : int
        The sectors and lines that a request's distinct bytes would fill if packed, summed over the requests. For
        textures, surfaces and bulk copies: the sectors of all useful bytes, and no lines. 0 for other spaces.
    polls : int
        Requests of spin-waits after the first: loads of an address until another thread writes there, and atomics that
        try again for a lock. The number depends on the order in which ptxcount runs blocks. No other count includes
        polls.
    shifted_sectors : list of int
        Bulk copies without a tensor map: the sectors if the shared buffer were moved by 0, 16, 32 ... 112 bytes. Else
        empty.
    samples : list of Sample
        The addresses of some warps. ptxcount runs blocks in groups; samples are from the first group's executions.
    has_enough_samples : bool
        True when enough samples are stored, or another group of blocks has started.
    """

    source: Source
    space: str
    kind: str
    width: int
    requests: int = 0
    sectors: int = 0
    lines: int = 0
    wavefronts: int = 0
    conflict_free: int = 0
    useful_bytes: int = 0
    together: int = 0
    aggregated: int = 0
    loops: int = 0
    ideal_sectors: int = 0
    ideal_lines: int = 0
    polls: int = 0
    addresses: int = 0
    shifted_sectors: list[int] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list, init=False, repr=False, compare=False)
    has_enough_samples: bool = field(default=False, init=False, repr=False, compare=False)
    #: True for ``ldmatrix``, and for ``wmma.load`` by rows: eight rows form one group, never sixteen.
    is_matrix: bool = field(default=False, repr=False, compare=False)
    #: True for an atomic swap whose result decides whether a loop tries again.
    is_retried: bool = field(default=False, repr=False, compare=False)

    @property
    def bank_conflicts(self) -> int:
        """Wavefronts above the number that the same accesses would take without bank conflicts."""
        return self.wavefronts - self.conflict_free

    @property
    def wavefront_rule(self) -> Rules:
        """Rule that counts wavefronts, and conflict-free wavefronts, in shared memory."""
        may_pair_lanes = self.kind == "load" and not self.is_matrix
        return transactions.count_load_wavefronts if may_pair_lanes else transactions.count_store_wavefronts

    @property
    def caveat(self) -> str:
        """Text on an atomic's costs that the counts leave out, or that depend on scheduling; else empty."""
        if self.kind != "atomic":
            return ""
        is_narrow, is_shared = self.width == 2, self.space == "shared"
        notes = {
            CAS_LOOP_CAVEAT: is_narrow,
            RETRY_CAVEAT: is_narrow or (is_shared and self.loops),
            WINNER_CAVEAT: self.is_retried,
        }
        return "; ".join(note for note, applies in notes.items() if applies)

    @property
    def is_uniform_constant(self) -> bool:
        """True for constant memory with at most one address per request."""
        return self.space == "constant" and self.addresses <= self.requests

    def record(
        self,
        address: Value,
        active: Array,
        shape: tuple[int, int],
        cost: AtomicCost | None = None,
        is_replay: bool = False,
    ) -> None:
        """Count one execution by a group of blocks of ``shape`` (blocks, threads).

        ``address`` has byte addresses, and ``active`` is the mask of active threads. ``cost`` is the cost of an atomic
        instruction, also for the loads of its CAS loop. With ``is_replay``, the hardware replays a counted request:
        `useful_bytes` and `samples` stay.
        """
        min_lanes = 0 if cost is None else cost.min_aggregated_lanes
        if min_lanes < 2:
            self._count(address, active, shape, cost, is_replay, is_aggregated=min_lanes == 1)
            return
        lanes = lanes_by_warp(spread(active, shape), shape[1])
        has_enough = lanes.sum(axis=2, keepdims=True) >= min_lanes
        for part, is_aggregated in ((lanes & has_enough, True), (lanes & ~has_enough, False)):
            if part.any():
                mask = by_thread(part, shape[1])
                self._count(address, mask, shape, cost, is_replay, is_aggregated=is_aggregated)

    def _count(
        self,
        address: Value,
        active: Array,
        shape: tuple[int, int],
        cost: AtomicCost | None,
        is_replay: bool,
        *,
        is_aggregated: bool,
    ) -> None:
        """Count an execution as `record` does; ``is_aggregated`` holds for all of its requests."""
        occupancy = find_active_lanes(active, shape)
        count = occupancy.requests
        self.requests += count
        self.useful_bytes += 0 if is_replay else occupancy.threads * self.width
        if not (self.has_enough_samples or is_replay):
            self.samples += sample_warps(address, active, shape, self.samples)
            self.has_enough_samples = len(self.samples) >= EXECUTIONS
        if cost is not None and self.kind == "atomic":
            self.aggregated += count if is_aggregated else 0
            self.loops += cost.loops * count
            if self.space == "shared":
                most_lanes, *sums = sum_rules(transactions.count_shared_atomics, address, active, shape, self.width)
                rounds, ideal_rounds = sums[:3], sums[3:]
                self.together += most_lanes
                if is_aggregated:
                    self.wavefronts += count * cost.per_aggregated
                    self.conflict_free += count * cost.per_aggregated
                else:
                    self.wavefronts += count * cost.before + rounds[cost.rounds_index] * cost.per_round
                    self.conflict_free += count * cost.before + ideal_rounds[cost.rounds_index] * cost.per_round
                return
        rules = _RULES.get(f"{self.space} {self.kind}") or _RULES.get(self.space)
        if self.space == "shared":
            rules = (self.wavefront_rule, _WAVEFRONTS) if cost is None else _RULES["shared loop"]
        if rules is not None:
            rule, names = rules
            for name, number in zip(names, sum_rules(rule, address, active, shape, self.width), strict=True):
                added = count * _AGGREGATED[name] if is_aggregated and name in _AGGREGATED else number
                setattr(self, name, getattr(self, name) + added)
        if self.space == "local":
            self.requests += count * max(self.width // WORD - 1, 0)
        if self.space == "constant":
            self.requests += count * max(self.width // CONSTANT_BYTES - 1, 0)

    def add_untraced(self, requests: int, sectors: int, useful_bytes: int) -> None:
        """Add accesses without per-lane addresses: bulk copies, and accesses to textures and surfaces."""
        self.requests += requests
        self.sectors += sectors
        self.useful_bytes += useful_bytes
        self.ideal_sectors = -(-self.useful_bytes // SECTOR)

    def add_shifted(self, sectors: list[int]) -> None:
        """Add the sectors of a bulk copy to `shifted_sectors`; the list has a number for each shift."""
        self.shifted_sectors = [sum(pair) for pair in zip_longest(self.shifted_sectors, sectors, fillvalue=0)]


def sum_accesses(accesses: Sequence[Access]) -> Access:
    """Return an access with the summed counts of accesses of one space and kind, and the source of the first.

    Samples are the first ones of each access, in turn.
    """
    total = replace(accesses[0], shifted_sectors=[])
    for count in fields(Access):
        if count.type is int and count.name != "width":
            setattr(total, count.name, sum(getattr(access, count.name) for access in accesses))
    for access in accesses:
        total.add_shifted(access.shifted_sectors)
    samples = chain.from_iterable(zip_longest(*(access.samples for access in accesses)))
    total.samples = [sample for sample in samples if sample is not None][:EXECUTIONS]
    return total
