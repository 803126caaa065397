"""What `kernelwatch init` guesses: the kernels that sources declare, and the rows that watch them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kernelwatch.store import git

_KERNEL = re.compile(
    r"(template\s*<(?P<template>[^>]*)>\s*)?(extern\s+\"C\"\s+)?__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?void\s+"
    r"(?:__launch_bounds__\s*\([^)]*\)\s*)?(?P<name>\w+)\s*\((?P<parameters>[^)]*)\)\s*\{",
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BRACE = re.compile(r"namespace\s+([\w:]+)\s*\{|([{}])")
_NO_TYPE = re.compile(r"\b(const|__restrict__|restrict|struct|volatile)\b|[*&]|\b\w+$")

#: C++ types -> NumPy's dtypes.
_DTYPES = {
    "float": "float32", "double": "float64", "__half": "float16", "half": "float16", "__nv_bfloat16": "bfloat16",
    "char": "int8", "short": "int16", "int": "int32", "long": "int64", "long long": "int64",
    "unsigned char": "uint8", "unsigned short": "uint16", "unsigned": "uint32", "unsigned int": "uint32",
    "unsigned long long": "uint64", "size_t": "uint64", "uint8_t": "uint8", "int32_t": "int32", "uint32_t": "uint32",
    "int64_t": "int64",
}  # fmt: skip

#: What integers are called that are the lengths of rows, of columns, and of arrays of one axis.
_WIDTHS = ("w", "width", "cols", "columns", "ncols", "nx")
_HEIGHTS = ("h", "height", "rows", "nrows", "ny")
_LENGTHS = ("n", "size", "count", "length")

_WATCHED = """\
# TODO: shapes, dtypes, the grid and the sizes are guesses; reference=a function of NumPy arrays verifies the outputs.
{name} = Kernel(
    "{name}",
    file="{file}",{more}
    arguments=[
        {arguments},
    ],
    block={block},
    over={over},
)
globals().update(watch({name}, {{{axes}}}))
"""


class Parameter(NamedTuple):
    """What a kernel takes. Its dtype is NumPy's, "" where a template gives it, the C++ type where it is no number."""

    name: str
    dtype: str
    is_number: bool
    is_array: bool
    is_const: bool

    def written(self, shape: str) -> str:
        """Return what declares it; an array has the shape."""
        dtype = f', "{self.dtype if self.is_number else f"TODO: the dtype of {self.dtype}"}"' if self.dtype else ""
        if self.is_array:
            return f'{"inputs" if self.is_const else "in_and_out"}("{self.name}", "{shape}"{dtype})'
        return f'"{self.name}"' if self.is_number else f'scalar("{self.name}"{dtype})'


class Found(NamedTuple):
    """A kernel in a file: its namespaces, its name, the parameters of its template, and its own."""

    file: str
    scope: str
    name: str
    template: tuple[str, ...]
    parameters: tuple[Parameter, ...]

    @property
    def over(self) -> list[str]:
        """The lengths of its arrays, a row's first: a width and a height, or one."""
        integers = [each.name for each in self.parameters if not each.is_array and "int" in each.dtype]
        first = (next((one for one in integers if one.lower() in names), "") for names in (_WIDTHS, _HEIGHTS, _LENGTHS))
        width, height, length = first
        return [width, height] if width and height else [length or [*integers, "n"][0]]

    @property
    def more(self) -> str:
        """Where its includes lie, if that is a folder of this name, and its entry point, if that is not its name."""
        before, folder, _ = self.file.partition("include/")
        include = f'\n    include=["{before}include"],' if folder else ""
        values = [each.partition("=")[2].strip() or ("{T}" if _is_type(each) else "1") for each in self.template]
        entry = f"{self.scope}{self.name}" + (f"<{', '.join(values)}>" if values else "")
        return include + (f'\n    entry="{entry}",' if entry != self.name else "")

    def written(self) -> str:
        """Return what watches it."""
        shape = " ".join(reversed(self.over))
        numbers = [each.name for each in self.parameters if each.is_number and not each.is_array]
        sizes = {name: 256 if len(self.over) > 1 else 4096 for name in self.over}
        return _WATCHED.format(
            name=self.name,
            file=self.file,
            more=self.more,
            arguments=",\n        ".join(each.written(shape) for each in self.parameters),
            block=256 if len(self.over) == 1 else (32, 8),
            over=str(tuple(self.over)).replace("'", '"'),
            axes=", ".join(f'"{name}": [{sizes.get(name, 1)}]' for name in dict.fromkeys([*self.over, *numbers])),
        )


def kernels(root: Path) -> Iterator[Found]:
    """Yield the kernels of all files that git tracks and nvcc compiles."""
    listed = git.text(root, "ls-files", "--cached", "--others", "--exclude-standard", "*.cu", "*.cuh")
    for file in listed.splitlines():
        text = _COMMENT.sub("", (root / file).read_text(encoding="utf-8", errors="replace"))
        for match in _KERNEL.finditer(text):
            template, own = (_split(match[each] or "") for each in ("template", "parameters"))
            types = {each.partition("=")[0].split()[1] for each in template if _is_type(each)}
            parameters = tuple(_parameter(each, types) for each in own)
            yield Found(file, _scope(text[: match.start()]), match["name"], tuple(template), parameters)


def _split(text: str) -> list[str]:
    return [each for each in re.split(r"\s*,\s*", text.strip()) if each]


def _is_type(each: str) -> bool:
    return each.startswith(("typename ", "class "))


def _scope(before: str) -> str:
    """Return the namespaces that are open at the end of a text, as "linalg::detail::"."""
    opened: list[str] = []
    for match in _BRACE.finditer(before):
        if match[2] == "}":
            del opened[-1:]
        else:
            opened.append(f"{match[1]}::" if match[1] else "")
    return "".join(opened)


def _parameter(text: str, types: set[str]) -> Parameter:
    kind = " ".join(_NO_TYPE.sub(" ", text).split())
    dtype = "" if kind in types else _DTYPES.get(kind, kind)
    is_const = re.search(r"\bconst\b", text) is not None
    return Parameter(re.findall(r"\w+", text)[-1], dtype, kind in types or kind in _DTYPES, "*" in text, is_const)
