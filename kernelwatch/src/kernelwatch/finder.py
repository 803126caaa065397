"""Finds the kernels of a repository: in the PTX that nvcc makes of its files; in the text only where nvcc refuses."""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from kernelwatch.errors import CompileError, CompilerWarning, NvccNotFoundError
from kernelwatch.kernel import sources
from kernelwatch.kernel.sources import Source
from kernelwatch.store import git
from ptxcount.declarations import Declaration, declarations
from ptxcount.errors import LaunchError
from ptxcount.names import cpp_name, demangled, find_entry, parameter_types, source_name
from ptxcount.parser import parsed
from ptxcount.program import Entry

_CUDA = (".cu", ".cuh")
_CPP = (*_CUDA, ".h", ".hpp", ".hh", ".hxx", ".inl", ".inc", ".cpp", ".cc", ".cxx")

#: A kernel in PTX, and the place of its first line: the file by its number.
_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_PLACE = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)", re.MULTILINE)

_ANONYMOUS = "(anonymous namespace)::"

#: What may lie in the repository: `<name.h>` without a folder is the system's.
_INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"\n]+)"|<([^>\n]+/[^>\n]+)>)', re.MULTILINE)


class Parameter(NamedTuple):
    """What a kernel takes: its C++ type, its name, its bytes where the compiler says them, and its type as written."""

    kind: str
    name: str
    size: int | None = None
    written: str = ""


@dataclass(frozen=True)
class Unit:
    """What is compiled by itself: a file; or a text in Python, which `made` names as "module:NAME"."""

    file: str
    text: str
    line: int = 1
    made: str = ""
    include: tuple[str, ...] = ()
    whole: str = ""
    ptx: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Found:
    """A kernel: where it is defined, how `Kernel` finds it, and all that is known of it."""

    file: str
    line: int
    name: str  # with namespaces
    entry: str
    template: tuple[str, ...]  # "typename T"
    parameters: tuple[Parameter, ...]
    unit: Unit
    instances: tuple[str, ...] = ()  # what the compiler made of a template: "scale<float, 4>"
    most: int = 0  # threads of a block, where __launch_bounds__ says so
    seen: Unit | None = None  # what the compiler has made it of

    @property
    def place(self) -> tuple[str, int, str]:
        """What tells it from all others."""
        return self.file, self.line, self.name


