"""Reviews of two GPUs of one model. Kernels with equal machine code are controls, which give the threshold."""

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kernelwatch.config.project_root import ROOT
from kernelwatch.kernel import matrix_copy
from kernelwatch.review.controls import (
    CHOSEN,
    MIN_CONTROLS,
    Controls,
    can_apply_controls,
    choose_controls,
    find_controls,
    is_control,
)
from kernelwatch.review.pairing import ConfigurationFacts, Pair, pair_configurations
from kernelwatch.review.thresholds import Thresholds
from kernelwatch.review.verdict import compute_ratio, relative_change
from kernelwatch.store.cubins import CubinHashes
from kernelwatch.store.default_thresholds import THRESHOLD_BETWEEN_GPUS
from kernelwatch.store.measurements import BenchmarkMeasurements, CommitMeasurements, RunFacts, load_commit
from kernelwatch.store.points import Point
from kernelwatch.store.results import History
from kernelwatch.suite import launch_facts
from kernelwatch.suite.benchmark_names import TIMED, classify_benchmark
from kernelwatch.workflow.load_review import describe_configuration
from tests.kernelwatch.review.test_review_of_values import review
from tests.stored import BASE, HEAD, TIME, samples

#: The kernel whose machine code changed. All other kernels are controls.
CHANGED = "changed"


def describe(benchmark: str, params: Mapping[str, str]) -> ConfigurationFacts:
    return ConfigurationFacts(params["case"], code_name=params["case"])


def make_commit(
    commit: str, gpu: str | None, *, factor: float = 1.0, control: float = 1.0, count: int = 40, **facts: Any
) -> Any:
    """Return a commit with `count` controls. Times are 1 ms times `factor` (changed kernel) or `control` (controls)."""
    kernels = {CHANGED: factor, **{f"copy{place}": control for place in range(count)}}
    defaults = {"copies": 1.0, "gpus": frozenset([gpu])}
    points: dict[tuple[tuple[str, str], ...], Point] = {
        (("case", kernel),): Point(
            {"case": kernel}, 1e-3 * ratio, tuple(samples(1e-3 * ratio)),
            **{**defaults, **(facts if kernel == CHANGED else {})},
        )
        for kernel, ratio in kernels.items()
    }  # fmt: skip
    cubins = CubinHashes(Path("nowhere", "gpu"))
    cubins._cubin_hashes[commit, ""] = {kernel: commit if kernel == CHANGED else "same" for kernel in kernels}
    cubins.archs = [""]
    run = RunFacts((commit,), gpu, driver="1")
    benchmarks = {TIME: BenchmarkMeasurements("time", "seconds", "", points, (run,))}
    return CommitMeasurements("gpu", commit, "python3.11", None, benchmarks, cubins)


#: Ratio of the changed kernel's times, that of the controls, number of controls, facts, verdict and threshold.
TWO_GPUS: dict[str, tuple[float, float, int, dict[str, Any], str, float]] = {
    "3 %, controls agree": (1.03, 1.001, 40, {}, "SLOWER", 0.01),
    "3 % faster": (0.97, 1.001, 40, {}, "FASTER", 0.01),
    "twice the largest control": (1.03, 1.0152, 40, {}, "SAME", 0.031),  # 2 * 0.0152, rounded up
    "controls differ by 6 %": (1.075, 1.06, 40, {}, "SAME", THRESHOLD_BETWEEN_GPUS),
    "enough controls": (1.03, 1.001, MIN_CONTROLS, {}, "SLOWER", 0.01),
    "too few controls": (1.03, 1.001, MIN_CONTROLS - 1, {}, "SAME", THRESHOLD_BETWEEN_GPUS),
    "slower than 1.6 copies": (1.03, 1.001, 40, {"copies": 1.7}, "SAME", THRESHOLD_BETWEEN_GPUS),
    "unknown copies": (1.03, 1.001, 40, {"copies": None}, "SAME", THRESHOLD_BETWEEN_GPUS),
    "an unknown GPU": (1.03, 1.001, 40, {"gpus": frozenset(["A", None])}, "SAME", THRESHOLD_BETWEEN_GPUS),
}


