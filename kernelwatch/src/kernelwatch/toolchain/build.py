"""Compiles CUDA C++ to PTX, and PTX to machine code, each once: what was compiled before comes from the cache.

nvcc's own two steps, one by one: PTX, which takes nine tenths of the time, is the same for all kernels of a source and
all options of ptxas. PyCUDA compiles CUDA C++ wherever it can be imported; nvcc assembles what comes of it.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelwatch.errors import CompileError, CompilerWarning
from kernelwatch.toolchain import cache, nvcc, nvcc_call, resources
from kernelwatch.toolchain.resources import Resources


@dataclass(frozen=True)
class Cubin:
    """The machine code of one kernel, as an ELF image with no other entry point, and the resources that it takes."""

    entry: str
    data: bytes
    resources: Resources

    @property
    def sha256(self) -> str:
        """Hexadecimal SHA-256 of `data`. Equal digests mean equal machine code."""
        return hashlib.sha256(self.data).hexdigest()


def ptx(
    text: str,
    options: Sequence[str],
    *,
    arch: str,
    name: str = "kernel.cu",
    folders: Sequence[Path] = (),
    included: Sequence[str] = (),
) -> str:
    """Compile CUDA C++ to PTX.

    Parameters
    ----------
    text : str
        CUDA C++.
    options : sequence of str
        nvcc's, `without_ptxas`.
    arch, name : str
        For example "sm_90", and what a warning calls the text.
    folders, included : sequence of Path and of str
        Where it looks for what it includes, and what it includes from there.

    Raises
    ------
    NvccNotFoundError
        There is no nvcc.
    CompileError
        nvcc refused (an arch it does not know, say); the message carries its text.
    """
    words = (*options, *(f"-I{folder}" for folder in folders))
    return _compiled("ptx", text, words, arch, name, (*options, *included)).data.decode()


def cubin(text: str, entry: str, options: Sequence[str], *, arch: str, name: str = "kernel.ptx") -> Cubin:
    """Assemble one kernel of PTX. Arguments and errors as `ptx`; `entry` is its entry point."""
    # Only this kernel goes into the cubin, so that the digest is its own; ptxas reports resources.
    words = (*options, "-e", entry, "-Xptxas", "-v")
    compiled = _compiled("cubin", text, words, arch, name, words)
    return Cubin(entry, compiled.data, resources.parse(compiled.messages, entry))


def compiler() -> tuple[str, ...]:
    """Return what nvcc says of itself, and the options that it takes from the environment."""
    return nvcc.version(nvcc.find_nvcc()), *nvcc.options_of_environment()


def without_ptxas(options: Sequence[str]) -> Iterator[str]:
    """The options but those that are for ptxas alone."""
    words = iter(options)
    for word in words:
        if word == "-Xptxas":
            next(words)  # its value
        else:
            yield word


def _compiled(
    target: str, text: str, options: Sequence[str], arch: str, name: str, known_by: Sequence[str]
) -> nvcc_call.NvccOutput:
    if not (isinstance(arch, str) and re.fullmatch(r"sm_\d+[af]?", arch)):
        raise CompileError(f"arch {arch!r} is not an architecture; give one that nvcc knows, for example 'sm_90'")
    is_through_pycuda = target == "ptx" and nvcc_call.pycuda_importable()
    call = nvcc_call.through_pycuda if is_through_pycuda else nvcc_call.directly
    compiled = cache.lookup(
        cache.key(text, target, *known_by, arch, *compiler()),
        lambda: call(nvcc.find_nvcc(), target, options, arch, text),
    )
    said = resources.remarks(compiled.messages)
    if said:
        warnings.warn(f"nvcc on {name} ({' '.join(options)}, {arch}): {said}", CompilerWarning, stacklevel=2)
    return compiled
