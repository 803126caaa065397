"""A sample of a kernel's time: one replay of a CUDA graph of launches.

Back to back, a sequence of launches runs between two events. The launches overlap: each begins while the previous one
finishes, which matters for launches of up to about 10 µs. An isolated launch runs alone, without data in the L2 cache.
"""

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwatch.instrument import device, helper_kernels

#: Milliseconds that a sample of back-to-back launches should take at least, to hide the events' cost.
TARGET_MS = 1.0

#: Minimum number of launches in a sample, if they are shorter than WARM_UP_LIMIT.
MIN_LAUNCHES = 2

#: Seconds of a launch from which no warm-up is needed. The events, and writing back the L2's earlier data, add at most
#: 0.05 % to its time: 15 µs on an H200.
WARM_UP_LIMIT = 0.03

#: Maximum number of launches in the replay that determines the number of launches of a sample.
MAX_PROBED = 64

#: Number of isolated launches in a sample.
ISOLATED_LAUNCHES = 24

#: Bytes that are read before each isolated launch, as a multiple of the L2 cache's size.
FLUSH_MULTIPLE = 2

#: Seconds of a launch before its first stamp and after its last, which Nsight Compute counts. For empty kernels of 1 to
#: 16384 blocks on an H200, they are 0.27 to 0.36 µs (docs/evidence/times.md).
STAMP_OVERHEAD = 0.33e-6


@dataclass(frozen=True)
class Cycle:
    """A repeatable sequence of launches that rotates through the sets of buffers."""

    #: Function that puts launch `index` on a stream; its arguments are the index and the stream.
    enqueue: Callable[[int, Any], None]
    #: Number of launches that use each set of buffers once.
    length: int
    #: Bytes that one launch reads and writes.
    bytes_moved: int
    #: PyCUDA stream, not the default one.
    stream: Any
    #: Function that restores the arrays that launches change, before a sample is taken.
    restore: Callable[[], None] = lambda: None


class CapturedGraph:
    """A CUDA graph of the work that `capture` puts on a stream (not the default stream); `stack` destroys it."""

    def __init__(self, capture: Callable[[], None], stream: Any, stack: ExitStack) -> None:
        driver, call = device.driver, device.call_driver
        self._stream = stream
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        call(driver.cuStreamBeginCapture, stream.handle, mode)
        capture()
        graph = call(driver.cuStreamEndCapture, stream.handle)
        self._executable = call(driver.cuGraphInstantiate, graph, 0)
        stack.callback(driver.cuGraphExecDestroy, self._executable)
        call(driver.cuGraphDestroy, graph)

    def launch(self) -> None:
        """Launch the graph, and wait for it."""
        device.call_driver(device.driver.cuGraphLaunch, self._executable, self._stream.handle)
        self._stream.synchronize()


def run_once(capture: Callable[[], None], stream: Any) -> None:
    """Run the work that `capture` puts on a stream, as a graph.

    All launches use graphs: after a few launches without one, each launch in later graphs of the context takes 0.35 µs
    longer (docs/evidence/times.md, "Launches without a graph").
    """
    with ExitStack() as stack:
        CapturedGraph(capture, stream, stack).launch()


class TimedGraph:
    """A graph that times launches of a cycle on the GPU; `capture` puts the launches on the stream."""

    def __init__(self, cycle: Cycle, capture: Callable[[], None], stack: ExitStack) -> None:
        self._restore = cycle.restore
        self._graph = CapturedGraph(capture, cycle.stream, stack)

    def take_sample(self) -> float:
        """Replay the graph once; return the mean seconds of one launch."""
        self._restore()
        self._graph.launch()
        return self._read_seconds()

    def _read_seconds(self) -> float:
        raise NotImplementedError


