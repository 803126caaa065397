"""Times one launch by itself: none of its data in the L2 cache, no other launch beside it.

The launch runs between two kernels that note the GPU's global timer. All three are nodes of one graph. Before each
launch an array of twice the L2's size is read. Then the cache holds no data of the launch, and none that waits to be
written back. Nsight Compute's `--cache-control all` makes the same state.

Back-to-back launches overlap: one begins while the one before it drains. That matters for launches up to about 10 µs.
"""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np

from kernelwatch.instrument import device, tools
from kernelwatch.instrument.replay import Cycle, Instrument

#: Launches in a sample.
LAUNCHES = 24

#: Bytes that are read before each launch, as a multiple of the L2 cache's size.
FLUSHED = 2

#: Seconds that Nsight Compute counts of a launch before the first note and after the last. Kernels that do
#: nothing, of 1 to 16384 blocks, differ by 0.27 to 0.36 µs on an H200 (docs/evidence/times.md).
BEYOND_STAMPS = 0.33e-6


class Isolated(Instrument):
    """A CUDA graph of isolated launches, each between two stamps; `stack` frees it and its memory.

    Raises NotImplementedError if the array that is read between does not fit in the device's free memory.
    """

    def __init__(self, cycle: Cycle, stack: ExitStack) -> None:
        stream = cycle.stream
        length = FLUSHED * device.l2_bytes()
        flushed, self._stamps = device.allocate(length, 2 * LAUNCHES * 8)
        for allocation in (flushed, self._stamps):
            stack.callback(allocation.free)
        flush, stamp = tools.load(tools.FLUSH_L2, size=tools.elements(length)), tools.load(tools.STAMP, size=1)
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
