"""Lengths as texts over named extents, such as "w" and "2*(h+1)"; and functions that are called by their names."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from kernelwatch.errors import ArgumentError

#: What an expression is made of.
_ALLOWED = (
    *(ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant, ast.Load),
    *(ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.LShift, ast.USub),
)

#: C++: the suffix of an integer, and a cast to a type of integers, by its name or by `static_cast`.
_INTEGER = re.compile(r"\b(0[xX][\da-fA-F']+|0[bB][01']+|\d[\d']*)[uUlLzZ]*\b")
_TYPE = r"(?:(?:std::)?(?:unsigned|signed|int|long|short|char|size_t|u?int\d+_t)\s*)+"
_CAST = re.compile(rf"\bstatic_cast\s*<\s*{_TYPE}>|(?<!sizeof)\(\s*{_TYPE}\)|\b{_TYPE}(?=[({{])")

#: How C++ gives a variable its value, which is the first group that is not empty: `= 4`, `= {4}`, `{4}` or `(4)`.
INITIAL = r"\s*(?:(?:=(?!=)\s*\{{?|\{{)\s*([^;,{{}}]+)|\(([^;{{}}]+)\)\s*(?=[;,]))"


def from_cpp(text: str) -> str:
    """Return a C++ expression of integers as this module reads it: without suffixes, casts and braces."""
    text = _CAST.sub("", text).replace("{", "(").replace("}", ")")
    return _INTEGER.sub(lambda number: number[1].replace("'", ""), text).replace("/", "//").strip()


@cache
def _tree(text: str) -> ast.Expression:
    try:
        found = ast.parse(text, mode="eval")
    except SyntaxError:
        found = None
    if found is None or not all(isinstance(node, _ALLOWED) for node in ast.walk(found.body)):
        raise ArgumentError(f"{text!r} is no length; write names, numbers, + - * // % and parentheses, without spaces")
    return found


def names(text: str) -> list[str]:
    """Return the names in an expression, in their order. Raises ArgumentError where it is none."""
    return list(dict.fromkeys(node.id for node in ast.walk(_tree(text)) if isinstance(node, ast.Name)))


def value(text: str, known: Mapping[str, Any]) -> Any:
    """Return what an expression is worth, all of whose names are known. Raises ArgumentError where it is none."""
    return eval(compile(_tree(text), text, "eval"), {}, dict(known))  # of these nodes, and of no others


def asked(function: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters that a function takes one by one."""
    return [each.name for each in inspect.signature(function).parameters.values() if each.kind is not each.VAR_KEYWORD]


def called(function: Callable[..., Any], known: Mapping[str, Any]) -> Any:
    """Call a function with what it names of all that is known; with everything if it takes any name."""
    kinds = {each.kind for each in inspect.signature(function).parameters.values()}
    wanted = known if inspect.Parameter.VAR_KEYWORD in kinds else asked(function)
    return function(**{name: known[name] for name in wanted if name in known})
