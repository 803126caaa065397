"""Expressions for lengths over named extents, such as "w" and "2*(h+1)", and calls of a project's functions by name."""

import ast
import inspect
from collections.abc import Callable, Mapping
from functools import cache
from types import CodeType
from typing import Any

from kernelwatch.errors import ArgumentError, KernelwatchError

#: Allowed nodes of an expression's syntax tree.
_ALLOWED_NODES = (
    *(ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant, ast.Load),
    *(ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.LShift, ast.USub),
)

#: Bits of the largest integer argument, without its sign.
_MAX_BITS = 64


@cache
def _parse_expression(text: str) -> ast.Expression:
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        tree = None
    if tree is None or not all(isinstance(node, _ALLOWED_NODES) for node in ast.walk(tree.body)):
        raise ArgumentError(
            f"{text!r} is not a length; write names, numbers, + - * // % << and parentheses, without spaces"
        )
    return tree


def find_names(text: str) -> list[str]:
    """Return each name in an expression once. Raises ArgumentError if the text is not an expression."""
    return list(dict.fromkeys(node.id for node in ast.walk(_parse_expression(text)) if isinstance(node, ast.Name)))


@cache
def _compile_expression(text: str) -> CodeType:
    return compile(_parse_expression(text), text, "eval")


def evaluate(text: str, variables: Mapping[str, Any]) -> Any:
    """Return the value of an expression; `variables` must have all names in the expression.

    Raises ArgumentError if the text is not an expression, has no value for these variables, or needs more than 64 bits.
    """
    code = _compile_expression(text)
    try:
        value = eval(code, {}, dict(variables))  # only allowed nodes
        if isinstance(value, int) and value.bit_length() > _MAX_BITS:
            raise OverflowError(f"it needs more than {_MAX_BITS} bits")
        return value
    except (ArithmeticError, MemoryError, TypeError, ValueError) as error:
        problem = str(error) or "it needs too much memory"
        used = {name: variables[name] for name in find_names(text)}
        raise ArgumentError(f"{text!r} has no value{format_extents(used)}: {problem}") from None


def format_extents(extents: Mapping[str, Any]) -> str:
    """Return the end of a phrase, such as " for n=5, m=9"; empty without extents."""
    return f" for {', '.join(f'{name}={extent}' for name, extent in extents.items())}" if extents else ""


def list_parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of a function's parameters, except that of `**`."""
    return [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]


def list_required(function: Callable[..., Any]) -> set[str]:
    """Return the names of a function's parameters that have no default, except those of `*` and `**`."""
    parameters = inspect.signature(function).parameters.values()
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = [parameter for parameter in parameters if parameter.kind not in variadic]
    return {parameter.name for parameter in named if parameter.default is parameter.empty}


def call_with_known(function: Callable[..., Any], variables: Mapping[str, Any]) -> Any:
    """Call a function with the variables that its parameters name, or with all variables if it takes `**`."""
    kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
    names = variables if inspect.Parameter.VAR_KEYWORD in kinds else list_parameters(function)
    return function(**{name: variables[name] for name in names if name in variables})


def evaluate_function(function: Callable[..., Any], variables: Mapping[str, Any]) -> Any:
    """Call a user's function with `call_with_known`; return its result.

    Raises ArgumentError if the function raises an error, so that only one kernel fails. KernelwatchError and
    MemoryError are passed on.
    """
    try:
        return call_with_known(function, variables)
    except (KernelwatchError, MemoryError):
        raise
    except Exception as error:
        raise ArgumentError(f"{locate_function(function)} raises {type(error).__name__}: {error}") from error


def locate_function(function: object) -> str:
    """Return a phrase with file and line of a function; for other objects, their representation."""
    code = getattr(function, "__code__", None)
    return repr(function) if code is None else f"the function at {code.co_filename}:{code.co_firstlineno}"
