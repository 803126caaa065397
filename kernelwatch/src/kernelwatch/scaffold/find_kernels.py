"""The kernels of a repository, from their declarations in the sources and the entry points in the PTX from nvcc."""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from kernelwatch.errors import CompileError, CompilerWarning
from kernelwatch.kernel import compile_source, sources
from kernelwatch.scaffold.include_graph import Inclusions
from kernelwatch.store import git
from ptxcount.ptx.parser import parse_cached
from ptxcount.report.kernel_uses import KernelUses
from ptxcount.source.compile_advice import advise
from ptxcount.source.cuda_compiler import stop_all
from ptxcount.source.declarations import Declaration, find_declarations
from ptxcount.source.names import cpp_name, demangle, find_entry, parameter_types
from ptxcount.util.errors import LaunchError

_SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".hh", ".hxx", ".inl", ".inc", ".cpp", ".cc", ".cxx", ".py")

#: Advice if a file compiles neither by itself nor in a file that includes it, and ptxcount has no advice.
_HEADER_ADVICE = "pass options to nvcc with --flags, or declare the text that must precede the file with prelude="


class KernelParameter(NamedTuple):
    """A parameter of a kernel."""

    kind: str  # C++ type, as the compiler names it if it was compiled
    name: str
    written: str  # type in the source
    size: int | None = None  # bytes, if nvcc gives them


class CompilationUnit(NamedTuple):
    """A text to compile: a file, or a string in a Python file."""

    file: str
    text: str
    line: int = 1
    python_name: str = ""  # "module:NAME" of a string
    include: tuple[str, ...] = ()  # folders of its includes
    through: tuple[CompilationUnit, ...] = ()  # sources that include a header, which may not compile by itself


class KernelCandidate(NamedTuple):
    """A kernel in the repository: its place, its names, its parameters, and the threads of its blocks."""

    unit: CompilationUnit
    file: str  # the file that declares the kernel
    line: int
    name: str  # with namespaces
    entry: str  # value for the argument `entry` of `Kernel`
    template: tuple[str, ...]  # "typename T"
    parameters: tuple[KernelParameter, ...]
    uses: KernelUses  # uses of the parameters in its text
    max_threads: int  # maximum number of threads of a block; 0 if not declared
    exact_block: tuple[int, int, int] | None = None  # threads along each axis, if fixed

    @property
    def place(self) -> str:
        """The file and line of the kernel."""
        return f"{self.file}:{self.line}"


