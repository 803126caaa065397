"""How libraries transpose a matrix on the GPU, each called as its users call it, into an array that is there."""

from __future__ import annotations

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


def _geam(rows: int, columns: int) -> Enqueue:
    from cupy import cublas  # noqa: PLC0415 -- an optional peer, like those below

    def enqueue(stream: Any, source: Any, output: Any) -> None:
        # cuBLAS counts by columns: the output's transpose is the input, turned.
        cublas.geam("N", "N", 1.0, source, 0.0, source, out=output.T)

    return enqueue


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
        "`cublas<t>geam` with one operand transposed, the other times zero, through CuPy.",
        _geam,
        ("float32", "float64", "complex128"),
        ("cupy.cublas:geam",),
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
