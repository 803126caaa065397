"""Judge pairs of configurations: times by their samples and the recorded state of the GPU, other numbers exactly.

A comparison of times alone would blame the kernel for changes of the machine.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from kernelwatch.review import time_verdicts
from kernelwatch.review.pairing import Describe, Pair, is_code_unchanged, is_one_measurement
from kernelwatch.review.rows import Row
from kernelwatch.review.thresholds import Thresholds
from kernelwatch.review.verdict import (
    REUSED,
    Judgement,
    Reason,
    ReasonKind,
    Verdict,
    compute_ratio,
    judge_exact,
    relative_change,
)
from kernelwatch.store.measurements import CommitMeasurements
from kernelwatch.suite.benchmark_names import TIMED, classify_benchmark
from kernelwatch.suite.metrics import GLOBAL_SECTORS


def judge_pairs(
    base: CommitMeasurements,
    head: CommitMeasurements,
    pairs: Sequence[Pair],
    thresholds: Thresholds,
    describe: Describe,
) -> list[Row]:
    """Return a row with a judgement for each pair. Holm's correction covers all times together."""
    times = [pair for pair in pairs if classify_benchmark(pair.benchmark) == TIMED]
    limits = [thresholds.select(pair, describe) for pair in times]
    judged = time_verdicts.judge_times([(pair.base, pair.head) for pair in times], limits)
    judgements = dict(zip(map(id, times), judged, strict=True))  # by identity, because two pairs may be equal
    rows = []
    for pair in pairs:
        benchmark, old, new = pair
        kind = classify_benchmark(benchmark)
        is_sized = kind == TIMED or benchmark.rpartition(".track_")[2] in GLOBAL_SECTORS
        assert old.value is not None, "pairs have values"
        assert new.value is not None, "pairs have values"
        facts = describe(benchmark, old.params)
        unchanged = is_code_unchanged(base, head, benchmark, old.params, facts.code_name)
        judgement = judgements.get(id(pair)) or judge_exact(old.value, new.value)
        if is_one_measurement(base, head, pair):
            judgement = replace(judgement, reasons=(REUSED,))
        elif kind == TIMED:
            judgement = add_doubts(
                judgement, pair, unchanged=unchanged, throttle_reasons=_explain_throttling(base, head, pair)
            )
        rows.append(
            Row(
                name=pair.name,
                kind=kind,
                unit=head.benchmarks[benchmark].unit,
                base=old.value,
                head=new.value,
                judgement=judgement,
                useful_bytes=facts.useful_bytes if is_sized else None,
                copies=_pair_copies(pair),
                benchmark=benchmark,
                params=old.params,
                kernel=facts.kernel or benchmark,
                code_unchanged=unchanged,
                verified=facts.verified or "arch" in old.params,
                conditions=facts.conditions,
            )
        )
    return rows


def add_doubts(judgement: Judgement, pair: Pair, *, unchanged: bool | None, throttle_reasons: str) -> Judgement:
    """Return the judgement on a time; UNDECIDED if the machine may have caused the change.

    The machine may have caused it if the GPU was throttled. If the machine code is unchanged, two other causes are
    possible: several GPUs took the times, or the time of the copy changed as much.
    """
    if judgement.verdict is Verdict.SAME:
        return judgement
    doubt, could_be, copies = None, judgement.could_be, _pair_copies(pair)
    if throttle_reasons:
        doubt, could_be = Reason(ReasonKind.THROTTLED, (throttle_reasons,)), None
    elif unchanged and len(pair.gpus) > 1:
        doubt = Reason(ReasonKind.SEVERAL_GPUS)
    elif unchanged and copies and relative_change(compute_ratio(*copies)) <= judgement.threshold:
        # An influence on both kernel and copy cancels in the time divided by the copy's time.
        doubt = Reason(ReasonKind.COPY, (compute_ratio(*copies),))
    reasons = judgement.reasons or ((doubt,) if doubt else ())
    reasons += (Reason(ReasonKind.UNCHANGED),) if unchanged else ()
    verdict = Verdict.UNDECIDED if doubt else judgement.verdict
    return replace(judgement, verdict=verdict, reasons=reasons, could_be=could_be)


def _pair_copies(pair: Pair) -> tuple[float, float] | None:
    base, head = pair.base.copies, pair.head.copies
    return None if base is None or head is None else (base, head)


def _explain_throttling(base: CommitMeasurements, head: CommitMeasurements, pair: Pair) -> str:
    """Return why the GPU was throttled or shared, in base and in head; empty if the GPU was neither.

    The text is also empty if one interleaved run had the same reasons at both commits: some GPUs always throttle.
    """
    runs = [side.benchmarks[pair.benchmark].runs for side in (base, head)]
    reasons = {"base": pair.base.throttle_reasons, "head": pair.head.throttle_reasons}
    if runs[0] == runs[1] and len(runs[0]) == 1 and pair.base.throttle_reasons == pair.head.throttle_reasons:
        return ""
    return "; ".join(f"in {side}: {reason}" for side, reason in reasons.items() if reason)
