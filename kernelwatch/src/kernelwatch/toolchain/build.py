"""Compiles CUDA C++ to a cubin or to PTX, once: what was compiled before comes from the cache."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelwatch.errors import CompileError, CompilerWarning
from kernelwatch.toolchain import cache, nvcc, nvcc_call, resources
from kernelwatch.toolchain.resources import Resources


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


def cubin(source: Path, entry: str, options: Sequence[str], *, arch: str) -> Cubin:
    """Compile one kernel to machine code.

    Parameters
    ----------
    source : Path
        A file of CUDA C++.
    entry : str
        The kernel's entry point.
    options : sequence of str
        nvcc's.
    arch : str
        For example "sm_90".

    Raises
    ------
    NvccNotFoundError
        There is no nvcc.
    CompileError
        nvcc refused (an arch it does not know, say); the message carries its text.
    """
    # Only this kernel of its file goes into the cubin, so that the digest is its own; ptxas reports resources.
    compiled = _compile(source, "cubin", (*options, "-e", entry, "-Xptxas", "-v"), arch)
    return Cubin(entry, compiled.data, resources.parse(compiled.messages, entry))


def ptx(source: Path, options: Sequence[str], *, arch: str) -> str:
    """Compile all kernels of a file to PTX with source lines (`-lineinfo`). Arguments and errors as `cubin`."""
    return _compile(source, "ptx", (*options, "-lineinfo"), arch).data.decode()


def _compile(source: Path, target: str, options: Sequence[str], arch: str) -> nvcc_call.NvccOutput:
    if not (isinstance(arch, str) and re.fullmatch(r"sm_\d+[af]?", arch)):
        raise CompileError(f"arch {arch!r} is not an architecture; give one that nvcc knows, for example 'sm_90'")
    text = source.read_text(encoding="utf-8")
    compiler = nvcc.find_nvcc()
    call = nvcc_call.through_pycuda if nvcc_call.pycuda_importable() else nvcc_call.directly
    compiled = cache.lookup(
        cache.key(text, target, *options, arch, nvcc.version(compiler), *nvcc.options_of_environment()),
        lambda: call(compiler, target, options, arch, text),
    )
    said = resources.remarks(compiled.messages)
    if said:
        warnings.warn(f"nvcc on {source.name} ({' '.join(options)}, {arch}): {said}", CompilerWarning, stacklevel=4)
    return compiled
