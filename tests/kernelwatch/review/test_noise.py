"""By how much a time may change: the defaults, and what stored pairs of the same machine code make of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from kernelwatch import suite
from kernelwatch.review.noise import FEWEST, Noise, narrowed, noise
from kernelwatch.store.noise import LONG
from kernelwatch.store.results import History
from tests.kernelwatch.review.test_compare_evidence import KERNEL, _lines, _noted, apart, run
from tests.stored import BASE, HEAD, RUN, TIME, Suite, reviewed, samples, write

#: Changes by noise alone, and the threshold that they make.
NARROWED = [
    ([0.0] * FEWEST, 0.001),
    ([0.0009] * FEWEST, 0.002),
    ([0.0009] * (FEWEST - 1), math.inf),
    ([*[0.0009] * 99, 0.3], 0.002),
    ([*[0.0009] * 98, 0.3, 0.3], 0.6),
    ([0.0021] * 1000, 0.005),
]


@pytest.mark.parametrize(("changes", "threshold"), NARROWED)
def test_narrowed(changes: list[float], threshold: float) -> None:
    """Twice what all but one in a hundred of enough changes keep to, in steps of 0.1 %."""
    assert narrowed(changes) == pytest.approx(threshold)


def test_thresholds() -> None:
    """Each holds from its seconds on."""
    of_machine = Noise({LONG: 0.003, 0.0: 0.02})
    for seconds, expected in ((LONG, 0.003), (0.99 * LONG, 0.02), (0.0, 0.02)):
        assert of_machine.threshold(seconds) == expected
    assert [Noise().threshold(seconds) for seconds in (LONG, 0.99 * LONG)] == [0.01, 0.05]
    assert (str(Noise()), str(of_machine)) == ("1 % from 20 µs on, 5 % below", "0.3 % from 20 µs on, 2 % below")


#: Unchanged times, base's seconds, the hashes of their machine code, the GPUs, whether head took the numbers over; the
#: thresholds of long times and of short ones.
PAIRS: dict[str, tuple[int, float, str, list[dict[str, Any]], bool, tuple[float, float]]] = {
    "long": (FEWEST, 30e-6, "aa", apart("A", "A"), False, (0.002, 0.05)),
    "short": (FEWEST, 3e-6, "aa", apart("A", "A"), False, (0.01, 0.002)),
    "too few": (FEWEST - 1, 30e-6, "aa", apart("A", "A"), False, (0.01, 0.05)),
    "other machine code": (FEWEST, 30e-6, "ab", apart("A", "A"), False, (0.01, 0.05)),
    "unknown machine code": (FEWEST, 30e-6, "", apart("A", "A"), False, (0.01, 0.05)),
    "another GPU": (FEWEST, 30e-6, "aa", apart("A", "B"), False, (0.01, 0.05)),
    "in turns": (FEWEST, 30e-6, "aa", [run(BASE, HEAD, uuid="A")], False, (0.01, 0.05)),
    "no GPU is known": (FEWEST, 30e-6, "aa", apart(None, None), False, (0.01, 0.05)),
    "one measurement": (FEWEST, 30e-6, "aa", apart("A", "A"), True, (0.01, 0.05)),
}


@pytest.mark.parametrize(("count", "seconds", "hashes", "runs", "taken_over", "expected"), PAIRS.values(), ids=PAIRS)
def test_what_counts(
    count: int, seconds: float, hashes: str, runs: list[dict[str, Any]], taken_over: bool,
    expected: tuple[float, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Times that one GPU measured twice of one machine code; by them the review judges a kernel that did change."""
    other = KERNEL.replace("float32", "float64")
    monkeypatch.setattr(suite, "code_name", lambda _, params: other if params["case"] == "other" else KERNEL)
    names = [f"case{number}" for number in range(count)]
    times: Suite = {
        commit: {TIME: {**dict.fromkeys(names, samples(seconds * change)), "other": samples(seconds * much)}}
        for commit, change, much in ((BASE, 1.0, 1.0), (HEAD, 0.9991, 1.007))
    }
    folder = _noted(write(tmp_path, times), runs, hashes)
    if taken_over:
        reused = {TIME.rpartition(".")[0]: {BASE: names}}
        _lines(folder / "fingerprints.jsonl", [{**RUN, "commit": HEAD, "fingerprints": {}, "reused": reused}])
    assert tuple(noise(History("gpu", tmp_path), HEAD).thresholds.values()) == pytest.approx(expected)
    _, found = reviewed(tmp_path, capsys)
    (row,) = (each for each in found["rows"] if each["configuration"] == f"{TIME}(other)")
    is_narrowed = min(expected) == 0.002
    assert row["verdict"] == ("SLOWER" if is_narrowed else "SAME")


#: Machine and commit, and the thresholds that the history up to it makes.
STORED = [
    ("nvidia-h200", "f22cf79", [0.01, 0.05]),  # the first
    ("nvidia-h200", "926c240", [0.005, 0.05]),  # 398 times of the same machine code, 81 of them short: too few
    ("nvidia-h200", "740a787", [0.004, 0.018]),
    ("nvidia-h200", "ee4e49a", [0.005, 0.02]),
    ("nvidia-h100-80gb-hbm3", "952ced2", [0.003, 0.05]),
]


@pytest.mark.parametrize(("machine", "commit", "expected"), STORED)
def test_stored(machine: str, commit: str, expected: list[float]) -> None:
    """What is measured later changes no verdict on earlier commits."""
    history = History(machine)
    (head,) = (each for each in history.commits() if each.startswith(commit))
    assert list(noise(history, head).thresholds.values()) == pytest.approx(expected)
