"""Launches in the host's code, `name<T, 4><<<grid, block, shared>>>(arguments)`, parsed from its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ptxcount.source.constants import VARIABLES, evaluate_constant
from ptxcount.source.cpp_types import TYPES
from ptxcount.source.names import split_list

_LAUNCH = re.compile(r"(\w+)\s*(?:<([^;{}]*)>)?\s*<<<(.*?)>>>\s*\(([^;]*)\)\s*;", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\\\n", re.DOTALL)


class HostLaunch(NamedTuple):
    """A launch of a kernel as its text has it; the block in numbers, and a template's arguments that are known."""

    name: str
    arguments: int
    template: tuple[str, ...]
    block: tuple[int, ...]
    shared: str
    text: str
    file: str


def iter_launches(file: str, text: str, included: str = "") -> Iterator[HostLaunch]:
    """Yield the launches in a text, with the kernel's name without namespaces; what it includes defines constants."""
    text = _COMMENT.sub(" ", text)
    for match in _LAUNCH.finditer(text):
        name, template, configuration, arguments = (" ".join((group or "").split()) for group in match.groups())
        preceding = f"{included}\n{text[: match.start()]}"
        _, block, shared, *_ = [*split_list(configuration), "", ""]
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
    """Return the texts of x, y and z, as far as they are given: of `dim3(a, b)`, or of a variable of that type."""
    variable = rf"\b(?:dim3|auto)\b[^;]*?\b{text}\s*(?:=\s*(?:dim3\s*)?)?([({{][^;]*);"
    declared = re.findall(variable, preceding) if text.isidentifier() else []
    text = split_list(declared[-1])[0] if declared else text
    match = re.fullmatch(r"(?:dim3\s*)?[({](.*)[)}]", text, re.DOTALL)
    return split_list(match[1]) if match else [text]


def _evaluate(text: str, preceding: str) -> str:
    """Evaluate an expression of numbers and variables; return digits, or nothing if it has no known value."""
    value = evaluate_constant(text, preceding, VARIABLES)
    return "" if value is None else str(value)
