"""The verdict on a whole review, its exit code, and the numbers that decide it; docs/review.md has the rules."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from kernelwatch.review.launchable import BLOCK_SHARED, THREAD_REGISTERS, LaunchedBlocks, count_blocks, read_resources
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Reason, ReasonKind, Verdict
from kernelwatch.suite.benchmark_names import TIMED
from kernelwatch.suite.metrics import ARCH, RATIOS, TOTALS
from ptxcount.util.architectures import find_multiprocessor

#: Metric of the stack frame in local memory. ptxas may need less of it than the PTX declares.
_FRAME = "stack bytes"

#: Counted metrics, named as in `Row.metric`.
_RATIOS, _TOTALS = (frozenset(name.replace("_", " ") for name in metrics) for metrics in (RATIOS, TOTALS))

#: Metric of the wavefronts that remain if ptxas merges neighbouring accesses to shared memory.
_MERGED = "merged wavefronts"

#: Metrics of accesses to other blocks' shared memory.
_OF_CLUSTERS = ("cluster sectors", "cluster requests")

#: Metric of constant memory that decides. In a launch without it, the requests decide.
_ADDRESSES = "constant addresses"

#: Key of a counted launch, or of machine code on an architecture -> metric -> its row.
_RowsByMetric = Mapping[object, Mapping[str, Row]]


def weigh_against_times(
    rows: Sequence[Row],
    arch: str | None,
    limits: Mapping[str, float] = MappingProxyType({}),
    find_launched: Callable[[Row], LaunchedBlocks] = lambda _: (None, None),
) -> Iterator[Row]:
    """Yield the rows in the same order; changed counted and compiled numbers get their final verdict and `decides`.

    A deciding number that rose becomes a TRADE if some times of its machine code became faster and none slower. Any
    other number that rose becomes NOTED if its machine code has judged times, or if it does not decide.

    `arch` is the architecture of the GPU that timed. Its times do not affect numbers of other architectures. `limits`
    is as in `compare_commits`. `find_launched` returns the blocks with which base and head launch a compiled kernel.
    """
    times: dict[object, Counter[Verdict]] = defaultdict(Counter)
    related: defaultdict[object, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        if row.kind != TIMED:
            related[row.launch_key if row.arch is None else (row.code_key, row.arch)][row.metric] = row
        elif row.judgement.verdict is not Verdict.UNDECIDED:
            times[row.code_key][row.judgement.verdict] += 1
    for row in rows:
        if row.kind == TIMED or not row.judgement.is_change:
            yield row
            continue
        decides, reason = _decide_without_times(row, related, limits, find_launched)
        time_verdicts = times[row.code_key] if row.arch in (None, arch) else Counter()
        yield _weigh_row(row, time_verdicts, decides=decides, reason=reason)


def _weigh_row(row: Row, time_verdicts: Counter[Verdict], *, decides: bool, reason: Reason | None) -> Row:
    """Return a changed number with its final verdict.

    `time_verdicts` counts the verdicts on the times of its machine code. `decides` and `reason` hold without times.
    """
    slower, faster = time_verdicts[Verdict.SLOWER], time_verdicts[Verdict.FASTER]
    in_order = [verdict for verdict in (Verdict.SLOWER, Verdict.FASTER, Verdict.SAME) if time_verdicts[verdict]]
    counts = [f"{time_verdicts[verdict]} {verdict.value.lower()}" for verdict in in_order]
    explanation: tuple[Reason, ...] = (reason,) if reason else ()
    times: tuple[Reason, ...] = (Reason(ReasonKind.TIMES, (", ".join(counts),)),)
    if row.judgement.verdict is Verdict.FASTER:
        is_contradicted = decides and slower and not faster
        verdict, reasons = Verdict.FASTER, times if is_contradicted else ()
    elif decides and faster and not slower:
        verdict, reasons = Verdict.TRADE, times + explanation
    elif time_verdicts:
        verdict, reasons = Verdict.NOTED, times
    else:
        verdict, reasons = Verdict.SLOWER if decides else Verdict.NOTED, explanation
    judged = replace(row.judgement, verdict=verdict, reasons=reasons)
    return replace(row, judgement=judged, decides=decides)


def _decide_without_times(
    row: Row, related: _RowsByMetric, limits: Mapping[str, float], find_launched: Callable[[Row], LaunchedBlocks]
) -> tuple[bool, Reason | None]:
    if row.judgement.ratio > limits.get(row.metric, math.inf):
        return True, Reason(ReasonKind.ABOVE_LIMIT, (limits[row.metric],))
    if row.metric in (THREAD_REGISTERS, BLOCK_SHARED):
        return _decide_by_occupancy(row, related[row.code_key, row.arch], find_launched(row))
    if row.arch is not None:
        return True, None
    frame = related.get((row.code_key, ARCH), {}).get(_FRAME)
    kind = _find_explanation(row, related[row.launch_key], frame)
    return kind is None, None if kind is None else Reason(kind)


def _find_explanation(row: Row, counted: Mapping[str, Row], frame: Row | None) -> ReasonKind | None:
    """Return why a changed count does not decide; None if it decides.

    `counted` has all counts of the launch by metric. `frame` is the stack frame of its machine code.
    """
    moved = [counted_row for counted_row in counted.values() if counted_row.counts_global_sectors]
    base_sectors, head_sectors = sum(sectors.base for sectors in moved), sum(sectors.head for sectors in moved)
    # A sector occupies the L1 cache and the memory behind it at least as long as a wavefront occupies shared memory.
    is_outweighed = not row.base and row.head <= base_sectors - head_sectors
    evidence = {
        ReasonKind.INSTRUCTIONS: row.metric == "instructions",
        ReasonKind.TOTALS: (row.metric in _RATIOS and not _TOTALS.isdisjoint(counted))
        or (row.metric == "cluster requests" and "cluster sectors" in counted),
        ReasonKind.SECTORS: row.metric == "requests" and _is_explained_by_sectors(row, base_sectors, head_sectors),
        ReasonKind.MERGED: row.metric == "wavefronts" and _MERGED in counted,
        ReasonKind.NEW_SHARED_MEMORY: row.metric in ("wavefronts", _MERGED, *_OF_CLUSTERS) and is_outweighed,
        ReasonKind.ADDRESSES: row.metric == "constant requests" and _ADDRESSES in counted,
        ReasonKind.NEW_CONSTANT_LOADS: row.metric == _ADDRESSES
        and "constant requests" in counted
        and row.head == counted["constant requests"].head
        and is_outweighed,
        ReasonKind.IN_REGISTERS: row.metric.startswith("local ") and frame is not None and frame.head == 0,
    }
    return next((kind for kind, holds in evidence.items() if holds), None)


def _is_explained_by_sectors(requests: Row, base_sectors: float, head_sectors: float) -> bool:
    """Return whether the sectors explain a changed number of requests.

    They do if they changed in the same direction, or in the other direction by at least the ratio of the requests.
    """
    if head_sectors == base_sectors:
        return False
    if (requests.head > requests.base) == (head_sectors > base_sectors):
        return True
    base_product, head_product = requests.base * base_sectors, requests.head * head_sectors
    return head_product <= base_product if requests.head > requests.base else head_product >= base_product


def _decide_by_occupancy(row: Row, resources: Mapping[str, Row], launched: LaunchedBlocks) -> tuple[bool, Reason]:
    """Return whether a changed resource decides, and the reason.

    It decides if fewer threads fit on a multiprocessor after a rise, or more after a fall. This must hold with all
    resources, and also if this resource alone limits the threads. Unknown numbers of threads decide, too.
    """
    base_block, head_block = launched
    limits = find_multiprocessor(row.arch or "")
    if base_block is None or head_block is None or limits is None:
        return True, Reason(ReasonKind.OCCUPANCY_UNKNOWN)

    def count_threads(*limiting: str) -> tuple[int, ...]:
        totals = []
        for (threads, dynamic), side in ((base_block, "base"), (head_block, "head")):
            registers, static = read_resources(resources, side)
            needed_registers = registers if THREAD_REGISTERS in limiting else 0
            needed_shared = static + dynamic if BLOCK_SHARED in limiting else 0
            totals.append(threads * count_blocks(limits, threads, needed_registers, needed_shared))
        return tuple(totals)

    limited_by_it, limited_by_all = count_threads(row.metric), count_threads(THREAD_REGISTERS, BLOCK_SHARED)
    base_threads, head_threads = limited_by_all
    if all(new < old if row.head > row.base else new > old for old, new in (limited_by_it, limited_by_all)):
        return True, Reason(ReasonKind.OCCUPANCY_CHANGED, (head_threads, base_threads))
    return False, Reason(ReasonKind.OCCUPANCY_SAME, (head_threads, base_threads))


#: Maximum share of all times that may be undecided and possibly slower without affecting the verdict. Two runs of one
#: commit differ beyond their thresholds in about this share.
MAX_DOUBT_SHARE = 1 / 100

#: The same maximum for the times of one kernel with the same flags.
MAX_DOUBT_SHARE_OF_KERNEL = 1 / 10

#: Policies for a TRADE. NONE: it never passes. NUMBERS: it passes if no row is SLOWER. ALL: it always passes.
TRADE_POLICIES = NONE, NUMBERS, ALL = "none", "numbers", "all"


def conclude(rows: Sequence[Row], failing: Collection[Verdict] = ()) -> Verdict:
    """Return the verdict on a whole review: the worst one, but TRADE instead of SLOWER if something is better.

    NOTED rows do not count; UNDECIDED rows count only as `iter_reasons_for_undecided` says. `failing` has the verdicts
    of the failures: BROKEN, FAILED or REPAIRED. Without rows and failures, the verdict is UNDECIDED.
    """
    verdicts = {row.judgement.verdict for row in rows} | {*failing}
    if Verdict.BROKEN in verdicts:
        return Verdict.BROKEN
    if Verdict.SLOWER in verdicts:
        return Verdict.TRADE if is_better(rows) else Verdict.SLOWER
    if Verdict.FAILED in verdicts:
        return Verdict.FAILED
    if not verdicts or any(iter_reasons_for_undecided(rows)):
        return Verdict.UNDECIDED
    for verdict in (Verdict.TRADE, Verdict.ACKNOWLEDGED, Verdict.REPAIRED):
        if verdict in verdicts:
            return verdict
    return Verdict.FASTER if is_better(rows) else Verdict.SAME


def is_better(rows: Sequence[Row]) -> bool:
    """Return whether some time is faster, or, if nothing was timed, some deciding number fell."""
    times = [row for row in rows if row.kind == TIMED]
    deciding = times or (row for row in rows if row.decides)
    return any(row.judgement.verdict is Verdict.FASTER for row in deciding)


def exit_code(conclusion: Verdict, rows: Sequence[Row], trade: str) -> int:
    """Return the exit code: 0 if the review passes, 1 if something became worse, 2 if FAILED or UNDECIDED.

    `trade` is one of TRADE_POLICIES.
    """
    if conclusion is Verdict.TRADE:
        is_slower = any(row.judgement.verdict is Verdict.SLOWER for row in rows)
        passes = trade == ALL or (trade == NUMBERS and not is_slower)
        return 0 if passes else 1
    return {Verdict.BROKEN: 1, Verdict.SLOWER: 1, Verdict.FAILED: 2, Verdict.UNDECIDED: 2}.get(conclusion, 0)


def iter_reasons_for_undecided(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence for each set of times of which too many are undecided and could be slower.

    The sets are all times, with the limit MAX_DOUBT_SHARE, and the times of each kernel and flags, with
    MAX_DOUBT_SHARE_OF_KERNEL.
    """
    times = [row for row in rows if row.kind == TIMED]
    kernels: dict[str, list[Row]] = defaultdict(list)
    for row in times:
        kernels[f"{row.kernel} {row.flags}".strip()].append(row)
    of_kernels = [(name, group, MAX_DOUBT_SHARE_OF_KERNEL) for name, group in kernels.items()]
    for label, group, limit in [("all kernels", times, MAX_DOUBT_SHARE), *of_kernels]:
        count = sum(row.judgement.could_be_slower for row in group)
        if count > limit * len(group):
            yield f"{count} of {len(group)} times of {label} are undecided and could be slower"
