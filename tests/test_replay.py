# ruff: noqa: N802 -- the driver's own names
"""What a sample is, with a driver and a device that are not CUDA's: events around launches, over rotating buffers."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.instruments import buffers, device, replay
from benchmarks.instruments.experiment import Experiment, Work
from benchmarks.instruments.replay import MIN_LAUNCHES, TARGET_MS, Cycle, Replay, back_to_back

L2_BYTES = 60 << 20

#: What a launch takes on this device, and an event beside it nothing.
LAUNCH_MS = 0.005


class Stream:
    """Collects what is put on it."""

    handle = 1

    def __init__(self) -> None:
        self.put: list[Any] = []

    def synchronize(self) -> None:
        """Nothing to wait for."""


class _Driver:
    """Captures a stream into a graph, and knows when the events of a graph's last replay came."""

    CUresult = SimpleNamespace(CUDA_SUCCESS=0)
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL=None)
    CUevent_flags = SimpleNamespace(CU_EVENT_DEFAULT=None)
    CUevent_record_flags = SimpleNamespace(CU_EVENT_RECORD_EXTERNAL="external")

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._came: dict[int, float] = {}
        self._events = 0
        self.graphs: list[list[Any]] = []

    def cuEventCreate(self, _: Any) -> tuple[int, int]:
        self._events += 1
        return 0, self._events

    def cuEventRecordWithFlags(self, event: int, _: Any, flags: str) -> tuple[int]:
        self._stream.put.append((flags, event))
        return (0,)

    def cuStreamBeginCapture(self, *_: Any) -> tuple[int]:
        self._stream.put.clear()
        return (0,)

    def cuStreamEndCapture(self, _: Any) -> tuple[int, list[Any]]:
        return 0, list(self._stream.put)

    def cuGraphInstantiate(self, graph: list[Any], _: Any) -> tuple[int, list[Any]]:
        self.graphs.append(graph)
        return 0, graph

    def cuGraphDestroy(self, _: Any) -> tuple[int]:
        return (0,)

    def cuGraphLaunch(self, graph: list[Any], _: Any) -> tuple[int]:
        now = 0.0
        for node in graph:
            if isinstance(node, tuple):
                self._came[node[1]] = now
            else:
                now += LAUNCH_MS
        return (0,)

    def cuEventElapsedTime(self, start: int, stop: int) -> tuple[int, np.float32]:
        return 0, np.float32(self._came[stop] - self._came[start])


@pytest.fixture
def stream() -> Stream:
    """The only one."""
    return Stream()


@pytest.fixture
def driver(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> _Driver:
    """In the place of cuda-bindings."""
    made = _Driver(stream)
    monkeypatch.setattr(device, "driver", made)
    return made


def _cycle(stream: Stream, length: int) -> Cycle:
    return Cycle(lambda index, on: on.put.append(index % length), length, stream)


@pytest.mark.parametrize(("length", "launches"), [(1, 1), (3, 6), (7, 700)])
def test_seconds_a_launch(length: int, launches: int, stream: Stream, driver: _Driver) -> None:
    """The events enclose the launches and nothing else; their interval is divided by how many these are."""
    made = Replay(_cycle(stream, length), launches)
    (((first, start), *nodes, (last, stop)),) = driver.graphs
    assert (first, last, start != stop) == ("external", "external", True)
    assert nodes == [index % length for index in range(launches)]
    made()
    assert made.milliseconds() == pytest.approx(launches * LAUNCH_MS)
    assert made.seconds() == pytest.approx(LAUNCH_MS * 1e-3)


@pytest.mark.parametrize("length", [1, 6, 1440])
def test_back_to_back(length: int, stream: Stream, driver: _Driver) -> None:
    """Long enough, of launches that go through all buffers equally often, and still the time of one."""
    made = back_to_back(_cycle(stream, length))
    _, *nodes, _ = driver.graphs[-1]
    assert len(nodes) == made.launches >= max(MIN_LAUNCHES, TARGET_MS / LAUNCH_MS)
    assert {nodes.count(place) for place in range(length)} == {made.launches // length}
    made()
    assert made.seconds() == pytest.approx(LAUNCH_MS * 1e-3)


class Memory:
    """A rotation's addresses, without the memory."""

    def __init__(self, output_bytes: int, input_bytes: int, pairs: int) -> None:
        self._bytes, self._pairs = output_bytes + input_bytes, pairs

    def output(self, index: int) -> int:
        """Where the output of a launch is."""
        return index % self._pairs * self._bytes

    def input(self, index: int) -> int:
        """Where its input is."""
        return -self.output(index)


@pytest.fixture
def made(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Experiment, list[int]]]:
    """An experiment of a matrix and of where it lies; the addresses that its launches write to."""
    monkeypatch.setattr(device, "cuda", SimpleNamespace(Stream=lambda: stream))
    monkeypatch.setattr(device, "l2_bytes", lambda: L2_BYTES)
    monkeypatch.setattr(buffers, "Rotation", Memory)

    def make(side: int, *, in_l2: bool) -> tuple[Experiment, list[int]]:
        written: list[int] = []
        shape = (side, side)
        work = Work(
            "work", "1", "float32", shape, shape, 8 * side**2, lambda out, *_: written.append(out), lambda out, _: out
        )
        return Experiment(work, in_l2=in_l2), written

    return make


@pytest.mark.parametrize(
    ("side", "in_l2", "pairs"), [(256, False, 360), (4096, False, 2), (12800, False, 1), (1024, True, 1)]
)
def test_buffers_rotate(
    side: int, in_l2: bool, pairs: int, stream: Stream, made: Callable[..., tuple[Experiment, list[int]]]
) -> None:
    """Before a launch meets its data again, the others have moved three times the L2; unless it is to stay there."""
    prepared, written = made(side, in_l2=in_l2)
    cycle = prepared.launches
    for index in range(2 * pairs):
        cycle.enqueue(index, stream)
    assert cycle.length == pairs == len(set(written))
    assert written[:pairs] == written[pairs:]
    assert in_l2 or pairs * 8 * side**2 >= buffers.L2_MULTIPLE * L2_BYTES


def test_too_large_for_the_l2(made: Callable[..., tuple[Experiment, list[int]]]) -> None:
    """It is skipped, with both sizes."""
    with pytest.raises(NotImplementedError, match=f"needs {8 * 4096**2} bytes of L2 cache, the GPU has {L2_BYTES}"):
        made(4096, in_l2=True)


def test_replay_is_long_enough() -> None:
    """A launch that is longer than a replay should be is still launched twice."""
    assert replay.launches_for(100.0, 1) == MIN_LAUNCHES
