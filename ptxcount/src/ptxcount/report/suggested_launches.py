"""Kernels of a file with suggested launches: the output of ``ptxcount FILE``, and of ``ptxcount init``."""

import json
import math
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.kernel_counts import compile_entry, read_or_compile
from ..ptx.parser import parse_cached
from ..ptx.program import Program, Variable
from ..source.cpp_types import TYPES, find_base, split_type, strip_qualifiers
from ..source.cuda_compiler import ARCH
from ..source.declarations import Declaration, find_declarations, guess_instance
from ..source.kernel_sources import is_ptx
from ..source.names import cpp_name, find_unique_name, parameter_types, source_name, split_list
from ..util.architectures import STATIC_SHARED
from ..util.grammar import count_noun
from .kernel_uses import ROW, KernelUses, describe_element
from .launch_guess import guess_block, guess_dynamic_shared

#: Guessed extent of an axis, for 1-D, 2-D and 3-D kernels. With a bounds check, it is no multiple of the block, to test
#: the check. It is a multiple of 8, so that rows of 4-byte elements stay sector-aligned.
_THREADS, _BOUNDED_THREADS = {1: 65536, 2: 256, 3: 64}, {1: 65528, 2: 248, 3: 56}
#: Array length in a kernel without a bounds check; and iterations of a loop that is not over an array.
_UNBOUNDED, _ITERATIONS = 1 << 20, 4
#: Rows of a tile, if the text does not determine them.
_TILE = 32


@dataclass(frozen=True)
class KernelOverview:
    """A kernel and a suggested launch."""

    #: Declaration from the source, or made from the compiled kernel.
    declaration: Declaration
    #: The kernel's name for ``--entry``.
    entry: str
    #: Grid and block as on the command line, such as ``32,8``.
    grid: str
    block: str
    #: Texts of the arguments, with guessed sizes and numbers.
    arguments: list[str]
    #: Bytes of dynamic shared memory; 0 if the kernel has no dynamic array.
    dynamic_shared: int = 0
    #: Texts of ``__constant__`` variables without a value in the source, like ``arguments``.
    variables: Sequence[str] = ()

    def format_command(self, file: Path, *, alone: bool, flags: str = "", arch: str = ARCH) -> str:
        """Format the command line that counts the kernel. ``alone``: the file has no other kernel."""
        words = [] if alone and not self.entry.endswith(">") else ["--entry", self.entry]
        words += [f"--flags={flags}"] if flags else []
        words += ["--arch", arch] if arch != ARCH else []
        words += ["--grid", self.grid, "--block", self.block]
        words += ["--dynamic-shared", str(self.dynamic_shared)] if self.dynamic_shared else []
        for variable in self.variables:
            words += ["--variable", variable]
        return shlex.join(["ptxcount", str(file), *words, *self.arguments])


def list_kernels(file: Path, flags: str = "", arch: str = ARCH, name: str | None = None) -> list[KernelOverview]:
    """List the kernels of a file: first kernels that the text declares, then kernels that only the PTX has.

    With a name, list only that kernel. Raises as `compile_entry`.
    """
    chosen = None
    if name:
        compilation, chosen = compile_entry(file, name, flags, arch)
    else:
        compilation = read_or_compile(file, flags, arch)
    program = parse_cached(compilation.ptx)
    text = "" if is_ptx(file) else file.read_text(encoding="utf-8", errors="replace")
    overviews, listed = [], set()
    for declaration, instance in _iter_instances(find_declarations(text), program):
        listed.add(instance)
        if chosen in (None, instance):
            overviews.append(_make_overview(declaration, instance, program, text))
    for entry_name, entry in program.entries.items():
        if chosen in (None, entry_name) and entry_name not in listed:
            kinds = parameter_types(entry_name) or []
            if len(kinds) != len(entry.parameters):  # Numba passes each array as several parameters
                kinds = [_describe_bytes(parameter) for parameter in entry.parameters]
            parameters = [(kind, f"p{n}") for n, kind in enumerate(kinds)]
            declaration = Declaration(cpp_name(entry_name), 0, [], parameters, False)
            overviews.append(_make_overview(declaration, entry_name, program))
    return overviews


def _iter_instances(declarations: Sequence[Declaration], program: Program) -> Iterator[tuple[Declaration, str | None]]:
    """Yield each declaration with the mangled name of each instance; a template without instances with None.

    Declarations without a kernel in the PTX are left out, such as those in a false ``#if``.
    """

    def has_types(declaration: Declaration, entry: str) -> bool:
        kinds = [kind for kind, _ in declaration.parameters]
        return source_name(entry) == declaration.name and [*map(split_type, kinds)] == types[entry]

    types = {entry: [*map(split_type, parameter_types(entry) or [])] for entry in program.entries}
    overloads = [declaration for declaration in declarations if not declaration.template]
    owners = {entry: overload for entry in types for overload in overloads if has_types(overload, entry)}
    for declaration in declarations:
        names = [name for name in types if source_name(name) == declaration.name]
        names = [name for name in names if cpp_name(name).endswith(">") is bool(declaration.template)]
        count = len(declaration.parameters)  # a parameter pack counts as one
        equal = [name for name in names if len(program.entries[name].parameters) == count]
        own = [name for name in equal if owners.get(name, declaration) is declaration]
        instances: Sequence[str | None] = (equal or names or [None]) if declaration.template else own[:1]
        yield from ((declaration, instance) for instance in instances)


