"""The installed packages that generate PTX, and their versions."""

from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from kernelwatch.kernel.kernel import Kernel

#: Names of distributions.
_GENERATORS = (
    "cuda-tile",
    "numba",
    "numba-cuda",
    "numba-cuda-mlir",
    "nvidia-cutlass-dsl",
    "tilelang",
    "triton",
    "warp-lang",
)


def list_generators(kernels: Iterable[Kernel]) -> dict[str, str]:
    """Return the version of each installed generator; none if no kernel has generated PTX."""
    versions: dict[str, str] = {}
    if any(kernel.is_generated for kernel in kernels):
        for name in _GENERATORS:
            with suppress(PackageNotFoundError):
                versions[name] = version(name)
    return versions
