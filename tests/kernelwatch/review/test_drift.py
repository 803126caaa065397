"""Drifts: what the command says of stored results that became slower in small steps."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from kernelwatch.review import acknowledged
from kernelwatch.review.commands import drift as main
from kernelwatch.review.consecutive import Step
from kernelwatch.review.drift import stretches
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import NOT_AGAIN, Judgement, Verdict
from kernelwatch.store.results import TIMED
from tests.stored import COUNT, TIME, Suite, samples, write

COMMITS = [f"{place:02x}" * 20 for place in range(1, 25)]
FIRST, LAST = COMMITS[0], COMMITS[-1]

PLACES = np.arange(24)


def history(
    root: Path, changes: Any, uuids: list[str] | None = None, last: float | None = None, machine: str = "gpu"
) -> Path:
    """Write a configuration's times over COMMITS, the last perhaps without samples, and runs by GPUs."""
    noise = np.random.default_rng(5).normal(0, 2e-4, len(changes))
    suite: Suite = {
        commit: {TIME: {"one": samples(1e-3 * float(np.exp(change + off)), seed=place)}}
        for place, (commit, change, off) in enumerate(zip(COMMITS, changes, noise, strict=False))
    }
    if last is not None:
        suite[COMMITS[len(changes) - 1]] = {TIME: {"one": last}}
    write(root, suite, machine=machine)
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

#: In two small steps, which the review does not tell.
STEPS = 0.008 * (PLACES >= 8) + 0.008 * (PLACES >= 16)

#: Changes of a time over the commits, the GPUs, the exit code, and the ends of the drift or None.
HISTORIES: dict[str, tuple[Any, list[str] | None, int, tuple[int, int] | None]] = {
    "nothing": (0 * DRIFT, None, 0, None),
    "a drift": (DRIFT, None, 1, (0, 23)),
    "in two steps": (STEPS, None, 1, (0, 23)),
    "less than the threshold": (0.3 * DRIFT, None, 0, None),
    "a speed-up": (-DRIFT, None, 0, None),
    "by one GPU": (DRIFT, ["GPU-a"] * 24, 1, (0, 23)),
    "by another GPU each time": (DRIFT, ["GPU-a", "GPU-b"] * 12, 2, None),
    "another GPU from the middle on": (0.005 * PLACES / 23 + 0.03 * (PLACES > 11), HALVES, 0, None),
    "by the second GPU alone": (0.03 * (PLACES - 12) / 11 * (PLACES > 11), HALVES, 1, (12, 23)),
    "a step that the review told": (0.05 * (PLACES > 11), None, 0, None),
    "before a step that the review told": (np.where(PLACES < 18, 0.03 * PLACES / 17, 0.2), None, 1, (0, 17)),
    "gone again": (DRIFT * (PLACES < 12) + 0.03 * (23 - PLACES) / 23 * (PLACES >= 12), None, 0, None),
    "three commits": (np.array([0, 0.008, 0.016]), None, 1, (0, 2)),
    "two commits": (np.array([0, 0.008]), None, 2, None),
}


