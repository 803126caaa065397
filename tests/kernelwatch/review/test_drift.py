"""Drifts: what is found in noisy series, and what the command says of stored results."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from kernelwatch.review.consecutive import Step
from kernelwatch.review.drift.__main__ import main
from kernelwatch.review.drift.levels import rise
from kernelwatch.review.drift.stretches import stretches
from kernelwatch.review.reasons import NOT_AGAIN
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Judgement, Verdict
from kernelwatch.store.results import TIMED
from tests.kernelwatch.review.test_acknowledged import ENTRY, acknowledge
from tests.stored import TIME, Suite, samples, write

COMMITS = [f"{place:02x}" * 20 for place in range(1, 25)]
FIRST, LAST = COMMITS[0], COMMITS[-1]

QUIET = np.random.default_rng(3).normal(0, 0.001, 24)
PLACES = np.arange(24)

#: A series of relative changes, and the rise that is found above 1 %; None if none is.
SERIES: dict[str, tuple[Any, float | None]] = {
    "noise": (QUIET, None),
    "constant": (0 * QUIET, None),
    "a step": (QUIET + 0.02 * (PLACES >= 12), 0.02),
    "a small step": (QUIET + 0.008 * (PLACES >= 12), None),
    "a drift": (QUIET + 0.03 * PLACES / 23, 0.024),
    "a speed-up": (QUIET - 0.03 * PLACES / 23, None),
    "a step that was mended": (QUIET + 0.02 * ((PLACES >= 8) & (PLACES < 16)), None),
    "the last commit alone": (QUIET + 0.05 * (PLACES == 23), None),
    "the last two commits": (QUIET + 0.05 * (PLACES >= 22), None),
    "the last three commits": (QUIET + 0.05 * (PLACES >= 21), 0.05),
    "one commit in the middle": (QUIET + 0.05 * (PLACES == 12), None),
}


@pytest.mark.parametrize(("series", "expected"), SERIES.values(), ids=SERIES)
def test_series(series: Any, expected: float | None) -> None:
    """In whatever unit the times are."""
    for unit in (1.0, 1e-6):
        found = rise(list(unit * np.exp(series)), 0.01)
        assert (found and found.size) == (expected and pytest.approx(expected, rel=0.15))


def test_score() -> None:
    """A short form of docs/evidence/drift.md: nothing invented, and a drift of twice the threshold found."""
    rng = np.random.default_rng(20)
    noise = [rng.normal(0, 0.001, 64) for _ in range(100)]
    drift = 2 * 0.004 * np.clip((np.arange(64) - 16) / 32, 0, 1)
    assert not any(rise(list(np.exp(each)), 0.004) for each in noise)
    assert sum(rise(list(np.exp(each + drift)), 0.004) is not None for each in noise) >= 95


def history(root: Path, changes: Any, uuids: list[str] | None = None) -> Path:
    """Write a configuration's times over COMMITS, and runs by GPUs if any are named."""
    noise = np.random.default_rng(5).normal(0, 2e-4, len(changes))
    suite: Suite = {
        commit: {TIME: {"one": samples(1e-3 * float(np.exp(change + off)), seed=place)}}
        for place, (commit, change, off) in enumerate(zip(COMMITS, changes, noise, strict=False))
    }
    write(root, suite)
    for commit, uuid in zip(COMMITS, uuids or [], strict=False):
        _run(root, [commit], uuid)
    return root


def _run(root: Path, commits: list[str], uuid: str = "GPU-a", started: str = "2026-11-23T01:00:00+00:00") -> None:
    line = {"commits": commits, "started": started, "before": {"uuid": uuid}, "after": {}}
    with (root / "results" / "gpu" / "runs.jsonl").open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(line)}\n")


