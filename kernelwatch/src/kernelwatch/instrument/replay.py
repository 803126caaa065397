"""One sample of a kernel's time: one replay of a CUDA graph that holds many launches between two events."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Cycle:
    """Launches that rotate through buffers, and can be repeated."""

    #: Called with (index of the launch, stream); puts that launch on the stream.
    enqueue: Callable[[int, Any], None]
    #: Launches that go through all of the memory once.
    length: int
    #: Bytes that one launch reads and writes.
    moved: int
    #: PyCUDA's, not the default one.
    stream: Any
    #: Called before some launches are timed: gives what they change its first values.
    restore: Callable[[], None] = lambda: None


class Graph:
    """A CUDA graph of the work that `capture` puts on a stream, not the default one; `stack` destroys it."""

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


class Instrument:
    """Launches of a cycle, put on its stream by `capture`, in a graph that times them on the GPU."""

    def __init__(self, cycle: Cycle, capture: Callable[[], None], stack: ExitStack) -> None:
        self._restore, self._stream = cycle.restore, cycle.stream
        self._graph = Graph(capture, cycle.stream, stack)

    def sample(self) -> float:
        """Replay the graph once, and wait for it; return the seconds that one launch took."""
        self._restore()
        self._graph.launch()
        self._stream.synchronize()
        return self._seconds()

    def _seconds(self) -> float:
        raise NotImplementedError


class Replay(Instrument):
    """A CUDA graph: warm-up launches, start event, launches in a row, stop event.

    The events are nodes of the graph, so the interval holds no work of the host. The launches before it move as many
    bytes as the L2 holds: what others wrote there is written back by then, and what the interval leaves is what it
    found. Without a lead-in there are none. `stack` destroys graph and events.
    """

    def __init__(self, cycle: Cycle, launches: int, stack: ExitStack, *, is_led_in: bool = True) -> None:
        driver, check = device.driver, device.check
        self.launches, stream = launches, cycle.stream
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

        super().__init__(cycle, capture, stack)

    def _seconds(self) -> float:
        """Read the events; the driver gives milliseconds as float32."""
        return float(device.check(device.driver.cuEventElapsedTime(self._start, self._stop))) * 1e-3 / self.launches


def back_to_back(cycle: Cycle, stack: ExitStack) -> Replay:
    """Return a replay of about TARGET_MS of launches, one right after another; of long ones a single cycle."""
    with ExitStack() as probing:
        seconds = Replay(cycle, min(cycle.length, PROBED), probing, is_led_in=False).sample()
    if seconds >= LONG:
        return Replay(cycle, cycle.length, stack, is_led_in=False)
    wanted = max(MIN_LAUNCHES, TARGET_MS * 1e-3 / seconds)
    # A multiple of the cycle, so that a replay goes through all buffers equally often.
    return Replay(cycle, cycle.length * math.ceil(wanted / cycle.length), stack)
