"""What is asked of Nsight Compute, and how its output is read: a script stands in for it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from experiments import nsight
from kernelwatch.instrument import device
from kernelwatch.kernel import Launch

ONE, TWO = Launch("one", arguments={"size": 3}), Launch("two", "float64")

HEAD = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'


@pytest.fixture
def ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder: its `said` is what ncu prints, `given` what it was given."""
    script = tmp_path / "ncu"
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/given\ncat {tmp_path}/said\n', encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def _say(folder: Path, kernels: list[str], unit: str = "ns", metrics: tuple[str, ...] = (nsight.DURATION,)) -> None:
    rows = [
        f'"{place}","{name}(float *)","{metric}","{unit}","{1000 + place:,}"'
        for place, name in enumerate(kernels)
        for metric in metrics
    ]
    (folder / "said").write_text("\n".join(["==PROF== Connected", HEAD, *rows, "what the program says"]), "utf-8")


def test_readings(ncu: Path) -> None:
    """In order, without each launch's first; the launches are given by their texts; a line a metric, with commas."""
    _say(ncu, ["one"] * 3 + ["two"] * 3)
    one, two = nsight.seconds([ONE, TWO], repeat=2)
    assert one == pytest.approx([1.001e-6, 1.002e-6])
    assert two == pytest.approx([1.004e-6, 1.005e-6])
    given = (ncu / "given").read_text(encoding="utf-8").splitlines()
    assert given[-4:] == ["experiments.nsight", "2", str(ONE), str(TWO)]
    assert given[given.index("--kernel-name") + 1] == "regex:^(one|two)$"
    _say(ncu, ["one"] * 2, "", ("a", "b"))
    assert nsight.profile([ONE], ["a", "b"]) == [[{"a": 1001, "b": 1001}]]


@pytest.mark.parametrize(
    ("kernels", "unit", "message"),
    [
        ([], "ns", "profiled 0 launches, not 4"),
        (["one", "one", "two"], "ns", "profiled 3 launches, not 4"),
        (["two", "two", "one", "one"], "ns", "not 4 in their order"),
        (["one", "one", "two", "two"], "us", "in 'us', not in nanoseconds"),
        (None, "", r"exit code 1: .*said"),
    ],
)
def test_failures(kernels: list[str] | None, unit: str, message: str, ncu: Path) -> None:
    """Durations are never given to the wrong launch, nor in the wrong unit; what ncu said is told."""
    if kernels is not None:
        _say(ncu, kernels, unit)
    with pytest.raises(nsight.NsightError, match=message):
        nsight.seconds([ONE, TWO], repeat=1)


def test_what_is_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each launch once, verified, and its repetitions, one launch after the other."""
    done: list[Launch | str] = []

    class Launcher:
        def __init__(self, launch: Launch, *, rotate: bool) -> None:
            assert not rotate
            self._launch = launch
            self(9)

        def close(self) -> None:
            done.append("freed")

        def __call__(self, stream: int) -> None:
            assert stream == 9
            done.append(self._launch)

    monkeypatch.setattr(device, "require", lambda: None)
    monkeypatch.setattr(device, "cuda", SimpleNamespace(Stream=lambda: SimpleNamespace(handle=9, synchronize=list)))
    monkeypatch.setattr(nsight, "Launcher", Launcher)
    nsight.launch_all([ONE, TWO], 2)
    assert done == [ONE, ONE, ONE, "freed", TWO, TWO, TWO, "freed"]
