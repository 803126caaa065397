"""Sources of kernels: a file of the commit, or a text or PTX that its package makes; and their compilation by nvcc.

A file is looked for in the commit's installed package, then in its checkout. Every text becomes PTX first, in which the
entry point is found by its C++ name, then machine code.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelwatch.config.project_root import CHECKOUT, ROOT
from kernelwatch.errors import ArgumentError, CompileError, KernelwatchError, UnknownKernelError
from kernelwatch.kernel import expressions
from kernelwatch.kernel.arguments import ParameterLayout
from kernelwatch.toolchain import build
from ptxcount.util.errors import PtxError

if TYPE_CHECKING:
    from ptxcount.ptx.program import Program, Variable
    from ptxcount.report import listing

#: A text from a package: the text itself, a function that returns it, or its place, "package.module:name".
TextSource = str | Callable[..., str]

_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">\n]+)[">]', re.MULTILINE)

#: The architecture that PTX is for.
_TARGET = re.compile(r"^\s*\.target\s+(\w+)", re.MULTILINE)

#: A byte order mark, which nvcc refuses behind other text.
_BYTE_ORDER_MARK = re.compile("^\ufeff", re.MULTILINE)

#: Options of nvcc that may name folders or files of the repository, in one word or two.
_INCLUDE_OPTION = re.compile(r"(-I|-include)=?(.*)", re.DOTALL)

#: A line that compilers warn about in a header that is compiled by itself.
_PRAGMA_ONCE = re.compile(r"^\ufeff?[ \t]*#[ \t]*pragma[ \t]+once\b.*$", re.MULTILINE)

#: A variable that holds a kernel's address: it instantiates the template, and the PTX has its name.
_ENTRY_VARIABLE = "kernelwatch_entry"
_ENTRY_DECLARATION = f'\nextern "C" __device__ const void* {_ENTRY_VARIABLE} = (const void*)&{{}};\n'


def checkout_folder() -> Path:
    """Return the folder of the measured commit: asv's own copy of it, or the project's."""
    folder = os.environ.get(CHECKOUT) or os.environ.get("ASV_BUILD_DIR")
    if folder:
        return Path(folder)
    asv_checkout = Path(os.environ.get("ASV_ENV_DIR", os.devnull), "project")
    return asv_checkout if asv_checkout.is_dir() else ROOT


@dataclass(frozen=True)
class KernelSource:
    """The text of a kernel at the measured commit: CUDA C++, or PTX."""

    text: str
    #: Folders of its includes.
    folders: tuple[Path, ...] = ()
    is_ptx: bool = False
    #: Name in the compiler's warnings and errors.
    name: str = "kernel.cu"
    #: CUDA C++ that is compiled before the text, whose lines keep their numbers.
    prelude: str = ""

    @property
    def code(self) -> str:
        """Input of the compiler."""
        prelude = f"{self.prelude}\n#line 1\n" if self.prelude else ""
        return _BYTE_ORDER_MARK.sub("", prelude + _PRAGMA_ONCE.sub("", self.text))

    def find_included_files(self) -> dict[Path, str]:
        """Return every file that the text includes from its folders, directly or through others."""
        files: dict[Path, str] = {}
        pending = [(f"{self.prelude}\n{self.text}", self.folders)]
        while pending and not self.is_ptx:
            text, folders = pending.pop()
            for name in _INCLUDE.findall(text):
                path = next((folder / name for folder in folders if (folder / name).is_file()), None)
                if path is not None and path.resolve() not in files:
                    files[path.resolve()] = path.read_text(encoding="utf-8", errors="replace")
                    pending.append((files[path.resolve()], (path.parent, *self.folders)))
        return files

    def full_text(self) -> str:
        """Return the text with everything that it includes from its folders; PTX with bare file names."""
        if self.is_ptx:
            return reduce(lambda text, file: text.replace(file, Path(file).name), self._debug_files(), self.text)
        return "".join((self.prelude, self.text, *self.find_included_files().values()))

    def _debug_files(self) -> Iterable[str]:
        return _parse_ptx(self.text).files.values()

    def make_line_reader(self) -> listing.FindLines:
        """Return a function from a file's name in the PTX to its lines: of the text, and of files in its folders.

        For PTX that a package made, the files are the commit's or its environment's.
        """
        if self.is_ptx:
            from ptxcount.report import listing  # noqa: PLC0415 -- imports everything that executes PTX

            found = {name: _find_debug_file(name) for name in self._debug_files()}
            read = listing.read_source_lines(file for file in found.values() if file is not None)
            return lambda name: read(str(found.get(name) or name))
        included = self.find_included_files()

        def read_lines(name: str) -> list[str] | None:
            path = self.find_included_file(name, included)
            text = included[path] if path else self.text if name.endswith("kernel.cu") else None
            return None if text is None else text.splitlines()

        return read_lines

    def find_included_file(self, name: str, included: Mapping[Path, str]) -> Path | None:
        """Return the included file of a name in PTX. Cached PTX may name files where they lay elsewhere."""
        path = Path(name)
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None
        candidates = [file for file, content in included.items() if file.name == path.name and text in (None, content)]

        def common_suffix(file: Path) -> list[bool]:  # max() then selects the longest run of equal parts from the end
            return [part == other_part for part, other_part in zip(file.parts[::-1], path.parts[::-1], strict=False)]

        return max(candidates, key=common_suffix, default=None)


def load_file(name: str, include: Sequence[str]) -> KernelSource:
    """Return a file of the installed package, or of the checkout. Raises UnknownKernelError if the commit has none."""
    first, *inner_parts = Path(name).parts
    spec = importlib.util.find_spec(first) if inner_parts and first.isidentifier() else None
    package = Path(spec.origin).parent if spec is not None and spec.origin and spec.origin.endswith(".py") else None
    for path in (*([package.joinpath(*inner_parts)] if package else []), checkout_folder() / name):
        if path.is_file():
            root = path.parents[len(inner_parts)]
            folders = (
                path.parent,
                *(root / folder for folder in include),
                *(checkout_folder() / folder for folder in include),
            )
            return KernelSource(
                path.read_text(encoding="utf-8", errors="replace"), folders, path.suffix == ".ptx", name
            )
    raise UnknownKernelError(f"there is no file {name} in the installed package, nor in {checkout_folder()}")


def _find_debug_file(name: str) -> Path | None:
    """Find a file that PTX names: in the checkout or the environment, or one of the same folder and name in the former.

    A package may keep PTX that it compiled in another checkout, as Triton does.
    """
    path, checkout = Path(name).resolve(), checkout_folder().resolve()
    if path.is_relative_to(checkout) or path.is_relative_to(Path(sys.prefix).resolve()):
        return path
    tails = (path.parts[start:] for start in range(1, len(path.parts) - 1))
    return next((file for tail in tails if (file := checkout.joinpath(*tail)).is_file()), None)


def make_text(source: TextSource, variables: Mapping[str, Any]) -> str:
    """Return the text that a package makes. Raises UnknownKernelError if the commit lacks the module or the name."""
    value: Any = source
    if isinstance(source, str) and re.fullmatch(r"[\w.]+:[\w.]+", source):
        module, _, name = source.partition(":")
        try:
            value = importlib.import_module(module)
            for attribute in name.split("."):
                value = getattr(value, attribute)
        except (ImportError, AttributeError) as error:
            raise UnknownKernelError(f"{source!r} is not there: {error}") from None
    try:
        text = expressions.call_with_known(value, variables) if callable(value) else value
    except KernelwatchError:
        raise
    except Exception as error:  # the package's code may raise anything: only this kernel fails
        raise CompileError(f"{source!r} raised {type(error).__name__}: {error}") from error
    if isinstance(text, tuple):  # numba.cuda.compile returns PTX and the type of the result
        text = text[0]
    if not isinstance(text, str):
        raise KernelwatchError(f"{source!r} returns {type(text).__name__}, not a text")
    return text


@dataclass(frozen=True)
class PtxModule:
    """PTX, and the name of an entry point in it."""

    ptx: str
    entry: str

    def parameter_layout(self) -> list[ParameterLayout]:
        """Return the layout of the entry point's parameters. Raises ArgumentError if it cannot be read."""
        from ptxcount.source.names import source_name  # noqa: PLC0415 -- as `_parse_ptx`

        entry = _parse_ptx(self.ptx).entries[self.entry]
        if entry.problem:
            raise ArgumentError(f"{source_name(self.entry)}: {entry.problem}")
        return [
            (
                parameter.size or 0,
                parameter.align,
                parameter.element.dtype if parameter.size == parameter.element.size else None,
            )
            for parameter in entry.parameters
        ]

    def target_arch(self, arch: str) -> str:
        """Return the architecture to assemble for: the given one, with the suffix of the PTX, as in sm_90a."""
        target = _TARGET.search(self.ptx)
        return target[1] if target and target[1].rstrip("af") == arch else arch

    def find_variable(self, name: str) -> Variable:
        """Return a variable by its name in the source. Raises ArgumentError unless exactly one matches."""
        from ptxcount.source.names import source_name  # noqa: PLC0415 -- as `_parse_ptx`

        variables = [
            variable for variable in _parse_ptx(self.ptx).variables.values() if variable.space in ("const", "global")
        ]
        matches = [
            variable
            for variable in variables
            if variable.name == name or f"::{source_name(variable.name)}".endswith(f"::{name}")
        ]
        if len(matches) != 1:
            names = ", ".join(variable.name for variable in variables) or "none"
            raise ArgumentError(f"variable {name}: the module has {names}")
        return matches[0]