class BackToBackLaunches(TimedGraph):
    """A CUDA graph: warm-up launches if `has_warm_up`, start event, a sequence of launches, stop event.

    The events are nodes of the graph, so the host does nothing between them. The warm-up launches move as many bytes as
    the L2 holds. So the L2 has written back earlier data, and holds the same kind of data at both events. `stack`
    destroys graph and events.
    """

    def __init__(self, cycle: Cycle, launches: int, stack: ExitStack, *, has_warm_up: bool = True) -> None:
        driver, call = device.driver, device.call_driver
        self.launches, stream = launches, cycle.stream
        self._start, self._stop = (call(driver.cuEventCreate, driver.CUevent_flags.CU_EVENT_DEFAULT) for _ in range(2))
        for event in (self._start, self._stop):
            stack.callback(driver.cuEventDestroy, event)
        external = driver.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL
        warm_up = -(-device.l2_bytes() // cycle.bytes_moved) if has_warm_up else 0

        def capture() -> None:
            for index in range(warm_up):
                cycle.enqueue(index, stream)
            call(driver.cuEventRecordWithFlags, self._start, stream.handle, external)
            for index in range(warm_up, warm_up + launches):
                cycle.enqueue(index, stream)
            call(driver.cuEventRecordWithFlags, self._stop, stream.handle, external)

        super().__init__(cycle, capture, stack)

    def _read_seconds(self) -> float:
        milliseconds = float(device.call_driver(device.driver.cuEventElapsedTime, self._start, self._stop))
        return milliseconds * 1e-3 / self.launches


def make_back_to_back(cycle: Cycle, stack: ExitStack) -> BackToBackLaunches:
    """Return a graph of whole cycles, of at least MIN_LAUNCHES, which should take TARGET_MS or longer.

    A first replay gives the time of a launch. If it is at least WARM_UP_LIMIT, return a graph of one cycle without a
    warm-up.
    """
    with ExitStack() as probing:
        seconds = BackToBackLaunches(cycle, min(cycle.length, MAX_PROBED), probing, has_warm_up=False).take_sample()
    if seconds >= WARM_UP_LIMIT:
        return BackToBackLaunches(cycle, cycle.length, stack, has_warm_up=False)
    launches = max(MIN_LAUNCHES, TARGET_MS * 1e-3 / seconds)
    # The number is a multiple of the cycle, so that a replay uses all buffers equally often.
    return BackToBackLaunches(cycle, cycle.length * math.ceil(launches / cycle.length), stack)


class IsolatedLaunches(TimedGraph):
    """A CUDA graph of isolated launches, each between two kernels that store the GPU's global timer.

    A kernel reads an array of twice the L2's size before each launch. So the L2 has no data of the launch, and nothing
    to write back. Nsight Compute's `--cache-control all` has the same effect. `stack` frees graph and memory. Raises
    NotImplementedError if the array does not fit in the device's free memory.
    """

    def __init__(self, cycle: Cycle, stack: ExitStack) -> None:
        stream = cycle.stream
        length = FLUSH_MULTIPLE * device.l2_bytes()
        flushed, self._stamps = device.allocate(length, 2 * ISOLATED_LAUNCHES * 8)
        for allocation in (flushed, self._stamps):
            stack.callback(allocation.free)
        flush = helper_kernels.load_helper(helper_kernels.FLUSH_L2, size=helper_kernels.count_elements(length))
        stamp = helper_kernels.load_helper(helper_kernels.STAMP, size=1)
        flush_arguments = flush.pack_addresses(int(flushed), int(flushed))
        first, last = int(self._stamps), int(self._stamps) + 16 * ISOLATED_LAUNCHES
        begin = [stamp.pack_addresses(address, first) for address in range(first, last, 16)]
        end = [stamp.pack_addresses(address, first) for address in range(first + 8, last, 16)]

        def capture() -> None:
            for index in range(ISOLATED_LAUNCHES):
                flush(stream, flush_arguments)
                stamp(stream, begin[index])
                cycle.enqueue(index, stream)
                stamp(stream, end[index])

        super().__init__(cycle, capture, stack)
        self._functions = flush, stamp  # they must stay loaded as long as the graph

    def _read_seconds(self) -> float:
        stamps = np.empty((ISOLATED_LAUNCHES, 2), np.uint64)
        device.cuda.memcpy_dtoh(stamps, self._stamps)
        return float((stamps[:, 1] - stamps[:, 0]).mean()) * 1e-9 + STAMP_OVERHEAD
