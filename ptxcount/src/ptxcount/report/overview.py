"""The kernels of a file, each with a launch to begin with: what `ptxcount FILE` alone prints, and `ptxcount init`."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np

from ..engine.launch import compilation_of
from ..ptx.parser import parsed
from ..ptx.program import Program, Variable
from ..source.cpp_types import TYPES, VECTORS, plain
from ..source.declarations import Declaration, declarations
from ..source.names import cpp_name, parameter_types, source_name
from ..source.nvcc import ARCH
from ..source.sources import is_ptx
from .launch_guess import guess_block, guess_dynamic_shared, guess_template_argument

#: Elements of an array, and the number of a dimension, for kernels over one dimension and over two.
_SIZES = {False: ("65536", "65536"), True: ("256,256", "256")}
#: Blocks of a grid, for both.
_GRIDS = {False: "256", True: "8,32"}


@dataclass(frozen=True)
class Overview:
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

    def command(self, file: Path, *, alone: bool, flags: str = "", arch: str = ARCH) -> str:
        """The command line that counts it."""
        entry = [] if alone and not self.entry.endswith(">") else ["--entry", self.entry]
        entry += [f"--flags={flags}"] * bool(flags) + ["--arch", arch] * (arch != ARCH)
        shared = ["--dynamic-shared", str(self.dynamic_shared)] * bool(self.dynamic_shared)
        words = [*entry, "--grid", self.grid, "--block", self.block, *shared, *self.arguments]
        return shlex.join(["ptxcount", str(file), *words])


def kernels(file: Path, flags: str = "", arch: str = ARCH) -> list[Overview]:
    """The kernels of a file: what its text declares, and what the compiler made beside that.

    Raises as `launch.compilation_of`.
    """
    program = parsed(compilation_of(file, flags, arch).ptx)
    entries = program.entries
    declared = declarations("" if is_ptx(file) else file.read_text(encoding="utf-8", errors="replace"))
    found = []
    for one in declared:
        made = next((each for each in entries if source_name(each) == one.name), None)
        found.append(_overview(one, made, program))
    for made, entry in entries.items():
        if source_name(made) not in {each.name for each in declared}:
            kinds = parameter_types(made) or [_bytes_of(each) for each in entry.parameters]
            parameters = [(kind, f"p{n}") for n, kind in enumerate(kinds)]
            found.append(_overview(Declaration(cpp_name(made), 0, [], parameters, False), made, program))
    return found


def _bytes_of(parameter: Variable) -> str:
    """Describe a parameter of which no type is known."""
    return f"{'hidden ' * parameter.hidden}{parameter.size or 8} bytes"


def _overview(one: Declaration, made: str | None, program: Program) -> Overview:
    given = [guess_template_argument(each) for each in one.template]
    types = {each.split()[-1].lstrip("."): value for each, value in zip(one.template, given, strict=True)}
    name = one.name
    if one.template:
        name = cpp_name(made) if made else f"{one.name}<{', '.join(given)}>"
    parameters = [(_instance(kind, types), name) for kind, name in one.parameters]
    planar = one.planar or (one.line > 0 and sum(_is_extent(kind) for kind, _ in parameters) > 1)
    entry = program.entries[made] if made else None
    sizes = [each.size or 8 for each in entry.parameters] if entry else []
    every = zip_longest(parameters, sizes[: len(parameters)])
    words = [_word(kind, name, planar, size or 8) for (kind, name), size in every]
    block = guess_block(one.planar, entry.most if entry else one.most, entry.exact if entry else None)
    shared = guess_dynamic_shared(program, made) if made else 0
    return Overview(one, name, _GRIDS[one.planar], ",".join(map(str, block)), words, shared)


def _instance(kind: str, types: Mapping[str, str]) -> str:
    return re.sub(r"\w+", lambda word: types.get(word[0], word[0]), kind)


_GUESSES = (
    "Sizes, numbers and arguments of templates are guesses: put in yours. Arguments are described by: ptxcount --help"
)

#: What an array is given as, by the type of a parameter that describes it.
_HANDLES = {"cudaTextureObject_t": "texture", "cudaSurfaceObject_t": "surface", "CUtensorMap": "tensor(16,16)"}

#: Types of numbers; of one that is not known, by its bytes.
_SCALARS = TYPES | {"4 bytes": "int32", "2 bytes": "int16", "1 bytes": "int8"}


def _word(kind: str, name: str, planar: bool, size: int = 8) -> str:
    """An argument of a type, as a description."""
    kind = plain(kind).removeprefix("hidden ")
    count, number = _SIZES[planar]
    base = kind.rstrip("* []").strip()
    vector = VECTORS.fullmatch(base)
    if kind in _HANDLES:
        return f"{name}={_HANDLES[kind]}:float32[256,256]"
    if kind.count("*") > 1:
        one = _word(kind.replace("*", "", 1), name, planar).partition("=")[2]
        return f"{name}={json.dumps([one, one])}"
    if "*" in kind or "[" in kind:
        if vector:
            return f"{name}={TYPES[vector[1]]}[{count},{4 if vector[2] == '4' else vector[2]}]"
        return f"{name}={TYPES[base]}[{count}]" if base in TYPES else f"{name}=uint8[1048576]=zeros"
    if kind == "8 bytes":  # most such parameters are pointers
        return f"{name}=float32[262144]"
    if base not in _SCALARS:
        return f"{name}=bytes:{'00' * size}"
    return f"{name}={_SCALARS[base]}:{number if _is_extent(kind) else '1'}"


def _is_extent(kind: str) -> bool:
    """Whether a parameter of this type may be the size of something."""
    dtype = np.dtype(_SCALARS.get(plain(kind), "bool"))
    return dtype.kind in "iu" and dtype.itemsize > 2


def overview(file: Path, flags: str = "", arch: str = ARCH) -> str:
    """The kernels of a file with a command for each."""
    found = kernels(file, flags, arch)
    shown = "s" if len(found) != 1 else ""
    lines = [f"{file}: {len(found)} kernel{shown}"]
    for each in found:
        place = f"  (line {each.declaration.line})" if each.declaration.line else ""
        lines += [
            "",
            f"{each.declaration}{place}",
            f"  {each.command(file, alone=len(found) == 1, flags=flags, arch=arch)}",
        ]
    if found:
        lines += ["", _GUESSES]
    return "\n".join(lines)