def compile_module(source: KernelSource, name: str, options: tuple[str, ...], arch: str) -> PtxModule:
    """Compile a source to PTX with nvcc's options, and find an entry point.

    Its name is as in the source, with namespaces and template arguments, or as mangled. Raises UnknownKernelError if
    the entry point does not exist, and as `compile_to_ptx`.
    """
    if source.is_ptx:
        return PtxModule(source.text, _find_entry(source.text, name))
    source, options = apply_include_options(source, options)
    return _compile_module(
        source, name, options, arch, tuple(source.find_included_files().values()), build.compiler_identity()
    )


def apply_include_options(
    source: KernelSource, options: Sequence[str], root: Path | None = None
) -> tuple[KernelSource, tuple[str, ...]]:
    """Resolve nvcc's `-I` and `-include` in a repository: by default the measured commit.

    Return the source with these folders and this prelude, and the remaining options.
    """
    root = checkout_folder() if root is None else root
    folders, lines = list(source.folders), source.prelude.splitlines()
    remaining: list[str] = []
    words = iter(options)
    for word in words:
        match = _INCLUDE_OPTION.fullmatch(word)
        path = (match[2] or next(words, "")) if match else ""
        if match and match[1] == "-I" and (root / path).is_dir():
            folders.append(root / path)
        elif match and match[1] == "-include" and (root / path).is_file():
            lines.append(f'#include "{path}"')
            folders.append(root)
        else:
            remaining += [match[1], path] if match else [word]
    prelude = "\n".join(dict.fromkeys(lines))
    return replace(source, folders=tuple(dict.fromkeys(folders)), prelude=prelude), tuple(remaining)


