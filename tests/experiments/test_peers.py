"""The comparison with other tools: its processes and the table; `tests/gpu` calls the tools themselves."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import pytest

from experiments import nsight, peers
from experiments.peers import TRUTH, Time
from experiments.tools import Tool
from kernelwatch.kernel import Launch

KERNEL = peers.KERNELS[0]
LAUNCHES = {(KERNEL, side): Launch(KERNEL, arguments={"rows": side, "columns": side}) for side in (256, 1024)}


def _raises(_: Launch) -> Sequence[float]:
    raise ValueError("three")


def _dies(_: Launch) -> Sequence[float]:
    os._exit(5)


def _waits(_: Launch) -> Sequence[float]:
    time.sleep(60)
    return []


def _works(launch: Launch) -> Sequence[float]:
    return [1.0, launch.arguments["rows"], 9999.0]


def test_times(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A median a launch; what is missing or fails is given up with a line, and the others go on."""
    tools = {"works": Tool(_works), "missing": Tool(_works, ("no_such_peer",))}
    tools |= {"raises": Tool(_raises), "dies": Tool(_dies), "waits": Tool(_waits)}
    monkeypatch.setattr(peers, "TOOLS", tools)
    monkeypatch.setattr(peers, "LIMIT", 0.5)
    monkeypatch.setattr(nsight, "seconds", lambda launches: [[2.0, 3.0, 7.0] for _ in launches])
    assert list(peers.measure(["raises", TRUTH, *tools], LAUNCHES)) == [
        *(Time(TRUTH, *place, 3.0) for place in LAUNCHES),
        *(Time("works", *place, place[1]) for place in LAUNCHES),
    ]
    said = capsys.readouterr().err
    for name, why in {
        "missing": "ModuleNotFoundError: No module named 'no_such_peer'",
        "raises": "ValueError: three",
        "dies": "TimeoutError: its process died",
        "waits": "TimeoutError: its process died, or took longer than 0.5 s",
    }.items():
        assert f"{name} is given up: {why}" in said


def test_report() -> None:
    """Biases are medians over kernels; where Nsight Compute has no time, there is none."""
    found = [Time(TRUTH, kernel, 256, 2.0) for kernel in ("a", "b", "c")]
    found += [Time("x", kernel, 256, seconds) for kernel, seconds in (("a", 2.0), ("b", 2.2), ("c", 4.0))]
    found.append(Time("x", "a", 1024, 1.0))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in peers.report(found).splitlines()]
    assert rows[2:] == [[TRUTH, "0.00", ""], ["x", "10.00", ""]]
