"""The device that the timing instruments use, or the reason why there is none.

Importing PyCUDA and cuda-bindings, as this module does, does not initialise CUDA.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwatch.errors import NoDeviceError
from kernelwatch.instrument.protocol import Call, Ready
from kernelwatch.kernel import load_function
from kernelwatch.kernel.arguments import filled
from kernelwatch.toolchain import nvcc_call


def _interfaces() -> tuple[Any, Any]:
    if not nvcc_call.pycuda_importable():
        return None, None
    import pycuda.driver  # noqa: PLC0415 -- only where it can be

    try:
        from cuda.bindings import driver  # noqa: PLC0415
    except ImportError:  # cuda-bindings is not installed: `context` says so
        return pycuda.driver, None
    return pycuda.driver, driver


#: PyCUDA's and cuda-bindings' driver interfaces, or None; neither is typed.
cuda, driver = _interfaces()


@cache
def context() -> Any:
    """Return the context that lives as long as this process, current from now on.

    Raises
    ------
    NotImplementedError
        There is no usable device; asv skips the benchmark and shows the reason.
    """
    try:
        found = load_function.context()
    except NoDeviceError as error:
        raise NotImplementedError(str(error)) from None
    if driver is None:
        raise NotImplementedError("cuda-bindings, which builds CUDA graphs, is missing; run: pip install cuda-bindings")
    return found


@cache
def arch() -> str:
    """Return the device's architecture, for example "sm_90"."""
    context()
    return load_function.current_arch()


def multiprocessors() -> int:
    """Return how many multiprocessors the device has."""
    return int(cuda.Context.get_device().multiprocessor_count)


def ready(conditions: str = "") -> Ready:
    """Return what jobs are made for: this device, and its fingerprint."""
    return Ready(arch=arch(), multiprocessors=multiprocessors(), conditions=conditions)


def new_context(l2_fetch_bytes: int = 0) -> Any:
    """Return another context of the device, which is not current; if given, with a fetch granularity of L2."""
    context()
    made = cuda.Device(0).make_context()
    if l2_fetch_bytes:
        check(driver.cuCtxSetLimit(driver.CUlimit.CU_LIMIT_MAX_L2_FETCH_GRANULARITY, l2_fetch_bytes))
    cuda.Context.pop()
    return made


@contextmanager
def within(made: Any) -> Iterator[None]:
    """Make a context current within a `with` block."""
    made.push()
    try:
        yield
    finally:
        cuda.Context.pop()


def page_locked(length: int) -> NDArray[np.uint8]:
    """Return host memory that the device reads and writes at the full speed of the bus, from whichever context."""
    with within(context()):
        found: NDArray[np.uint8] = cuda.pagelocked_empty(length, np.uint8, mem_flags=cuda.host_alloc_flags.PORTABLE)
    return found


def allocate(*sizes: int) -> list[Any]:
    """Allocate device memory of each of these sizes, in bytes. Raises NotImplementedError if it does not suffice."""
    free, _total = cuda.mem_get_info()
    try:
        if sum(sizes) > free:
            raise cuda.MemoryError
        return [cuda.mem_alloc(size) for size in sizes]
    except cuda.MemoryError:
        raise NotImplementedError(f"needs {sum(sizes)} bytes of GPU memory, {free} are free") from None


def l2_bytes() -> int:
    """Size of the device's L2 cache in bytes."""
    return int(cuda.Context.get_device().get_attribute(cuda.device_attribute.L2_CACHE_SIZE))


def l2_fetch_bytes() -> int:
    """Return the bytes that a miss of the L2 cache fetches from DRAM: a setting of the current context."""
    context()
    return int(check(driver.cuCtxGetLimit(driver.CUlimit.CU_LIMIT_MAX_L2_FETCH_GRANULARITY)))


def check(result: tuple[Any, ...]) -> Any:
    """Return what a call of cuda-bindings gave beside its status. Raises RuntimeError unless that is success."""
    status, *values = result
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the CUDA driver answered {status.name}")
    return values[0] if values else None


class BoundKernel:
    """A call in the current context, which takes addresses; all other arguments stay the same."""

    def __init__(self, call: Call) -> None:
        taken = (call.entry, f"{len(call.parameters)}s", call.dynamic_shared, call.variables)
        self._function, self._call = load_function.prepared(cuda, call.cubin, *taken), call

    def given(self, *addresses: int) -> bytes:
        """Return what the entry point takes, with addresses in their places."""
        return filled(self._call.parameters, self._call.addresses, addresses)

    def __call__(self, stream: Any, given: bytes) -> None:
        """Launch on a stream; does not wait.

        By what PyCUDA's own calls end in: a graph holds thousands of launches, and to pack each anew takes longer than
        the driver.
        """
        self._function._launch_kernel(self._call.grid, self._call.block, given, self._call.dynamic_shared, stream)


def fits_at_once(call: Call) -> bool:
    """Whether all blocks of a grid can run at the same time, as far as threads limit them."""
    attribute, ask = cuda.device_attribute, cuda.Context.get_device().get_attribute
    (x, y, z), (i, j, k) = call.grid, call.block
    together = ask(attribute.MULTIPROCESSOR_COUNT) * (ask(attribute.MAX_THREADS_PER_MULTIPROCESSOR) // (i * j * k))
    return bool(x * y * z <= together)
