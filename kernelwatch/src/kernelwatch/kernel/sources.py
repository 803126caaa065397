"""Where a kernel comes from: a file of the commit, a text or PTX that the commit's package makes; and what nvcc makes.

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
from kernelwatch.kernel.arguments import Taken
from kernelwatch.toolchain import build
from ptxcount.util.errors import PtxError

if TYPE_CHECKING:
    from ptxcount.ptx.program import Program, Variable
    from ptxcount.report import listing

#: A text that a package makes: itself, a function that makes it, or where that is, "package.module:name".
Made = str | Callable[..., str]

_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">\n]+)[">]', re.MULTILINE)

#: A byte order mark, which nvcc refuses behind other text.
_MARK = re.compile("^\ufeff", re.MULTILINE)

#: Options that may name what the repository has, with their values or before them.
_PLACED = re.compile(r"(-I|-include)=?(.*)", re.DOTALL)

#: What a compiler remarks of a header that is compiled by itself.
_ONCE = re.compile(r"^\ufeff?[ \t]*#[ \t]*pragma[ \t]+once\b.*$", re.MULTILINE)

#: A variable whose value is a kernel's address: its instance of a template is made, and PTX has the name.
_NAMED = "kernelwatch_entry"
_ADDRESS = f'\nextern "C" __device__ const void* {_NAMED} = (const void*)&{{}};\n'


def checkout() -> Path:
    """Return the folder of the commit that is measured: asv's own copy of it, or the project's."""
    named = os.environ.get(CHECKOUT) or os.environ.get("ASV_BUILD_DIR")
    if named:
        return Path(named)
    of_asv = Path(os.environ.get("ASV_ENV_DIR", os.devnull), "project")
    return of_asv if of_asv.is_dir() else ROOT


@dataclass(frozen=True)
class Source:
    """The text of a kernel at the commit that is measured: CUDA C++, or PTX."""

    text: str
    #: Where it looks for what it includes.
    folders: tuple[Path, ...] = ()
    is_ptx: bool = False
    #: What a compiler's warnings and errors call it.
    name: str = "kernel.cu"
    #: What is compiled before the text, whose lines keep their numbers.
    prelude: str = ""

    @property
    def code(self) -> str:
        """What the compiler is given."""
        return _MARK.sub("", (f"{self.prelude}\n#line 1\n" if self.prelude else "") + _ONCE.sub("", self.text))

    def included(self) -> dict[Path, str]:
        """Return every file that the text includes from its folders, and those that these include."""
        found: dict[Path, str] = {}
        todo = [(f"{self.prelude}\n{self.text}", self.folders)]
        while todo and not self.is_ptx:
            text, folders = todo.pop()
            for name in _INCLUDE.findall(text):
                path = next((each / name for each in folders if (each / name).is_file()), None)
                if path is not None and path.resolve() not in found:
                    found[path.resolve()] = path.read_text(encoding="utf-8", errors="replace")
                    todo.append((found[path.resolve()], (path.parent, *self.folders)))
        return found

    def whole(self) -> str:
        """Return the text with everything that it includes from its folders; PTX without the folders that it names."""
        if self.is_ptx:
            return reduce(lambda text, file: text.replace(file, Path(file).name), self._files(), self.text)
        return "".join((self.prelude, self.text, *self.included().values()))

    def _files(self) -> Iterable[str]:
        return _parsed(self.text).files.values()

    def lines_of(self) -> listing.FindLines:
        """Return what gives the lines of a file by its name in the PTX: the text's own, and those of its folders.

        Of PTX that a package made, the files are the commit's, or of its environment.
        """
        if self.is_ptx:
            from ptxcount.report import listing  # noqa: PLC0415 -- with all that executes PTX

            named = map(Path, self._files())
            own = (checkout(), Path(sys.prefix).resolve())
            return listing.read_source_lines(each for each in named if any(map(each.resolve().is_relative_to, own)))
        mine = self.included()

        def lines(name: str) -> list[str] | None:
            path = self.file_of(name, mine)
            text = mine[path] if path else self.text if name.endswith("kernel.cu") else None
            return None if text is None else text.splitlines()

        return lines

    def file_of(self, name: str, included: Mapping[Path, str]) -> Path | None:
        """Return which included file a name in PTX is. From the cache, it was made where these lay elsewhere."""
        path = Path(name)
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None
        alike = [each for each, held in included.items() if each.name == path.name and text in (None, held)]

        def shared(one: Path) -> list[bool]:  # the longest run of equal parts from the end comes last
            return [mine == its for mine, its in zip(one.parts[::-1], path.parts[::-1], strict=False)]

        return max(alike, key=shared, default=None)


def of_file(name: str, include: Sequence[str]) -> Source:
    """Return a file of the installed package, or of the checkout. Raises UnknownKernelError if the commit has none."""
    first, *rest = Path(name).parts
    spec = importlib.util.find_spec(first) if rest and first.isidentifier() else None
    package = Path(spec.origin).parent if spec is not None and spec.origin and spec.origin.endswith(".py") else None
    for path in (*([package.joinpath(*rest)] if package else []), checkout() / name):
        if path.is_file():
            root = path.parents[len(rest)]
            folders = (path.parent, *(root / each for each in include), *(checkout() / each for each in include))
            return Source(path.read_text(encoding="utf-8", errors="replace"), folders, path.suffix == ".ptx", name)
    raise UnknownKernelError(f"there is no file {name} in the installed package, nor in {checkout()}")


def made(what: Made, known: Mapping[str, Any]) -> str:
    """Return what a package makes. Raises UnknownKernelError where the commit lacks the module or the name."""
    found: Any = what
    if isinstance(what, str) and re.fullmatch(r"[\w.]+:[\w.]+", what):
        module, _, name = what.partition(":")
        try:
            found = importlib.import_module(module)
            for each in name.split("."):
                found = getattr(found, each)
        except (ImportError, AttributeError) as error:
            raise UnknownKernelError(f"{what!r} is not there: {error}") from None
    try:
        text = expressions.called(found, known) if callable(found) else found
    except KernelwatchError:
        raise
    except Exception as error:  # whatever the package's code raises: this kernel fails, and no other
        raise CompileError(f"{what!r} raised {type(error).__name__}: {error}") from error
    if isinstance(text, tuple):  # as numba.cuda.compile gives PTX, with the type of the result
        text = text[0]
    if not isinstance(text, str):
        raise KernelwatchError(f"{what!r} makes a {type(text).__name__}; a text is needed")
    return text


@dataclass(frozen=True)
class Module:
    """PTX, and the name of an entry point in it."""

    ptx: str
    entry: str

    def parameters(self) -> list[Taken]:
        """Return what the entry point takes. Raises ArgumentError where that cannot be read."""
        from ptxcount.source.names import source_name  # noqa: PLC0415 -- as `_parsed`

        entry = _parsed(self.ptx).entries[self.entry]
        if entry.problem:
            raise ArgumentError(f"{source_name(self.entry)}: {entry.problem}")
        return [
            (each.size or 0, each.align, each.element.dtype if each.size == each.element.size else None)
            for each in entry.parameters
        ]

    def variable(self, name: str) -> Variable:
        """Return a variable by its name in the source. Raises ArgumentError unless there is just one."""
        from ptxcount.source.names import source_name  # noqa: PLC0415 -- as `_parsed`

        every = [each for each in _parsed(self.ptx).variables.values() if each.space in ("const", "global")]
        mine = [each for each in every if each.name == name or f"::{source_name(each.name)}".endswith(f"::{name}")]
        if len(mine) != 1:
            raise ArgumentError(f"variable {name}: the module has {', '.join(each.name for each in every) or 'none'}")
        return mine[0]


def module(source: Source, name: str, options: tuple[str, ...], arch: str) -> Module:
    """Compile a source to PTX with nvcc's options, and find an entry point.

    Its name is as in the source, with namespaces and the arguments of a template, or as mangled. Raises
    UnknownKernelError if there is none such, and as `compiled`.
    """
    if source.is_ptx:
        return Module(source.text, _found(source.text, name))
    source, options = with_options(source, options)
    return _module(source, name, options, arch, tuple(source.included().values()), build.compiler())


def with_options(source: Source, options: Sequence[str], root: Path | None = None) -> tuple[Source, tuple[str, ...]]:
    """Let nvcc's `-I` and `-include` name what the repository has: the commit that is measured if no root is given.

    Return the source with these folders and this prelude, and the other options.
    """
    root = checkout() if root is None else root
    folders, lines = list(source.folders), source.prelude.splitlines()
    others: list[str] = []
    words = iter(options)
    for word in words:
        named = _PLACED.fullmatch(word)
        path = (named[2] or next(words, "")) if named else ""
        if named and named[1] == "-I" and (root / path).is_dir():
            folders.append(root / path)
        elif named and named[1] == "-include" and (root / path).is_file():
            lines.append(f'#include "{path}"')
            folders.append(root)
        else:
            others += [named[1], path] if named else [word]
    prelude = "\n".join(dict.fromkeys(lines))
    return replace(source, folders=tuple(dict.fromkeys(folders)), prelude=prelude), tuple(others)


def compiled(source: Source, options: Sequence[str], arch: str, root: Path | None = None, more: str = "") -> str:
    """Compile CUDA C++, and more behind it, to PTX. Raises as `build.ptx`.

    The first error, at the user's file, stands before and behind the text: a log has room for a line.
    """
    try:
        return build.ptx(
            source.code + more,
            options,
            arch=arch,
            name=source.name,
            folders=source.folders,
            included=tuple(source.included().values()),
        )
    except CompileError as error:
        text = str(error).replace(f"{checkout() if root is None else root}/", "")
        text = re.sub(r"^kernel\.cu(?=[(:])", lambda _: source.name, text, flags=re.MULTILINE)
        first = _ERROR.search(text)
        raise CompileError(f"{first[0]}\n{text}\n{first[0]}" if first else text) from None


#: An error of nvcc's or of the host's compiler, at its file and line.
_ERROR = re.compile(r"^\S+?[(:]\d+\b.*\berror\b.*$", re.MULTILINE)


@lru_cache(maxsize=64)
def _module(
    source: Source,
    name: str,
    options: tuple[str, ...],
    arch: str,
    _included: tuple[str, ...],
    _compiler: tuple[str, ...],
) -> Module:
    if "<" not in name:
        text = compiled(source, options, arch)
        return Module(text, _found(text, name))
    try:
        text = compiled(source, options, arch, more=_ADDRESS.format(name))
    except CompileError as error:
        if _NAMED not in str(error):
            raise
        raise UnknownKernelError(f"the source has no kernel {name}: {error}") from None
    ((_, entry, _),) = _parsed(text).variables[_NAMED].addresses
    return Module("".join(line for line in text.splitlines(keepends=True) if f" {_NAMED} = " not in line), entry)


def _parsed(text: str) -> Program:
    from ptxcount.ptx.parser import parse_cached  # noqa: PLC0415 -- with all that executes PTX

    return parse_cached(text)


def _found(text: str, name: str) -> str:
    from ptxcount.source.names import find_entry  # noqa: PLC0415 -- as `_parsed`

    try:
        found = find_entry(text, name)
    except PtxError as error:
        raise UnknownKernelError(str(error)) from None
    if found not in _parsed(text).entries:
        raise UnknownKernelError(f"there is no kernel {name}; a template needs its arguments, as in {name}<float>")
    return found