@pytest.mark.parametrize(("changes", "uuids", "code", "ends"), HISTORIES.values(), ids=HISTORIES)
def test_history(
    changes: Any, uuids: list[str] | None, code: int, ends: tuple[int, int] | None, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """From the first commit to the last of a row in which no neighbours differ, nor GPUs that may."""
    history(tmp_path, changes, uuids)
    exit_code, document = found(tmp_path, capsys)
    told = [(each["conclusion"], each["base"]["commit"], each["head"]["commit"]) for each in document["drifts"]]
    assert (exit_code, told) == (code, [("SLOWER", *(COMMITS[place] for place in ends))] if ends else [])
    for each in document["drifts"]:
        assert 1.015 < each["rows"][0]["ratio"] < 1.035
        measure, compare = each["confirm"]
        ends_ = f"{told[0][1][:8]} {told[0][2][:8]}"
        assert measure.startswith(f"kernelwatch measure {ends_} ")
        assert f"--bench {TIME}" in measure
        assert compare == f"kernelwatch compare {ends_} --machine gpu"


#: The changes of times on two machines, None where nothing was timed; the exit code, and what is said of each.
MACHINES: dict[str, tuple[Any, Any, int, list[str]]] = {
    "both are judged": (0 * DRIFT, 0 * DRIFT, 0, ["NO DRIFT", "NO DRIFT"]),
    "one has too few commits": (0 * DRIFT, DRIFT[:2], 2, ["NO DRIFT", "UNDECIDED"]),
    "one drifts": (DRIFT, 0 * DRIFT, 1, ["DRIFT", "NO DRIFT"]),
    "one drifts, one is undecided": (DRIFT, DRIFT[:2], 1, ["DRIFT", "UNDECIDED"]),
    "one has no times": (DRIFT, None, 1, ["DRIFT"]),
    "neither has": (None, None, 2, []),
}


@pytest.mark.parametrize(("one", "other", "code", "said"), MACHINES.values(), ids=MACHINES)
def test_each_machine_must_be_judged(
    one: Any, other: Any, code: int, said: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One is not judged by another's times, and one without any is not asked."""
    for machine, changes in (("other", other), ("gpu", one)):
        if changes is None:
            write(tmp_path, {FIRST: {COUNT: {"one": 1.0}}}, machine=machine)
        else:
            history(tmp_path, changes, machine=machine)
    assert main([], tmp_path) == code
    captured = capsys.readouterr()
    assert re.findall(r"^([A-Z ]+)  (?:gpu|other)$", captured.out, re.MULTILINE) == said
    assert ("no machine has times" in captured.err) is (said == [])


def test_the_worst_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By how much it is slower, whichever row began first."""
    suite: Suite = {
        commit: {TIME: {"a": samples(1e-3 * (1 + 0.02 * place / 23))}} for place, commit in enumerate(COMMITS)
    }
    for place, commit in enumerate(COMMITS[2:]):
        suite[commit][TIME]["b"] = samples(1e-3 * (1 + 0.03 * place / 21))
    write(tmp_path, suite)
    _, document = found(tmp_path, capsys)
    assert [row["configuration"] for each in document["drifts"] for row in each["rows"]] == [f"{TIME}(b)", f"{TIME}(a)"]


def _stretches(*times: tuple[float, float]) -> list[Any]:
    """Of neighbours' times."""
    rows = [
        Row(
            f"{TIME}(one)", TIMED, "seconds", base, head,
            Judgement(Verdict.SAME, 1.0, 0.01, reasons=(NOT_AGAIN,) if base == head else ()),
            code_unchanged=head < base,
        )
        for base, head in times
    ]  # fmt: skip
    steps = [
        SimpleNamespace(
            head=str(place),
            comparisons=[SimpleNamespace(environment="e", base=SimpleNamespace(commit="0"), rows=[row])],
        )
        for place, row in enumerate(rows, start=1)
    ]
    return stretches(cast("list[Step]", steps))


def test_times_that_were_taken_over_are_no_measurements() -> None:
    """A commit that was not measured is no commit of a row, and does not end it; nor one with a time that cannot be."""
    (stretch,) = _stretches(*itertools.pairwise([1.0, 1.0, 1.0, 1.01, 1.01, 1.0]))
    assert (stretch.commits, stretch.seconds) == (["0", "3", "5"], 1.0)
    assert [each.commits for each in _stretches(*itertools.pairwise([1.0, 1.01, 0.0, 1.02]))] == [["0", "1"]]


def test_times_of_another_environment_are_another_row() -> None:
    """What a commit is compared with is not what was measured last."""
    assert [each.commits for each in _stretches((1.0, 1.01), (1.5, 1.51), (1.51, 1.5))] == [["0", "1"], ["0", "2", "3"]]


def test_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict, the kernel, by how much, and both commands."""
    assert main([], history(tmp_path, DRIFT)) == 1
    said = capsys.readouterr().out
    assert said.startswith("DRIFT  gpu\n1 times have 3 commits or more in a row\n")
    assert f"\n\nSLOWER  {FIRST[:8]} -> {LAST[:8]}, gpu\n1 time: 1 slower" in said
    assert re.search(rf"\n{TIME} +\+3\.\d % +1 of 1 slower", said)
    assert "To confirm" in said
    assert "\n  kernelwatch measure " in said
    assert said.endswith(f"\n  kernelwatch compare {FIRST[:8]} {LAST[:8]} --machine gpu\n")


def test_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """By a commit between the ends: it is listed, and fails no longer."""
    root = history(tmp_path, DRIFT)
    entry = acknowledged.Entry(TIME, "time", "accepted")
    monkeypatch.setattr(acknowledged, "at", lambda _, commit: [entry] * (commit >= COMMITS[12]))
    exit_code, document = found(root, capsys)
    assert (exit_code, [each["conclusion"] for each in document["drifts"]]) == (0, ["ACKNOWLEDGED"])
    assert main([], root) == 0
    assert "To confirm" not in capsys.readouterr().out


def test_undecided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The last commit's samples are too few to tell: it is said, and is no success."""
    root = history(tmp_path, DRIFT, last=1.03e-3)
    exit_code, document = found(root, capsys)
    (drift,) = document["drifts"]
    assert (exit_code, drift["conclusion"]) == (2, "UNDECIDED")
    assert "40 + 0 samples" in drift["rows"][0]["reason"]
    main([], root)
    assert "To confirm, on the machine:" in capsys.readouterr().out
