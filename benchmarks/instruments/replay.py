"""One sample of a kernel's time: one replay of a CUDA graph that holds many launches between two events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.instruments import device

#: A replay lasts about this long: long enough that the two events do not matter, short enough for many samples.
TARGET_MS = 2.0

#: At least this many launches in a replay, however long one takes.
MIN_LAUNCHES = 2

Enqueue = Callable[[int, Any], None]


@dataclass(frozen=True)
class Cycle:
    """Launches that go round through some memory, and can be repeated for ever.

    Parameters
    ----------
    enqueue : called with (index of the launch, stream); puts that launch on the stream.
    length : launches that go through all of the memory once.
    stream : a PyCUDA stream, not the default one.
    """

    enqueue: Enqueue
    length: int
    stream: Any


class Graph:
    """A CUDA graph of what `capture` puts on a stream.

    Parameters
    ----------
    capture : puts work on `stream`.
    stream : a PyCUDA stream, not the default one.
    """

    def __init__(self, capture: Callable[[], None], stream: Any) -> None:
        driver, check = device.driver, device.check
        self._stream = stream
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        check(driver.cuStreamBeginCapture(stream.handle, mode))
        capture()
        graph = check(driver.cuStreamEndCapture(stream.handle))
        self._executable = check(driver.cuGraphInstantiate(graph, 0))
        check(driver.cuGraphDestroy(graph))

    def launch(self) -> None:
        """Start the work; does not wait for it."""
        device.check(device.driver.cuGraphLaunch(self._executable, self._stream.handle))


class Replay:
    """A CUDA graph: start event, launches in a row, stop event.

    The events are nodes of the graph, so the interval holds no work of the host.

    Parameters
    ----------
    cycle : what is launched.
    launches : how often.
    """

    def __init__(self, cycle: Cycle, launches: int) -> None:
        driver, check = device.driver, device.check
        self.launches = launches
        self._cycle = cycle  # keeps the buffers and the code that it launches alive
        stream = cycle.stream
        self._start = check(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DEFAULT))
        self._stop = check(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DEFAULT))
        external = driver.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL

        def capture() -> None:
            check(driver.cuEventRecordWithFlags(self._start, stream.handle, external))
            for index in range(launches):
                cycle.enqueue(index, stream)
            check(driver.cuEventRecordWithFlags(self._stop, stream.handle, external))

        self._graph = Graph(capture, stream)

    def __call__(self) -> None:
        """Start one replay; does not wait for it."""
        self._graph.launch()

    def milliseconds(self) -> float:
        """Wait for the last replay; milliseconds between its events, a float32 of the driver's."""
        self._cycle.stream.synchronize()
        return float(device.check(device.driver.cuEventElapsedTime(self._start, self._stop)))

    def seconds(self) -> float:
        """Wait for the last replay; seconds a launch."""
        return self.milliseconds() * 1e-3 / self.launches


def back_to_back(cycle: Cycle) -> Replay:
    """A replay of at least TARGET_MS of launches, one right after another."""
    once = Replay(cycle, cycle.length)
    for _ in range(2):  # the first replay also loads the code and wakes the device
        once()
        once_ms = once.milliseconds()
    launches = launches_for(once_ms, cycle.length)
    return once if launches == cycle.length else Replay(cycle, launches)


def launches_for(cycle_ms: float, length: int) -> int:
    """How many launches make a replay of at least TARGET_MS.

    A power of two times `length`, so that a replay goes through all buffers equally often and the number hardly
    depends on the noise of `cycle_ms`.

    Parameters
    ----------
    cycle_ms : the time of `length` launches.
    length : launches that go through all of the memory once.
    """
    launches = length
    while launches < MIN_LAUNCHES or cycle_ms * launches < TARGET_MS * length:
        launches *= 2
    return launches
