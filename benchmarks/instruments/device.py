"""The device that the timing instruments use, and the one place that says why there is none.

PyCUDA and cuda-bindings are imported here when asv's fork server imports the benchmarks, so that no forked process
has to; importing them does not initialise CUDA, which must not happen before the fork.
"""

from __future__ import annotations

from typing import Any

from benchmarks.instruments import remarks
from gpu_kernels import compilers, launch
from gpu_kernels.errors import NoDeviceError


def _interfaces() -> tuple[Any, Any]:
    if not compilers.pycuda_importable():
        return None, None
    import pycuda.driver  # noqa: PLC0415 -- only where it can be

    try:
        from cuda.bindings import driver  # noqa: PLC0415
    except ImportError:  # cuda-bindings is not installed: `require` says so
        return pycuda.driver, None
    return pycuda.driver, driver


#: PyCUDA's and cuda-bindings' driver interfaces, or None; neither is typed.
cuda, driver = _interfaces()


def require() -> None:
    """Make the device's context current.

    Raises
    ------
    NotImplementedError : there is no usable device; asv skips the benchmark and shows the reason.
    """
    try:
        launch.context()
    except NoDeviceError as error:
        remarks.no_device()
        raise NotImplementedError(str(error)) from None
    if driver is None:
        raise NotImplementedError("cuda-bindings, which builds CUDA graphs, is missing; run: pip install cuda-bindings")


def allocate(*sizes: int) -> list[Any]:
    """Allocate device memory of each of these sizes, in bytes.

    Raises
    ------
    NotImplementedError : they do not fit; the reason names the bytes needed and free.
    """
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


def check(result: tuple[Any, ...]) -> Any:
    """Return what a call of cuda-bindings gave beside its status.

    Raises
    ------
    RuntimeError : the status is not success.
    """
    status, *values = result
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the CUDA driver answered {status.name}")
    return values[0] if values else None
