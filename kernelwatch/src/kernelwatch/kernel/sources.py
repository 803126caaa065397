"""Sources of kernels: a file of the commit, or CUDA C++ or PTX that its package generates.

A file is searched first in the commit's installed package, then in the commit's checkout.
"""

from __future__ import annotations

import importlib
import importlib.util
import operator
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelwatch.config.project_root import CHECKOUT, ROOT
from kernelwatch.errors import CompileError, KernelwatchError, UnknownKernelError
from kernelwatch.kernel import expressions
from kernelwatch.kernel.ptx_module import parse_ptx

if TYPE_CHECKING:
    from ptxcount.report import listing

#: A source of a package: the text itself, "package.module:name" of a text or function, or a function that returns it.
TextSource = str | Callable[..., str]

_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">\n]+)[">]', re.MULTILINE)

#: A byte order mark, which nvcc rejects after other text.
_BYTE_ORDER_MARK = re.compile("^\ufeff", re.MULTILINE)

#: Options of nvcc that may name folders or files of the repository, as one argument or two.
_INCLUDE_OPTION = re.compile(r"(-I|-include)=?(.*)", re.DOTALL)

#: A line for which compilers warn if a header is compiled by itself.
_PRAGMA_ONCE = re.compile(r"^\ufeff?[ \t]*#[ \t]*pragma[ \t]+once\b.*$", re.MULTILINE)


def checkout_folder() -> Path:
    """Return the folder with the files of the measured commit; outside of a run, the project's folder."""
    folder = os.environ.get(CHECKOUT) or os.environ.get("ASV_BUILD_DIR")
    if folder:
        return Path(folder)
    asv_checkout = Path(os.environ.get("ASV_ENV_DIR", os.devnull), "project")
    return asv_checkout if asv_checkout.is_dir() else ROOT


@dataclass(frozen=True)
class KernelSource:
    """The source of a kernel at the measured commit: CUDA C++ or PTX, and its folders of includes."""

    text: str
    #: Folders to search for includes.
    folders: tuple[Path, ...] = ()
    is_ptx: bool = False
    #: Name in the compiler's warnings and errors, and in PTX.
    name: str = "kernel.cu"
    #: CUDA C++ before the text; the text keeps its line numbers.
    prelude: str = ""

    @property
    def code(self) -> str:
        """The text that the compiler gets: prelude and source, without byte order marks and `#pragma once`."""
        prelude = f"{self.prelude}\n#line 1\n" if self.prelude else ""
        return _BYTE_ORDER_MARK.sub("", prelude + _PRAGMA_ONCE.sub("", self.text))

    def find_included_files(self) -> dict[Path, str]:
        """Return path -> text of the files that CUDA C++ includes, directly or indirectly; none for PTX.

        Files are searched in `folders`, and before them in the folder of the including file. Others, such as CUDA's
        headers, are left out.
        """
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
        """Return prelude, text and included files as one text, the same on all machines.

        In PTX, names of source files replace their paths.
        """
        if not self.is_ptx:
            return "".join((self.prelude, self.text, *self.find_included_files().values()))
        text = self.text
        for path in self._debug_files():
            text = text.replace(path, Path(path).name)
        return text

    def _debug_files(self) -> Iterable[str]:
        return parse_ptx(self.text).files.values()

    def make_line_reader(self) -> listing.FindLines:
        """Return a function from a file's name in the PTX to the lines of that file."""
        if self.is_ptx:
            from ptxcount.report import listing  # noqa: PLC0415 -- imports everything that executes PTX

            files = {name: _find_debug_file(name) for name in self._debug_files()}
            read_lines = listing.read_source_lines(file for file in files.values() if file is not None)
            return lambda name: read_lines(str(files.get(name) or name))
        included = self.find_included_files()

        def read_included_lines(name: str) -> list[str] | None:
            if name == self.name:
                return self.text.splitlines()
            path = self.find_included_file(name, included)
            return included[path].splitlines() if path else None

        return read_included_lines

    def find_included_file(self, name: str, included: Mapping[Path, str]) -> Path | None:
        """Return the included file that a name in PTX means; None if there is none.

        Cached PTX may name files of another folder, so names and texts of files are compared.
        """
        path = Path(name)
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None
        candidates = [file for file, content in included.items() if file.name == path.name and text in (None, content)]

        def common_suffix(file: Path) -> list[bool]:  # max() then selects the most equal parts at the end
            return [part == other_part for part, other_part in zip(file.parts[::-1], path.parts[::-1], strict=False)]

        return max(candidates, key=common_suffix, default=None)


