"""The comparison with other tools: its processes, its order, and the table; `tests/gpu` calls the tools themselves."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

import pytest

from experiments import nsight, peers
from experiments.peers import TRUTH, Time
from experiments.tools import Tool
from kernelwatch.instrument import device
from kernelwatch.kernel import Launch

KERNEL = peers.KERNELS[0]
LAUNCHES = {(KERNEL, side): Launch(KERNEL, arguments={"rows": side, "columns": side}) for side in (256, 1024)}


def _raise(_: Launch) -> Sequence[float]:
    raise ValueError("three")


def _die(_: Launch) -> Sequence[float]:
    os._exit(5)


def _wait(_: Launch) -> Sequence[float]:
    time.sleep(60)
    return []


def _process(_: Launch) -> Sequence[float]:
    return [os.getpid()]


def _works(launch: Launch) -> Sequence[float]:
    return [1.0, launch.arguments["rows"], 9999.0]


@pytest.mark.parametrize(
    ("function", "message"),
    [(_raise, "ValueError: three"), (_die, "its process died"), (_wait, r"longer than 0\.5 s")],
)
def test_failures(function: Callable[[Launch], Sequence[float]], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong in a process is told, and it does not outlive its time."""
    monkeypatch.setattr(peers, "LIMIT", 0.5)
    with pytest.raises(RuntimeError, match=message):
        peers.forked(Tool(function, monitored=True), LAUNCHES[KERNEL, 256])


def test_rounds(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Round by round, a median a launch; what is missing or fails is given up with a line, and the others go on."""
    tools = {
        "works": Tool(_works),
        "missing": Tool(_works, needs=("no_such_peer",)),
        "fails": Tool(_raise),
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
    tool = Tool(_process)
    assert len({os.getpid(), *(peers.forked(tool, LAUNCHES[KERNEL, 256])[0] for _ in range(2))}) == 3, "each is fresh"


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
