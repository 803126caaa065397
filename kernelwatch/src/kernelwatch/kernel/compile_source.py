"""Compile a kernel's source to PTX with nvcc, and find the entry point by its C++ name."""

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from kernelwatch.error_text import first_error
from kernelwatch.errors import CompileError, UnknownKernelError
from kernelwatch.kernel import dtypes
from kernelwatch.kernel.ptx_module import PtxModule, find_entry, parse_ptx
from kernelwatch.kernel.sources import KernelSource, apply_include_options, checkout_folder
from kernelwatch.toolchain import build

#: A variable with the kernel's address: it instantiates the template, and shows the mangled name in the PTX.
_ENTRY_VARIABLE = "kernelwatch_entry"
_ENTRY_DECLARATION = f'\nextern "C" __device__ const void* {_ENTRY_VARIABLE} = (const void*)&{{}};\n'

#: Pattern of an error of nvcc or of the host's compiler, with file and line.
_COMPILER_ERROR = re.compile(r"^\S+?[(:]\d+\b.*\berror\b.*$", re.MULTILINE)


def compile_module(source: KernelSource, name: str, options: tuple[str, ...], arch: str) -> PtxModule:
    """Compile a source to PTX with nvcc's options, and find an entry point.

    `name` is the entry point's name in the source, with namespaces and template arguments, or its mangled name. A
    source that is PTX is not compiled. Raises UnknownKernelError if the entry point does not exist, NvccNotFoundError
    if nvcc is missing, CompileError if nvcc fails or a source is not PTX.
    """
    if source.is_ptx:
        return PtxModule(source.text, find_entry(source.text, name))
    source, options = apply_include_options(source, options)
    return _compile_module(
        source, name, options, arch, tuple(source.find_included_files().values()), build.compiler_identity()
    )


def compile_source_to_ptx(
    source: KernelSource, options: Sequence[str], arch: str, root: Path | None = None, suffix: str = ""
) -> str:
    """Compile CUDA C++, followed by the text `suffix`, to PTX.

    Raises NvccNotFoundError or CompileError. A log may show only the first or the last line of a message, so both are
    the first error with a file and line, if any. File names in the message are relative to `root`, by default the
    measured commit's folder.
    """
    try:
        return build.compile_to_ptx(
            source.code + suffix,
            options,
            arch=arch,
            name=source.name,
            folders=source.folders,
            included_texts=tuple(source.find_included_files().values()),
        )
    except CompileError as error:
        text = str(error).replace(f"{checkout_folder() if root is None else root}/", "")
        first = _COMPILER_ERROR.search(text)
        raise CompileError(f"{first[0]}\n{text}\n{first[0]}" if first else text) from None


@lru_cache(maxsize=64)
def _compile_module(
    source: KernelSource,
    name: str,
    options: tuple[str, ...],
    arch: str,
    _included: tuple[str, ...],
    _compiler: tuple[str, ...],
) -> PtxModule:
    """Compile CUDA C++ as `compile_module` explains. The last two parameters only complete the cache's key."""
    if "<" not in name:
        text = compile_source_to_ptx(source, options, arch)
        return PtxModule(text, find_entry(text, name))
    try:
        text = compile_source_to_ptx(source, options, arch, suffix=_ENTRY_DECLARATION.format(name))
    except CompileError as error:
        if _ENTRY_VARIABLE not in str(error):
            raise
        raise UnknownKernelError(
            f"the source has no kernel {name}: {_explain_missing(str(error), name, source)}"
        ) from None
    ((_, entry, _),) = parse_ptx(text).variables[_ENTRY_VARIABLE].addresses
    lines = [line for line in text.splitlines(keepends=True) if f" {_ENTRY_VARIABLE} = " not in line]
    return PtxModule("".join(lines), entry)


def _explain_missing(errors: str, name: str, source: KernelSource) -> str:
    """Return the first compiler error, and CUDA headers that `name` needs but the source does not include."""
    error = first_error(errors)
    quoted_line = errors.partition(f"{error}\n  ")[2].partition("\n")[0]
    if _ENTRY_VARIABLE in quoted_line:  # the user's file does not have this line, so its number would mislead
        error = error.partition("error: ")[2]
    headers = [header for cpp_type, header in dtypes.CPP.values() if header and cpp_type in name]
    missing_headers = [header for header in headers if header not in source.full_text()]
    return "".join([error, *(f"; it does not include {header}" for header in missing_headers)])