def load_file(name: str, include: Sequence[str]) -> KernelSource:
    """Return the source in a file of the installed package, or else of the measured commit's folder.

    Raises UnknownKernelError if neither has the file.
    """
    first, *inner_parts = Path(name).parts
    spec = importlib.util.find_spec(first) if inner_parts and first.isidentifier() else None
    paths = [checkout_folder() / name]
    if spec is not None and spec.origin and spec.origin.endswith(".py"):
        paths.insert(0, Path(spec.origin).parent.joinpath(*inner_parts))
    path = next(filter(Path.is_file, paths), None)
    if path is None:
        place = "the measured commit" if os.environ.get(CHECKOUT) else checkout_folder()  # its folder is temporary
        raise UnknownKernelError(
            f"there is no file {name} in the installed package or in {place}; correct file= of Kernel"
        )
    root = path.parents[len(inner_parts)]  # the folder to which `name` is relative
    include_folders = [parent / folder for parent in (root, checkout_folder()) for folder in include]
    text = path.read_text(encoding="utf-8", errors="replace")
    return KernelSource(text, (path.parent, *include_folders), path.suffix == ".ptx", name)


def _find_debug_file(name: str) -> Path | None:
    """Find a file that PTX names: at its path in the checkout or the Python environment, else by the end of its path.

    A package may cache PTX that it compiled in another checkout, as Triton does. Links out of the checkout are not
    followed.
    """
    path, checkout = Path(name).resolve(), checkout_folder().resolve()
    if path.is_relative_to(checkout) or path.is_relative_to(Path(sys.prefix).resolve()):
        return path
    candidates = (checkout.joinpath(*path.parts[start:]).resolve() for start in range(1, len(path.parts) - 1))
    return next((file for file in candidates if file.is_file() and file.is_relative_to(checkout)), None)


def is_object_reference(source: str) -> bool:
    """Return whether a text source names a text or a function of a module, as in "imaging.kernels:BLUR"."""
    return re.fullmatch(r"[\w.]+:[\w.]+", source) is not None


def _import_object(reference: str) -> Any:
    module, _, name = reference.partition(":")
    try:
        return operator.attrgetter(name)(importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        advice = "correct text= or ptx= of Kernel"
        raise UnknownKernelError(f"{reference!r} cannot be imported: {error}; {advice}") from None


def make_text(source: TextSource, variables: Mapping[str, Any]) -> str:
    """Return the CUDA C++ or PTX that a text, `module:name` or a function gives.

    A function gets the variables that its parameters name. Raises UnknownKernelError if the commit has no such module
    or name, CompileError if module or function fails, KernelwatchError if the result is not a text.
    """
    try:
        value = _import_object(source) if isinstance(source, str) and is_object_reference(source) else source
        text: Any = expressions.call_with_known(value, variables) if callable(value) else value
    except KernelwatchError:
        raise
    except Exception as error:  # the package's code may raise any error: only this kernel fails
        place = expressions.locate_function(source)
        raise CompileError(f"{place} raises {type(error).__name__}: {error}") from error
    if isinstance(text, tuple):  # numba.cuda.compile returns PTX and the type of the result
        text = text[0]
    if not isinstance(text, str):
        problem = f"{expressions.locate_function(source)} gives a value of type {type(text).__name__}"
        raise KernelwatchError(f"{problem}; it must give the source text as a string")
    return text


def apply_include_options(
    source: KernelSource, options: Sequence[str], root: Path | None = None
) -> tuple[KernelSource, tuple[str, ...]]:
    """Move nvcc's options `-I` and `-include` that name existing folders and files into a source.

    Relative paths start at `root`, by default the measured commit. Return the source with these folders and includes,
    and the remaining options.
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
