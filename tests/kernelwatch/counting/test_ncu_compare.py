"""The comparison with Nsight Compute, on output as ncu writes it; the chip itself is in ``tests/gpu``."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_kernels import KERNELS
from gpu_kernels.sweep import Launch
from tests import ncu_compare
from tests.ncu_compare import METRICS


def _csv(readings: list[dict[str, int]]) -> list[str]:
    lines = ["==PROF== Connected to process 1", '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"']
    for index, reading in enumerate(readings):
        lines += [f'"{index}","k","{METRICS[name]}","","{value:,}"' for name, value in reading.items()]
    return [*lines, "==PROF== Disconnected"]


def test_parsing() -> None:
    """Launches in order, thousands with commas, lines of ncu's own left out."""
    readings = [dict.fromkeys(METRICS, 5), dict.fromkeys(METRICS, 1_234_567)]
    assert ncu_compare.parse(_csv(readings)) == readings


def test_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nsight Compute is given the launches by name, and launches these; others than wanted are an error."""
    readings = [dict.fromkeys(METRICS, 5), dict.fromkeys(METRICS, 7)]
    (tmp_path / "said").write_text("\n".join(_csv(readings)), encoding="utf-8")
    ncu, given = tmp_path / "ncu", tmp_path / "given"
    ncu.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {given}\ncat {tmp_path / "said"}\n', encoding="utf-8")
    ncu.chmod(0o755)
    assert ncu_compare.profile(str(ncu), [CASE, CASE]) == readings
    launched: list[Launch] = []
    monkeypatch.setattr(ncu_compare, "launch_all", launched.extend)
    words = given.read_text(encoding="utf-8").splitlines()
    assert ncu_compare.main(words[words.index("--launch") :]) == 0
    assert launched == [CASE, CASE]
    with pytest.raises(RuntimeError, match="2 launches"):
        ncu_compare.profile(str(ncu), [CASE])


CASE = Launch("transpose_read_write_coalesced", arguments={"rows": 100, "columns": 70})


@pytest.mark.parametrize(
    ("name", "change", "wrong"),
    [
        ("load_requests", 0, 0),
        ("load_requests", 1, 1),
        ("store_sectors", -1, 1),
        ("load_lines", 1, 1),
        ("shared_store_wavefronts", 1, 1),
        ("shared_load_wavefronts", 10, 0),
        ("shared_load_wavefronts", -1, 1),
        ("shared_load_wavefronts", 100, 1),
    ],
)
def test_disagreement(name: str, change: int, wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests, sectors, lines and store wavefronts must be equal; load wavefronts may be up to 8 % more."""
    monkeypatch.setattr(ncu_compare, "cases", lambda: [CASE])
    reading = ncu_compare.execute(CASE)
    reading[name] += change
    text, count = ncu_compare.table([reading])
    assert count == wrong
    assert ("**" in text) == bool(wrong)
    assert f"{reading[name] - change} / {reading[name]}" in text or not change


@pytest.mark.parametrize(("change", "wrong"), [(0, 0), (-1, 0), (1, 1), (-(10**9), 1)])
def test_merged_loads(change: int, wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ptxas merges loads from shared memory, the chip may make fewer, but some; not more."""
    case = Launch("matmul_tiled", arguments={"rows": 40, "inner": 40, "columns": 40})
    monkeypatch.setattr(ncu_compare, "cases", lambda: [case])
    reading = ncu_compare.execute(case)
    reading["shared_load_wavefronts"] = max(0, reading["shared_load_wavefronts"] + change)
    assert ncu_compare.table([reading])[1] == wrong


def test_cases() -> None:
    """Every kernel and every dtype is there."""
    found = {(case.kernel, case.dtype) for case in ncu_compare.cases()}
    assert found == {(name, dtype) for name, kernel in KERNELS.items() for dtype in kernel.operation.dtypes}


def test_without_nsight_compute(capsys: pytest.CaptureFixture[str]) -> None:
    """A clear message and exit code 1."""
    assert ncu_compare.main(["--ncu", "no-such-ncu"]) == 1
    assert "no-such-ncu is not on PATH" in capsys.readouterr().err
