"""Reads how a host launches kernels, `name<T, 4><<<grid, block, shared>>>(arguments)`, as far as its text says it."""

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


class Launch(NamedTuple):
    """A launch of a kernel as its text has it; the block in numbers, and a template's arguments that are known."""

    name: str
    arguments: int
    template: tuple[str, ...]
    block: tuple[int, ...]
    shared: str
    text: str
    file: str


def launches(file: str, text: str) -> Iterator[Launch]:
    """Yield the launches in a text, with the kernel's name without namespaces."""
    text = _COMMENT.sub(" ", text)
    for found in _LAUNCH.finditer(text):
        name, template, configuration, arguments = (" ".join((each or "").split()) for each in found.groups())
        before = text[: found.start()]
        _, block, shared, *_ = [*split_list(configuration), "", ""]
        numbers = [_number(each, before) for each in _extents(block, before)]
        given = tuple(
            each if each in (*TYPES, "true", "false") else _number(each, before) for each in split_list(template)
        )
        threads = tuple(map(int, numbers)) if all(numbers) else ()
        shared = _number(shared, before) or shared
        yield Launch(name, len(split_list(arguments)), given, threads, shared, f"<<<{configuration}>>>", file)


def _extents(text: str, before: str) -> list[str]:
    """Return the texts of x, y and z, as far as they are given: of `dim3(a, b)`, or of a variable of that type."""
    variable = rf"\b(?:dim3|auto)\b[^;]*?\b{text}\s*(?:=\s*(?:dim3\s*)?)?([({{][^;]*);"
    declared = re.findall(variable, before) if text.isidentifier() else []
    text = split_list(declared[-1])[0] if declared else text
    found = re.fullmatch(r"(?:dim3\s*)?[({](.*)[)}]", text, re.DOTALL)
    return split_list(found[1]) if found else [text]


def _number(text: str, before: str, depth: int = 8) -> str:
    """Return what an expression of numbers and named constants is worth, as digits; empty where that is not known."""

    def value(word: re.Match[str]) -> str:
        name = word[0]
        known = re.findall(rf"\b{name}{_INITIAL}|#\s*define\s+{name}[ \t]+([^\n]+)", before)
        return f"({_number(''.join(known[-1]), before, depth - 1)})" if known and depth else name

    try:
        return str(int(expressions.evaluate(re.sub(r"\b[A-Za-z_]\w*", value, expressions.translate_cpp(text)), {})))
    except (ArgumentError, NameError, TypeError, ZeroDivisionError):
        return ""
