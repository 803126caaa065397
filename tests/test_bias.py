"""How far times lie from Nsight Compute's: what is measured, kept and said of it."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import axes
from benchmarks.instruments import buffers, device, machine
from benchmarks.time_copy import OffsetCopy
from experiments import bias, facts, forks, kept
from experiments.bias import Reading
from experiments.peers import nsight
from report.results import ROOT
from runner import monitor

FACTS = {
    "commit": "abc-dirty",
    "gpu": "GPU X",
    "uuid": "GPU-1",
    "driver": "1.2",
    "nvcc": "13.0",
    "date": "2026-01-02T03:04:05+00:00",
}


def test_cases() -> None:
    """Every kernel, dtype, matrix, offset and stride, with the default flags alone."""
    transposes = itertools.product(axes.TRANSPOSES, axes.MATRICES, axes.DTYPES)
    assert {f"Transpose({', '.join(each)})" for each in transposes} <= set(bias.CASES)
    assert {kernel for kernel, _, _ in bias.CASES.values()} == set(axes.KERNELS)
    assert bias.CASES["MatrixSizedCopy(stride_copy stride=2, float32)"][0] == "stride_copy"
    assert bias.CASES["OffsetCopy(31, 67108864, int8)"][0] == "offset_copy"
    assert len(bias.CASES) == len(axes.DTYPES) * (
        len(axes.TRANSPOSES) * len(axes.MATRICES) + len(axes.OFFSETS) + len(axes.STRIDES)
    ) + len(axes.MATRIX_SIZED_COPIES)


@pytest.mark.parametrize(
    ("truth", "read", "within"),
    [
        (2e-6, 2.99e-6, True),
        (2e-6, 3.01e-6, False),
        (2e-6, 0.99e-6, False),
        (1e-4, 1.0499e-4, True),
        (1e-4, 1.0501e-4, False),
        (1e-4, 0.9499e-4, False),
    ],
)
def test_within(truth: float, read: float, within: bool) -> None:
    """5 % or 1 µs, whichever is larger."""
    reading = Reading("Transpose(...)", "k", truth, read, truth)
    assert (reading.within("back_to_back"), reading.within("isolated")) == (within, True)
    assert reading.bias("back_to_back") == pytest.approx(read - truth)


def test_page(tmp_path: Path) -> None:
    """What was kept: the facts, a row a kernel, and whatever is too far off, the worst first."""
    readings = [
        Reading("one", "a", 2e-6, 2.2e-6, 2e-6),
        Reading("two", "a", 2e-5, 2.4e-5, 2.1e-5),
        Reading("three", "b", 1e-4, 1e-4, 1.3e-4),
    ]
    kept.write(tmp_path / "kept.jsonl", FACTS, map(asdict, readings))
    assert bias.main(["--data", str(tmp_path / "kept.jsonl"), "--render", str(tmp_path / "page.md")]) == 0
    page = (tmp_path / "page.md").read_text()
    assert "GPU X (GPU-1), driver 1.2, nvcc 13.0, commit abc-dirty, 2026-01-02, `-Xptxas -O3`." in page
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| `")]
    assert rows == [
        ["`a`", "2", "+15.00", "+10.0 to +20.0", "1", "+2.50", "+0.0 to +5.0", "0"],
        ["`b`", "1", "+0.00", "+0.0 to +0.0", "0", "+30.00", "+30.0 to +30.0", "1"],
        ["`three`", "100.00", "+0.00", "+30.00 (!)"],
        ["`two`", "20.00", "+4.00 (!)", "+1.00"],
    ]


def test_nsight_and_suite_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each configuration has the durations of its own launches."""
    names = ["OffsetCopy(0, 67108864, int8)", "Transpose(transpose_read_coalesced, 256x256, int8)"]
    asked: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        head = '"Kernel Name","Metric Name","Metric Unit","Metric Value"'
        kernels = [bias.CASES[name][0] for name in names for _ in range(nsight.LAUNCHES + 1)]
        rows = [f'"{kernel}","{nsight.METRIC}","ns","{1000 * place}"' for place, kernel in enumerate(kernels)]
        return subprocess.CompletedProcess(command, 0, "\n".join([head, *rows]))

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(monitor, "running", nullcontext)

    def call(*_: Any) -> dict[str, float]:
        assert asked, "Nsight Compute comes first: what it lacks shows before minutes have gone"
        return {"back_to_back": 1.0, "isolated": 2.0}

    monkeypatch.setattr(forks, "call", call)
    found = list(bias.measure("ncu", names))
    assert asked == [nsight.command("ncu", [sys.executable, "-m", "experiments.bias", "--launch", *names])]
    assert [(one.configuration, one.kernel) for one in found] == [(name, bias.CASES[name][0]) for name in names]
    assert [one.nsight for one in found] == pytest.approx([5.5e-6, 16.5e-6])
    assert {(one.back_to_back, one.isolated) for one in found} == {(1.0, 2.0)}


