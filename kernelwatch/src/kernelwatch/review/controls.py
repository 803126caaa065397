"""Controls: times of equal machine code on two GPUs of one model. They show how much the times of the GPUs differ.

They hold only for kernels that are almost as fast as a copy. An uncoalesced transpose differed by 5 % between GPUs
whose copies agreed to 0.6 % (docs/evidence/agreement.md).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from kernelwatch.kernel import matrix_copy
from kernelwatch.review.pairing import Describe, Pair, is_code_unchanged, is_one_measurement
from kernelwatch.review.verdict import compute_ratio, relative_change
from kernelwatch.store.default_thresholds import LONG_LAUNCH
from kernelwatch.store.measurements import CommitMeasurements

#: Minimum number of controls besides the library's plain copy; a review with fewer does not use any. The plain copy
#: alone shows too little: with it as the only control, 582 of 4,344 times were beyond the threshold.
MIN_CONTROLS = 12

#: Maximum number of base's times that a run on another GPU measures again.
CHOSEN = 24

#: Largest ratio of a kernel's time to the copy's for which controls apply.
MAX_COPIES = 1.6


class Controls(NamedTuple):
    """The number of controls of a review, and the largest relative change among them.

    `remeasured` is the number of those for which head's run measured base's code again.
    """

    number: int
    largest: float
    remeasured: int = 0


def find_controls(
    base: CommitMeasurements, head: CommitMeasurements, times: Iterable[Pair], describe: Describe
) -> Controls | None:
    """Return the controls among pairs of times and those of `pair_remeasured`; None for too few (MIN_CONTROLS)."""
    remeasured = [
        pair
        for pair in pair_remeasured(base, head)
        if can_apply_controls(pair, describe) and _is_steady(pair, describe)
    ]
    pairs = remeasured + [
        pair for pair in times if can_apply_controls(pair, describe) and is_control(base, head, pair, describe)
    ]
    if sum(describe(pair.benchmark, pair.base.params).kernel != matrix_copy.NAME for pair in pairs) < MIN_CONTROLS:
        return None
    changes = (relative_change(compute_ratio(pair.base.value or 0.0, pair.head.value or 0.0)) for pair in pairs)
    return Controls(len(pairs), max(changes), len(remeasured))


def pair_remeasured(base: CommitMeasurements, head: CommitMeasurements) -> Iterator[Pair]:
    """Yield pairs of base's stored time, and of the time of the same code that head's run measured."""
    for benchmark, measured in head.benchmarks.items():
        times = measured.controls.get(base.commit, {})
        points = base.benchmarks[benchmark].points.values() if times else ()
        by_params = {", ".join(point.params.values()): point for point in points}
        for (params, uuid), seconds in times.items():
            if point := by_params.get(params):
                yield Pair(benchmark, point, replace(point, value=seconds, gpus=frozenset([uuid])))


def list_candidates(base: CommitMeasurements, gpu: str, describe: Describe) -> list[Pair]:
    """Return the times of a commit that can be controls of a run on another GPU, `gpu`; each is a pair of equal times.

    Times that only `gpu` measured are left out.
    """
    pairs = (
        Pair(benchmark, point, replace(point, gpus=frozenset([gpu])))
        for benchmark, measured in base.benchmarks.items()
        for point in measured.points.values()
    )
    return [pair for pair in pairs if can_apply_controls(pair, describe) and _is_steady(pair, describe)]


def choose_controls(candidates: Iterable[Pair], describe: Describe) -> list[Pair]:
    """Return CHOSEN pairs, or all if there are fewer: equally many of each kernel if possible, durations evenly spread.

    GPUs differ by kernel. If only some kernels are controls, the others may differ by more than the threshold.
    """
    by_kernel: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in sorted(candidates, key=lambda pair: (pair.base.value or 0.0, pair.name)):
        by_kernel[describe(pair.benchmark, pair.base.params).kernel or pair.benchmark].append(pair)
    kernels = sorted(by_kernel, key=lambda kernel: (kernel != matrix_copy.NAME, kernel))
    turns = [kernel for turn in range(CHOSEN) for kernel in kernels if turn < len(by_kernel[kernel])]
    return [
        by_kernel[kernel][(2 * place + 1) * len(by_kernel[kernel]) // (2 * share)]
        for kernel, share in Counter(turns[:CHOSEN]).items()
        for place in range(share)
    ]


def can_apply_controls(pair: Pair, describe: Describe) -> bool:
    """Return whether controls apply to a pair of times.

    Controls apply if several known GPUs took the times, and both times are at least LONG_LAUNCH. Unless the kernel is
    the copy itself, both times must also be at most MAX_COPIES times the copy's time.
    """
    points = (pair.base, pair.head)
    if len(pair.gpus) < 2 or None in pair.gpus or any((point.value or 0.0) < LONG_LAUNCH for point in points):
        return False
    return describe(pair.benchmark, pair.base.params).kernel == matrix_copy.NAME or all(
        point.copies is not None and 0 < point.copies <= MAX_COPIES for point in points
    )


def is_control(base: CommitMeasurements, head: CommitMeasurements, pair: Pair, describe: Describe) -> bool:
    """Return whether both commits launched the same machine code, in two measurements without throttling.

    Times with a condition, such as "from L2", are no controls: their noise differs. The caller checks the GPUs and the
    times (`can_apply_controls`).
    """
    if is_one_measurement(base, head, pair) or not _is_steady(pair, describe):
        return False
    code_name = describe(pair.benchmark, pair.base.params).code_name
    return bool(is_code_unchanged(base, head, pair.benchmark, pair.base.params, code_name))


def _is_steady(pair: Pair, describe: Describe) -> bool:
    """Return whether both times were measured without throttling, and without conditions."""
    throttled = pair.base.throttle_reasons or pair.head.throttle_reasons
    return not throttled and not describe(pair.benchmark, pair.base.params).conditions
