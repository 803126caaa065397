"""The versions of installed packages that generate PTX, such as Triton."""

from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from kernelwatch.kernel.kernel import Kernel

#: Distributions on PyPI that generate PTX.
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
    """Return distribution -> version of the installed generators of PTX; none if no kernel has generated PTX."""
    versions: dict[str, str] = {}
    if any(kernel.is_generated for kernel in kernels):
        for name in _GENERATORS:
            with suppress(PackageNotFoundError):
                versions[name] = version(name)
    return versions
