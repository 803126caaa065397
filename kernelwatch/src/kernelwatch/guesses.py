"""What `kernelwatch init` guesses: the kernels that sources declare, and the rows that watch them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kernelwatch.store import git
from ptxcount.declarations import declarations

_NO_TYPE = re.compile(r"\b(const|__restrict__|restrict|struct|volatile)\b|[*&]|\[[^]]*\]")

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
    """A kernel in a file: its name with namespaces, the parameters of its template, and its own."""

    file: str
    qualified: str
    template: tuple[str, ...]
    parameters: tuple[Parameter, ...]

    @property
    def name(self) -> str:
        """Its name without namespaces."""
        return self.qualified.rpartition("::")[2]

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
        entry = self.qualified + (f"<{', '.join(values)}>" if values else "")
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
        for each in declarations((root / file).read_text(encoding="utf-8", errors="replace")):
            types = {one.partition("=")[0].split()[1] for one in each.template if _is_type(one)}
            parameters = tuple(_parameter(*one, types) for one in each.parameters)
            yield Found(file, each.name, tuple(each.template), parameters)


def _is_type(each: str) -> bool:
    return each.startswith(("typename ", "class "))


def _parameter(text: str, name: str, types: set[str]) -> Parameter:
    kind = " ".join(_NO_TYPE.sub(" ", text).split())
    dtype = "" if kind in types else _DTYPES.get(kind, kind)
    is_const = re.search(r"\bconst\b", text) is not None
    is_array = "*" in text or "[" in text
    return Parameter(name or "unnamed", dtype, kind in types or kind in _DTYPES, is_array, is_const)