@dataclass
class Finder:
    """The kernels of a repository; what is left out, with the reason; and the texts that were read."""

    root: Path
    options: Sequence[str] = ()
    left: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    _fit: dict[str, bool] = field(default_factory=dict)

    def kernels(self) -> list[Found]:
        """Return the kernels in the order of files and lines."""
        self.texts = dict(self._read())
        units = [*filter(None, map(self._unit, self.texts)), *self._units_of_python()]
        with warnings.catch_warnings(), ThreadPoolExecutor(os.cpu_count()) as pool:
            warnings.simplefilter("ignore", CompilerWarning)
            units = list(pool.map(self._compiled, units))
            alone = {each.file: each for each in units if each.ptx and not each.made}
            found: dict[tuple[str, int, str], Found] = {}
            for one in (one for unit in units for one in self._of_ptx(unit, alone)):
                known = found.setdefault(one.place, one)
                if known.unit is one.unit:
                    made = dict.fromkeys((*known.instances, *one.instances))
                    found[one.place] = replace(known, instances=tuple(made))
            found = {place: self._at_home(one, found.values()) for place, one in found.items()}
        lines = {place[:2] for place in found}
        found |= {one.place: one for unit in units for one in self._of_text(unit, lines)}
        return [found[place] for place in sorted(found)]

    def _read(self) -> Iterator[tuple[str, str]]:
        listed = git.run(self.root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        for file in sorted({os.fsdecode(each) for each in listed.split(b"\0")}):
            path = self.root / file
            if path.suffix in (*_CPP, ".py") and not file.isprintable():
                self.left.append(f"{file!a}: its name is no printable text; rename it")
            elif path.suffix in (*_CPP, ".py") and path.is_file():
                yield file, path.read_text(encoding="utf-8", errors="replace")
            elif path.suffix in _CUDA:
                self.left.append(f"{file}: it is deleted, or not checked out")

    def _unit(self, file: str) -> Unit | None:
        """Return a file with what it includes of the repository; None if there is no kernel in it."""
        text, include = self.texts[file], list[str]()
        if file.endswith(".py") or not (file.endswith(".cu") or "__global__" in text):
            return None
        source = self._source(file, text, include)
        while folder := next(self._lacking(file, source, include), ""):
            include.append(folder)
            source = self._source(file, text, include)
        found = Unit(file, text, include=tuple(include), whole=source.whole())
        return found if "__global__" in found.whole else None

    def _source(self, file: str, text: str, include: Sequence[str]) -> Source:
        folders = ((self.root / file).parent, *(self.root / each for each in include))
        return sources.with_options(Source(text, folders, name=file), self.options, self.root)[0]

    def _lacking(self, file: str, source: Source, include: Sequence[str]) -> Iterator[str]:
        """Yield folders of the repository that have what a source includes in vain."""
        read = [path.as_posix() for path in source.included()]
        for name in ("".join(found) for found in _INCLUDE.findall(source.whole())):
            having = [each for each in self.texts if f"/{each}".endswith(f"/{name}")]
            if having and not any(each.endswith(f"/{name}") for each in read):
                nearest = max(having, key=lambda each: len(os.path.commonpath([file, each])))
                folder = nearest.removesuffix(name).rstrip("/") or "."
                if folder not in include:
                    yield folder

    def _units_of_python(self) -> Iterator[Unit]:
        """Yield the CUDA C++ that a module of Python has as a text with a name; say which has none."""
        for file, text in self.texts.items():
            if not file.endswith(".py") or "__global__" not in text:
                continue
            try:
                tree = ast.parse(text)
            except SyntaxError as error:
                self.left.append(f"{file}:{error.lineno}: Python does not read it: {error.msg}")
                continue
            module = ".".join(PurePosixPath(file.removeprefix("src/")).with_suffix("").parts)
            assigned = [each for each in tree.body if isinstance(each, ast.Assign)]
            names = {id(each.value): one.id for each in assigned for one in each.targets if isinstance(one, ast.Name)}
            for node in ast.walk(tree):
                if not isinstance(node, ast.Constant) or "__global__" not in str(node.value):
                    continue
                if id(node) in names:
                    made = f"{module}:{names[id(node)]}"
                    yield Unit(file, str(node.value), node.lineno, made, whole=str(node.value))
                elif kernels := ", ".join(each.name for each in declarations(str(node.value))):
                    advice = "give the module a name for the text, or a function that returns it; see text= of Kernel"
                    self.left.append(f"{file}:{node.lineno}: {kernels} in a text without a name: {advice}")

    def _at_home(self, one: Found, every: Iterable[Found]) -> Found:
        """Return a kernel as its own file makes it, unless that lacks what instances of its templates need."""
        if one.seen is None or one.seen is one.unit:
            return one
        if one.unit.file not in self._fit:
            names = [name for each in every if each.unit is one.unit for name in each.instances]
            text = "".join(f"\nstatic auto instance_{n} = &{name};" for n, name in enumerate(names))
            alone = self._compiled(replace(one.unit, text=one.unit.text + text))
            self._fit[one.unit.file] = not alone.problem
        return one if self._fit[one.unit.file] else replace(one, unit=one.seen)

    def _compiled(self, unit: Unit) -> Unit:
        source = self._source(unit.file, unit.text, unit.include)
        options = sources.with_options(source, self.options, self.root)[1]
        try:
            return replace(unit, ptx=sources.compiled(source, (*options, "-lineinfo"), "sm_90", self.root))
        except (CompileError, NvccNotFoundError) as error:
            said = str(error).partition("\n")[0]
            return replace(unit, problem=said if said.startswith(unit.file) else f"{unit.file}: {said}")

    def _of_ptx(self, unit: Unit, alone: dict[str, Unit]) -> Iterator[Found]:
        """Yield the kernels of its PTX that the repository defines."""
        program = parsed(unit.ptx) if unit.ptx else None
        source = self._source(unit.file, unit.text, unit.include)
        included = source.included()
        named = _ENTRY.split(unit.ptx)[1:]
        for mangled, body in zip(named[::2], named[1::2], strict=True):
            place = _PLACE.search(body)
            if program is None or mangled not in program.entries or place is None:
                continue
            path, line = source.file_of(program.files[int(place[1])], included), int(place[2])
            if path is None and Path(program.files[int(place[1])]).name != "kernel.cu":
                continue
            file = os.path.relpath(path, self.root.resolve()) if path else unit.file
            text = included[path] if path else unit.text
            said = _declaration(text, source_name(mangled), line)
            name = cpp_name(mangled).replace(_ANONYMOUS, "")
            line = (said.line if said else line) + (unit.line - 1 if file == unit.file else 0)
            if "{" in name:
                self.left.append(f"{file}:{line}: {name}: the arguments of its template have no name")
                continue
            home = alone.get(file, unit) if not unit.made else unit
            if not set(re.findall(r"[A-Za-z_]\w*", name)) <= {*re.findall(r"\w+", home.whole), *_BUILT_IN}:
                home = unit
            entry, template = program.entries[mangled], tuple(filter(None, said.template)) if said else ()
            yield Found(
                file, line, name.partition("<")[0], _entry(unit.ptx, mangled, name), template,
                _parameters(mangled, entry, said), home, (name,) if "<" in name else (), entry.most, unit,
            )  # fmt: skip

    def _of_text(self, unit: Unit, known: set[tuple[str, int]]) -> Iterator[Found]:
        """Yield what its text declares and no PTX has: all where nvcc refuses it, else templates without instances."""
        for one in declarations(unit.text):
            line = one.line + unit.line - 1
            if (unit.file, line) in known:
                continue
            if unit.ptx and not one.template:
                self.left.append(f"{unit.file}:{line}: {one.name}: nvcc makes nothing of it; is it behind an #if?")
                continue
            named = enumerate(one.parameters)
            parameters = tuple(Parameter(kind, name or f"p{place}", None, kind) for place, (kind, name) in named)
            yield Found(unit.file, line, one.name, one.name, tuple(filter(None, one.template)), parameters, unit)


#: Words of template arguments that need no declaration.
_BUILT_IN = ("bool", "char", "double", "float", "int", "long", "short", "signed", "unsigned", "true", "false", "const")

#: The types of parameters of which only the bytes are known.
_UNKNOWN = {8: "void*", 4: "int", 2: "short", 1: "char"}


def _declaration(text: str, name: str, line: int) -> Declaration | None:
    """Return the declaration of that name that is nearest before a line; None if a macro makes it."""
    last = name.rpartition("::")[2]
    before = [each for each in declarations(text) if each.name.rpartition("::")[2] == last and each.line <= line]
    return before[-1] if before else None


def _parameters(mangled: str, entry: Entry, one: Declaration | None) -> tuple[Parameter, ...]:
    """Return types as the compiler knows them, but for those of textures; and names as a person wrote them."""
    sizes = [each.size for each in entry.parameters]
    written = one.parameters if one and len(one.parameters) == len(sizes) else [("", "")] * len(sizes)
    kinds = parameter_types(mangled) or [""] * len(sizes)
    return tuple(
        Parameter(
            kind if "Object_t" in kind else known or kind or _UNKNOWN.get(size or 0, ""), name or f"p{n}", size, kind
        )
        for n, ((kind, name), known, size) in enumerate(zip(written, kinds, sizes, strict=True))
    )


def _entry(ptx: str, mangled: str, name: str) -> str:
    """Return the shortest name that `Kernel` finds the kernel by."""
    if "<" in name:
        return name
    for each in (name.rpartition("::")[2], name, demangled(mangled)):
        with suppress(LaunchError):
            if "<" not in each and find_entry(ptx, each) == mangled:
                return each
    return mangled
