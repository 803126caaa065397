"""Kernels of ``@cuda.jit``, from numba-cuda and numba-cuda-mlir."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ..machine.argument_layout import KernelArgument
from ..util.errors import LaunchError
from .adapted_kernel import AdaptedKernel, describe_shape, import_tool, package_of, parse_capability


class _Package(NamedTuple):
    """Modules of a package with dispatchers: to compile, to find types of arguments, and to determine the target.

    ``target_name`` is the attribute with the target: a function that queries the driver, or a cached result.
    """

    compiler: str
    typing: str
    target_module: str
    target_name: str


_NUMBA_CUDA = _Package("numba.cuda", "numba", "numba.cuda.dispatcher", "get_current_device")
_TYPEOF = "numba_cuda_mlir.numba_cuda.typing.typeof"
#: Packages by the top-level module of their dispatchers.
_PACKAGES = {
    "numba": _NUMBA_CUDA,
    "numba_cuda": _NUMBA_CUDA,
    "numba_cuda_mlir": _Package("numba_cuda_mlir.cuda", _TYPEOF, "numba_cuda_mlir.tools", "_cached_cc"),
}


def adapt_numba(kernel: Any, signature: str | None, arguments: Sequence[Any], arch: str) -> AdaptedKernel:
    """Compile a ``@cuda.jit`` function for the signature, or for the types of the arguments.

    Raises `LaunchError` for dispatchers of other packages, and if the package is missing or its release unsupported.
    """
    name = package_of(kernel)
    if name not in _PACKAGES:
        problem = f"a dispatcher of {name} is not supported, only numba-cuda and numba-cuda-mlir are"
        remedy = f"pass the PTX that {name} compiles, as a text, and the arguments of that PTX"
        raise LaunchError(f"{problem}; {remedy}")
    package = _PACKAGES[name]
    cuda, typing = import_tool(package.compiler, kernel), import_tool(package.typing, kernel)
    target_module = import_tool(package.target_module, kernel)
    arguments = [_make_scalar(argument) for argument in arguments]
    types = signature or tuple(map(typing.typeof, arguments))
    capability = parse_capability(arch)
    is_mlir = name == "numba_cuda_mlir"
    target = capability if is_mlir else lambda: SimpleNamespace(compute_capability=capability)
    with _replace_attribute(target_module, package.target_name, target):
        ptx, _ = cuda.compile_ptx(kernel.py_func, types, lineinfo=True, cc=capability)
    flatten = _flatten_memref if is_mlir else _flatten_array
    flat: list[KernelArgument] = []
    names: list[str] = []
    for place, argument in enumerate(arguments):
        flat += flatten(argument) if isinstance(argument, np.ndarray) else [argument]
        names += [f"argument {place}"] * (len(flat) - len(names))
    return AdaptedKernel(ptx, None, flat, names=names)


def _make_scalar(argument: Any) -> Any:
    """Convert a Python number to the scalar that Numba passes, of 64 bits, or of 8 bits for a bool; keep others."""
    scalar = {float: np.float64, int: np.int64, bool: np.bool_}.get(type(argument))
    return argument if scalar is None else scalar(argument)


@contextmanager
def _replace_attribute(module: Any, name: str, value: Any) -> Iterator[None]:
    """Replace an attribute, which would query a GPU, within the block; raise `LaunchError` if the module lacks it."""
    if not hasattr(module, name):
        problem = f"it has no {name}; pass the PTX that Numba compiles, as a text"
        raise LaunchError(f"this release of Numba is not supported: {problem}")
    original = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, original)


def _flatten_array(array: Any) -> list[KernelArgument]:
    """Flatten an array as numba-cuda passes it: two null pointers to owners, size, itemsize, data, shape, strides."""
    head, tail = (0, 0, array.size, array.itemsize), (*array.shape, *array.strides)
    return [*map(np.int64, head), array, *map(np.int64, tail)]


def _flatten_memref(array: Any) -> list[KernelArgument]:
    """Flatten an array as an MLIR ``memref``: data twice, offset, shape, strides in elements."""
    lengths, steps = describe_shape(array, "i8")
    return [array, array, np.int64(0), *lengths, *steps]
