"""The comparison with other tools: its processes, its order, and the table; `tests/gpu` calls the tools themselves."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

import pytest

from experiments import nsight, peers
from experiments.peers import TRUTH, Time
from experiments.tools import TOOLS, Tool
from kernelwatch.instrument import device, machine
from kernelwatch.kernel import Launch

KERNEL = peers.KERNELS[0]
LAUNCHES = {(KERNEL, side): Launch(KERNEL, arguments={"rows": side, "columns": side}) for side in (256, 1024)}


def _raise() -> Sequence[float]:
    raise ValueError("three")


def _wait() -> Sequence[float]:
    time.sleep(60)
    return []


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_raise, "ValueError: three"),
        (lambda: os._exit(5), "its process died"),
        (_wait, r"longer than 0\.5 s"),
    ],
)
def test_failures(function: Callable[[], Sequence[float]], message: str) -> None:
    """What goes wrong in a process is told, and it does not outlive its time."""
    with pytest.raises(RuntimeError, match=message):
        peers.forked(function, limit=0.5)


def test_processes() -> None:
    """Each call has a process of its own."""
    found = {peers.forked(lambda factor: [factor * os.getpid()], 2)[0] for _ in range(3)}
    assert len(found) == 3
    assert 2.0 * os.getpid() not in found


def test_rounds(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Round by round, a median a launch; what is missing or fails is given up with a line, and the others go on."""
    tools = {
        "works": Tool(lambda launch: [1.0, launch.arguments["rows"], 9999.0]),
        "missing": Tool(lambda _: [1.0], needs=("no_such_peer",)),
        "fails": Tool(lambda _: [float("three")]),
    }
    monkeypatch.setattr(peers, "TOOLS", tools)
    monkeypatch.setattr(device, "require", lambda: None)
    monkeypatch.setattr(nsight, "seconds", lambda launches: [[2.0, 3.0, 7.0] for _ in launches])
    found = list(peers.measure([TRUTH, *tools], LAUNCHES, 2))
    turn = [*(Time(TRUTH, *place, 3.0) for place in LAUNCHES), *(Time("works", *place, place[1]) for place in LAUNCHES)]
    assert found == turn * 2
    said = capsys.readouterr().err
    assert said.count("missing is given up: No module named 'no_such_peer'") == 1
    assert said.count("fails is given up: ValueError") == 1


def test_report() -> None:
    """Biases are medians over kernels of medians over rounds; spreads are of the rounds."""
    found = [Time(TRUTH, kernel, 256, 2.0) for kernel in ("a", "b", "c")]
    found += [Time("x", kernel, 256, seconds) for kernel, seconds in (("a", 2.0), ("b", 2.2), ("c", 4.0))]
    found += [Time("x", "b", 256, 2.42), Time("x", "a", 1024, 1.0)]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in peers.report(found).splitlines()]
    assert rows[2:] == [
        [TRUTH, "0.00", "", "0.00", "0.00"],
        ["x", "15.50", "", "0.00", f"{100 * 0.22 / 2.31:.2f}"],
    ]


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A line says so; and every tool is known by its name."""
    monkeypatch.setattr(machine, "gpu", lambda: None)
    assert peers.main(["--tools", *TOOLS]) == 2
    assert "no GPU here" in capsys.readouterr().err
