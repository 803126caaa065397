"""One sample of a kernel's time: one replay of a CUDA graph that holds launches.

Back to back there are many in a row between two events. Such launches overlap: one begins while the one before it
drains, which matters up to about 10 µs. An isolated launch has none beside it, and none of its data in the L2 cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwatch.instrument import device, helper_kernels

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

#: Isolated launches in a sample.
LAUNCHES = 24

#: Bytes that are read before each isolated launch, as a multiple of the L2 cache's size.
FLUSHED = 2

#: Seconds that Nsight Compute counts of a launch before the first note and after the last. Kernels that do
#: nothing, of 1 to 16384 blocks, differ by 0.27 to 0.36 µs on an H200 (docs/evidence/times.md).
BEYOND_STAMPS = 0.33e-6


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
        """Do the work, and wait for it."""
        device.check(device.driver.cuGraphLaunch(self._executable, self._stream.handle))
        self._stream.synchronize()


def once(capture: Callable[[], None], stream: Any) -> None:
    """Do the work that `capture` puts on a stream as a graph.

    Nothing is launched in another way: after a few launches without a graph, each of all later graphs of the context
    takes 0.35 µs more (docs/evidence/times.md, "Launches without a graph").
    """
    with ExitStack() as stack:
        Graph(capture, stream, stack).launch()


class Instrument:
    """Launches of a cycle, put on its stream by `capture`, in a graph that times them on the GPU."""

    def __init__(self, cycle: Cycle, capture: Callable[[], None], stack: ExitStack) -> None:
        self._restore = cycle.restore
        self._graph = Graph(capture, cycle.stream, stack)

    def sample(self) -> float:
        """Replay the graph once; return the seconds that one launch took."""
        self._restore()
        self._graph.launch()
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


class Isolated(Instrument):
    """A CUDA graph of isolated launches, each between two kernels that note the GPU's global timer.

    Before each launch an array of twice the L2's size is read. Then the cache holds no data of the launch, and none
    that waits to be written back. Nsight Compute's `--cache-control all` makes the same state. `stack` frees graph and
    memory. Raises NotImplementedError if the array does not fit in the device's free memory.
    """

    def __init__(self, cycle: Cycle, stack: ExitStack) -> None:
        stream = cycle.stream
        length = FLUSHED * device.l2_bytes()
        flushed, self._stamps = device.allocate(length, 2 * LAUNCHES * 8)
        for allocation in (flushed, self._stamps):
            stack.callback(allocation.free)
        flush, stamp = (
            helper_kernels.load(helper_kernels.FLUSH_L2, size=helper_kernels.elements(length)),
            helper_kernels.load(helper_kernels.STAMP, size=1),
        )
        first, read = int(self._stamps), flush.given(int(flushed), int(flushed))
        begin, end = ([stamp.given(first + 16 * index + at, first) for index in range(LAUNCHES)] for at in (0, 8))

        def capture() -> None:
            for index in range(LAUNCHES):
                flush(stream, read)
                stamp(stream, begin[index])
                cycle.enqueue(index, stream)
                stamp(stream, end[index])

        super().__init__(cycle, capture, stack)
        self._functions = flush, stamp  # as long as the graph that launches them

    def _seconds(self) -> float:
        """Read the stamps; return the mean of the launches."""
        stamps = np.empty((LAUNCHES, 2), np.uint64)
        device.cuda.memcpy_dtoh(stamps, self._stamps)
        return float((stamps[:, 1] - stamps[:, 0]).mean()) * 1e-9 + BEYOND_STAMPS
