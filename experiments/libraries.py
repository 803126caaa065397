"""Transposes of libraries on the GPU, each called as its users call it, into an existing array."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpu_kernels.dtypes import ONE_OF_EACH_SIZE

#: (stream, matrix, its transpose to be, both of CuPy) -> None.
Enqueue = Callable[[Any, Any, Any], None]


@dataclass(frozen=True)
class Library:
    """One way to transpose.

    Parameters
    ----------
    title : str
        What it is called in tables.
    text : str
        What is called, for people.
    make : callable
        (rows, columns) -> what enqueues it.
    dtypes : tuple of str
        Those that it has.
    needs : tuple of str
        What it imports, as `pkgutil.resolve_name` takes it.
    """

    title: str
    text: str
    make: Callable[[int, int], Enqueue]
    dtypes: tuple[str, ...] = ONE_OF_EACH_SIZE
    needs: tuple[str, ...] = ()


def arch(cupy: Any) -> str:
    """Return the device's architecture as nvcc names it."""
    return f"sm_{cupy.cuda.Device().compute_capability}"


#: Its shared library, and its function of each dtype. Called by ctypes, since CuPy's way to it refuses to be captured.
_CUBLAS = "libcublas.so.13"
_GEAM = {"float32": "cublasSgeam", "float64": "cublasDgeam", "complex128": "cublasZgeam"}
_TRANSPOSED, _AS_IS = 1, 0


def _geam(rows: int, columns: int) -> Enqueue:
    import numpy as np  # noqa: PLC0415 -- like those below, only where it is measured

    library, handle = ctypes.CDLL(_CUBLAS), ctypes.c_void_p()
    _check(library.cublasCreate_v2(ctypes.byref(handle)))

    def enqueue(stream: Any, source: Any, output: Any) -> None:
        one, zero = (np.full(1, value, output.dtype) for value in (1, 0))
        input_at, output_at = ctypes.c_void_p(source.data.ptr), ctypes.c_void_p(output.data.ptr)
        _check(library.cublasSetStream_v2(handle, ctypes.c_void_p(stream.ptr)))
        # cuBLAS counts by columns: to it, the input has `columns` rows, and the output `rows`.
        _check(
            getattr(library, _GEAM[output.dtype.name])(
                *(handle, _TRANSPOSED, _AS_IS, rows, columns),
                *(ctypes.c_void_p(one.ctypes.data), input_at, columns),
                *(ctypes.c_void_p(zero.ctypes.data), output_at, rows),
                *(output_at, rows),
            )
        )

    return enqueue


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"cuBLAS gave status {status}")


def _cupy(rows: int, columns: int) -> Enqueue:
    import cupy  # noqa: PLC0415

    def enqueue(stream: Any, source: Any, output: Any) -> None:
        cupy.copyto(output, source.T)

    return enqueue


def _torch(rows: int, columns: int) -> Enqueue:
    import torch  # noqa: PLC0415

    def enqueue(stream: Any, source: Any, output: Any) -> None:
        with torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr)):
            torch.as_tensor(output, device="cuda").copy_(torch.as_tensor(source, device="cuda").t())

    return enqueue


def _triton(rows: int, columns: int) -> Enqueue:
    import torch  # noqa: PLC0415

    from experiments.triton_transpose import transpose  # noqa: PLC0415

    def enqueue(stream: Any, source: Any, output: Any) -> None:
        with torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr)):
            transpose(torch.as_tensor(source, device="cuda"), torch.as_tensor(output, device="cuda"))

    return enqueue


LIBRARIES: dict[str, Library] = {
    "geam": Library(
        "cuBLAS geam",
        "`cublas<t>geam` with one operand transposed, the other times zero.",
        _geam,
        tuple(_GEAM),
        ("torch",),  # which brings and loads cuBLAS
    ),
    "torch": Library("PyTorch", "`output.copy_(x.t())`, the kernel of `x.t().contiguous()`.", _torch, needs=("torch",)),
    "cupy": Library("CuPy", "`cupy.copyto(output, x.T)`, the kernel of `ascontiguousarray(x.T)`.", _cupy),
    "triton": Library(
        "Triton",
        "blocks loaded, turned by `tl.trans` and stored, in the manner of its tutorials; shapes of blocks autotuned.",
        _triton,
        ("int8", "float16", "float32", "float64"),
        ("torch", "triton"),
    ),
}
