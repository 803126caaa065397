"""Controls that a run on another GPU measures: choice among base's times, and their use in a review."""

import dataclasses
import itertools
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelwatch.review.controls import CHOSEN, MIN_CONTROLS, Controls, choose_controls, find_controls, list_candidates
from kernelwatch.review.pairing import ConfigurationFacts, Pair
from kernelwatch.runner.run_record import RunRecord
from kernelwatch.store import record
from kernelwatch.store.default_thresholds import THRESHOLD_BETWEEN_GPUS
from kernelwatch.store.measurements import CommitMeasurements
from kernelwatch.store.points import Point
from kernelwatch.suite.benchmark_names import copy_ratio_name
from tests.kernelwatch.review.test_controls import describe, make_commit
from tests.kernelwatch.review.test_review_of_values import review
from tests.stored import BASE, HEAD, MACHINE, TIME, Suite, review_stored, samples, write, write_lines

#: Start of the measurements.
MEASURED = datetime(2026, 11, 1, tzinfo=timezone.utc)

RATIO = copy_ratio_name(TIME)


def remeasure(head: CommitMeasurements, commit: str, *cases: str, seconds: float = 1e-3, gpu: str = "B") -> Any:
    """Return head, whose run also measured these cases of another commit."""
    controls: Any = {commit: {(case, gpu): seconds for case in cases}}
    benchmarks = {TIME: dataclasses.replace(head.benchmarks[TIME], controls=controls)}
    return dataclasses.replace(head, benchmarks=benchmarks)


#: Commit, GPU, time and number of remeasured cases; the verdict, and the threshold.
REMEASURED: dict[str, tuple[str, str, float, int, str, float]] = {
    "none": (BASE, "B", 1e-3, 0, "SAME", THRESHOLD_BETWEEN_GPUS),
    "base": (BASE, "B", 1.001e-3, CHOSEN, "SLOWER", 0.01),
    "base, the GPUs differ by 1.2 %": (BASE, "B", 1.0118e-3, CHOSEN, "SLOWER", 0.024),
    "base, the GPUs differ by 2 %": (BASE, "B", 1.0198e-3, CHOSEN, "SAME", 0.04),
    "too few": (BASE, "B", 1e-3, MIN_CONTROLS - 1, "SAME", THRESHOLD_BETWEEN_GPUS),
    "another commit": (HEAD, "B", 1e-3, CHOSEN, "SAME", THRESHOLD_BETWEEN_GPUS),
    "base, on its own GPU": (BASE, "A", 1e-3, CHOSEN, "SAME", THRESHOLD_BETWEEN_GPUS),
}


@pytest.mark.parametrize("name", REMEASURED)
def test_remeasured_base_has_controls(name: str) -> None:
    """Every kernel changed, and is 3 % slower on another GPU. Without controls, this is SAME."""
    commit, gpu, seconds, count, verdict, threshold = REMEASURED[name]
    base, head = make_commit(BASE, "A"), make_commit(HEAD, "B", factor=1.03, control=1.03)
    head.cubins._cubin_hashes[HEAD, ""] = dict.fromkeys(head.cubins._cubin_hashes[HEAD, ""], "new")
    head = remeasure(head, commit, *(f"copy{place}" for place in range(count)), seconds=seconds, gpu=gpu)
    outcome = review(base, head, describe=describe)
    assert {row.judgement.verdict.value for row in outcome.rows} == {verdict}
    assert {round(row.judgement.threshold, 6) for row in outcome.rows} == {threshold}
    note = f"{CHOSEN} times of equal machine code (at least 20 µs, at most 1.6 times the copy; for {CHOSEN}, the run of"
    assert any(text.startswith(note) for text in outcome.notes) == (threshold < THRESHOLD_BETWEEN_GPUS)


