"""Integer constants that C++ text defines, and expressions of them."""

import ast
import re
from contextlib import suppress

_ARITHMETIC = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Constant, ast.operator, ast.unaryop)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
#: The suffix of an integer, and a cast to a type of integers, by its name or by `static_cast`.
_INTEGER = re.compile(r"\b(0[xX][\da-fA-F']+|0[bB][01']+|\d[\d']*)[uUlLzZ]*\b")
_TYPE = r"(?:(?:std::)?(?:unsigned|signed|int|long|short|char|size_t|u?int\d+_t)\s*)+"
_CAST = re.compile(rf"\bstatic_cast\s*<\s*{_TYPE}>|(?<!sizeof)\(\s*{_TYPE}\)|\b{_TYPE}(?=[({{])")

#: A macro, and an initializer: `= 4`, `= {4}`, `{4}` or `(4)`. The value is the group that is not empty.
_MACRO = r"#[ \t]*define[ \t]+{0}[ \t]+([^\n]+)"
_INITIALIZER = r"\b{0}\s*(?:(?:=(?!=)\s*\{{?|\{{)\s*([^;,{{}}]+)|\(([^;{{}}]+)\)\s*(?=[;,]))"
#: Definitions of a name by macros and constants, and also by variables; to be formatted with the name.
CONSTANTS, VARIABLES = rf"{_MACRO}|\bconst(?:expr)?\b[^;()]*?{_INITIALIZER}", rf"{_MACRO}|{_INITIALIZER}"


def translate_integers(text: str) -> str:
    """Translate a C++ expression of integers to Python: without comments, suffixes, casts and braces."""
    text = _CAST.sub("", _COMMENT.sub(" ", text)).replace("{", "(").replace("}", ")")
    return _INTEGER.sub(lambda number: number[1].replace("'", ""), text).replace("/", "//").strip()


def evaluate_constant(text: str, source: str, definitions: str = CONSTANTS, depth: int = 8) -> int | None:
    """Evaluate an expression of numbers and of constants that a source defines; None if its value is not known.

    `definitions` is CONSTANTS or VARIABLES. Of several of one name the last counts.
    """

    def find_value(word: re.Match[str]) -> str:
        values = re.findall(definitions.format(word[0]), source)
        if not (values and depth):
            return word[0]
        return f"({evaluate_constant(''.join(values[-1]), source, definitions, depth - 1)})"

    expression = re.sub(r"\b[A-Za-z_]\w*", find_value, translate_integers(text))
    with suppress(SyntaxError, ZeroDivisionError, TypeError, ValueError):
        tree = ast.parse(expression, mode="eval")
        if all(isinstance(node, _ARITHMETIC) for node in ast.walk(tree)):
            return int(eval(compile(tree, "", "eval"), {}))  # only of numbers
    return None
