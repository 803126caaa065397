"""By how much a time may change: the defaults, and what stored pairs of the same machine code make of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernelwatch import suite
from kernelwatch.review.noise import FEWEST, noise
from kernelwatch.store.results import History
from tests.kernelwatch.review.test_compare_evidence import KERNEL, _lines, _noted, apart, run
from tests.stored import BASE, HEAD, RUN, TIME, Suite, reviewed, samples, write

#: Unchanged times, their seconds, how head differs by noise, the hashes of their machine code, the GPUs, whether head
#: took the numbers over; the thresholds of long times and of short ones.
PAIRS: dict[str, tuple[int, float, float, str, list[dict[str, Any]], bool, tuple[float, float]]] = {
    "long": (FEWEST, 30e-6, 0.9991, "aa", apart("A", "A"), False, (0.002, 0.05)),
    "without any noise": (FEWEST, 30e-6, 1.0, "aa", apart("A", "A"), False, (0.001, 0.05)),
    "short": (FEWEST, 3e-6, 0.9991, "aa", apart("A", "A"), False, (0.01, 0.002)),
    "too few": (FEWEST - 1, 30e-6, 0.9991, "aa", apart("A", "A"), False, (0.01, 0.05)),
    "other machine code": (FEWEST, 30e-6, 0.9991, "ab", apart("A", "A"), False, (0.01, 0.05)),
    "unknown machine code": (FEWEST, 30e-6, 0.9991, "", apart("A", "A"), False, (0.01, 0.05)),
    "another GPU": (FEWEST, 30e-6, 0.9991, "aa", apart("A", "B"), False, (0.01, 0.05)),
    "in turns": (FEWEST, 30e-6, 0.9991, "aa", [run(BASE, HEAD, uuid="A")], False, (0.01, 0.05)),
    "no GPU is known": (FEWEST, 30e-6, 0.9991, "aa", apart(None, None), False, (0.01, 0.05)),
    "one measurement": (FEWEST, 30e-6, 0.9991, "aa", apart("A", "A"), True, (0.01, 0.05)),
}


@pytest.mark.parametrize(
    ("count", "seconds", "noisy", "hashes", "runs", "taken_over", "expected"), PAIRS.values(), ids=PAIRS
)
def test_what_counts(
    count: int, seconds: float, noisy: float, hashes: str, runs: list[dict[str, Any]], taken_over: bool,
    expected: tuple[float, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Times that one GPU measured twice of one machine code; by them the review judges a kernel that did change."""
    other = KERNEL.replace("float32", "float64")
    monkeypatch.setattr(suite, "code_name", lambda _, params: other if params["case"] == "other" else KERNEL)
    names = [f"case{number}" for number in range(count)]
    times: Suite = {
        commit: {TIME: {**dict.fromkeys(names, samples(seconds * change)), "other": samples(seconds * much)}}
        for commit, change, much in ((BASE, 1.0, 1.0), (HEAD, noisy, 1.007))
    }
    folder = _noted(write(tmp_path, times), runs, hashes)
    if taken_over:
        reused = {TIME.rpartition(".")[0]: {BASE: names}}
        _lines(folder / "fingerprints.jsonl", [{**RUN, "commit": HEAD, "fingerprints": {}, "reused": reused}])
    assert tuple(noise(History("gpu", tmp_path), HEAD).thresholds.values()) == pytest.approx(expected)
    _, found = reviewed(tmp_path, capsys)
    (row,) = (each for each in found["rows"] if each["configuration"] == f"{TIME}(other)")
    is_narrowed = min(expected) <= 0.002
    assert row["verdict"] == ("SLOWER" if is_narrowed else "SAME")
