"""The kernels of a file, each with a launch to begin with: what `ptxcount FILE` alone prints, and `ptxcount init`."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .declarations import Declaration, declarations
from .launch import compilation_of, is_ptx
from .names import cpp_name, parameter_types, source_name
from .nvcc import ARCH
from .parser import parsed
from .typed import TYPES, VECTORS, plain

#: Elements of an array, and the number of a dimension, for kernels over one dimension and over two.
_SIZES = {False: ("65536", "65536"), True: ("256,256", "256")}
_WHERE = {False: ("256", "256"), True: ("8,32", "32,8")}


@dataclass(frozen=True)
class Overview:
    """A kernel and a launch of it."""

    #: The kernel as declared.
    shown: str
    #: Its name for ``--entry``.
    entry: str
    #: Where it is declared.
    line: int | None
    #: As on the command line.
    grid: str
    block: str
    #: A description each; ``?`` where only a person knows.
    arguments: list[str]

    def command(self, file: Path, *, alone: bool, flags: str = "", arch: str = ARCH) -> str:
        """The command line that counts it."""
        entry = [] if alone and not self.entry.endswith(">") else ["--entry", self.entry]
        entry += [f"--flags={flags}"] * bool(flags) + ["--arch", arch] * (arch != ARCH)
        words = [*entry, "--grid", self.grid, "--block", self.block, *self.arguments]
        return shlex.join(["ptxcount", str(file), *words])


def kernels(file: Path, flags: str = "", arch: str = ARCH) -> list[Overview]:
    """The kernels of a file: what its text declares, and what the compiler made beside that.

    Raises as `launch.compilation_of`.
    """
    entries = parsed(compilation_of(file, flags, arch).ptx).entries
    text = "" if is_ptx(file) else file.read_text(encoding="utf-8", errors="replace")
    declared = declarations(text)
    sizes_of = {name: [each.size or 8 for each in entry.parameters] for name, entry in entries.items()}
    found = [_declared(each, sizes_of) for each in declared]
    names = {each.name for each in declared}
    for mangled in entries:
        if source_name(mangled) not in names:
            kinds = parameter_types(mangled) or ["" for _ in sizes_of[mangled]]
            sizes = sizes_of[mangled]
            words = [_word(kind, f"p{n}", False, size) for n, (kind, size) in enumerate(zip(kinds, sizes, strict=True))]
            shown = f"{cpp_name(mangled)}({', '.join(k or f'{s} bytes' for k, s in zip(kinds, sizes, strict=True))})"
            found.append(Overview(shown, cpp_name(mangled), None, *_WHERE[False], words))
    return found


def _declared(one: Declaration, entries: dict[str, list[int]]) -> Overview:
    given = [_template_argument(each) for each in one.template]
    types = {each.split()[-1].lstrip("."): value for each, value in zip(one.template, given, strict=True)}
    made = [each for each in entries if source_name(each) == one.name]
    entry = one.name
    if one.template:
        entry = cpp_name(made[0]) if made else f"{one.name}<{', '.join(given)}>"
    sizes = entries[made[0]] if made else []
    extents = sum(_is_extent(_instance(kind, types)) for kind, _ in one.parameters)
    words = []
    for place, (kind, name) in enumerate(one.parameters):
        size = sizes[place] if place < len(sizes) else None
        words.append(_word(_instance(kind, types), name, one.planar or extents > 1, size))
    return Overview(str(one), entry, one.line, *_WHERE[one.planar], words)


def _instance(kind: str, types: Mapping[str, str]) -> str:
    return re.sub(r"\w+", lambda word: types.get(word[0], word[0]), kind)


def _template_argument(parameter: str) -> str:
    head, _, default = parameter.partition("=")
    if default.strip():
        return default.strip()
    return "float" if re.match(r"(typename|class)\b", head) else "true" if head.startswith("bool") else "16"


#: What an array is given as, by the type of a parameter that describes it.
_HANDLES = {"cudaTextureObject_t": "texture", "cudaSurfaceObject_t": "surface", "CUtensorMap": "tensor(16,16)"}


def _word(kind: str, name: str, planar: bool, size: int | None = None) -> str:
    """An argument of a type, as a description."""
    kind = plain(kind)
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
    if not kind and size == 8:  # PTX says nothing of its type: most such parameters are pointers
        return f"{name}=float32[262144]"
    dtype = TYPES.get(base) or ("" if kind else {4: "int32", 2: "int16", 1: "int8"}.get(size or 0))
    if not dtype:
        return f"{name}=bytes:{'00' * (size or 8)}"
    return f"{name}={dtype}:{number if _is_extent(kind) else '1'}"


def _is_extent(kind: str) -> bool:
    """Whether a parameter of this type may be the size of something."""
    dtype = np.dtype(TYPES.get(plain(kind) or "int", "bool"))
    return dtype.kind in "iu" and dtype.itemsize > 2


def overview(file: Path, flags: str = "", arch: str = ARCH) -> str:
    """The kernels of a file with a command for each."""
    found = kernels(file, flags, arch)
    shown = "s" if len(found) != 1 else ""
    lines = [f"{file}: {len(found)} kernel{shown}"]
    for each in found:
        place = "" if each.line is None else f"  (line {each.line})"
        lines += ["", f"{each.shown}{place}", f"  {each.command(file, alone=len(found) == 1, flags=flags, arch=arch)}"]
    if found:
        lines += ["", "Sizes and numbers are guesses: put in yours. Arguments are described by: ptxcount --help"]
    return "\n".join(lines)
