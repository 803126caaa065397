"""One sample of a kernel's time: one replay of a CUDA graph that holds many launches between two events."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from kernelwatch.instrument import device

#: Shortest time of a sample's launches in milliseconds: long enough that the events cost little, short enough for many
#: samples.
TARGET_MS = 1.0

#: At least this many launches in a replay, however long one takes.
MIN_LAUNCHES = 2

#: Seconds from which on a launch is long: what others left in the L2, written back in 15 µs on an H200, and the events
#: are less than 0.05 % of it.
LONG = 0.03

#: Launches at most that tell how many make a replay.
PROBED = 64

Enqueue = Callable[[int, Any], None]


class Instrument(Protocol):
    """Work on the GPU that is timed on the GPU."""

    def __call__(self) -> None:
        """Start the work, without waiting for it."""

    def seconds(self) -> float:
        """Wait for the work that was last started; return the seconds that one launch of it took."""


@dataclass(frozen=True)
class Cycle:
    """Launches that rotate through buffers, and can be repeated.

    Parameters
    ----------
    enqueue : Enqueue
        Called with (index of the launch, stream); puts that launch on the stream.
    length : int
        Launches that go through all of the memory once.
    moved : int
        Bytes that one launch reads and writes.
    stream : object
        A PyCUDA stream, not the default one.
    restore : callable
        Called before some launches are timed: gives what they change its first values.
    """

    enqueue: Enqueue
    length: int
    moved: int
    stream: Any
    restore: Callable[[], None] = lambda: None


class Graph:
    """A CUDA graph of the work that `capture` puts on a stream.

    Parameters
    ----------
    capture : callable
        Puts work on `stream`.
    stream : object
        A PyCUDA stream, not the default one.
    stack : ExitStack
        Destroys the graph when it is closed.
    """

    def __init__(self, capture: Callable[[], None], stream: Any, stack: ExitStack) -> None:
        driver, check = device.driver, device.check
        self._stream = stream
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        check(driver.cuStreamBeginCapture(stream.handle, mode))
        capture()
        graph = check(driver.cuStreamEndCapture(stream.handle))
        self._executable = check(driver.cuGraphInstantiate(graph, 0))
        stack.callback(driver.cuGraphExecDestroy, self._executable)
        check(driver.cuGraphDestroy(graph))

    def launch(self) -> None:
        """Start the work, without waiting for it."""
        device.check(device.driver.cuGraphLaunch(self._executable, self._stream.handle))


def once(capture: Callable[[], None], stream: Any) -> None:
    """Run the work that `capture` puts on a stream as a graph, and wait for it.

    Nothing is launched in another way: after a few launches without a graph, each of all later graphs of the context
    takes 0.35 µs more (docs/evidence/times.md, "Launches without a graph").
    """
    with ExitStack() as stack:
        Graph(capture, stream, stack).launch()
        stream.synchronize()


class Replay:
    """A CUDA graph: warm-up launches, start event, launches in a row, stop event.

    The events are nodes of the graph, so the interval holds no work of the host. Those before it move as many bytes as
    the L2 holds: what others wrote there is written back by then, and what the interval leaves is what it found.

    Parameters
    ----------
    cycle : Cycle
        What is launched.
    launches : int
        How often between the events.
    stack : ExitStack
        Destroys graph and events when it is closed.
    is_led_in : bool
        Whether there are launches before the start event.
    """

    def __init__(self, cycle: Cycle, launches: int, stack: ExitStack, *, is_led_in: bool = True) -> None:
        driver, check = device.driver, device.check
        self.launches = launches
        self._restore = cycle.restore
        self._stream = stream = cycle.stream
        self._start, self._stop = (check(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DEFAULT)) for _ in "ab")
        for event in (self._start, self._stop):
            stack.callback(driver.cuEventDestroy, event)
        external = driver.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL
        lead_in = -(-device.l2_bytes() // cycle.moved) if is_led_in else 0

        def capture() -> None:
            for index in range(lead_in):
                cycle.enqueue(index, stream)
            check(driver.cuEventRecordWithFlags(self._start, stream.handle, external))
            for index in range(lead_in, lead_in + launches):
                cycle.enqueue(index, stream)
            check(driver.cuEventRecordWithFlags(self._stop, stream.handle, external))

        self._graph = Graph(capture, stream, stack)

    def __call__(self) -> None:
        """Start one replay; does not wait for it."""
        self._restore()
        self._graph.launch()

    def seconds(self) -> float:
        """Wait for the last replay; seconds a launch. The driver gives milliseconds as float32."""
        self._stream.synchronize()
        return float(device.check(device.driver.cuEventElapsedTime(self._start, self._stop))) * 1e-3 / self.launches


def back_to_back(cycle: Cycle, stack: ExitStack) -> Replay:
    """Return a replay of about TARGET_MS of launches, one right after another; of long ones a single cycle."""
    with ExitStack() as probing:
        probe = Replay(cycle, min(cycle.length, PROBED), probing, is_led_in=False)
        probe()
        seconds = probe.seconds()
    if seconds >= LONG:
        return Replay(cycle, cycle.length, stack, is_led_in=False)
    return Replay(cycle, launches_for(seconds, cycle.length), stack)


def launches_for(seconds: float, length: int) -> int:
    """Return how many launches make a replay of at least TARGET_MS.

    A multiple of `length`, so that a replay goes through all buffers equally often.

    Parameters
    ----------
    seconds : float
        The time of a launch.
    length : int
        Launches that go through all of the memory once.
    """
    wanted = max(MIN_LAUNCHES, TARGET_MS * 1e-3 / seconds)
    return length * math.ceil(wanted / length)