def read_sources(root: Path) -> dict[str, str]:
    """Return name -> text for the files of a repository, with printable names, that may contain kernels or launches."""
    listed = git.run(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split(b"\0")
    names = [name for name in sorted({*map(os.fsdecode, listed)}) if name.endswith(_SUFFIXES) and name.isprintable()]
    paths = {name: root / name for name in names if (root / name).is_file()}
    return {name: path.read_text(encoding="utf-8-sig", errors="replace") for name, path in paths.items()}


def find_kernels(root: Path, files: dict[str, str], options: Sequence[str]) -> tuple[list[KernelCandidate], list[str]]:
    """Return the kernels in the order of files and lines, and a message for each text or kernel left out.

    Raises NvccNotFoundError if a file needs nvcc, and there is none.
    """
    units: list[CompilationUnit | str] = []
    inclusions = Inclusions(files)
    for file, text in files.items():
        if "__global__" in text:
            units += _iter_python_units(file, text) if file.endswith(".py") else [_make_unit(file, files, inclusions)]

    def find_in_unit(unit: CompilationUnit | str) -> list[KernelCandidate | str]:
        return [unit] if isinstance(unit, str) else list(_iter_unit_kernels(unit, root, options))

    with warnings.catch_warnings(), ThreadPoolExecutor(os.cpu_count()) as pool:
        warnings.simplefilter("ignore", CompilerWarning)
        results = pool.map(find_in_unit, units)
        try:
            outcomes = [outcome for unit_outcomes in results for outcome in unit_outcomes]
        except BaseException:  # do not wait for running compilations
            stop_all()
            raise
    messages = [outcome for outcome in outcomes if isinstance(outcome, str)]
    return [outcome for outcome in outcomes if isinstance(outcome, KernelCandidate)], messages


def _make_unit(file: str, files: dict[str, str], inclusions: Inclusions) -> CompilationUnit:
    through = tuple(
        CompilationUnit(includer, files[includer], include=inclusions.list_included(includer).folders)
        for includer in inclusions.list_includers(file)
    )
    return CompilationUnit(file, files[file], include=inclusions.list_included(file).folders, through=through)


def _iter_python_units(file: str, text: str) -> Iterator[CompilationUnit | str]:
    """Yield the strings with kernels that a module assigns to a name. Yield a message for each other such string.

    A module with a syntax error gives only a message.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        yield f"{file}:{error.lineno}: Python cannot parse it: {error.msg}"
        return
    module = ".".join(PurePosixPath(file.removeprefix("src/")).with_suffix("").parts)
    assigned = [statement for statement in tree.body if isinstance(statement, ast.Assign | ast.AnnAssign)]
    names = {
        id(statement.value): target.id
        for statement in assigned
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        if isinstance(target, ast.Name)
    }
    for node in (child for child in ast.walk(tree) if isinstance(child, ast.Constant)):
        kernel_names = ", ".join(declaration.name for declaration in find_declarations(str(node.value)))
        if kernel_names and id(node) in names:
            yield CompilationUnit(file, str(node.value), node.lineno, f"{module}:{names[id(node)]}")
        elif kernel_names:
            advice = "assign the string to a name in the module, or return it from a function; see text= of Kernel"
            yield f"{file}:{node.lineno}: {kernel_names} in a string without a name; {advice}"


def _compile_unit(unit: CompilationUnit, root: Path, options: Sequence[str]) -> tuple[CompilationUnit, str]:
    """Compile a unit, or else a source that includes it; return the compiled one and its PTX."""
    errors: list[Exception] = []
    for compiled in (unit, *unit.through):
        folders = ((root / compiled.file).parent, *(root / folder for folder in compiled.include))
        source = sources.KernelSource(compiled.text, folders, name=compiled.file)
        try:
            source, words = sources.apply_include_options(source, options, root)
            return compiled, compile_source.compile_source_to_ptx(source, words, "sm_90", root)
        except CompileError as error:
            errors.append(error)
    raise errors[0]


def _iter_unit_kernels(unit: CompilationUnit, root: Path, options: Sequence[str]) -> Iterator[KernelCandidate | str]:
    """Compile a unit; yield its kernels, and a message if nvcc rejects the unit or omits a kernel."""
    try:
        compiled, ptx = _compile_unit(unit, root, options)
    except CompileError as error:
        text = str(error)
        advice = advise(text, root / unit.file, root).replace("-I", "--flags=-I") or _HEADER_ADVICE
        yield f"{unit.file}: nvcc rejects it: {text.splitlines()[0]}; {advice}"
        return
    entries = dict(parse_cached(ptx).entries)
    for declaration in find_declarations(unit.text):
        uses = KernelUses(declaration, unit.text)
        place, template = unit.line + declaration.line - 1, tuple(filter(None, declaration.template))
        candidates = (name for name in entries if f"::{declaration.name}".endswith(f"::{_cpp_name(name)}"))
        count = len(declaration.parameters)
        mangled = next((name for name in candidates if len(entries[name].parameters) == count), None)
        located = compiled, unit.file, place, declaration.name
        if declaration.template:
            parameters = tuple(
                KernelParameter(kind, name or f"p{n}", kind) for n, (kind, name) in enumerate(declaration.parameters)
            )
            yield KernelCandidate(*located, declaration.name, template, parameters, uses, declaration.max_threads)
        elif mangled is None:
            yield f"{unit.file}:{place}: {declaration.name}: nvcc creates no code for it; is it inside an #if?"
        else:
            entry = entries.pop(mangled)  # the next kernel with this name is another
            sizes = [parameter.size for parameter in entry.parameters]
            parameters = _merge_parameters(declaration, mangled, sizes)
            shortest = _find_shortest_entry(ptx, mangled)
            yield KernelCandidate(*located, shortest, (), parameters, uses, entry.max_threads, entry.exact_block)


def _cpp_name(mangled: str) -> str:
    return cpp_name(mangled).replace("(anonymous namespace)::", "")


def _merge_parameters(
    declaration: Declaration, mangled: str, sizes: Sequence[int | None]
) -> tuple[KernelParameter, ...]:
    """Return a kernel's parameters: names as declared; sizes and types, except of textures, from the compiler."""
    kinds = parameter_types(mangled) or [kind for kind, _ in declaration.parameters]
    rows = enumerate(zip(declaration.parameters, kinds, sizes, strict=True))
    return tuple(
        KernelParameter(kind if "Object_t" in kind else compiled_kind, name or f"p{n}", kind, size)  # Object_t: texture
        for n, ((kind, name), compiled_kind, size) in rows
    )


def _find_shortest_entry(ptx: str, mangled: str) -> str:
    """Return the first name that finds the kernel: without namespaces, with all of them, demangled, or mangled."""
    name = _cpp_name(mangled)
    for candidate in (name.rpartition("::")[2], name, demangle(mangled)):
        with suppress(LaunchError):
            if find_entry(ptx, candidate) == mangled:
                return candidate
    return mangled