@pytest.mark.parametrize("name", TWO_GPUS)
def test_controls_give_the_threshold(name: str) -> None:
    """The threshold is twice the largest change of a control, from 1 % to THRESHOLD_BETWEEN_GPUS."""
    changed, control, count, facts, verdict, threshold = TWO_GPUS[name]
    base = make_commit(BASE, "A", count=count, **facts)
    head = make_commit(HEAD, "B", factor=changed, control=control, count=count, **facts)
    outcome = review(base, head, describe=describe)
    (row,) = (row for row in outcome.rows if row.kernel == CHANGED)
    assert row.judgement.verdict.value == verdict
    assert row.judgement.threshold == pytest.approx(threshold)
    assert outcome.exit_code == (verdict == "SLOWER")
    notes_on_controls = [note.startswith(f"{count} times of equal machine code") for note in outcome.notes]
    assert notes_on_controls == [False] + [True] * (count >= MIN_CONTROLS)  # the first note is on the two GPUs


@pytest.mark.parametrize(("others", "expected"), [(MIN_CONTROLS, Controls(40, 0.0)), (MIN_CONTROLS - 1, None)])
def test_plain_copy_alone_is_no_control(others: int, expected: Controls | None) -> None:
    """Times of the library's plain copy are controls without a ratio to a copy, but other kernels are needed, too."""
    base, head = make_commit(BASE, "A"), make_commit(HEAD, "B")
    names = {f"copy{place}" for place in range(others, 40)}

    def describe_copy(benchmark: str, params: Mapping[str, str]) -> ConfigurationFacts:
        facts = describe(benchmark, params)
        return facts._replace(kernel=matrix_copy.NAME) if params["case"] in names else facts

    pairs = [
        pair._replace(base=replace(pair.base, copies=None), head=replace(pair.head, copies=None))
        if pair.base.params["case"] in names
        else pair
        for pair in pair_configurations(base, head, describe).pairs
    ]
    assert find_controls(base, head, pairs, describe_copy) == expected


def test_one_gpu_needs_no_controls() -> None:
    """The thresholds are the defaults, and no note is printed."""
    outcome = review(make_commit(BASE, "A"), make_commit(HEAD, "A", factor=1.03, control=1.02), describe=describe)
    assert {row.judgement.threshold for row in outcome.rows} == {0.01}
    assert outcome.notes == []


@pytest.mark.parametrize("side", [0, 1])
def test_doubtful_times_are_no_controls(side: int) -> None:
    """Throttled times, reused numbers and launches from L2 are none. None applies to times below 20 µs."""
    base, head = make_commit(BASE, "A", count=1), make_commit(HEAD, "B", count=1)
    pairs = pair_configurations(base, head, describe).pairs
    (pair,) = (pair for pair in pairs if pair.base.params["case"] != CHANGED)
    assert is_control(base, head, pair, describe)
    points: list[Point] = [pair.base, pair.head]
    points[side] = replace(points[side], throttle_reasons="heat")
    assert not is_control(base, head, Pair(pair.benchmark, *points), describe)
    assert not is_control(base, head, pair._replace(head=replace(pair.head, origin=BASE)), describe)
    from_l2 = ConfigurationFacts("copy0", "copy0", conditions=("from L2",))
    assert not is_control(base, head, pair, lambda *_: from_l2)
    points[side] = replace((pair.base, pair.head)[side], value=19e-6)
    assert not can_apply_controls(Pair(pair.benchmark, *points), describe)


#: Facts of a stored configuration, cached because hundreds of pairs need them.
describe_stored = launch_facts.cache_by_class(describe_configuration)


