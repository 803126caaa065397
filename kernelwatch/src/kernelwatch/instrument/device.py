"""The CUDA device, or the reason why there is none.

Importing PyCUDA and cuda-bindings, as this module does, does not initialise CUDA.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwatch.errors import NoDeviceError
from kernelwatch.instrument.job_messages import Call, DeviceFacts
from kernelwatch.kernel import load_function
from kernelwatch.kernel.arguments import insert_addresses
from kernelwatch.toolchain import nvcc_call


def _import_drivers() -> tuple[Any, Any]:
    if not nvcc_call.can_import_pycuda():
        return None, None
    import pycuda.driver  # noqa: PLC0415 -- only if it can be imported

    try:
        from cuda.bindings import driver  # noqa: PLC0415
    except ImportError:  # cuda-bindings is not installed: `process_context` reports it
        return pycuda.driver, None
    return pycuda.driver, driver


#: Driver interfaces of PyCUDA and cuda-bindings, or None; neither is typed.
cuda, driver = _import_drivers()


@cache
def process_context() -> Any:
    """Return the CUDA context of this process: the one that is current at the first call, else the primary context.

    Raises
    ------
    NotImplementedError
        No device is usable, or cuda-bindings is missing; asv skips the benchmark and shows the reason.
    NvccNotFoundError, CompileError
        nvcc is missing or broken.
    """
    try:
        context = load_function.current_context()
    except NoDeviceError as error:
        raise NotImplementedError(str(error)) from None
    if driver is None:
        raise NotImplementedError(
            "cuda-bindings is missing, which is needed for CUDA graphs; run: pip install cuda-bindings"
        )
    return context


@cache
def device_arch() -> str:
    """Return the device's architecture, for example "sm_90"."""
    process_context()
    return load_function.current_arch()


def count_multiprocessors() -> int:
    """Return the number of multiprocessors of the device."""
    return int(cuda.Context.get_device().multiprocessor_count)


def describe_device(conditions: str = "") -> DeviceFacts:
    """Return the device's facts that jobs depend on; `conditions` is the fingerprint of library and GPU."""
    return DeviceFacts(arch=device_arch(), multiprocessors=count_multiprocessors(), conditions=conditions)


def make_context(l2_fetch_bytes: int = 0) -> Any:
    """Return a new context of the device, which is not current.

    `l2_fetch_bytes` is the context's L2 fetch granularity, 32, 64 or 128; 0 stands for the driver's default.
    """
    process_context()
    new_context = cuda.Device(0).make_context()
    if l2_fetch_bytes:
        call_driver(driver.cuCtxSetLimit, driver.CUlimit.CU_LIMIT_MAX_L2_FETCH_GRANULARITY, l2_fetch_bytes)
    cuda.Context.pop()
    return new_context


@contextmanager
def use_context(context: Any) -> Iterator[None]:
    """Make a context current within a `with` block."""
    context.push()
    try:
        yield
    finally:
        cuda.Context.pop()


def allocate_page_locked(length: int) -> NDArray[np.uint8]:
    """Return host memory that the device can access at the full speed of the bus, in every context."""
    with use_context(process_context()):
        memory: NDArray[np.uint8] = cuda.pagelocked_empty(length, np.uint8, mem_flags=cuda.host_alloc_flags.PORTABLE)
    return memory


def allocate(*sizes: int) -> list[Any]:
    """Allocate device memory of each size, in bytes. Raises NotImplementedError if too little memory is free."""
    free, _total = cuda.mem_get_info()
    try:
        if sum(sizes) > free:
            raise cuda.MemoryError
        return [cuda.mem_alloc(size) for size in sizes]
    except cuda.MemoryError:
        problem = f"needs {sum(sizes)} bytes of GPU memory, but {free} are free"
        raise NotImplementedError(f"{problem}; use smaller arguments") from None


def l2_bytes() -> int:
    """Return the size of the device's L2 cache in bytes."""
    return int(cuda.Context.get_device().get_attribute(cuda.device_attribute.L2_CACHE_SIZE))


def get_l2_fetch_bytes() -> int:
    """Return the current context's L2 fetch granularity: the bytes that the L2 fetches from DRAM on a miss."""
    process_context()
    return int(call_driver(driver.cuCtxGetLimit, driver.CUlimit.CU_LIMIT_MAX_L2_FETCH_GRANULARITY))


def call_driver(function: Callable[..., tuple[Any, ...]], *arguments: Any) -> Any:
    """Call a function of cuda-bindings; return its first result, or None. Raises RuntimeError if the call fails."""
    status, *values = function(*arguments)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{function.__name__} of the CUDA driver returned {status.name}")
    return values[0] if values else None


class BoundKernel:
    """A kernel loaded in the current context, with fixed geometry and arguments, except addresses of arrays."""

    def __init__(self, call: Call) -> None:
        arguments = (call.entry, f"{len(call.parameters)}s", call.dynamic_shared, call.variables)
        self._function, self._call = load_function.prepare_function(cuda, call.cubin, *arguments), call

    def pack_addresses(self, *addresses: int) -> bytes:
        """Return the packed arguments of the entry point, with these device addresses for its arrays."""
        return insert_addresses(self._call.parameters, self._call.addresses, addresses)

    def __call__(self, stream: Any, packed: bytes) -> None:
        """Launch on a stream with packed arguments, without waiting.

        This bypasses PyCUDA's packing of arguments. For the thousands of launches of a graph, packing would take longer
        than the driver.
        """
        self._function._launch_kernel(self._call.grid, self._call.block, packed, self._call.dynamic_shared, stream)


def fits_in_one_wave(call: Call) -> bool:
    """Return whether the device has enough threads to run all blocks of a launch at the same time."""
    attribute, get_attribute = cuda.device_attribute, cuda.Context.get_device().get_attribute
    blocks_per_multiprocessor = get_attribute(attribute.MAX_THREADS_PER_MULTIPROCESSOR) // math.prod(call.block)
    blocks_at_once = get_attribute(attribute.MULTIPROCESSOR_COUNT) * blocks_per_multiprocessor
    return bool(math.prod(call.grid) <= blocks_at_once)
