"""Notes on a review: sentences about the runs of both commits, the launches and the source."""

from collections.abc import Iterable, Iterator, Sequence

from kernelwatch.review.controls import MAX_COPIES
from kernelwatch.review.pairing import Pair, is_one_measurement
from kernelwatch.review.rows import Row
from kernelwatch.review.sides import ReviewSides
from kernelwatch.review.thresholds import Thresholds
from kernelwatch.review.verdict import REUSED, Reason, ReasonKind
from kernelwatch.store.default_thresholds import LONG_LAUNCH, THRESHOLD_BETWEEN_GPUS
from kernelwatch.store.measurements import CommitMeasurements
from kernelwatch.store.source_changes import SourceChanges
from kernelwatch.suite.benchmark_names import TIMED

#: Label of a fact that may explain a change -> its field in `RunFacts`, and asv's types of affected benchmarks.
_FACTS = {
    "GPU": ("gpu", ("time",)),
    "driver": ("driver", ("time",)),
    "fetch granularity of the L2 cache": ("l2_fetch_bytes", ("time",)),
    "compiler": ("compiler", ("time", "track")),
    "generator of PTX": ("generators", ("time", "track")),
}

#: Smallest ratio of head's PTX instructions to base's that a note names.
_MANY_INSTRUCTIONS = 2.0


def list_notes(
    sides: ReviewSides,
    base: CommitMeasurements,
    head: CommitMeasurements,
    times: Sequence[Pair],
    thresholds: Thresholds,
) -> Iterator[str]:
    """Yield notes on the runs: one commit twice, uncommitted files, differing facts, several GPUs, reused times."""
    if base.commit == head.commit and not sides.is_of_compilers:
        yield f"base and head are the same commit, {base.commit[:8]}; give another BASE"
    yield from (note for side in (base, head) for note in _list_uncommitted(side))
    differing = _list_differing_facts(sides, base, head)
    yield from (f"{fact}; to measure both alike: {sides.measure_command}" for fact in differing)
    yield from _list_gpu_notes(times, thresholds, sides.measure_command)
    if equal := sum(is_one_measurement(base, head, pair) for pair in times):
        yield f"{equal} of {len(times)} times: {REUSED} (docs/method.md)"


def _list_uncommitted(side: CommitMeasurements) -> Iterator[str]:
    for files in sorted({benchmark.last_run.uncommitted for benchmark in side.benchmarks.values()} - {""}):
        yield f"{side.commit[:8]} was measured with uncommitted changes in {files}; commit them, and measure again"


def _list_gpu_notes(times: Sequence[Pair], thresholds: Thresholds, command: str) -> Iterator[str]:
    """Yield notes on times that several GPUs measured: how many there are, and the threshold that controls give."""
    multi_gpu = [pair for pair in times if len(pair.gpus) > 1]
    if not multi_gpu:
        return
    measured = "may have measured" if any(None in pair.gpus for pair in multi_gpu) else "measured"
    count, total = (len({pair.benchmark for pair in pairs}) for pairs in (multi_gpu, times))
    are = "may be" if thresholds.controls else "are"
    largest_same = f"{THRESHOLD_BETWEEN_GPUS * 100:g} %"
    yield (
        f"several GPUs of one model {measured} {count} of {total} timed benchmarks: changes up to {largest_same} {are} "
        f"SAME there; for smaller ones, measure both on one GPU: {command}"
    )
    if thresholds.controls:
        number, largest, remeasured = thresholds.controls
        origin = f"; for {remeasured}, the run of head measured base's code" if remeasured else ""
        yield (
            f"{number} times of equal machine code (at least {LONG_LAUNCH * 1e6:g} µs, at most {MAX_COPIES:g} times "
            f"the copy{origin}) differ by up to {largest * 100:.2g} % between GPUs: such times are SAME up to "
            f"{thresholds.between_gpus * 100:.3g} % (twice that, at least 1 %), others up to {largest_same}"
        )


def list_changed_launches(rows: Iterable[Row], command: str) -> Iterator[str]:
    """Yield one note, if any: kernels whose counts changed with equal machine code, and how to measure them again."""
    counts = (row for row in rows if row.kind != TIMED and row.arch is None and row.base != row.head)
    if kernels := ", ".join(sorted({row.kernel for row in counts if row.code_unchanged})):
        yield (
            f"counts changed with equal machine code: {kernels}; so the launch, its arguments or ptxcount changed; "
            f"to count both commits alike: {command}"
        )


def list_source_notes(changes: SourceChanges) -> Iterator[str]:
    """Yield notes on the source: problems with acknowledged.toml, and files with changed launches in host code."""
    yield from changes.problems
    if changes.launch_files:
        yield (
            f"launches (<<<...>>>) changed in {', '.join(changes.launch_files)}; if grid, block or shared memory "
            "changed, change the suite's classes, too"
        )


def list_more_instructions(rows: Iterable[Row]) -> Iterator[str]:
    """Yield one note, if any: kernels with at least twice the PTX instructions, unless times or limits decide."""
    ratios: dict[str, float] = {}
    for row in rows:
        if Reason(ReasonKind.INSTRUCTIONS) in row.judgement.reasons and row.judgement.ratio >= _MANY_INSTRUCTIONS:
            ratios[row.kernel] = max(row.judgement.ratio, ratios.get(row.kernel, 0))
    if ratios:
        kernels = ", ".join(f"{kernel} {ratio:.3g}" for kernel, ratio in sorted(ratios.items()))
        yield f"more PTX instructions (head / base): {kernels}; they decide only above a limit (docs/settings.md)"


def _list_differing_facts(sides: ReviewSides, base: CommitMeasurements, head: CommitMeasurements) -> Iterator[str]:
    """Yield a text for each fact of _FACTS that differs between the last runs of a benchmark at base and head.

    A fact that a run did not record is no difference.
    """
    for fact, (field, types) in _FACTS.items():
        if fact == "compiler" and sides.is_of_compilers:
            continue
        benchmarks = (name for name, measured in head.benchmarks.items() if measured.type in types)
        pairs = ([side.benchmarks[name] for side in (base, head)] for name in benchmarks)
        runs = ((old.last_run, new.last_run) for old, new in pairs if not (old.absence or new.absence))
        for old, new in dict.fromkeys((getattr(old, field), getattr(new, field)) for old, new in runs):
            if old != new and None not in (old, new):
                yield f"different {fact}: {old} for base, {new} for head"
