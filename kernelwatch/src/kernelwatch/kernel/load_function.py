"""Load machine code with PyCUDA. Importing this module does not initialise CUDA."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelwatch.errors import NoDeviceError
from kernelwatch.toolchain import nvcc, nvcc_call
from ptxcount.util.architectures import STATIC_SHARED

if TYPE_CHECKING:
    import pycuda.driver as cuda


def current_context() -> cuda.Context:
    """Return the current CUDA context; without one, make device 0's primary context current.

    Raises NoDeviceError without a usable device, and in threads other than the main one without a current context.
    `load_driver` lists the other exceptions.
    """
    current = load_driver().Context.get_current()
    if current is None and threading.current_thread() is not threading.main_thread():
        # PyCUDA aborts the process if a thread ends with contexts on its stack.
        raise NoDeviceError(
            "this thread has no current context; push one before the call, and pop it before the thread ends"
        )
    return current or _primary_context()


def load_driver() -> Any:
    """Return the module `pycuda.driver` if there is a usable device, without creating a context.

    Raises NoDeviceError if PyCUDA, the driver or a device is missing, or the driver is older than nvcc. Raises
    NvccNotFoundError or CompileError if nvcc is missing or broken.
    """
    missing = nvcc_call.find_pycuda_problem()
    if missing is not None:
        raise NoDeviceError(missing)
    import pycuda.driver as cuda  # noqa: PLC0415 -- only when called

    try:
        cuda.init()
        count = cuda.Device.count()
    except cuda.Error as error:
        raise NoDeviceError(f"the CUDA driver does not start: {error}; check with nvidia-smi") from None
    if count == 0:
        raise NoDeviceError("the CUDA driver finds no device; check nvidia-smi and CUDA_VISIBLE_DEVICES")
    # Cubins run on any driver of the same CUDA major version or a newer one (CUDA Compatibility, "Minor Version
    # Compatibility"). A driver's version is a number such as 13000.
    driver_major, driver_minor = divmod(cuda.get_driver_version() // 10, 100)
    nvcc_major, nvcc_minor = nvcc.find_release(nvcc.find_nvcc())
    if driver_major < nvcc_major:
        raise NoDeviceError(
            f"the driver supports CUDA {driver_major}.{driver_minor}, but nvcc is {nvcc_major}.{nvcc_minor}; "
            f"update the driver, or set NVCC to an nvcc of CUDA {driver_major}"
        )
    return cuda


def _primary_context() -> cuda.Context:
    import pycuda.driver as cuda  # noqa: PLC0415 -- only when called
    import pycuda.tools  # noqa: PLC0415

    primary = cuda.Device(0).retain_primary_context()
    primary.push()

    def leave_context() -> None:
        primary.pop()
        pycuda.tools.clear_context_caches()

    atexit.register(leave_context)
    return primary


def current_arch() -> str:
    """Return the architecture of the current context's device, such as "sm_90"."""
    major, minor = current_context().get_device().compute_capability()
    return f"sm_{major}{minor}"


def prepare_function(
    cuda: Any,
    cubin: bytes,
    entry: str,
    signature: str,
    dynamic_shared: int,
    variables: Sequence[tuple[str, bytes]] = (),
) -> Any:
    """Load machine code in the current context; return the PyCUDA function of its entry point, prepared for launches.

    The function keeps the module loaded. `cuda` is `pycuda.driver`, `signature` is PyCUDA's text of argument types, and
    `variables` are names and contents of module variables.
    """
    module = cuda.module_from_buffer(cubin)
    for name, content in variables:
        cuda.memcpy_htod(module.get_global(name)[0], np.frombuffer(content, np.uint8))
    function = module.get_function(entry)
    if dynamic_shared > STATIC_SHARED:
        function.set_attribute(cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic_shared)
    function.prepare(signature)
    return function
