"""Machine code in the current context, ready to be launched again and again with the same geometry and arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelwatch.instrument import device
from kernelwatch.instrument.job import Job
from kernelwatch.kernel import loading

Extent = tuple[int, int, int]


class BoundKernel:
    """A kernel that takes addresses, and behind them arguments that stay the same.

    Parameters
    ----------
    cubin : bytes
        The machine code.
    entry : str
        Its entry point.
    grid, block : tuple of int
        Blocks and threads a block.
    addresses : int
        How many it takes.
    arguments : sequence
        Integers, which it takes as signed 64-bit ones, and floats, which it takes as double.
    dynamic_shared : int
        Bytes of dynamic shared memory a block.
    """

    def __init__(
        self,
        cubin: bytes,
        entry: str,
        grid: Extent,
        block: Extent,
        addresses: int,
        arguments: Sequence[int | float] = (),
        dynamic_shared: int = 0,
    ) -> None:
        signature = "P" * addresses + "".join("d" if isinstance(value, float) else "q" for value in arguments)
        self._function = loading.prepared(device.cuda, cubin, entry, signature, dynamic_shared)
        self._grid, self._block, self._arguments, self._shared = grid, block, tuple(arguments), dynamic_shared

    @classmethod
    def of(cls, job: Job) -> BoundKernel:
        """Return the kernel of a job."""
        addresses, arguments = 1 + len(job.input_bytes), (*job.integers, *job.scalars)
        return cls(job.cubin, job.entry, job.grid, job.block, addresses, arguments, job.dynamic_shared)

    def __call__(self, stream: Any, *addresses: int) -> None:
        """Launch on a stream; does not wait."""
        self._function.prepared_async_call(
            self._grid, self._block, stream, *addresses, *self._arguments, shared_size=self._shared
        )


def fits_at_once(grid: Extent, block: Extent) -> bool:
    """Whether all blocks of a grid can run at the same time, as far as threads limit them."""
    attribute = device.cuda.device_attribute
    ask = device.cuda.Context.get_device().get_attribute
    threads = block[0] * block[1] * block[2]
    together = ask(attribute.MULTIPROCESSOR_COUNT) * (ask(attribute.MAX_THREADS_PER_MULTIPROCESSOR) // threads)
    return bool(grid[0] * grid[1] * grid[2] <= together)
