"""Machine code in the current context, ready to be launched again and again with the same geometry and arguments."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from kernelwatch.instrument import device
from kernelwatch.instrument.job import Job
from kernelwatch.kernel import loading

Extent = tuple[int, int, int]


class BoundKernel:
    """A kernel that takes addresses, and other arguments that stay the same. Parameters as the fields of `Job`."""

    def __init__(
        self,
        cubin: bytes,
        entry: str,
        grid: Extent,
        block: Extent,
        parameters: bytes,
        addresses: Sequence[int],
        dynamic_shared: int = 0,
        variables: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        signature = f"{len(parameters)}s"
        self._function = loading.prepared(device.cuda, cubin, entry, signature, dynamic_shared, variables)
        self._grid, self._block, self._shared = grid, block, dynamic_shared
        self._parameters, self._addresses = parameters, addresses

    @classmethod
    def of(cls, job: Job) -> BoundKernel:
        """Return the kernel of a job."""
        taken = (job.parameters, job.addresses)
        return cls(job.cubin, job.entry, job.grid, job.block, *taken, job.dynamic_shared, job.variables)

    def given(self, *addresses: int) -> bytes:
        """Return what the entry point takes, with addresses in their places."""
        return filled(self._parameters, self._addresses, addresses)

    def __call__(self, stream: Any, given: bytes) -> None:
        """Launch on a stream; does not wait.

        By what PyCUDA's own calls end in: a graph holds thousands of launches, and to pack each anew takes longer than
        the driver.
        """
        self._function._launch_kernel(self._grid, self._block, given, self._shared, stream)


def filled(parameters: bytes, places: Sequence[int], addresses: Sequence[int]) -> bytes:
    """Return what an entry point takes, with addresses in their places."""
    given = bytearray(parameters)
    for place, address in zip(places, addresses, strict=True):
        struct.pack_into("Q", given, place, address)
    return bytes(given)


def fits_at_once(grid: Extent, block: Extent) -> bool:
    """Whether all blocks of a grid can run at the same time, as far as threads limit them."""
    attribute = device.cuda.device_attribute
    ask = device.cuda.Context.get_device().get_attribute
    threads = block[0] * block[1] * block[2]
    together = ask(attribute.MULTIPROCESSOR_COUNT) * (ask(attribute.MAX_THREADS_PER_MULTIPROCESSOR) // threads)
    return bool(grid[0] * grid[1] * grid[2] <= together)