def found(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    """The exit code, and what is said of the one machine."""
    code = main(["--json", *words], root)
    document = json.loads(capsys.readouterr().out)
    assert document["exit_code"] == code
    (machine,) = document["machines"]
    return code, machine


DRIFT = 0.03 * PLACES / 23

HALVES = ["GPU-a"] * 12 + ["GPU-b"] * 12

#: Changes of a time over the commits, the GPUs, the exit code, and the state of the drift or None.
HISTORIES: dict[str, tuple[Any, list[str] | None, int, str | None]] = {
    "nothing": (0 * DRIFT, None, 0, None),
    "a drift": (DRIFT, None, 2, "SUSPECTED"),
    "by one GPU": (DRIFT, ["GPU-a"] * 24, 2, "SUSPECTED"),
    "by another GPU each time": (DRIFT, ["GPU-a", "GPU-b"] * 12, 2, None),
    "another GPU from the middle on": (0.005 * PLACES / 23 + 0.03 * (PLACES > 11), HALVES, 0, None),
    "a step that the review told": (0.05 * (PLACES > 11), None, 0, None),
    "before a step that the review told": (np.where(PLACES < 18, 0.03 * PLACES / 17, 0.2), None, 2, "SUSPECTED"),
    "five commits": (DRIFT[:5], None, 2, None),
}


@pytest.mark.parametrize(("changes", "uuids", "code", "state"), HISTORIES.values(), ids=HISTORIES)
def test_history(
    changes: Any, uuids: list[str] | None, code: int, state: str | None, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """A drift is suspected where no two neighbours differ, and no other GPU or told change lies between."""
    history(tmp_path, changes, uuids)
    exit_code, document = found(tmp_path, capsys)
    assert (exit_code, [each["state"] for each in document["drifts"]]) == (code, [state] if state else [])
    for each in document["drifts"]:
        assert 1.015 < each["ratio"] < 1.03
        measure, record = each["confirm"]
        assert measure.startswith(f"make measure BASE={each['first'][:8]} HEAD={each['last'][:8]} ")
        assert f"--bench {TIME}" in measure
        assert record == "make drift MACHINE=gpu"


#: In two small steps, which the review does not tell: the lowest level ends with the eighth commit.
STEPS = 0.008 * (PLACES >= 8) + 0.008 * (PLACES >= 16)


@pytest.mark.parametrize(
    ("base", "head", "state"),
    [(6, 23, "CONFIRMED"), (7, 23, "CONFIRMED"), (8, 23, "SUSPECTED"), (7, 21, "CONFIRMED"), (7, 20, "SUSPECTED")],
)
def test_what_was_measured_again_spans_the_drift(
    base: int, head: int, state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the last commit at the lowest level to its last level: of other commits the answer says nothing about it."""
    _run(history(tmp_path, STEPS), [COMMITS[base], COMMITS[head]])
    _, document = found(tmp_path, capsys)
    assert [(each["state"], each["first"], each["last"]) for each in document["drifts"]] == [(state, COMMITS[7], LAST)]


@pytest.mark.parametrize(("commits", "code"), [(24, 0), (5, 2)])
def test_each_machine_must_be_judged(
    commits: int, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that has too few commits in a row is not judged by another's."""
    suite: Suite = {commit: {TIME: {"one": samples(1e-3, seed=place)}} for place, commit in enumerate(COMMITS)}
    write(tmp_path, suite)
    write(tmp_path, dict(list(suite.items())[:commits]), machine="other")
    assert main([], tmp_path) == code
    assert "NO DRIFT  gpu" in capsys.readouterr().out


def _stretches(*times: tuple[float, float]) -> list[Any]:
    """Of neighbours' times; a time that rose was judged by the larger threshold."""
    rows = [
        Row(
            f"{TIME}(one)", TIMED, "seconds", base, head,
            Judgement(
                Verdict.SAME, head / base, 0.02 if head > base else 0.01, reasons=(NOT_AGAIN,) if base == head else ()
            ),
        )
        for base, head in times
    ]  # fmt: skip
    steps = [
        SimpleNamespace(head=str(place), comparisons=[SimpleNamespace(base=SimpleNamespace(commit="0"), rows=[row])])
        for place, row in enumerate(rows, start=1)
    ]
    return stretches(cast("list[Step]", steps))


def test_times_that_were_taken_over_are_no_measurements() -> None:
    """A commit that was not measured is no commit of a row, and does not end it; its threshold is the largest."""
    (stretch,) = _stretches(*itertools.pairwise([1.0, 1.0, 1.0, 1.01, 1.01, 1.0]))
    assert (stretch.commits, stretch.seconds, stretch.threshold) == (["0", "3", "5"], [1.0, 1.01, 1.0], 0.02)


def test_times_of_another_environment_are_another_row() -> None:
    """What a commit is compared with is not what was measured last."""
    assert [each.seconds for each in _stretches((1.0, 1.01), (1.5, 1.51), (1.51, 1.5))] == [
        [1.0, 1.01],
        [1.5, 1.51, 1.5],
    ]


def test_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict, the kernel, by how much, and both commands."""
    assert main([], history(tmp_path, DRIFT)) == 2
    said = capsys.readouterr().out
    assert said.startswith("UNDECIDED  gpu\n1 times have 6 commits or more in a row; the longest row has 24\n")
    assert re.search(rf"SUSPECTED +{TIME} +\+2\.\d % +1 +\w{{8}} +{LAST[:8]} +no run noted another", said)
    assert "\n  make measure BASE=" in said
    assert said.endswith("\n  make drift MACHINE=gpu\n")


#: Head's time in base's as measured again, what is acknowledged; the exit code and the state.
AGAIN: dict[str, tuple[float, str, int, str | None]] = {
    "slower": (1.02, "", 1, "CONFIRMED"),
    "the same": (1.012, "", 0, "REFUTED"),
    "slower, and accepted": (1.02, ENTRY.replace("c" * 40, LAST), 0, "ACKNOWLEDGED"),
    "slower than was accepted": (1.02, ENTRY.replace("c" * 40, LAST).replace("1.1", "1.01"), 1, "CONFIRMED"),
}


@pytest.mark.parametrize(("ratio", "accepted", "code", "state"), AGAIN.values(), ids=AGAIN)
def test_measured_again(
    ratio: float, accepted: str, code: int, state: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One run measures both in turns: the review's verdict on them counts from then on."""
    changes = STEPS.copy()
    changes[[6, 23]] = 0.004 if state == "REFUTED" else 0.0, np.log(ratio)
    root = history(tmp_path, changes)
    _run(root, [COMMITS[6], LAST])
    acknowledge(root, accepted)
    exit_code, document = found(root, capsys)
    assert (exit_code, [each["state"] for each in document["drifts"]]) == (code, [state])
    assert "2026-11-23" in document["drifts"][0]["reason"] or state == "ACKNOWLEDGED"


@pytest.mark.parametrize(("now", "code", "states"), [(0.0115, 1, ["CONFIRMED"]), (0.0085, 0, [])])
def test_a_confirmed_drift_stands_until_it_is_mended(
    now: float, code: int, states: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Though nothing can be seen in the row of stored times: two of them were measured anew."""
    changes = np.select([PLACES < 2, PLACES == 2, PLACES < 12, PLACES == 12], [0.006, 0, 0.008, 0.016], now)
    root = history(tmp_path, changes)
    _run(root, [COMMITS[2], COMMITS[12]])
    exit_code, document = found(root, capsys)
    assert (exit_code, [each["state"] for each in document["drifts"]]) == (code, states)


def test_a_step_that_was_measured_again_is_no_drift(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The review told it."""
    root = history(tmp_path, 0.05 * (PLACES > 11))
    _run(root, [COMMITS[2], COMMITS[20]])
    code, document = found(root, capsys)
    assert (code, document["drifts"]) == (0, [])


@pytest.mark.parametrize("runs", [[[FIRST], [LAST]], [[FIRST, COMMITS[9], LAST]]])
def test_other_runs_are_no_remeasurement(
    runs: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a run for each commit, nor one of a history."""
    root = history(tmp_path, DRIFT)
    for commits in runs:
        _run(root, commits)
    _, document = found(root, capsys)
    assert [each["state"] for each in document["drifts"]] == ["SUSPECTED"]
