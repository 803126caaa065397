"""A review of two commits as values, without files."""

import ast
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.config.project_root import ROOT
from kernelwatch.review.commit_review import Review, compare_commits
from kernelwatch.review.conclusion import TRADE_POLICIES
from kernelwatch.review.pairing import ConfigurationFacts, Describe, pair_configurations
from kernelwatch.review.sides import ReviewSide, ReviewSides
from kernelwatch.review.thresholds import Change, Thresholds, narrow_thresholds
from kernelwatch.show.search_report import render_json
from kernelwatch.store.cubins import CubinHashes
from kernelwatch.store.measurements import BenchmarkMeasurements, CommitMeasurements, RunFacts
from kernelwatch.store.points import Point
from kernelwatch.store.source_changes import Acknowledgement, SourceChanges
from kernelwatch.workflow.bisect.search import SearchOutcome
from tests.stored import BASE, COUNT, HEAD, TIME, samples

OLD, NEW = RunFacts(("1",), "GPU-a", driver="1"), RunFacts(("2",), "GPU-a", driver="1")


def describe(benchmark: str, params: Mapping[str, str]) -> ConfigurationFacts:
    return ConfigurationFacts("k", code_name="k")


def time(seconds: float, **facts: Any) -> Point:
    return Point({"case": "one"}, seconds, tuple(samples(seconds)), gpus=frozenset(["GPU-a"]), **facts)


def count(value: float | None, *, failed: bool = False) -> Point:
    return Point({"case": "one"}, value, failed=failed)


def make_commit(commit: str, run: RunFacts, points: Mapping[str, Point]) -> CommitMeasurements:
    names = {"time": (TIME, "seconds"), "track": (COUNT, "sectors")}
    key = (("case", "one"),)
    benchmarks = {
        name: BenchmarkMeasurements(number_type, unit, "", {key: points[number_type]}, (run,))
        if number_type in points
        else BenchmarkMeasurements(number_type, unit, "not run")
        for number_type, (name, unit) in names.items()
    }
    return CommitMeasurements("gpu", commit, "python3.11", None, benchmarks, CubinHashes(Path("nowhere", "gpu")))


def review(base: CommitMeasurements, head: CommitMeasurements, describe: Describe = describe, **options: Any) -> Review:
    sides = ReviewSides(
        machine="gpu", environment="python3.11", base=ReviewSide("b", BASE), head=ReviewSide("c", HEAD), where="gpu"
    )
    pairing = pair_configurations(base, head, describe)
    values = {"thresholds": Thresholds(), "changes": SourceChanges(), **options}
    return compare_commits(sides, base, head, pairing, describe, **values)


ACCEPTED = SourceChanges((Acknowledgement("k", "time", "accepted"),))
BROKEN_FILE = SourceChanges(problems=("acknowledged.toml: is torn; all of its entries are ignored",))
HOST_LAUNCH = SourceChanges(launch_files=("main.cu",))
HOST_NOTE = (
    "launches (<<<...>>>) changed in main.cu; if grid, block or shared memory changed, change the suite's classes, too"
)

#: Points of base and of head.
SLOWER, UNCHANGED = ({"time": time(1e-3)}, {"time": time(1.1e-3)}), ({"track": count(4)},) * 2
TRADED = {"time": time(1.1e-3), "track": count(4)}, {"time": time(1e-3), "track": count(5)}

#: Points of base and of head, options of the review, verdict, exit code and notes.
REVIEWS: dict[str, tuple[dict[str, Point], dict[str, Point], dict[str, Any], str, int, list[str]]] = {
    "slower": (*SLOWER, {}, "SLOWER", 1, []),
    "faster": (*SLOWER[::-1], {}, "FASTER", 0, []),
    "within a wider threshold": (*SLOWER, {"thresholds": Thresholds({0.0: 0.2})}, "SAME", 0, []),
    "accepted": (*SLOWER, {"changes": ACCEPTED}, "ACKNOWLEDGED", 0, []),
    "a torn file, and slower": (*SLOWER, {"changes": BROKEN_FILE}, "SLOWER", 1, [*BROKEN_FILE.problems]),
    "a torn file, and nothing changed": (*UNCHANGED, {"changes": BROKEN_FILE}, "SAME", 0, [*BROKEN_FILE.problems]),
    "a host launch": (*UNCHANGED, {"changes": HOST_LAUNCH}, "SAME", 0, [HOST_NOTE]),
    "throttled": ({"time": time(1e-3)}, {"time": time(1.1e-3, throttle_reasons="heat")}, {}, "UNDECIDED", 2, []),
    "a number rose": ({"track": count(4)}, {"track": count(5)}, {}, "SLOWER", 1, []),
    "a number rose beside a faster time": (*TRADED, {}, "TRADE", 0, []),
    "broken": ({"track": count(4)}, {"track": count(None, failed=True)}, {}, "BROKEN", 1, []),
    "nothing in both": ({"track": count(4)}, {"time": time(1e-3)}, {}, "UNDECIDED", 2, []),
}


