"""What a sample is, on a device that is none: events around launches, after others that lead in."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from kernelwatch.instrument.replay import LONG, MIN_LAUNCHES, TARGET_MS, Cycle, Replay, back_to_back
from tests import fake_cuda
from tests.fake_cuda import FakeGpu

LAUNCH_S = 5e-6


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    """One whose kernel takes LAUNCH_S."""
    made = fake_cuda.install(monkeypatch, FakeGpu(l2_bytes=1000))
    made.seconds = {"kernel": LAUNCH_S}
    return made


@pytest.fixture
def graphs(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """What each graph holds: an event, or the number of a launch."""
    found: list[list[Any]] = []

    def instantiate(nodes: list[Any], _: Any) -> tuple[int, list[Any]]:
        found.append([f"event {node}" if isinstance(node, int) else node.addresses[0] for node in nodes])
        return 0, nodes

    monkeypatch.setattr(gpu.driver, "cuGraphInstantiate", instantiate)
    return found


def _cycle(length: int, moved: int) -> Cycle:
    def enqueue(index: int, stream: Any) -> None:
        stream.captured.append(fake_cuda.Node(lambda: True, "kernel", (index,), lambda: None))

    return Cycle(enqueue, length, moved, fake_cuda.Stream())


@pytest.mark.parametrize(("moved", "lead_in"), [(1000, 1), (999, 2), (5000, 1), (10, 100)])
@pytest.mark.parametrize(("length", "launches"), [(1, 1), (3, 6), (7, 700)])
@pytest.mark.usefixtures("gpu")
def test_seconds_a_launch(length: int, launches: int, moved: int, lead_in: int, graphs: list[list[Any]]) -> None:
    """The events enclose the launches and nothing else; launches that move one L2 come before them, in the same row."""
    with ExitStack() as stack:
        assert Replay(_cycle(length, moved), launches, stack).sample() == pytest.approx(LAUNCH_S)
    row = range(lead_in + launches)
    assert graphs == [[*row[:lead_in], "event 1", *row[lead_in:], "event 2"]]


@pytest.mark.parametrize("length", [1, 6, 64, 1440])
@pytest.mark.usefixtures("gpu")
def test_back_to_back(length: int, graphs: list[list[Any]]) -> None:
    """Long enough, of launches that go through all buffers equally often, and still the time of one."""
    with ExitStack() as stack:
        made = back_to_back(_cycle(length, 1000), stack)
        assert made.sample() == pytest.approx(LAUNCH_S)
    _probe, (_lead_in, _start, *row, _stop) = graphs
    assert len(row) == made.launches >= max(MIN_LAUNCHES, TARGET_MS * 1e-3 / LAUNCH_S)
    assert made.launches % length == 0
    assert made.launches <= TARGET_MS * 1e-3 / LAUNCH_S + length


@pytest.mark.parametrize(("seconds", "is_led_in"), [(LONG, False), (0.99 * LONG, True)])
def test_long_launches(seconds: float, is_led_in: bool, gpu: FakeGpu, graphs: list[list[Any]]) -> None:
    """They go through all buffers once, and nothing leads in."""
    gpu.seconds = {"kernel": seconds}
    with ExitStack() as stack:
        assert back_to_back(_cycle(3, 1000), stack).sample() == pytest.approx(seconds)
    row = range(3 + is_led_in)
    assert graphs[1] == [*row[:is_led_in], "event 3", *row[is_led_in:], "event 4"]