def _describe_bytes(parameter: Variable) -> str:
    """Return "float" or "double" for a PTX parameter of such a type, else as in "8 bytes" or "hidden 8 bytes"."""
    if parameter.element.kind == "f" and parameter.size == parameter.element.size > 2:
        return "float" if parameter.size == 4 else "double"
    return f"{'hidden ' if parameter.hidden else ''}{parameter.size or 8} bytes"


def _make_overview(
    declaration: Declaration, entry_name: str | None, program: Program, source: str = ""
) -> KernelOverview:
    """Suggest a launch of a declared kernel; ``entry_name`` is None without instances, ``source`` empty for PTX."""
    kernel_name = declaration.name
    if declaration.template:
        kernel_name = cpp_name(entry_name) if entry_name else guess_instance(declaration)
    template_arguments = _match_template_arguments(declaration, kernel_name)
    constants = [
        f"\nconstexpr int {name} = {value};" for name, value in template_arguments.items() if value[:1].isdigit()
    ]
    uses = KernelUses(declaration, "".join([source, *constants]))
    guesser = _ArgumentGuesser(uses)
    max_threads, exact_block, parameters = declaration.max_threads, None, list[Variable]()
    shared = STATIC_SHARED if re.search(r"\bextern\s+__shared__", declaration.body) else 0
    if entry_name:  # the PTX tells more than the declaration
        entry, kernel_name = program.entries[entry_name], find_unique_name(program.entries, entry_name, kernel_name)
        max_threads, exact_block, parameters = entry.max_threads, entry.exact_block, entry.parameters
        shared = guess_dynamic_shared(program, entry_name)
    words = []
    for n, (kind, name) in enumerate(declaration.parameters):
        substituted = re.sub(r"\w+", lambda word: template_arguments.get(word[0], word[0]), kind)
        size = parameters[n].size if n < len(parameters) else None
        words.append(guesser.describe_argument(substituted, name or f"p{n}", size or 8))
    needs_plane = declaration.planar and (uses.is_used("y") or not uses.is_used("x"))
    block = guess_block(needs_plane, max_threads, exact_block, uses.find_block())
    return KernelOverview(
        declaration,
        kernel_name,
        guesser.guess_grid(block),
        ",".join(map(str, block)),
        words,
        shared,
        [f"{name}={dtype}[{count}]=ones" for name, (dtype, count) in uses.find_constants().items()],
    )


def _match_template_arguments(declaration: Declaration, kernel_name: str) -> dict[str, str]:
    """Return the template arguments in a kernel's name by parameter: ``k<float, 4>`` -> {"T": "float", "N": "4"}."""
    names = [parameter.partition("=")[0].split()[-1].lstrip(".") for parameter in declaration.template]
    values = split_list(kernel_name.partition("<")[2].removesuffix(">"))
    return dict(zip(names, values, strict=False))


_GUESS_NOTE = (
    "Grids, blocks, sizes, numbers and template arguments are guesses: replace them; if a launch fails, start there. "
    "Arguments are described by: ptxcount --help"
)
#: Prefix of the argument text of a descriptor, by parameter type.
_HANDLES = {"cudaTextureObject_t": "texture", "cudaSurfaceObject_t": "surface", "CUtensorMap": "tensor(16,16)"}
#: Dtypes of scalar types, and of unknown types by size.
_SCALARS = TYPES | {"4 bytes": "int32", "2 bytes": "int16", "1 bytes": "int8"}


