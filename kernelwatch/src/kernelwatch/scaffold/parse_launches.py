"""Launches in host code, `name<T, 4><<<grid, block, shared>>>(arguments)`, parsed from its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kernelwatch.errors import ArgumentError
from kernelwatch.kernel import expressions
from ptxcount.source.cpp_types import TYPES
from ptxcount.source.names import split_list

_LAUNCH = re.compile(r"(\w+)\s*(?:<([^;{}]*)>)?\s*<<<(.*?)>>>\s*\(([^;]*)\)\s*;", re.DOTALL)
_INITIAL = expressions.INITIALIZER.format()
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\\\n", re.DOTALL)


class HostLaunch(NamedTuple):
    """A launch of a kernel: its text, the block in numbers, and the known template arguments."""

    name: str
    arguments: int
    template: tuple[str, ...]
    block: tuple[int, ...]
    shared: str
    text: str
    file: str


def iter_launches(file: str, text: str, included: str = "") -> Iterator[HostLaunch]:
    """Yield the launches in a text, with the kernel's name without namespaces; `included` may define constants."""
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
    """Return the given texts of x, y and z, from `dim3(a, b)` or a variable of type dim3."""
    variable = rf"\b(?:dim3|auto)\b[^;]*?\b{text}\s*(?:=\s*(?:dim3\s*)?)?([({{][^;]*);"
    declared = re.findall(variable, preceding) if text.isidentifier() else []
    text = split_list(declared[-1])[0] if declared else text
    match = re.fullmatch(r"(?:dim3\s*)?[({](.*)[)}]", text, re.DOTALL)
    return split_list(match[1]) if match else [text]


def _evaluate(text: str, preceding: str, depth: int = 8) -> str:
    """Evaluate an expression of numbers and named constants; return digits, or an empty text if it is unknown."""

    def value(word: re.Match[str]) -> str:
        name = word[0]
        definitions = re.findall(rf"\b{name}{_INITIAL}|#\s*define\s+{name}[ \t]+([^\n]+)", preceding)
        return f"({_evaluate(''.join(definitions[-1]), preceding, depth - 1)})" if definitions and depth else name

    try:
        return str(int(expressions.evaluate(re.sub(r"\b[A-Za-z_]\w*", value, expressions.translate_cpp(text)), {})))
    except (ArgumentError, NameError, TypeError, ZeroDivisionError):
        return ""
