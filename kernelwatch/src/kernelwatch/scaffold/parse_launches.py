"""Launches in host code, `name<T, 4><<<grid, block, shared>>>(arguments)`, parsed from its text."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ptxcount.source.constants import VARIABLES, evaluate_constant
from ptxcount.source.cpp_types import TYPES
from ptxcount.source.names import split_list

_LAUNCH = re.compile(r"(\w+)\s*(?:<([^;{}]*)>)?\s*<<<(.*?)>>>\s*\(([^;]*)\)\s*;", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\\\n", re.DOTALL)


class HostLaunch(NamedTuple):
    """A launch of a kernel in host code."""

    name: str
    arguments: int  # number of arguments
    template: tuple[str, ...]  # template arguments, "" if unknown
    block: tuple[int, ...]  # threads of a block, empty if unknown
    shared: str  # bytes of dynamic shared memory, or their expression
    text: str  # execution configuration
    file: str


def iter_launches(file: str, text: str, included: str = "") -> Iterator[HostLaunch]:
    """Yield the launches in the text of a file.

    `included` is the text of the file's includes, which may define constants. Names of kernels have no namespaces.
    """
    text = _COMMENT.sub(" ", text)
    for match in _LAUNCH.finditer(text):
        name, template, configuration, arguments = (" ".join((group or "").split()) for group in match.groups())
        preceding = f"{included}\n{text[: match.start()]}"
        grid, block, shared, *_ = [*split_list(configuration), "", ""]
        if grid.isidentifier() and (extents := _split_extents(grid, preceding)) != [grid]:
            configuration = f"dim3({', '.join(extents)}){configuration.removeprefix(grid)}"
        numbers = [_evaluate(extent, preceding) for extent in _split_extents(block, preceding)]
        template_arguments = tuple(
            argument if argument in (*TYPES, "true", "false") else _evaluate(argument, preceding)
            for argument in split_list(template)
        )
        threads = tuple(map(int, numbers)) if all(numbers) else ()
        shared = _evaluate(shared, preceding) or shared
        yield HostLaunch(
            name, len(split_list(arguments)), template_arguments, threads, shared, f"<<<{configuration}>>>", file
        )


def _split_extents(text: str, preceding: str) -> list[str]:
    """Return the extents of a grid or block: "dim3(a, b)" -> ["a", "b"], "n" -> ["n"].

    A variable has the extents of its last declaration in `preceding`.
    """
    # `dim3 grid = dim3(a, b);`, `dim3 grid(a, b);`, `dim3 grid{a, b};`, or `auto grid(a, b);` if `text` is "grid".
    variable = rf"\b(?:dim3|auto)\b[^;]*?\b{text}\s*(?:=\s*(?:dim3\s*)?)?([({{][^;]*);"
    declared = re.findall(variable, preceding) if text.isidentifier() else []
    text = split_list(declared[-1])[0] if declared else text
    match = re.fullmatch(r"(?:dim3\s*)?[({](.*)[)}]", text, re.DOTALL)
    return split_list(match[1]) if match else [text]


def _evaluate(text: str, preceding: str) -> str:
    """Return the value of an expression as a text; empty if it is unknown."""
    value = evaluate_constant(text, preceding, VARIABLES)
    return "" if value is None else str(value)