@cache
def list_stored_changes(machine: str) -> list[tuple[Any, Any, list[tuple[Pair, float]]]]:
    """Return each two commits that the default compiler built, and their controls with the relative changes."""
    changes = []
    history = History(machine, ROOT)
    commits = [
        load_commit(history, commit, environment, ("time",))
        for commit in history.graph.line
        for environment in history.list_environments(commit)
        if "TOOLKIT" not in str(environment)
    ]
    for base, head in itertools.combinations(commits, 2):
        shared = base.benchmarks.keys() & head.benchmarks.keys()
        old, new = (
            dataclasses.replace(side, benchmarks={name: side.benchmarks[name] for name in shared})
            for side in (base, head)
        )
        pairs = pair_configurations(old, new, describe_stored).pairs
        timed = [pair for pair in pairs if classify_benchmark(pair.benchmark) == TIMED]
        compared = [pair for pair in timed if can_apply_controls(pair, describe_stored)]
        controls = [pair for pair in compared if is_control(base, head, pair, describe_stored)]
        ratios = [compute_ratio(pair.base.value or 0.0, pair.head.value or 0.0) for pair in controls]
        changes.append((base, head, [*zip(controls, map(relative_change, ratios), strict=True)]))
    return changes


@pytest.mark.parametrize(
    ("machine", "last", "least"), [("nvidia-h200", "41c35749", 3000), ("nvidia-h100-80gb-hbm3", "51ec07a7", 60)]
)
def test_stored_controls_are_within_their_threshold(machine: str, last: str, least: int) -> None:
    """No kernel of equal code changed by more than the threshold that follows from the other kernels.

    The bound on the median threshold covers the commits up to `last`: GPUs of later results may differ more. Of 18
    H200s, five run `transpose_read_write_coalesced` 2 % slower than the others.
    """
    beyond, thresholds = [], []
    line = History(machine, ROOT).graph.line
    early = line[: next(place for place, commit in enumerate(line) if commit.startswith(last)) + 1]
    for base, head, changes_of_pairs in list_stored_changes(machine):
        by_kernel = defaultdict[str | None, list[tuple[Pair, float]]](list)
        for pair, change in changes_of_pairs:
            by_kernel[describe_stored(pair.benchmark, pair.base.params).kernel].append((pair, change))
        for kernel, changes in by_kernel.items():
            others = [change for other in by_kernel.keys() - {kernel} for _, change in by_kernel[other]]
            controls = Controls(len(others), max(others)) if len(others) >= MIN_CONTROLS else None
            limits = Thresholds(controls=controls)
            for pair, change in changes:
                threshold = limits.select(pair, describe_stored)
                thresholds += [threshold] * (head.commit in early)
                beyond += [(base.commit[:8], head.commit[:8], pair.name)] * (change > threshold)
    assert beyond == []
    assert len(thresholds) > least
    assert sorted(thresholds)[len(thresholds) // 2] <= 0.015, "the median threshold exceeds 1.5 %"


def test_chosen_controls_suffice_on_stored_results() -> None:
    """No time of equal code is beyond the threshold of the chosen controls. CHOSEN and more times are judged."""
    judged, beyond = 0, []
    for base, head, changes in list_stored_changes("nvidia-h200"):
        if len(changes) < 2 * CHOSEN:
            continue
        chosen = {pair.name for pair in choose_controls([pair for pair, _ in changes], describe_stored)}
        limits = Thresholds(controls=Controls(CHOSEN, max(change for pair, change in changes if pair.name in chosen)))
        others = [(pair, change) for pair, change in changes if pair.name not in chosen]
        judged += len(others)
        too_large = (pair for pair, change in others if change > limits.select(pair, describe_stored))
        beyond += [(base.commit[:8], head.commit[:8], pair.name) for pair in too_large]
    assert beyond == []
    assert judged > 10_000


def test_documentation_has_the_number_of_controls() -> None:
    assert f"up to {CHOSEN} configurations" in (ROOT / "docs" / "method.md").read_text(encoding="utf-8")