def test_what_nsight_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each configuration as often as durations are expected of it, one after the other, on buffers of its size."""
    launched: list[tuple[int, int]] = []
    sizes = iter([(8, 16), (32, 64)])

    def work(*_: Any) -> SimpleNamespace:
        output, source = next(sizes)
        return SimpleNamespace(
            output_bytes=output, input_bytes=source, launch=lambda *addresses: launched.append(addresses[:2])
        )

    def rotation(output: int, source: int, pairs: int) -> SimpleNamespace:
        assert pairs == 1
        return SimpleNamespace(output=lambda _: output, input=lambda _: source)

    monkeypatch.setattr(device, "require", lambda: None)
    stream = SimpleNamespace(synchronize=lambda: None)
    monkeypatch.setattr(device, "cuda", SimpleNamespace(Stream=lambda: stream))
    monkeypatch.setattr(buffers, "Rotation", rotation)
    monkeypatch.setattr(OffsetCopy, "work", work)
    assert bias.main(["--launch", "OffsetCopy(0, 67108864, int8)", "OffsetCopy(1, 67108864, int8)"]) == 0
    each = nsight.LAUNCHES + 1
    assert launched == [(8, 16)] * each + [(32, 64)] * each


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is written."""
    monkeypatch.setattr(machine, "gpu", lambda: None)
    assert bias.main(["--data", str(tmp_path / "kept.jsonl")]) == 2
    assert "no GPU here" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_measured_and_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each reading is on the disk as soon as it is there; in the end all are kept, and printed."""
    data, unfinished = tmp_path / "kept.jsonl", tmp_path / "kept.unfinished"
    one, two = Reading("one", "a", 1e-3, 1e-3, 1e-3), Reading("two", "a", 1e-3, 1e-3, 1.06e-3)

    def measure(*_: Any) -> Iterator[Reading]:
        yield one
        assert '"one"' in unfinished.read_text()
        yield two

    monkeypatch.setattr(machine, "gpu", lambda: SimpleNamespace(name="GPU X"))
    monkeypatch.setattr(facts, "now", lambda _: FACTS)
    monkeypatch.setattr(bias, "measure", measure)
    assert bias.main(["--data", str(data), "--ncu", sys.executable]) == 0
    assert bias.read(data) == (FACTS, [one, two])
    assert not unfinished.exists()
    assert "| `two`" in capsys.readouterr().out


def test_nsight_compute_that_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said; what was kept stays."""
    (tmp_path / "kept.jsonl").write_text("before")
    monkeypatch.setattr(machine, "gpu", lambda: SimpleNamespace(name="GPU X"))
    monkeypatch.setattr(facts, "now", lambda _: FACTS)
    assert bias.main(["--data", str(tmp_path / "kept.jsonl"), "--ncu", "false"]) == 2
    assert "nothing measured: false ended with exit code 1" in capsys.readouterr().err
    assert (tmp_path / "kept.jsonl").read_text() == "before"


def test_without_nsight_compute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written, and it is said what to do."""
    monkeypatch.setattr(machine, "gpu", lambda: SimpleNamespace(name="GPU X"))
    assert bias.main(["--data", str(tmp_path / "kept.jsonl"), "--ncu", "/nowhere/ncu"]) == 2
    assert "/nowhere/ncu is not on PATH; install Nsight Compute, or name it with --ncu" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_isolated_times_are_true() -> None:
    """As docs/measurements.md says of what was kept: all cases, each within 5 % or 1 µs; short ones within 0.33 µs."""
    known, readings = bias.read(ROOT / "docs" / "bias.jsonl")
    assert known["gpu"] == "NVIDIA H200"
    assert [reading.configuration for reading in readings] == list(bias.CASES)
    assert all(reading.within("isolated") for reading in readings)
    short = [reading for reading in readings if reading.nsight < 10e-6]
    assert len(short) == 32
    assert sum(abs(reading.bias("isolated")) < 0.3e-6 for reading in short) == 31
    assert all(abs(reading.bias("isolated")) < 0.33e-6 for reading in short)
    assert sum(reading.within("back_to_back") for reading in readings) == 202
