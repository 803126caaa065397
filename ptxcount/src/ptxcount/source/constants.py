"""Integer constants that a C++ text defines, and expressions of such constants."""

import ast
import operator
import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
#: An integer with its suffix; the name of an integer type; a cast to one, by ``static_cast``, ``(int)`` or ``int(``.
_INTEGER = re.compile(r"\b(0[xX][\da-fA-F']+|0[bB][01']+|\d[\d']*)[uUlLzZ]*\b")
_TYPE = r"(?:(?:std::)?(?:unsigned|signed|int|long|short|char|size_t|u?int\d+_t)\s*)+"
_CAST = re.compile(rf"\bstatic_cast\s*<\s*{_TYPE}>|(?<!sizeof)\(\s*{_TYPE}\)|\b{_TYPE}(?=[({{])")
#: A macro, and an initializer: `= 4`, `= {4}`, `{4}` or `(4)`. The value is the group that is not empty.
_MACRO = r"#[ \t]*define[ \t]+{0}[ \t]+([^\n]+)"
_INITIALIZER = r"\b{0}\s*(?:(?:=(?!=)\s*\{{?|\{{)\s*([^;,{{}}]+)|\(([^;{{}}]+)\)\s*(?=[;,]))"
#: Patterns of a name's definitions: by macros and constants; also by variables. ``{0}`` stands for the name.
CONSTANTS, VARIABLES = rf"{_MACRO}|\bconst(?:expr)?\b[^;()]*?{_INITIALIZER}", rf"{_MACRO}|{_INITIALIZER}"


def _divide(dividend: float, divisor: float) -> float:
    """Divide as C++ does: the quotient of integers is rounded toward zero."""
    if isinstance(dividend, float) or isinstance(divisor, float):
        return dividend / divisor
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _shift_left(value: int, count: int) -> int:
    if not 0 <= count < 64:
        raise ValueError
    return value << count


#: Operators of Python's syntax tree -> their functions in C++.
_OPERATORS: dict[type[ast.operator | ast.unaryop], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: _divide,
    ast.Mod: lambda dividend, divisor: dividend - _divide(dividend, divisor) * divisor,
    ast.LShift: _shift_left, ast.RShift: operator.rshift, ast.Invert: operator.invert,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip


def remove_comments(text: str) -> str:
    """Return a C++ text with a space instead of each comment; ``//`` in a string literal counts as a comment, too."""
    return _COMMENT.sub(" ", text)


@lru_cache(maxsize=4096)  # without it, constants of constants of constants take exponential time
def evaluate_constant(
    text: str, source: str, definitions: str = CONSTANTS, depth: int = 8, *, is_strict: bool = False
) -> int | None:
    """Evaluate an expression of numbers and of constants that a source defines; None if unknown.

    The value of the expression, and of each constant in it, is cut to an integer: with N = 1.5, ``N * 2`` is 2. Casts
    to integer types do nothing: ``int(1.5) * 2`` is 3. Values of more than 64 bits, and of very long expressions, are
    unknown. ``definitions`` is a pattern with ``{0}`` for a name: `CONSTANTS` or `VARIABLES`. Of several definitions of
    a name, the last counts; with ``is_strict``, different definitions make the value unknown. ``depth`` limits
    constants defined by constants.
    """

    def find_value(word: re.Match[str]) -> str:
        values = re.findall(definitions.format(word[0]), source)
        if not (values and depth) or (is_strict and len({*values}) > 1):
            return word[0]
        last = "".join(values[-1])  # only one group of the pattern is not empty
        value = evaluate_constant(last, source, definitions, depth - 1, is_strict=is_strict)
        return f"({value})"

    python = _CAST.sub("", remove_comments(text)).replace("{", "(").replace("}", ")")
    python = _INTEGER.sub(lambda number: number[1].replace("'", ""), python).strip()  # without suffixes
    expression = re.sub(r"\b[A-Za-z_]\w*", find_value, python)
    with suppress(SyntaxError, ArithmeticError, TypeError, ValueError, KeyError, RecursionError, MemoryError):
        value = int(_evaluate_node(ast.parse(expression, mode="eval").body))
        return value if abs(value) < 1 << 64 else None
    return None


def _evaluate_node(node: ast.expr) -> Any:
    """Evaluate numbers and `_OPERATORS` in a syntax tree; raise `ValueError` or `KeyError` for anything else."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp():
            return _OPERATORS[type(node.op)](_evaluate_node(node.operand))
        case ast.BinOp():
            return _OPERATORS[type(node.op)](_evaluate_node(node.left), _evaluate_node(node.right))
    raise ValueError
