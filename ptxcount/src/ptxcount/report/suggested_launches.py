"""Kernels of a file, each with a launch to begin with: the output of `ptxcount FILE` alone, and of `ptxcount init`."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.kernel_counts import read_or_compile
from ..ptx.parser import parse_cached
from ..ptx.program import Program, Variable
from ..source.cpp_types import TYPES, VECTORS, strip_qualifiers
from ..source.cuda_compiler import ARCH
from ..source.declarations import Declaration, find_declarations, find_structs
from ..source.kernel_sources import is_ptx
from ..source.names import cpp_name, parameter_types, source_name
from .launch_guess import guess_block, guess_dynamic_shared, guess_template_argument

#: Structs of a source, as `find_structs` returns them.
Structs = Mapping[str, list[tuple[str, str, int]]]
#: Elements of an array, and the number of a dimension, for kernels over one dimension and over two.
_SIZES = {False: ("65536", "65536"), True: ("256,256", "256")}
#: Blocks of a grid over one dimension; over two, where a block of 32 x 8 threads has 32 rows of a tile, and 8 rows.
_GRIDS = {(False, False): "256", (True, True): "8,8", (True, False): "8,32"}


@dataclass(frozen=True)
class KernelOverview:
    """A kernel and a launch of it."""

    #: As in the source, or as the compiler calls it.
    declaration: Declaration
    #: Its name for ``--entry``.
    entry: str
    #: As on the command line.
    grid: str
    block: str
    #: A description each, a guess where only a person knows.
    arguments: list[str]
    #: Bytes of dynamic shared memory, which the kernel asks for; 0 if it does not.
    dynamic_shared: int = 0

    def format_command(self, file: Path, *, alone: bool, flags: str = "", arch: str = ARCH) -> str:
        """Format the command line that counts the kernel."""
        entry = [] if alone and not self.entry.endswith(">") else ["--entry", self.entry]
        entry += [f"--flags={flags}"] * bool(flags) + ["--arch", arch] * (arch != ARCH)
        shared = ["--dynamic-shared", str(self.dynamic_shared)] * bool(self.dynamic_shared)
        words = [*entry, "--grid", self.grid, "--block", self.block, *shared, *self.arguments]
        return shlex.join(["ptxcount", str(file), *words])


def list_kernels(file: Path, flags: str = "", arch: str = ARCH) -> list[KernelOverview]:
    """List the kernels of a file: those that its text declares, then those that only the compiler made.

    Raises as `read_or_compile`.
    """
    program = parse_cached(read_or_compile(file, flags, arch).ptx)
    entries = program.entries
    text = "" if is_ptx(file) else file.read_text(encoding="utf-8", errors="replace")
    declared_kernels, structs = find_declarations(text), find_structs(text)
    overviews = []
    for declaration in declared_kernels:
        entry_name = next((name for name in entries if source_name(name) == declaration.name), None)
        overviews.append(_make_overview(declaration, entry_name, program, structs))
    for entry_name, entry in entries.items():
        if source_name(entry_name) not in {declaration.name for declaration in declared_kernels}:
            kinds = parameter_types(entry_name) or []
            if len(kinds) != len(entry.parameters):  # Numba flattens the arrays that its names have
                kinds = [_describe_bytes(parameter) for parameter in entry.parameters]
            parameters = [(kind, f"p{n}") for n, kind in enumerate(kinds)]
            overviews.append(
                _make_overview(
                    Declaration(cpp_name(entry_name), 0, [], parameters, False), entry_name, program, structs
                )
            )
    return overviews


def _describe_bytes(parameter: Variable) -> str:
    """Describe a parameter of unknown type: a float, or its bytes."""
    if parameter.element.kind == "f" and parameter.size == parameter.element.size > 2:
        return "float" if parameter.size == 4 else "double"
    return f"{'hidden ' * parameter.hidden}{parameter.size or 8} bytes"


def _make_overview(
    declaration: Declaration, entry_name: str | None, program: Program, structs: Structs
) -> KernelOverview:
    template_arguments = [guess_template_argument(parameter) for parameter in declaration.template]
    types = {
        parameter.split()[-1].lstrip("."): value
        for parameter, value in zip(declaration.template, template_arguments, strict=True)
    }
    name = declaration.name
    if declaration.template:
        name = cpp_name(entry_name) if entry_name else f"{declaration.name}<{', '.join(template_arguments)}>"
    parameters = [(_substitute_types(kind, types), name) for kind, name in declaration.parameters]
    planar = declaration.planar or (declaration.line > 0 and sum(_is_extent(kind) for kind, _ in parameters) > 1)
    entry = program.entries[entry_name] if entry_name else None
    sizes = [parameter.size or 8 for parameter in entry.parameters] if entry else []
    sized_parameters = zip_longest(parameters, sizes[: len(parameters)])
    words = [_describe_argument(kind, name, planar, size or 8, structs) for (kind, name), size in sized_parameters]
    block = guess_block(
        declaration.planar,
        entry.max_threads if entry else declaration.max_threads,
        entry.exact_block if entry else None,
    )
    shared = guess_dynamic_shared(program, entry_name) if entry_name else 0
    grid = _GRIDS[declaration.planar, declaration.tiled]
    return KernelOverview(declaration, name, grid, ",".join(map(str, block)), words, shared)


def _substitute_types(kind: str, types: Mapping[str, str]) -> str:
    return re.sub(r"\w+", lambda word: types.get(word[0], word[0]), kind)


_GUESS_NOTE = (
    "Grids, blocks, sizes, numbers and arguments of templates are guesses: put in yours. "
    "Arguments are described by: ptxcount --help"
)

#: Kind of description for an array, by the type of a parameter.
_HANDLES = {"cudaTextureObject_t": "texture", "cudaSurfaceObject_t": "surface", "CUtensorMap": "tensor(16,16)"}

#: Types of numbers; of one that is not known, by its bytes.
_SCALARS = TYPES | {"4 bytes": "int32", "2 bytes": "int16", "1 bytes": "int8"}


def _describe_argument(kind: str, name: str, planar: bool, size: int, structs: Structs) -> str:
    """Describe an argument of a type."""
    kind = strip_qualifiers(kind).removeprefix("hidden ")
    count, number = _SIZES[planar]
    base = kind.rstrip("* []").strip()
    vector = VECTORS.fullmatch(base)
    if kind in _HANDLES:
        return f"{name}={_HANDLES[kind]}:float32[256,256]"
    if kind.count("*") > 1:
        pointee = _describe_argument(kind.replace("*", "", 1), name, planar, size, structs).partition("=")[2]
        return f"{name}={json.dumps([_parse_nested(pointee)] * 2)}"
    if "*" in kind or "[" in kind:
        if vector:
            return f"{name}={TYPES[vector[1]]}[{count},{4 if vector[2] == '4' else vector[2]}]"
        return f"{name}={TYPES[base]}[{count}]" if base in TYPES else f"{name}=uint8[1048576]=zeros"
    if kind == "8 bytes":  # most such parameters are pointers
        return f"{name}=float32[262144]"
    if members := _describe_members(base, planar, structs):
        return f"{name}={json.dumps(members)}"
    if base not in _SCALARS:
        return f"{name}=bytes:{'00' * size}"
    return f"{name}={_SCALARS[base]}:{number if _is_extent(kind) else '1'}"


def _describe_members(struct: str, planar: bool, structs: Structs) -> dict[str, Any]:
    """Describe the members of a struct; none if it is not known whole."""
    members: dict[str, Any] = {}
    for kind, name, length in structs.get(struct, ()):
        word = _describe_argument(kind, name, planar, 0, structs).partition("=")[2]
        if word == "bytes:":  # of a type that is not known
            return {}
        member = _parse_nested(word)
        members[name] = [member] * length if length else member
    return members


def _parse_nested(word: str) -> Any:
    """Parse a description that stands within another: there, a list is no pointer but an array in place."""
    if word.startswith("["):
        return {"*": json.loads(word)}
    return json.loads(word) if word.startswith("{") else word


def _is_extent(kind: str) -> bool:
    """Tell if a parameter of this type may be a size."""
    dtype = np.dtype(_SCALARS.get(strip_qualifiers(kind), "bool"))
    return dtype.kind in "iu" and dtype.itemsize > 2


def format_overview(file: Path, flags: str = "", arch: str = ARCH) -> str:
    """Format the kernels of a file with a command for each."""
    overviews = list_kernels(file, flags, arch)
    plural = "s" if len(overviews) != 1 else ""
    lines = [f"{file}: {len(overviews)} kernel{plural}"]
    for kernel in overviews:
        place = f"  (line {kernel.declaration.line})" if kernel.declaration.line else ""
        lines += [
            "",
            f"{kernel.declaration}{place}",
            f"  {kernel.format_command(file, alone=len(overviews) == 1, flags=flags, arch=arch)}",
        ]
    if overviews:
        lines += ["", _GUESS_NOTE]
    return "\n".join(lines)
