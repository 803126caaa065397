"""The one way in which all tools launch: the suite's cubin, by cuLaunchKernel, on a stream that the tool gives."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.instruments import buffers, device, experiment
from experiments.peers.configurations import Configuration
from gpu_kernels import catalog, launch

#: The kernels take two addresses and 64-bit integers.
_WORD = ctypes.sizeof(ctypes.c_int64)


class Launcher:
    """A configuration on the device, launched once on each pair of buffers and verified.

    Parameters
    ----------
    configuration : what to launch.
    rotate : take the next pair of buffers at each launch, as the suite does; for tools that do not flush the L2.
    verified : folder of notes on what was verified before.

    Raises
    ------
    NotImplementedError : it does not fit in the device's memory.
    WrongOutputError : the output is not NumPy's.
    """

    def __init__(self, configuration: Configuration, *, rotate: bool, verified: Path) -> None:
        work = configuration.work()
        pairs = buffers.pairs_for(work.output_bytes + work.input_bytes, device.l2_bytes()) if rotate else 1
        self._rotation = buffers.Rotation(work.output_bytes, work.input_bytes, pairs)
        kernel = catalog.get(configuration.kernel)
        scalars = kernel.check(**configuration.arguments)
        self._parameters = [
            _Parameters([self._rotation.output(index), self._rotation.input(index), *scalars]) for index in range(pairs)
        ]
        self._next = itertools.cycle([parameters.address for parameters in self._parameters])
        geometry = kernel.geometry(**configuration.arguments)
        self._shape = (*geometry.grid, *geometry.block)
        self._function = _load(configuration)
        self._launch_each_pair()
        own = replace(work, identity=f"{work.identity} by cuLaunchKernel")
        experiment.verify_once(own, self._rotation, verified)

    def _launch_each_pair(self) -> None:
        stream = device.cuda.Stream()
        for _ in self._parameters:
            self(stream.handle)
        stream.synchronize()

    def __call__(self, stream: int) -> None:
        """Launch on the stream with this handle (0: the default stream); does not wait."""
        device.check(device.driver.cuLaunchKernel(self._function, *self._shape, 0, stream, next(self._next), 0))


class _Parameters:
    """A launch's arguments as cuLaunchKernel takes them: an array of pointers to them.

    Made once, so that launches cost the host little.
    """

    def __init__(self, values: Sequence[int]) -> None:
        self._words = (ctypes.c_int64 * len(values))(*values)
        first = ctypes.addressof(self._words)
        self._pointers = (ctypes.c_void_p * len(values))(*(first + _WORD * place for place in range(len(values))))
        self.address = ctypes.addressof(self._pointers)


def _load(configuration: Configuration) -> Any:
    """The kernel's function in the current context."""
    cubin = configuration.cubin(launch.current_arch())
    module = device.check(device.driver.cuModuleLoadData(cubin.data))
    return device.check(device.driver.cuModuleGetFunction(module, cubin.entry.encode()))