def compile_to_ptx(
    source: KernelSource, options: Sequence[str], arch: str, root: Path | None = None, suffix: str = ""
) -> str:
    """Compile CUDA C++, with a suffix after it, to PTX. Raises as `build.compile_to_ptx`.

    The first error, at the user's file, begins and ends the message: a log has room for one line.
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
        text = re.sub(r"^kernel\.cu(?=[(:])", lambda _: source.name, text, flags=re.MULTILINE)
        first = _COMPILER_ERROR.search(text)
        raise CompileError(f"{first[0]}\n{text}\n{first[0]}" if first else text) from None


#: An error of nvcc or of the host's compiler, at its file and line.
_COMPILER_ERROR = re.compile(r"^\S+?[(:]\d+\b.*\berror\b.*$", re.MULTILINE)


@lru_cache(maxsize=64)
def _compile_module(
    source: KernelSource,
    name: str,
    options: tuple[str, ...],
    arch: str,
    _included: tuple[str, ...],
    _compiler: tuple[str, ...],
) -> PtxModule:
    if "<" not in name:
        text = compile_to_ptx(source, options, arch)
        return PtxModule(text, _find_entry(text, name))
    try:
        text = compile_to_ptx(source, options, arch, suffix=_ENTRY_DECLARATION.format(name))
    except CompileError as error:
        if _ENTRY_VARIABLE not in str(error):
            raise
        raise UnknownKernelError(f"the source has no kernel {name}: {error}") from None
    ((_, entry, _),) = _parse_ptx(text).variables[_ENTRY_VARIABLE].addresses
    return PtxModule(
        "".join(line for line in text.splitlines(keepends=True) if f" {_ENTRY_VARIABLE} = " not in line), entry
    )


def _parse_ptx(text: str) -> Program:
    from ptxcount.ptx.parser import parse_cached  # noqa: PLC0415 -- imports everything that executes PTX

    return parse_cached(text)


def _find_entry(text: str, name: str) -> str:
    from ptxcount.source.names import find_entry  # noqa: PLC0415 -- as `_parse_ptx`

    try:
        entry = find_entry(text, name)
    except PtxError as error:
        raise UnknownKernelError(str(error)) from None
    if entry not in _parse_ptx(text).entries:
        raise UnknownKernelError(f"there is no kernel {name}; a template needs its arguments, as in {name}<float>")
    return entry