@pytest.mark.parametrize(
    ("controls", "verdict"),
    [({"B": None}, "SAME"), ({"B": 1.001e-3}, "SLOWER"), ({"B": 1.028e-3, "C": 1.001e-3}, "SAME")],
)
def test_stored_controls_of_base_decide(controls: dict[str, float | None], verdict: str, tmp_path: Path) -> None:
    """Two GPUs measured 30 kernels, which all changed and are 3 % slower. The run of head stored controls of base.

    A later run of one configuration on C does not replace the controls on B.
    """
    names = [f"k{place}" for place in range(30)]
    suite: Suite = {
        commit: {TIME: {name: samples(seconds) for name in names}, RATIO: dict.fromkeys(names, 1.0)}
        for commit, seconds in ((BASE, 1e-3), (HEAD, 1.03e-3))
    }
    began = {(commit, name): MEASURED for commit in suite for name in (TIME, RATIO)}
    write(tmp_path, suite, began=began, axes={name: {"kernel": names} for name in (TIME, RATIO)})
    lines: list[dict[str, Any]] = []
    for commit, uuid, seconds in ((BASE, "A", None), *((HEAD, *item) for item in controls.items())):
        run_record = RunRecord(commit)
        run_record.begin_benchmark(TIME, int(MEASURED.timestamp() * 1000), [f"'{names[-1]}'"] if uuid == "C" else [])
        run_record.controls = {BASE: {TIME: dict.fromkeys(names[:CHOSEN], seconds)}} if seconds else {}
        (line,) = run_record.collect_lines()[record.RUNS_FILE]
        lines.append({**line, "started": f"2026-11-01T00:00:0{len(lines)}+00:00", "before": {"uuid": uuid}})
    write_lines(tmp_path / "results" / MACHINE / record.RUNS_FILE, *lines)
    review = review_stored(tmp_path)
    assert {row.judgement.verdict.value for row in review.rows if row.benchmark == TIME} == {verdict}
    assert review.conclusion.value == verdict


@pytest.mark.parametrize(("reasons", "expected"), [("", Controls(CHOSEN, 0.0, CHOSEN)), ("heat", None)])
def test_throttled_base_is_no_control(reasons: str, expected: Controls | None) -> None:
    base = make_commit(BASE, "A", count=CHOSEN)
    points = base.benchmarks[TIME].points.items()
    throttled = {key: msgspec.structs.replace(point, throttle_reasons=reasons) for key, point in points}
    base = dataclasses.replace(base, benchmarks={TIME: dataclasses.replace(base.benchmarks[TIME], points=throttled)})
    head = remeasure(make_commit(HEAD, "B"), BASE, *(f"copy{place}" for place in range(CHOSEN)))
    assert find_controls(base, head, (), describe) == expected


@pytest.mark.parametrize(
    "sizes", [{}, {"a": 5}, {"a": 100, "b": 1}, {"a": 30, "b": 9, "c": 9}, dict.fromkeys("abcdefgh", 9)]
)
def test_controls_are_chosen_of_all_kernels(sizes: dict[str, int]) -> None:
    """Kernels share the controls equally, unless a kernel has fewer times. The durations of each are spread evenly."""
    kernels = [kernel for kernel, size in sizes.items() for _ in range(size)]
    points = [Point({"case": kernel, "n": str(place)}, 1e-3 * place) for place, kernel in enumerate(kernels)]
    candidates = [Pair(TIME, point, point) for point in points]
    chosen = choose_controls(candidates[::-1], describe)
    assert len({pair.name for pair in chosen}) == len(chosen) == min(CHOSEN, len(candidates))
    shares = Counter(pair.base.params["case"] for pair in chosen)
    assert all(shares[kernel] == size or max(shares.values()) - shares[kernel] <= 1 for kernel, size in sizes.items())
    for kernel, share in shares.items():
        places = sorted(int(pair.base.params["n"]) for pair in chosen if pair.base.params["case"] == kernel)
        gaps = [next_place - place for place, next_place in itertools.pairwise(places)]
        first = kernels.index(kernel)
        ends = [2 * (places[0] - first), 2 * (first + sizes[kernel] - 1 - places[-1])]  # half a gap
        assert max(gaps + ends) - min(gaps, default=max(ends)) <= 1, share


def test_only_comparable_times_are_candidates() -> None:
    """They are those of other GPUs to which controls apply, without throttling and conditions."""
    base = make_commit(BASE, "A", count=3)
    assert len(list_candidates(base, "B", describe)) == 4
    assert list_candidates(base, "A", describe) == []
    assert list_candidates(base, "B", lambda *_: ConfigurationFacts("k", conditions=("from L2",))) == []
    for facts in ({"throttle_reasons": "heat"}, {"copies": 1.7}, {"gpus": frozenset([None])}):
        assert len(list_candidates(make_commit(BASE, "A", count=3, **facts), "B", describe)) == 3