class _ArgumentGuesser:
    def __init__(self, uses: KernelUses) -> None:
        self.uses, self._declaration = uses, uses.declaration
        declaration = uses.declaration
        extents = [name for kind, name in declaration.parameters if _is_extent(kind) and self._is_size(name)]
        #: Declarations made from PTX have line 0 and no body.
        self._is_matrix = declaration.planar or (declaration.line > 0 and len(extents) > 1)
        #: A one-dimensional kernel may index a square matrix: then one scalar bounds threads, and is a pitch.
        self._is_square = not self._is_matrix and any(uses.is_bound(name) and uses.is_pitch(name) for name in extents)
        self._is_3d = "blockIdx.z" in uses.body
        rank = 2 if self._is_matrix or self._is_square else 1
        if self._is_3d:
            rank = 3
        #: The guessed length of each axis of an array, and the lengths of all axes as a text, such as "248,248".
        self._extent = (_BOUNDED_THREADS if uses.is_bounded else _THREADS)[rank]
        self._shape = ",".join([str(self._extent)] * rank)
        if declaration.line > 0 and not uses.is_bounded and not self._is_matrix:
            self._shape = str(_UNBOUNDED)

    def _is_size(self, name: str) -> bool:
        """Tell if an integer may be a size: no iteration count; with a bounds check, only a bound or a pitch."""
        uses = self.uses
        if name in uses.iteration_counts:
            return False
        return not uses.is_bounded or uses.is_bound(name) or uses.is_pitch(name)

    def guess_grid(self, block: tuple[int, ...]) -> str:
        """Guess the grid that covers the guessed extent, as a text such as "8,8"."""
        if self._declaration.planar or self._is_3d:
            grid = [self._count_blocks(self.uses.find_step("x", block) or block[0]), 1]
            if self._declaration.planar:
                grid[1] = self._count_blocks(self.uses.find_step("y", block) or self._guess_rows(block))
            if self._is_3d:
                grid.append(self._extent)
        else:
            elements, pitch = (self._extent**2, self._extent) if self._is_matrix else (self._extent, 1)
            step = self.uses.find_step("x", block, pitch)
            grid = [self._extent if step == ROW else -(-elements // (step or math.prod(block)))]
        return ",".join(map(str, grid))

    def _count_blocks(self, step: int) -> int:
        return -(-self._extent // step)

    def _guess_rows(self, block: tuple[int, ...]) -> int:
        if len(block) == 1:
            return 1
        return _TILE if self._declaration.tiled else block[1]

    def _guess_number(self, name: str) -> int:
        uses = self.uses
        if name in uses.iteration_counts:
            return _ITERATIONS
        if uses.is_pitch(name) and not (self._is_matrix or uses.is_bound(name)):
            return 2
        return self._extent if self._is_size(name) else 1

    def describe_argument(self, kind: str, name: str, size: int) -> str:
        """Guess the text of an argument from C++ type, name and size: ("float*", "x", 8) -> "x=float32[65528]"."""
        kind = strip_qualifiers(kind).removeprefix("hidden ")
        base = find_base(kind)
        if kind in _HANDLES:
            return f"{name}={_HANDLES[kind]}:float32[256,256]"
        if kind.count("*") > 1:
            pointee = self.describe_argument(kind.replace("*", "", 1), name, size).partition("=")[2]
            return f"{name}={json.dumps([_parse_nested(pointee)] * 2)}"
        if "*" in kind or "[" in kind:
            if not (element := describe_element(base, self.uses.structs)):
                return f"{name}=uint8[{4 * _UNBOUNDED}]=zeros"
            dtype, numbers = element
            fill = "=random(1)" if np.dtype(dtype).kind in "iu" and self.uses.is_index(name) else ""
            shape = f"{self._shape},{numbers}" if numbers > 1 else self._shape
            return f"{name}={dtype}[{shape}]{fill}"
        if kind == "8 bytes":  # most such parameters are pointers
            return f"{name}=float32[262144]"
        if members := self._describe_members(base):
            return f"{name}={json.dumps(members)}"
        if re.search(rf"\bstruct\s+{base}\b[^;{{]*{{[^}}]*\*", self.uses.source):
            return f"{name}={{}}"  # no guess: bytes of zeros would be null pointers
        if base not in _SCALARS:
            return f"{name}=bytes:{'00' * size}"
        return f"{name}={_SCALARS[base]}:{self._guess_number(name) if _is_extent(kind) else '1'}"

    def _describe_members(self, struct: str) -> dict[str, Any]:
        """Return the texts of a struct's members by name; an empty dict if a member's type is unknown."""
        members: dict[str, Any] = {}
        for member in self.uses.structs.get(struct, ()):
            word = self.describe_argument(member.kind, member.name, 0).partition("=")[2]
            if word == "bytes:":  # unknown type
                return {}
            value = _parse_nested(word)
            members[member.name] = [value] * member.length if member.length else value
        return members


def _parse_nested(word: str) -> Any:
    """Convert an argument's text to its form within structs and lists: '["a"]' -> {"*": ["a"]}, a pointer."""
    if word.startswith("["):
        return {"*": json.loads(word)}
    return json.loads(word) if word.startswith("{") else word


def _is_extent(kind: str) -> bool:
    """Tell if a parameter of this type may be a size: an integer of at least 32 bits."""
    dtype = np.dtype(_SCALARS.get(strip_qualifiers(kind), "bool"))
    return dtype.kind in "iu" and dtype.itemsize > 2


def format_overview(file: Path, flags: str = "", arch: str = ARCH, name: str | None = None) -> str:
    """Format the kernels of a file, or only the named one, with a command for each."""
    overviews = list_kernels(file, flags, arch, name)
    lines = [f"{file}: {count_noun(len(overviews), 'kernel')}"]
    for kernel in overviews:
        unknown = "" if is_ptx(file) else "  (parameter names unknown: a macro or another file declares the kernel)"
        place = f"  (line {kernel.declaration.line})" if kernel.declaration.line else unknown
        lines += [
            "",
            f"{kernel.declaration}{place}",
            f"  {kernel.format_command(file, alone=len(overviews) == 1 and not name, flags=flags, arch=arch)}",
        ]
    if overviews:
        lines += ["", _GUESS_NOTE]
    return "\n".join(lines)
