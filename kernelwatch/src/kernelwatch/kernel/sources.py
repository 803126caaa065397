"""Sources of kernels: a file of the commit, or a text or PTX that its package makes.

A file is looked for in the commit's installed package, then in its checkout.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelwatch.config.project_root import CHECKOUT, ROOT
from kernelwatch.errors import CompileError, KernelwatchError, UnknownKernelError
from kernelwatch.kernel import expressions
from kernelwatch.kernel.ptx_module import parse_ptx

if TYPE_CHECKING:
    from ptxcount.report import listing

#: A text from a package: the text itself, a function that returns it, or its place, "package.module:name".
TextSource = str | Callable[..., str]

_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">\n]+)[">]', re.MULTILINE)

#: A byte order mark, which nvcc refuses behind other text.
_BYTE_ORDER_MARK = re.compile("^\ufeff", re.MULTILINE)

#: Options of nvcc that may name folders or files of the repository, in one word or two.
_INCLUDE_OPTION = re.compile(r"(-I|-include)=?(.*)", re.DOTALL)

#: A line that compilers warn about in a header that is compiled by itself.
_PRAGMA_ONCE = re.compile(r"^\ufeff?[ \t]*#[ \t]*pragma[ \t]+once\b.*$", re.MULTILINE)


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
    #: Name in the compiler's warnings and errors, and in PTX.
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
        return parse_ptx(self.text).files.values()

    def make_line_reader(self) -> listing.FindLines:
        """Return a function from a file's name in the PTX to its lines: of the text, and of files in its folders.

        For PTX that a package made, the files are the commit's or its environment's.
        """
        if self.is_ptx:
            from ptxcount.report import listing  # noqa: PLC0415 -- imports everything that executes PTX

            files = {name: _find_debug_file(name) for name in self._debug_files()}
            read_lines = listing.read_source_lines(file for file in files.values() if file is not None)
            return lambda name: read_lines(str(files.get(name) or name))
        included = self.find_included_files()

        def read_included_lines(name: str) -> list[str] | None:
            path = self.find_included_file(name, included) if name != self.name else None
            text = included[path] if path else self.text if name == self.name else None
            return None if text is None else text.splitlines()

        return read_included_lines

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
    place = "the measured commit" if os.environ.get(CHECKOUT) else checkout_folder()  # its folder soon is gone
    raise UnknownKernelError(f"there is no file {name} in the installed package, nor in {place}; correct file=")


def _find_debug_file(name: str) -> Path | None:
    """Find a file that PTX names: in the checkout or the environment, else by the end of its path in the checkout.

    A package may keep PTX that it compiled in another checkout, as Triton does. No link leads out of the checkout.
    """
    path, checkout = Path(name).resolve(), checkout_folder().resolve()
    if path.is_relative_to(checkout) or path.is_relative_to(Path(sys.prefix).resolve()):
        return path
    candidates = (checkout.joinpath(*path.parts[start:]).resolve() for start in range(1, len(path.parts) - 1))
    return next((file for file in candidates if file.is_file() and file.is_relative_to(checkout)), None)


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