@pytest.mark.parametrize("name", REVIEWS)
def test_verdict_and_notes_follow_from_values(name: str) -> None:
    """Verdict, exit code and notes follow from the values. Reading the notes first changes nothing."""
    base, head, options, verdict, exit_code, notes = REVIEWS[name]
    outcome = review(make_commit(BASE, OLD, base), make_commit(HEAD, NEW, head), **options)
    assert (outcome.notes, outcome.exit_code, outcome.conclusion.value) == (notes, exit_code, verdict)


def test_policy_on_trades_decides_the_exit_code() -> None:
    base, head = TRADED
    outcome = review(make_commit(BASE, OLD, base), make_commit(HEAD, NEW, head))
    exit_codes = {policy: replace(outcome, trade=policy).exit_code for policy in TRADE_POLICIES}
    assert exit_codes == {"none": 1, "numbers": 0, "all": 0}


@pytest.mark.parametrize(
    ("instructions", "beside", "is_noted"),
    [(200, {}, True), (199, {}, False), (200, {"time": time(1e-3)}, False)],
)
def test_note_on_twice_the_instructions(instructions: float, beside: dict[str, Point], is_noted: bool) -> None:
    """Base has 100 instructions. Beside times, there is no note."""
    key, name = (("case", "one"),), "track_counted.X.track_instructions"
    sides = []
    for commit, run, value in ((BASE, OLD, 100), (HEAD, NEW, instructions)):
        side = make_commit(commit, run, beside)
        measured = BenchmarkMeasurements("track", "instructions/thread", "", {key: count(value)}, (run,))
        sides.append(replace(side, benchmarks={**side.benchmarks, name: measured}))
    base, head = sides
    outcome = review(base, head)
    assert outcome.conclusion.value == "SAME"
    assert [note.partition(":")[0] for note in outcome.notes] == ["more PTX instructions (head / base)"] * is_noted


def test_report_does_not_change_its_review() -> None:
    base, head = (make_commit(commit, OLD, {"track": count(4)}) for commit in (BASE, HEAD))
    outcome = SearchOutcome("m", BASE, HEAD, 1, [HEAD], review=review(base, head))
    first = render_json(outcome)
    assert outcome.review is not None
    assert render_json(outcome) == first


def test_largest_of_a_hundred_changes_is_ignored() -> None:
    """The threshold is twice the second largest, 0.2 %."""
    base, head = (make_commit(commit, OLD, {"time": time(1e-3)}) for commit in (BASE, HEAD))
    (pair,) = pair_configurations(base, head, describe).pairs
    changes = [Change(1e-3, relative) for relative in (*[0.0005] * 98, 0.002, 0.5)]
    assert narrow_thresholds(changes).select(pair, describe) == pytest.approx(2 * 0.002)


#: Modules of kernelwatch and of Python that read files, run git or depend on the project.
OUTSIDE = {"registry", "config", "commit_checkout", "pathlib", "os", "subprocess", "io", "shutil"}

#: Modules of the store that only hold values.
VALUES = {"measurements", "default_thresholds", "points", "source_changes"}


def test_review_modules_import_only_values() -> None:
    against = []
    for path in sorted((ROOT / "kernelwatch" / "src" / "kernelwatch" / "review").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = (isinstance(node, ast.ImportFrom) and node.module) or ""
            parts = [*module.split("."), *(name.partition(".")[0] for name in names)]
            is_loading = any(name.startswith(("load_", "History")) for name in names)
            is_stored = "kernelwatch.store" in module and parts[2:3] and parts[2] not in VALUES
            if is_loading or is_stored or OUTSIDE.intersection(parts):
                against.append(f"{path.name}: {ast.unparse(node)}")
    assert against == []
