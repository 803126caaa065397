"""Adapters for kernels of other packages: CuPy, Numba, Triton, Warp, CuTe DSL, cuTile and tilelang.

A package is imported only for its own kernels. Kernels are recognized by their attributes.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..util.errors import LaunchError
from .adapted_kernel import AdaptedKernel, view_array
from .kernel_sources import read_embedded_ptx
from .numba_kernels import adapt_numba
from .tile_kernels import adapt_cute, adapt_cutile, adapt_tilelang
from .triton_kernels import adapt_compiled_triton, adapt_jit_function
from .warp_kernels import adapt_warp

#: Options of NVRTC that nvcc lacks.
_NVRTC_ONLY = ("-default-device", "--device-as-default-execution-space")
_SUPPORTED = (
    "a Path, a text, the bytes of a cubin, a CuPy RawKernel, a Numba dispatcher, a kernel of Triton, Warp, cuTile or "
    "tilelang, or a function that CuTe DSL compiled"
)


def adapt_kernel(
    kernel: Any,
    entry: str | None,
    arguments: Sequence[Any] | Mapping[str, Any],
    arch: str,
    grid: Any = None,
    block: Any = None,
) -> AdaptedKernel:
    """Adapt a kernel of any kind that `count` accepts, with parameters as in `count`.

    Raises `LaunchError` for other kinds, and for arguments that the kernel's package does not accept.
    """
    if isinstance(arguments, Mapping):
        arguments = {name: view_array(value) for name, value in arguments.items()}
    else:
        arguments = [*map(view_array, arguments)]
    if _has(kernel, "arg_names", "fn", "run"):  # @triton.jit, also with @triton.autotune or @triton.heuristics
        return adapt_jit_function(kernel, entry, arguments, arch, block)
    if _has(kernel, "kernel_source", "device_mod"):
        return adapt_tilelang(kernel, entry, arguments)
    if isinstance(arguments, Mapping):
        raise LaunchError("arguments by name are only for Triton and tilelang; pass a list in the kernel's order")
    if isinstance(kernel, bytes):
        return AdaptedKernel(read_embedded_ptx(kernel, "this cubin"), entry, list(arguments))
    if isinstance(kernel, (str, Path)):
        return AdaptedKernel(kernel, entry, list(arguments))
    for is_kind, adapt in _ADAPTERS:
        if is_kind(kernel):
            return adapt(kernel, entry, arguments, arch)
    if _has(kernel, "key", "module", "adj"):
        return adapt_warp(kernel, entry, arguments, arch, grid, block)
    raise LaunchError(f"the kernel has the type {type(kernel).__name__}; pass {_SUPPORTED}")


def _has(kernel: Any, *names: str) -> bool:
    return all(hasattr(kernel, name) for name in names)


def _adapt_cupy(kernel: Any, entry: str | None, arguments: Sequence[Any], arch: str) -> AdaptedKernel:
    """Adapt a ``cupy.RawKernel``: take the CUDA C++, and the options that nvcc also has."""
    flags = shlex.join(option for option in kernel.options if option not in _NVRTC_ONLY)
    return AdaptedKernel(kernel.code, entry or kernel.name, list(arguments), flags)


#: Kinds of kernels: a predicate that recognizes the kernel by its attributes, and its adapter.
_ADAPTERS: tuple[tuple[Callable[[Any], bool], Callable[[Any, str | None, Sequence[Any], str], AdaptedKernel]], ...] = (
    (lambda kernel: hasattr(kernel, "asm") and "ptx" in kernel.asm, adapt_compiled_triton),
    (lambda kernel: _has(kernel, "py_func", "targetoptions"), adapt_numba),
    (lambda kernel: _has(kernel, "code", "name", "options"), _adapt_cupy),
    (lambda kernel: _has(kernel, "kernel_info", "__ptx__"), adapt_cute),
    (lambda kernel: _has(kernel, "_annotated_function", "_compiler_options"), adapt_cutile),
)
