"""Lengths as texts over named extents, such as "w" and "2*(h+1)"; and functions that are called by their names."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from kernelwatch.errors import ArgumentError

#: What an expression is made of.
_ALLOWED = (
    *(ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant, ast.Load),
    *(ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.LShift, ast.USub),
)


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
