"""Launches of every kernel for Nsight Compute, on a fake GPU with a script as `ncu`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import sweeps
from experiments import bias, nsight, peers
from experiments.bias import Bias
from kernelwatch.instrument import machine
from kernelwatch.kernel import Launch
from kernelwatch.suite import registry
from ptxcount.source.names import source_name
from tests import fake_objects
from tests.gpu.cases import LARGE, SMALL, list_launches
from tests.on_fake_gpu import fake_gpu

ONE, TWO = Launch("row_sum", arguments={"rows": 3, "columns": 9}), Launch("histogram", "int8")
NAMES = {ONE: "void row_sum<float>(T1 *, const T1 *, int)", TWO: "histogram(unsigned int *)"}


def test_every_kernel_has_launches() -> None:
    suite = registry.current_suite()
    names = set(suite.kernels())
    dtypes = {name: {launch.dtype for launch in list_launches(name, LARGE)} for name in names}
    assert dtypes == suite.dtypes
    timed = bias.list_timed_launches()
    assert {launch.kernel for launch in timed} == names - {"transpose_serial"}, "it is timed in the L2 cache alone"
    assert len(timed) == len(set(timed))
    assert {launch.flags for launch in timed} == {sweeps.FLAG_SETS[0]}, "-O3"


@pytest.mark.parametrize("kernel", registry.current_suite().kernels())
def test_every_kernel_is_profiled(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    launch = list_launches(kernel, SMALL)[0]
    with fake_gpu(monkeypatch) as gpu:
        streams: list[fake_objects.Stream] = []
        profiled: list[tuple[str, tuple[int, ...]]] = []

        def start() -> None:
            """Forget the launches before the start of the profiler, also those captured in graphs."""
            gpu.launched.clear()
            for stream in streams:
                stream.captured = []

        def stream() -> fake_objects.Stream:
            streams.append(fake_objects.Stream())
            return streams[-1]

        gpu.cuda.Stream = stream
        gpu.cuda.start_profiler, gpu.cuda.stop_profiler = start, lambda: profiled.extend(gpu.launched)
        nsight.launch_all([launch], 3)
        assert not [allocation for address, allocation in gpu.allocations.items() if address not in gpu.variables]
    assert profiled == profiled[:1] * 3
    bare_name = nsight._bare_function_name
    assert bare_name(source_name(profiled[0][0])) == bare_name(registry.find_kernel(kernel).entry)


def test_wrong_output_is_not_profiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.find_kernel("gather"), "reference", lambda input, index: input)
    with fake_gpu(monkeypatch), pytest.raises(Exception, match=r"gather size=1025 float32 .*element"):
        nsight.launch_all(list_launches("gather", SMALL)[:1], 1)


@pytest.fixture
def ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a fake ncu, which prints the file `said` and writes its arguments to `given`; return their folder."""
    script = tmp_path / "ncu"
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/given\ncat {tmp_path}/said\n', encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def _say(folder: Path, launches: list[Launch], unit: str = "ns") -> None:
    head = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
    rows = [
        f'"{number}","{NAMES[launch]}","{nsight.DURATION}","{unit}","{1000 + number:,}"'
        for number, launch in enumerate(launches)
    ]
    (folder / "said").write_text("\n".join(["==PROF== Connected", head, *rows, "what the program says"]), "utf-8")


def test_durations_are_listed_by_launch(ncu: Path) -> None:
    _say(ncu, [ONE, ONE, TWO, TWO])
    first, second = nsight.measure_durations([ONE, TWO], repeat=2)
    assert first == pytest.approx([1e-6, 1.001e-6])
    assert second == pytest.approx([1.002e-6, 1.003e-6])
    arguments = (ncu / "given").read_text(encoding="utf-8").splitlines()
    assert arguments[-4:] == ["experiments.nsight", "2", str(ONE), str(TWO)]


@pytest.mark.parametrize(
    ("launches", "unit", "message"),
    [
        ([], "ns", "profiled 0 launches, not the 2"),
        ([ONE], "ns", "profiled 1 launches, not the 2"),
        ([TWO, ONE], "ns", "not the 2 in their order"),
        ([ONE, TWO], "us", "in 'us', not in nanoseconds"),
        (None, "", r"exit code 1: .*said"),
    ],
)
def test_unexpected_profiles_are_errors(launches: list[Launch] | None, unit: str, message: str, ncu: Path) -> None:
    if launches is not None:
        _say(ncu, launches, unit)
    with pytest.raises(nsight.NsightError, match=message):
        nsight.measure_durations([ONE, TWO], repeat=1)


def test_bias_bound_and_report() -> None:
    """A bias of up to 5 % or 0.5 µs, whichever is larger, is acceptable."""
    for truth, most in ((2e-6, 0.5e-6), (1e-4, 5e-6)):
        read = [truth + sign * share * most for share in (0.99, 1.01) for sign in (1, -1)]
        assert [Bias("k", "isolated", truth, duration).is_acceptable for duration in read] == [True, True, False, False]
    biases = [Bias(f"a size={size}", "isolated", 2e-5, seconds) for size, seconds in enumerate((2e-5, 2.4e-5, 2.1e-5))]
    biases.append(Bias("b", "back to back", 1e-4, 0.5e-4))
    lines = [line for line in bias.format_report(biases).splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert rows[1:3] == [
        ["a", "isolated", "3", "+5.00", "+0.00", "+20.00", "1"],
        ["b", "back to back", "1", "-50.00", "-50.00", "-50.00", "1"],
    ]
    assert [row[0] for row in rows[4:]] == ["b", "a size=1"]


def test_failing_tools_are_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    tools = {
        "works": lambda launch: [1.0, launch.arguments["rows"] * 3.0, 9999.0],
        "raises": lambda _: int("three"),
        "dies": lambda _: os._exit(5),
        "waits": lambda _: time.sleep(60),
    }
    monkeypatch.setattr(peers, "TOOLS", tools)
    monkeypatch.setattr(peers, "LIMIT", 0.5)
    monkeypatch.setattr(nsight, "measure_durations", lambda launches: [[1.0, 8.0, 9.0]])
    assert list(bias.measure_biases([ONE], list(tools))) == [Bias(str(ONE), "works", 8.0, 9.0)], "medians"
    message = capsys.readouterr().err
    for line in ("raises, {}: ValueError: invalid literal", "dies, {}: TimeoutError", "waits, {}: TimeoutError"):
        assert line.format(ONE) in message


def test_missing_requirements_are_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["gather size=1000 float32", "--out", str(tmp_path / "bias.jsonl")]
    monkeypatch.setenv("PATH", "/nowhere")
    for gpu, message in ((None, "no GPU here"), (SimpleNamespace(name="GPU X"), "ncu is not on PATH")):
        monkeypatch.setattr(machine, "find_gpu", lambda gpu=gpu: gpu)
        assert bias.main(words) == 2
        assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
