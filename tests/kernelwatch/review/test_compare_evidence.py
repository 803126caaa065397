"""What is known beside a time: the machine code, the copy, the clocks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from kernelwatch import suite
from kernelwatch.review.commits import find
from kernelwatch.review.evidence import Evidence
from kernelwatch.review.verdict import Judgement, Verdict
from kernelwatch.store.noise import Gpus
from kernelwatch.store.results import Point
from tests.stored import BASE, HEAD, TIME, Suite, reviewed, samples, write

CONTROL = "track_control.X.track_copy_ratio"
NAME = f"{TIME}(one)"
KERNEL = "offset_copy float32 -Xptxas -O3"

SLOW, UNDECIDED, SAME = Verdict.SLOWER.value, Verdict.UNDECIDED.value, Verdict.SAME.value


def _suite(factor: float, copies: tuple[float, float] | None) -> Suite:
    suite: Suite = {BASE: {TIME: {"one": samples(1e-3)}}, HEAD: {TIME: {"one": samples(1e-3 * factor, seed=1)}}}
    if copies is not None:
        for commit, ratio in zip((BASE, HEAD), copies, strict=True):
            suite[commit][CONTROL] = {"one": samples(ratio)}
    return suite


#: As `cubins.jsonl` calls what every configuration launches.
CUBIN = "offset_copy, float32, -Xptxas -O3"


def _noted(
    root: Path, runs: list[dict[str, Any]], hashes: Sequence[str] = "", archs: Sequence[str] = ("sm_90",)
) -> Path:
    """Write the records of runs, and the hashes of base's and head's cubins; return the machine's folder."""
    folder = root / "results" / "gpu"
    _lines(folder / "runs.jsonl", runs)
    both = zip((BASE, HEAD), hashes, strict=False)
    _lines(folder / "cubins.jsonl", [{"commit": c, "arch": "sm_90", "cubins": {CUBIN: each}} for c, each in both])
    return folder


