"""Finds the kernels of a repository: in its texts, as ptxcount reads them, and in the PTX that nvcc makes of these."""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from kernelwatch.errors import CompileError, CompilerWarning, NvccNotFoundError
from kernelwatch.kernel import sources
from kernelwatch.scaffold.inclusions import Inclusions
from kernelwatch.store import git
from ptxcount.ptx.parser import parse_cached
from ptxcount.source.compile_advice import advise
from ptxcount.source.declarations import Declaration, find_declarations
from ptxcount.source.names import cpp_name, demangle, find_entry, parameter_types
from ptxcount.source.nvcc import stop_all
from ptxcount.util.errors import LaunchError

_SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".hh", ".hxx", ".inl", ".inc", ".cpp", ".cc", ".cxx", ".py")

#: Advice where no file that includes a source compiles it.
_WITHOUT = "give nvcc's options by --flags, or watch it with prelude=, the text that comes before it"


class Parameter(NamedTuple):
    """What a kernel takes: its C++ type, its name, its type as written, and its bytes where the compiler says them."""

    kind: str
    name: str
    written: str
    size: int | None = None


class Unit(NamedTuple):
    """What is compiled by itself: a file; or a text in Python, which `made` names as "module:NAME".

    Where a header does not compile alone, `through` are the units that include it.
    """

    file: str
    text: str
    line: int = 1
    made: str = ""
    include: tuple[str, ...] = ()
    through: tuple[Unit, ...] = ()


class Found(NamedTuple):
    """A kernel: where it is defined, how `Kernel` finds it, what it takes, and the threads of its blocks."""

    unit: Unit
    file: str
    line: int
    name: str  # with namespaces
    entry: str
    template: tuple[str, ...]  # "typename T"
    parameters: tuple[Parameter, ...]
    most: int  # threads of a block, at most; 0 if nothing is said
    exact: tuple[int, int, int] | None = None  # threads along each axis, where they are fixed

    @property
    def place(self) -> str:
        """Its file and line."""
        return f"{self.file}:{self.line}"


