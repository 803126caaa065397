"""How far times lie from Nsight Compute's: what is measured, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from experiments import bias
from experiments.bias import Bias
from gpu_kernels import KERNELS, MIXED
from kernelwatch.instrument import machine
from kernelwatch.kernel.launch import FLAGS


def test_cases() -> None:
    """Every kernel with the default flags alone; what stays in the L2, or is isolated, is not among them."""
    cases = bias.cases()
    assert {launch.kernel for launch in cases.values()} == {*KERNELS, *MIXED} - {"transpose_serial"}
    assert {launch.flags for launch in cases.values()} == {FLAGS}
    assert not any(name.startswith(("TransposeInL2", "Isolated")) for name in cases)
    launch = cases["MatrixSizedCopy(stride_copy stride=2, float32)"]
    assert str(launch) == f"stride_copy size=163840000 stride=2 float32 {FLAGS}"
    assert {each.kernel for each in bias.cases(["offset_copy"]).values()} == {"offset_copy"}


@pytest.mark.parametrize("truth", [2e-6, 1e-4])
def test_acceptable(truth: float) -> None:
    """5 % or 1 µs, whichever is larger."""
    most = max(1e-6, 0.05 * truth)
    read = [truth + sign * share * most for share in (0.99, 1.01) for sign in (1, -1)]
    assert [Bias("one", "k", "isolated", truth, each).acceptable for each in read] == [True, True, False, False]


def test_report() -> None:
    """A row a kernel and instrument, and whatever is too far off, the worst first."""
    found = [
        Bias("one", "a", "isolated", 2e-5, 2e-5),
        Bias("two", "a", "isolated", 2e-5, 2.4e-5),
        Bias("three", "a", "isolated", 2e-5, 2.1e-5),
        Bias("four", "b", "back to back", 1e-4, 0.5e-4),
    ]
    text = bias.report(found)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    assert rows[1:3] == [
        ["a", "isolated", "3", "+5.00", "+0.00", "+20.00", "1"],
        ["b", "back to back", "1", "-50.00", "-50.00", "-50.00", "1"],
    ]
    assert rows[4:] == [["four", "back to back", "100.00", "50.00"], ["two", "isolated", "20.00", "24.00"]]
    assert "too far off | i" not in bias.report(found[:1])


def test_refusals(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a GPU, and without Nsight Compute, a line says so and nothing is written."""
    monkeypatch.setattr(machine, "gpu", lambda: None)
    assert bias.main(["--out", str(tmp_path / "bias.jsonl")]) == 2
    assert "no GPU here" in capsys.readouterr().err
    monkeypatch.setattr(machine, "gpu", lambda: SimpleNamespace(name="GPU X"))
    monkeypatch.setenv("PATH", "/nowhere")
    assert bias.main(["--out", str(tmp_path / "bias.jsonl")]) == 2
    assert "ncu is not on PATH" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
