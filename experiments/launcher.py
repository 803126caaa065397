"""Launches the suite's cubin by cuLaunchKernel, in the same way for all tools."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

from kernelwatch.instrument import buffers, comparison, device, jobs
from kernelwatch.instrument.bound_kernel import filled
from kernelwatch.instrument.comparison import Expected
from kernelwatch.instrument.job import Job, Ready
from kernelwatch.kernel import Launch, loading
from kernelwatch.kernel.geometry import MAX_SHARED


class Launcher:
    """A launch on the device: done once on each set of buffers, and verified. Its memory is freed when it is closed.

    `rotate` says to take the next set of buffers at each launch, as the suite does: for tools that do not flush the L2.

    Raises
    ------
    NotImplementedError
        It does not fit in the device's memory.
    WrongOutputError
        The output is not NumPy's.
    """

    def __init__(self, launch: Launch, *, rotate: bool) -> None:
        described = jobs.of(launch, samples=1)
        found = device.cuda.Context.get_device()
        job = described.job(Ready(arch=loading.current_arch(), multiprocessors=found.multiprocessor_count))
        sets = buffers.sets_for(job.set_bytes, device.l2_bytes()) if rotate else 1
        rotation = buffers.Rotation(job.arrays, sets)
        self.close = rotation.free
        rotation.poison()
        every = [filled(job.parameters, job.addresses, rotation.addresses(index)) for index in range(sets)]
        self._held = [ctypes.create_string_buffer(each, len(each)) for each in every]
        # As cuLaunchKernel takes arguments: an array of pointers. Made once, so that launches cost the host little.
        self._pointers = [_pointers(ctypes.addressof(each), len(each)) for each in self._held]
        self._next = itertools.cycle([ctypes.addressof(each) for each in self._pointers])
        self._shape = (*job.grid, *job.block, job.dynamic_shared)
        self._function = _function(job)
        stream = device.cuda.Stream()
        for _ in range(sets):
            self(stream.handle)
        stream.synchronize()
        expected = described.reference.content(described.reference.length)
        comparison.check(job, rotation, Expected(lambda: expected))

    def __call__(self, stream: int) -> None:
        """Launch on the stream with this handle (0: the default stream); does not wait."""
        device.check(device.driver.cuLaunchKernel(self._function, *self._shape, stream, next(self._next), 0))


def _pointers(begin: int, size: int) -> Any:
    """Return pointers to the addresses, integers and doubles of so many bytes."""
    words = range(begin, begin + size, 8)
    return (ctypes.c_void_p * len(words))(*words)


def _function(job: Job) -> Any:
    """Return a job's function in the current context, allowed its bytes of dynamic shared memory."""
    driver, check = device.driver, device.check
    function = check(driver.cuModuleGetFunction(check(driver.cuModuleLoadData(job.cubin)), job.entry.encode()))
    if job.dynamic_shared > MAX_SHARED:
        limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        check(driver.cuFuncSetAttribute(function, limit, job.dynamic_shared))
    return function