def _lines(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder; every configuration launches one kernel."""
    monkeypatch.setattr(suite, "machine_code", lambda *_: KERNEL)
    return tmp_path


@pytest.mark.parametrize(
    ("factor", "copies", "hashes", "held_back", "verdict", "reason"),
    [
        (1.1, None, None, "", SLOW, ""),
        (1.1, (1.2, 1.32), ("a", "b"), "", SLOW, ""),
        (1.1, (1.2, 1.32), ("a", "a"), "", SLOW, "machine code unchanged"),
        (1.1, (1.2, 1.2), ("a", "a"), "", UNDECIDED, "the copy beside it changed as much (1.000 in copies)"),
        (1.1, (1.2, 1.2), ("a", "b"), "", SLOW, ""),
        (1.1, (1.2, 1.2), None, "", SLOW, ""),
        (1.1, None, ("a", "b"), HEAD, UNDECIDED, "the GPU was throttled or shared in head: software power cap"),
        (1.1, None, ("a", "b"), BASE, UNDECIDED, "the GPU was throttled or shared in base: software power cap"),
        (1.0, (1.2, 1.2), ("a", "a"), HEAD, SAME, ""),
        (0.9, (1.2, 1.08), ("a", "a"), "", Verdict.FASTER.value, "machine code unchanged"),
    ],
)
def test_evidence(
    factor: float,
    copies: tuple[float, float] | None,
    hashes: tuple[str, str] | None,
    held_back: str,
    verdict: str,
    reason: str,
    root: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A time that changed with the machine is not blamed on the kernel; what is known of the machine code is said."""
    write(root, _suite(factor, copies))
    entry = {"commit": held_back, "configuration": NAME, "reasons": ["software power cap"]}
    _noted(root, [{"commits": [each], "arch": "sm_90", "held_back": [entry]} for each in (BASE, HEAD)], hashes or "")
    _, found = reviewed(root, capsys)
    (row,) = found["rows"]
    assert row["verdict"] == verdict
    assert row["reason"].startswith(reason) if reason else row["reason"] == ""
    assert row["copies"] == (None if copies is None else pytest.approx(copies))


@pytest.mark.parametrize(
    ("reasons", "one_run", "verdict"),
    [
        ((["power"], ["power"]), True, SLOW),
        ((["power"], ["power"]), False, UNDECIDED),
        ((["power"], ["heat"]), True, UNDECIDED),
        (([], ["power"]), True, UNDECIDED),
    ],
)
def test_throttled_alike(
    reasons: tuple[list[str], list[str]], one_run: bool, verdict: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A GPU that is always throttled can be judged where both commits were measured in turn."""
    folder = write(root, _suite(1.1, None)) / "results" / "gpu"
    entries = [
        {"commit": commit, "configuration": NAME, "reasons": each}
        for commit, each in zip((BASE, HEAD), reasons, strict=True)
        if each
    ]
    commits = [[BASE, HEAD]] if one_run else [[BASE], [HEAD]]
    _lines(folder / "runs.jsonl", [{"commits": each, "held_back": entries} for each in commits])
    _, found = reviewed(root, capsys)
    assert found["rows"][0]["verdict"] == verdict


@pytest.mark.parametrize(
    ("uuids", "verdict", "told"),
    [
        (("A", "A"), SLOW, False),
        (("B", "B"), SLOW, True),
        (("A", "B"), SAME, False),
        ((None, "B"), SAME, False),
        ((None, None), SLOW, False),
    ],
)
def test_thresholds_hold_for_one_gpu(
    uuids: tuple[str | None, str | None], verdict: str, told: bool, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half a per cent is more than one GPU's noise, and less than two may differ by; another's noise is told."""
    both = zip((BASE, HEAD), uuids, strict=True)
    runs = [{"commits": [commit], "before": {"uuid": uuid}} for commit, uuid in both]
    folder = _noted(write(root, _suite(1.005, None)), runs)
    _lines(folder / "noise.jsonl", [{"selftest": {"uuid": "A"}}, {"configuration": NAME, "threshold": 0.002}])
    _, found = reviewed(root, capsys)
    assert found["rows"][0]["verdict"] == verdict
    note = "the thresholds are the noise of another GPU of the kind, A; for this one's own: make selftest"
    assert (note in found["notes"]) is told


@pytest.mark.parametrize(
    ("factor", "hashes", "verdict", "reason"),
    [
        (1.03, "ab", SAME, ""),
        (1.1, "ab", SLOW, ""),
        (1.1, "aa", UNDECIDED, "not measured on one GPU; machine code unchanged"),
    ],
)
def test_another_gpu(
    factor: float, hashes: str, verdict: str, reason: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two GPUs of a kind differ by some per cent, and the same machine code cannot have become slower on another."""
    both = zip((BASE, HEAD), "AB", strict=True)
    runs = [{"commits": [commit], "arch": "sm_90", "before": {"uuid": uuid}} for commit, uuid in both]
    _noted(write(root, _suite(factor, None)), runs, hashes)
    _, found = reviewed(root, capsys)
    assert (found["rows"][0]["verdict"], found["rows"][0]["reason"]) == (verdict, reason)
    (note,) = found["notes"]
    assert note.startswith(
        "not one GPU, but several of the kind, measured 1 of 1 timed benchmarks: no threshold is below 8 %"
    )


@pytest.mark.parametrize(
    ("gpus", "verdict", "reason"),
    [
        (Gpus.ONE, SLOW, "machine code unchanged"),
        (Gpus.ALIKE, UNDECIDED, "not measured on one GPU; machine code unchanged"),
        (Gpus.SEVERAL, UNDECIDED, "not measured on one GPU; machine code unchanged"),
    ],
)
def test_unchanged_machine_code(gpus: Gpus, verdict: str, reason: str, root: Path) -> None:
    """The same machine code is not slower because another GPU is, be the two alike or not."""
    folder = _noted(write(root, _suite(1.1, None)), [{"commits": [BASE, HEAD], "arch": "sm_90"}], "aa")
    sides = find(BASE, HEAD, None, root)
    (point,) = sides.history.points(sides.base.results, TIME)
    found = Evidence(sides, folder).weigh(Judgement(Verdict.SLOWER, 1.1, 0.01), TIME, point, gpus)
    assert (found.verdict.value, found.reason) == (verdict, reason)


@pytest.mark.parametrize(
    ("params", "ran_on", "unchanged"),
    [({"arch": "sm_100"}, "sm_90", False), ({"arch": "sm_90"}, "sm_100", True), ({}, "sm_90", True), ({}, None, True)],
)
def test_machine_code_of_an_architecture(
    params: dict[str, str], ran_on: str | None, unchanged: bool, root: Path
) -> None:
    """That of the configuration; else that of the GPU; else the one that there is. Here sm_100 alone changed."""
    folder = write(root, _suite(1.1, None)) / "results" / "gpu"
    _lines(folder / "runs.jsonl", [{"commits": [BASE, HEAD], **({"arch": ran_on} if ran_on else {})}])
    hashed = {"sm_90": "aa", "sm_100": "ab"}
    lines = [
        {"commit": commit, "arch": arch, "cubins": {"offset_copy, float32, -Xptxas -O3": hashes[place]}}
        for arch, hashes in hashed.items()
        for place, commit in enumerate((BASE, HEAD))
        if ran_on or arch == "sm_90"
    ]
    _lines(folder / "cubins.jsonl", lines)
    sides = find(BASE, HEAD, None, root)
    found = Evidence(sides, folder).machine_code_unchanged(TIME, Point(params, 1.0))
    assert found is unchanged


def test_throttled_alike_despite_others(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What befell another commit or another configuration in the same run says nothing of this one."""
    folder = write(root, _suite(1.1, None)) / "results" / "gpu"
    entries = [
        {"commit": "d" * 40, "configuration": NAME, "reasons": ["power"]},
        {"commit": HEAD, "configuration": f"{TIME}(other)", "reasons": ["power"]},
    ]
    _lines(folder / "runs.jsonl", [{"commits": [BASE]}, {"commits": [HEAD, "d" * 40], "held_back": entries}])
    _, found = reviewed(root, capsys)
    assert (found["rows"][0]["verdict"], found["rows"][0]["reason"]) == (SLOW, "")


def test_evidence_is_of_the_run_that_measured(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A later run of something else neither hides that the GPU was held back nor speaks of another driver."""
    folder = write(root, _suite(1.1, None)) / "results" / "gpu"
    now, later = datetime.now(timezone.utc), datetime.now(timezone.utc) + timedelta(hours=1)
    entry = {"commit": HEAD, "configuration": NAME, "reasons": ["software power cap"]}
    runs = [
        {"commits": commits, "held_back": held_back, "started": start.isoformat(), "ended": start.isoformat()}
        | {"before": {"driver": driver}}
        for start, commits, held_back, driver in ((now, [BASE, HEAD], [entry], "1"), (later, [HEAD], [], "2"))
    ]
    _lines(folder / "runs.jsonl", runs)
    _, found = reviewed(root, capsys)
    assert found["rows"][0]["reason"].startswith("the GPU was throttled or shared in head")
    assert not found["notes"]


def test_a_control_without_its_time_is_no_row(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What only supports times is not judged by itself, and its absence is no difference."""
    suite = _suite(1.0, (1.2, 1.2))
    del suite[HEAD][CONTROL]
    _, found = reviewed(write(root, suite), capsys)
    assert [row["configuration"] for row in found["rows"]] == [NAME]
    assert found["rows"][0]["copies"] is None
    assert found["only_base"] == []


def test_unreadable_hashes(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged file is named with its line; nothing is judged without it."""
    from kernelwatch.review.__main__ import main

    write(root, _suite(1.1, None))
    (root / "results" / "gpu" / "cubins.jsonl").write_text("[]\n")
    assert main([BASE, HEAD], root) == 2
    assert "cubins.jsonl, line 1" in capsys.readouterr().err
