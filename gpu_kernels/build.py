"""Compiles a kernel, for an element type, a flag set and an architecture, to a cubin or PTX."""

from __future__ import annotations

import hashlib
import multiprocessing
import re
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from numpy.typing import DTypeLike

from . import cache, catalog, compilers, flags, nvcc, resources
from .errors import CompileError, CompilerWarning, GpuKernelsError
from .resources import Resources
from .spec import Kernel

#: (kernel's name, dtype's name, flag set, arch): what `cubin` takes.
Configuration = tuple[str, str, str, str]


@dataclass(frozen=True)
class Cubin:
    """The machine code of one kernel.

    Parameters
    ----------
    entry : str
        Name of the entry point, the only one in `data`.
    data : bytes
        The ELF image.
    resources : Resources
        Registers, spills and shared memory.
    """

    entry: str
    data: bytes
    resources: Resources

    @property
    def sha256(self) -> str:
        """Hexadecimal SHA-256 of `data`. Equal digests mean equal machine code."""
        return hashlib.sha256(self.data).hexdigest()


def cubin(kernel: str | Kernel, dtype: DTypeLike, flag_set: str = flags.DEFAULT, *, arch: str) -> Cubin:
    """Compile a kernel to machine code.

    Parameters
    ----------
    kernel : str or Kernel
        A name of the catalog, or a Kernel.
    dtype : dtype
        The element type: one that the operation has.
    flag_set : str
        A row of `flags.FLAG_SETS`.
    arch : str
        For example "sm_90".

    Raises
    ------
    UnknownKernelError, UnknownDtypeError, UnknownFlagsError
        Bad names.
    NvccNotFoundError
        There is no nvcc.
    CompileError
        nvcc refused (an arch it does not know, say); the message carries its text.
    """
    spec = catalog.get(kernel)
    # Only this kernel of its family goes into the cubin, so that the digest is its own; ptxas reports resources.
    extra = ("-e", spec.name, "-Xptxas", "-v")
    compiled = _compile(spec, "cubin", dtype, flag_set, arch, extra)
    return Cubin(spec.name, compiled.data, resources.parse(compiled.messages, spec.name))


def ptx(kernel: str | Kernel, dtype: DTypeLike, flag_set: str = flags.DEFAULT, *, arch: str) -> str:
    """Compile a kernel's family to PTX with source lines (`-lineinfo`). Arguments and errors as `cubin`."""
    spec = catalog.get(kernel)
    return _compile(spec, "ptx", dtype, flag_set, arch, ("-lineinfo",)).data.decode()


def _compile(
    spec: Kernel, target: str, dtype: DTypeLike, flag_set: str, arch: str, extra: tuple[str, ...]
) -> compilers.NvccOutput:
    if not (isinstance(arch, str) and re.fullmatch(r"sm_\d+[af]?", arch)):
        raise CompileError(f"arch {arch!r} is not an architecture; give one that nvcc knows, for example 'sm_90'")
    source = spec.source_text()
    options = (*flags.options(flag_set), *spec.options(dtype), *extra)
    compiler = nvcc.find_nvcc()
    call = compilers.through_pycuda if compilers.pycuda_importable() else compilers.directly
    compiled = cache.lookup(
        cache.key(source, target, *options, arch, nvcc.version(compiler), *nvcc.options_of_environment()),
        lambda: call(compiler, target, options, arch, source),
    )
    said = resources.remarks(compiled.messages)
    if said:
        warnings.warn(f"nvcc on {spec.source} ({flag_set}, {arch}): {said}", CompilerWarning, stacklevel=3)
    return compiled


def prebuild(configurations: Iterable[Configuration], processes: int | None = None) -> Iterator[GpuKernelsError | None]:
    """Compile many cubins into the cache in parallel processes. Yield an error or None for each.

    Those that differ in nothing but their flag sets belong side by side: what they have in common is compiled once.
    Must be called before CUDA is initialised in this process, as it forks.
    """
    with ProcessPoolExecutor(processes, multiprocessing.get_context("fork")) as pool:
        yield from pool.map(_prebuild_one, configurations, chunksize=len(flags.FLAG_SETS))


def _prebuild_one(configuration: Configuration) -> GpuKernelsError | None:
    kernel, dtype, flag_set, arch = configuration
    try:
        cubin(kernel, dtype, flag_set, arch=arch)
    except GpuKernelsError as error:
        return error
    return None