def texts(root: Path) -> dict[str, str]:
    """Return the files of a repository that may have kernels, or launches of them, with their texts."""
    listed = git.run(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split(b"\0")
    names = [name for name in sorted({*map(os.fsdecode, listed)}) if name.endswith(_SUFFIXES) and name.isprintable()]
    paths = {name: root / name for name in names if (root / name).is_file()}
    return {name: path.read_text(encoding="utf-8-sig", errors="replace") for name, path in paths.items()}


def kernels(root: Path, files: dict[str, str], options: Sequence[str]) -> tuple[list[Found], list[str]]:
    """Return the kernels in the order of files and lines, and what is left out, with the reason."""
    units: list[Unit | str] = []
    inclusions = Inclusions(files)
    for file in (name for name, text in files.items() if "__global__" in text):
        units += _of_python(file, files[file]) if file.endswith(".py") else [_of_file(file, files, inclusions)]
    with warnings.catch_warnings(), ThreadPoolExecutor(os.cpu_count()) as pool:
        warnings.simplefilter("ignore", CompilerWarning)
        made = pool.map(lambda one: [one] if isinstance(one, str) else list(_found(one, root, options)), units)
        try:
            every = [one for some in made for one in some]
        except BaseException:  # nobody waits for what is being compiled
            stop_all()
            raise
    return [one for one in every if isinstance(one, Found)], [one for one in every if isinstance(one, str)]


def _of_file(file: str, files: dict[str, str], inclusions: Inclusions) -> Unit:
    """Return a file with the folders in which lies what it includes, and the sources that include it."""
    through = tuple(Unit(one, files[one], include=inclusions.reached(one)[1]) for one in inclusions.includers(file))
    return Unit(file, files[file], include=inclusions.reached(file)[1], through=through)


def _of_python(file: str, text: str) -> Iterator[Unit | str]:
    """Yield the CUDA C++ that a module of Python has as a text with a name; say which has none."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        yield f"{file}:{error.lineno}: Python does not read it: {error.msg}"
        return
    module = ".".join(PurePosixPath(file.removeprefix("src/")).with_suffix("").parts)
    assigned = [each for each in tree.body if isinstance(each, ast.Assign)]
    names = {id(each.value): one.id for each in assigned for one in each.targets if isinstance(one, ast.Name)}
    for node in (each for each in ast.walk(tree) if isinstance(each, ast.Constant)):
        named = ", ".join(each.name for each in find_declarations(str(node.value)))
        if named and id(node) in names:
            yield Unit(file, str(node.value), node.lineno, f"{module}:{names[id(node)]}")
        elif named:
            advice = "give the module a name for the text, or a function that returns it; see text= of Kernel"
            yield f"{file}:{node.lineno}: {named} in a text without a name: {advice}"


def _found(unit: Unit, root: Path, options: Sequence[str]) -> Iterator[Found | str]:
    """Compile a unit, and yield the kernels that it declares; say what nvcc refuses, or makes nothing of."""
    errors: list[Exception] = []
    for compiled in (unit, *unit.through):
        folders = ((root / compiled.file).parent, *(root / folder for folder in compiled.include))
        source = sources.KernelSource(compiled.text, folders, name=compiled.file)
        try:
            ptx = sources.compile_to_ptx(*sources.apply_include_options(source, options, root), "sm_90", root)
            break
        except (CompileError, NvccNotFoundError) as error:
            errors.append(error)
    else:
        text = str(errors[0])
        advice = advise(text, root / unit.file, root).replace("-I", "--flags=-I") or _WITHOUT
        yield f"{unit.file}: nvcc refuses it: {text.splitlines()[0]}; {advice}"
        return
    entries = dict(parse_cached(ptx).entries)
    for one in find_declarations(unit.text):
        place, template = unit.line + one.line - 1, tuple(filter(None, one.template))
        called = (each for each in entries if f"::{one.name}".endswith(f"::{_plain(each)}"))
        mangled = next((each for each in called if len(entries[each].parameters) == len(one.parameters)), None)
        if one.template:
            parameters = tuple(Parameter(kind, name or f"p{n}", kind) for n, (kind, name) in enumerate(one.parameters))
            yield Found(compiled, unit.file, place, one.name, one.name, template, parameters, one.max_threads)
        elif mangled is None:
            yield f"{unit.file}:{place}: {one.name}: nvcc makes nothing of it; is it behind an #if?"
        else:
            entry = entries.pop(mangled)  # the next of this name is another
            sizes = [each.size for each in entry.parameters]
            parameters = _parameters(one, mangled, sizes)
            yield Found(
                compiled,
                unit.file,
                place,
                one.name,
                _entry(ptx, mangled),
                (),
                parameters,
                entry.max_threads,
                entry.exact_block,
            )


def _plain(mangled: str) -> str:
    return cpp_name(mangled).replace("(anonymous namespace)::", "")


def _parameters(one: Declaration, mangled: str, sizes: Sequence[int | None]) -> tuple[Parameter, ...]:
    """Return types as the compiler knows them, but for those of textures; and names as a person wrote them."""
    known = parameter_types(mangled) or [kind for kind, _ in one.parameters]
    rows = enumerate(zip(one.parameters, known, sizes, strict=True))
    return tuple(
        Parameter(kind if "Object_t" in kind else made, name or f"p{n}", kind, size)
        for n, ((kind, name), made, size) in rows
    )


def _entry(ptx: str, mangled: str) -> str:
    """Return the shortest name that `Kernel` finds the kernel by."""
    name = _plain(mangled)
    for each in (name.rpartition("::")[2], name, demangle(mangled)):
        with suppress(LaunchError):
            if find_entry(ptx, each) == mangled:
                return each
    return mangled
