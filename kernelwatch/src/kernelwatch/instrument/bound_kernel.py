"""Machine code in the current context, ready to be launched again and again with the same geometry and arguments."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from kernelwatch.instrument import device
from kernelwatch.instrument.job import Call
from kernelwatch.kernel import loading


class BoundKernel:
    """A call in the current context, which takes addresses; all other arguments stay the same."""

    def __init__(self, call: Call) -> None:
        signature = f"{len(call.parameters)}s"
        self._function = loading.prepared(
            device.cuda, call.cubin, call.entry, signature, call.dynamic_shared, call.variables
        )
        self._call = call

    def given(self, *addresses: int) -> bytes:
        """Return what the entry point takes, with addresses in their places."""
        return filled(self._call.parameters, self._call.addresses, addresses)

    def __call__(self, stream: Any, given: bytes) -> None:
        """Launch on a stream; does not wait.

        By what PyCUDA's own calls end in: a graph holds thousands of launches, and to pack each anew takes longer than
        the driver.
        """
        self._function._launch_kernel(self._call.grid, self._call.block, given, self._call.dynamic_shared, stream)


def filled(parameters: bytes, places: Sequence[int], addresses: Sequence[int]) -> bytes:
    """Return what an entry point takes, with addresses in their places."""
    given = bytearray(parameters)
    for place, address in zip(places, addresses, strict=True):
        struct.pack_into("Q", given, place, address)
    return bytes(given)


def fits_at_once(call: Call) -> bool:
    """Whether all blocks of a grid can run at the same time, as far as threads limit them."""
    attribute, ask = device.cuda.device_attribute, device.cuda.Context.get_device().get_attribute
    (x, y, z), (i, j, k) = call.grid, call.block
    together = ask(attribute.MULTIPROCESSOR_COUNT) * (ask(attribute.MAX_THREADS_PER_MULTIPROCESSOR) // (i * j * k))
    return bool(x * y * z <= together)
