"""Compile CUDA C++ to PTX, and PTX to machine code; repeated compilations come from the cache.

The two steps of nvcc are separate, because compiling to PTX takes nine tenths of the time. The PTX is the same for all
options of ptxas, and for all kernels of a source that are not templates. It is compiled with source lines, which are
dropped for machine code. PyCUDA compiles CUDA C++ if it can be imported, else nvcc; ptxas assembles the PTX.
"""

import hashlib
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

from kernelwatch.errors import CompileError, CompilerWarning
from kernelwatch.toolchain import cache, nvcc, nvcc_call, resources
from kernelwatch.toolchain.resources import Resources

#: Pattern of the file kernel.cu that nvcc compiled, in messages and in PTX. In PTX, its folder no longer exists.
_NVCC_FILE = re.compile(r'^(?:kernel\.cu(?=[(:])|(\s*\.file\s+\d+\s+")[^"\n]*\bkernel\.cu(?="))', re.MULTILINE)

#: nvcc's option that writes source lines into PTX.
LINE_OPTION = "-lineinfo"
#: Pattern of options that do so, or of files and variables that may contain them.
_MAY_ADD_LINES = re.compile(r"(?:^|[\s=])(?:-lineinfo|--generate-line-info|-G|--device-debug|-optf|--options-file|@)")
#: Pattern of what LINE_OPTION adds to nvcc's PTX: whole lines, and sections of file names and function names.
_SOURCE_LINES = re.compile(
    r"^(?:(?:[ \t]*\.(?:loc|file)\s.*|\$L__func_end\d+:)\n|[ \t]*\.section\s+\.debug_str\s*\{[^}]*\})", re.MULTILINE
)


@dataclass(frozen=True)
class Cubin:
    """The machine code of one kernel, an ELF image with no other entry point, and its resources."""

    entry: str
    data: bytes
    resources: Resources

    @property
    def sha256(self) -> str:
        """Hexadecimal SHA-256 of `data`. Equal digests mean equal machine code."""
        return hashlib.sha256(self.data).hexdigest()


def compile_to_ptx(
    text: str,
    options: Sequence[str],
    *,
    arch: str,
    name: str = "kernel.cu",
    folders: Sequence[Path] = (),
    included_texts: Sequence[str] = (),
) -> str:
    """Compile CUDA C++ to PTX, which has source lines if the options say so.

    Parameters
    ----------
    text : str
        CUDA C++.
    options : sequence of str
        Options of nvcc, without those of ptxas.
    arch, name : str
        The architecture, for example "sm_90"; and the file name for `text` in errors, warnings and PTX.
    folders, included_texts : sequence of Path and of str
        Folders of the includes, and the texts of the files included from them.

    Raises
    ------
    NvccNotFoundError
        nvcc is missing.
    CompileError
        nvcc failed, for example for an unknown arch; the message contains nvcc's text.
    """
    has_lines = _MAY_ADD_LINES.search(" ".join([*options, *nvcc.environment_options()])) is not None
    options = options if has_lines else (*options, LINE_OPTION)
    words = (*options, *(f"-I{folder}" for folder in folders))
    compile_text = nvcc_call.compile_with_pycuda if nvcc_call.can_import_pycuda() else nvcc_call.compile_with_nvcc
    ptx = _compile_cached(compile_text, text, words, arch, name, ("ptx", *options, *included_texts)).data.decode()
    return _rename_file(ptx, name) if has_lines else _SOURCE_LINES.sub("", ptx)


def assemble_cubin(text: str, entry: str, options: Sequence[str], *, arch: str, name: str = "kernel.ptx") -> Cubin:
    """Assemble the kernel `entry` of PTX. The other parameters and the errors are those of `compile_to_ptx`.

    `options` may also have options of ptxas.
    """
    # The cubin has only this kernel, so that its digest depends on nothing else. ptxas reports the resources.
    assemble, words = partial(nvcc_call.assemble_with_ptxas, entry), (*options, "-Xptxas", "-v")
    compiled = _compile_cached(assemble, text, words, arch, name, ("cubin", entry, *words))
    return Cubin(entry, compiled.data, resources.parse_resources(compiled.messages, entry))


def compiler_identity() -> tuple[str, ...]:
    """Return nvcc's version, and its options from the environment."""
    return nvcc.version_text(nvcc.find_nvcc()), *nvcc.environment_options()


def drop_ptxas_options(options: Sequence[str]) -> Iterator[str]:
    """Yield the options of nvcc without `-Xptxas` and its values. Other spellings, such as `-Xptxas=-v`, stay."""
    words = iter(options)
    for word in words:
        if word == "-Xptxas":
            next(words)  # the option's value
        else:
            yield word


def keep_ptxas_options(options: Sequence[str]) -> Iterator[str]:
    """Yield each `-Xptxas` and its value."""
    for word, next_word in pairwise(options):
        if word == "-Xptxas":
            yield from (word, next_word)


def _compile_cached(
    compile_text: Callable[[Path, Sequence[str], str, str], nvcc_call.NvccOutput],
    text: str,
    options: Sequence[str],
    arch: str,
    name: str,
    key_parts: Sequence[str],
) -> nvcc_call.NvccOutput:
    """Return `compile_text(nvcc, options, arch, text)`, from the cache if possible.

    The cache's key has the text, arch, compiler and `key_parts`. So `key_parts` must have the kind of output, the
    options, and the texts of included files. nvcc's warnings are issued as CompilerWarning, also for cached outputs.
    """
    if not (isinstance(arch, str) and re.fullmatch(r"sm_\d+[af]?", arch)):
        raise CompileError(f"arch {arch!r} is not an architecture; give one that nvcc knows, for example 'sm_90'")
    try:
        compiled = cache.lookup(
            cache.make_key(text, *key_parts, arch, *compiler_identity()),
            lambda: compile_text(nvcc.find_nvcc(), options, arch, text),
        )
    except CompileError as error:
        raise CompileError(_rename_file(str(error), name)) from None
    remarks = _rename_file(resources.extract_remarks(compiled.messages), name)
    if remarks:
        warnings.warn(f"nvcc on {name} ({' '.join(options)}, {arch}): {remarks}", CompilerWarning, stacklevel=2)
    return compiled


def _rename_file(text: str, name: str) -> str:
    """Replace kernel.cu in nvcc's output by the name of the source. The cache shares outputs among equal sources."""
    return _NVCC_FILE.sub(lambda match: f"{match[1] or ''}{name}", text)
