"""A launch of the suite on the GPU: it is verified, and then repeated as often as a profiler or another tool asks."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from kernelwatch.instrument import buffers, build_job, check_output, device
from kernelwatch.instrument.timed_job import TimedJob
from kernelwatch.kernel import Launch
from kernelwatch.kernel.arguments import insert_addresses


class Launcher:
    """A launch with its buffers on the GPU. The kernel has run once on each set of buffers, and outputs are verified.

    Parameters
    ----------
    launch : Launch
        A launch of any kernel of the suite.
    stack : ExitStack
        Frees the buffers when it is closed.
    rotate : bool
        Whether each launch takes the next set of buffers, as in the suite: for tools that do not flush the L2 cache.

    Raises
    ------
    NotImplementedError
        There is no device, or the buffers do not fit in its memory.
    WrongOutputError
        The output differs from the reference.
    """

    def __init__(self, launch: Launch, stack: ExitStack, *, rotate: bool) -> None:
        device.process_context()
        description = build_job.describe_launch(launch, samples=1, in_l2=not rotate)
        self._job = job = description.make_job(device.describe_device())
        content = description.reference.content()
        prefilled = buffers.lay_out_reference(job.arrays, is_verified=job.is_verified).prefilled
        contents = {part.array.name: part.view_in(content) for part in prefilled}
        self._timed_job = TimedJob(job, stack, contents=contents)
        self._timed_job.launch_on_all_sets(job)
        check_output.check_job_output(job, self._timed_job.rotation, lambda: content)

    def launch_for_profiler(self, times: int) -> None:
        """Launch `times` times, one after the other, each on the original content, while a profiler records."""
        cycle = self._timed_job.make_launches(self._job)
        device.cuda.start_profiler()
        for index in range(times):
            cycle.restore()
            cycle.enqueue(index, cycle.stream)
            cycle.stream.synchronize()
        device.cuda.stop_profiler()

    def make_starter(self) -> Callable[[int], None]:
        """Return a function that launches on the stream with this handle, 0 for the default, with little host time."""
        job, rotation, call, driver = self._job, self._timed_job.rotation, device.call_driver, device.driver
        function = call(driver.cuModuleGetFunction, call(driver.cuModuleLoadData, job.cubin), job.entry.encode())
        sets = [
            _pack_extra(insert_addresses(job.parameters, job.addresses, rotation.addresses(index)))
            for index in range(rotation.sets)
        ]
        extras = itertools.cycle(sets)
        shape = (*job.grid, *job.block, job.dynamic_shared)
        return lambda stream: call(
            driver.cuLaunchKernel, function, *shape, stream, 0, ctypes.addressof(next(extras)[0])
        )


def _pack_extra(parameters: bytes) -> tuple[Any, ...]:
    """Return cuLaunchKernel's `extra` for a parameter buffer, and the objects that it points to, to keep them alive.

    The keys are CU_LAUNCH_PARAM_BUFFER_POINTER (1), _BUFFER_SIZE (2) and _END (0).
    """
    block, size = ctypes.create_string_buffer(parameters, len(parameters)), ctypes.c_size_t(len(parameters))
    return (ctypes.c_void_p * 5)(1, ctypes.addressof(block), 2, ctypes.addressof(size), 0), block, size
