"""Reads how a host launches kernels, `name<T, 4><<<grid, block, shared>>>(arguments)`, as far as its text says it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from kernelwatch.errors import ArgumentError
from kernelwatch.kernel import expressions
from ptxcount.names import split
from ptxcount.typed import TYPES

_LAUNCH = re.compile(r"(?:(\w+)\s*(<[^;{}]*>)?\s*)<<<")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_CAST = r"\(\s*(?:const |unsigned |long |std::)*(?:int|long|unsigned|size_t|u?int\d+_t|float|double)\s*\)"
_NOT_COUNTED = re.compile(rf"{_CAST}|\bstatic_cast\s*<[^>]*>|\bstd::|(?<=\d)(?:\.0*[fF]?|[uUlL]+)(?![\w.])")
_SIZE = re.compile(r"\bsizeof\s*\(\s*([\w ]+?)\s*\)")
_MEMBER = re.compile(r"\b(\w+)\s*\.\s*([xyz])\b")
_CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_WORD = re.compile(r"[A-Za-z_]\w*")

#: What projects call the function that divides and rounds up.
_DIVIDES = re.compile(r"(?i)(ceil_?div|div_?ceil|div_?(round_?)?up|c_?div|ceiling_?div)")

#: How far names are followed.
_DEPTH = 12


@dataclass(frozen=True)
class Launch:
    """A launch: what its file says before it, the text of each part, and the file."""

    file: str
    before: str
    template: tuple[str, ...]
    configuration: tuple[str, ...]
    arguments: tuple[str, ...]

    def geometry(
        self, parameters: tuple[str, ...]
    ) -> tuple[tuple[str, ...] | None, tuple[int, ...] | None, str | None]:
        """Return the grid, the block and the bytes of dynamic shared memory; None for what is not known.

        Lengths are expressions over the names of the kernel's parameters; a block is numbers; no shared memory is "".
        """
        pairs = zip(self.arguments, parameters, strict=False)
        known = {given: name for given, name in pairs if _WORD.fullmatch(given)}
        grid, block, (shared,) = (
            [self.expression(each, known) for each in self._extents(text)] for text in (*self.configuration, "0")[:3]
        )
        lengths = tuple(each for each in grid if each)
        threads = tuple(int(each) for each in block if each and each.isdigit())
        whole = len(lengths) == len(grid), len(threads) == len(block)
        return lengths if whole[0] else None, threads if whole[1] else None, "" if shared == "0" else shared

    def expression(self, text: str, known: Mapping[str, str]) -> str | None:
        """Return what a C++ expression is in terms of some known names; None where that is not known."""
        try:
            found = ast.unparse(ast.parse(self._expanded(text, known, _DEPTH), mode="eval"))
            return found if expressions.names(found) else str(int(expressions.value(found, {})))
        except (ArgumentError, SyntaxError, ZeroDivisionError, KeyError, IndexError, RecursionError):
            return None

    def _expanded(self, text: str, known: Mapping[str, str], depth: int) -> str:
        text = _NOT_COUNTED.sub("", _SIZE.sub(lambda found: str(self._size(found[1])), text))
        text = _MEMBER.sub(lambda found: f"({self._extents(found[1])['xyz'.index(found[2])]})", text)
        if depth == 0:
            raise ArgumentError(text)
        if call := _CALL.search(text):
            end = _closing(text, call.end() - 1)
            inside = self._called(call[1], split(text[call.end() : end]))
            return self._expanded(f"{text[: call.start()]}({inside}){text[end + 1 :]}", known, depth - 1)

        def value(found: re.Match[str]) -> str:
            if found[0] in known:
                return known[found[0]]
            return f"({self._expanded(self._definition(found[0]), known, depth - 1)})"

        return re.sub("/+", "//", _WORD.sub(value, text)).strip()

    def _size(self, kind: str) -> int:
        """Return the bytes of a type, or of what it stands for. Raises KeyError."""
        other = re.findall(rf"\btypedef\s+([\w ]+?)\s+{kind}\s*;|\busing\s+{kind}\s*=\s*([\w ]+?)\s*;", self.before)
        return np.dtype(TYPES[kind] if kind in TYPES or not other else TYPES["".join(other[-1])]).itemsize

    def _definition(self, name: str) -> str:
        """Return what a name stands for: the last value that the text gives it. Raises KeyError."""
        found = re.findall(rf"\b{name}\s*(?:=(?!=)|\{{)\s*([^;}}]+)|#\s*define\s+{name}[ \t]+([^\n]+)", self.before)
        if not found:
            raise KeyError(name)
        return split(found[-1][0] or found[-1][1])[0]

    def _called(self, name: str, given: list[str]) -> str:
        """Return what a macro makes, or a function that divides and rounds up. Raises KeyError."""
        if macro := re.search(rf"#\s*define\s+{name}\(([^)]*)\)[ \t]+([^\n]+)", self.before):
            values = dict(zip(split(macro[1]), given, strict=False))
            return _WORD.sub(lambda found: f"({values[found[0]]})" if found[0] in values else found[0], macro[2])
        if _DIVIDES.fullmatch(name) and len(given) == 2:
            return f"(({given[0]}) + ({given[1]}) - 1) / ({given[1]})"
        if name == "ceil" and len(given) == 1 and (quotient := re.fullmatch(r"(.*\w)\s*/\s*(\w+)", given[0])):
            return f"(({quotient[1]}) + {quotient[2]} - 1) / {quotient[2]}"
        raise KeyError(name)

    def _extents(self, text: str) -> list[str]:
        """Return the texts of x, y and z, as far as they are given: of `dim3(a, b)`, or of a variable of that type."""
        declared = [*re.finditer(rf"\bdim3\b[^;()]*?\b{re.escape(text)}\s*(?:=\s*(?:dim3)?\s*)?[({{]", self.before)]
        found = declared[-1] if declared else re.match(r"(?:dim3\s*)?\{|dim3\s*\(", text)
        if found is None:
            return [text]
        return split(found.string[found.end() : _closing(found.string, found.end() - 1)])


def launches(file: str, text: str) -> Iterator[tuple[str, Launch]]:
    """Yield the launches in a text, with the kernel's name without namespaces."""
    text = _COMMENT.sub(" ", text).replace("\\\n", " ")
    for match in _LAUNCH.finditer(text):
        opening = re.compile(r">>>\s*\(").search(text, match.end())
        configuration = tuple(split(text[match.end() : opening.start()])) if opening else ()
        if opening and len(configuration) > 1:
            template = tuple(split(match[2][1:-1])) if match[2] else ()
            arguments = tuple(split(text[opening.end() : _closing(text, opening.end() - 1)]))
            yield match[1], Launch(file, text[: match.start()], template, configuration, arguments)


def _closing(text: str, place: int) -> int:
    """Return the place of the bracket that closes the one at a place; the end if none does."""
    depth = 0
    for at in range(place, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0:
            return at
    return len(text)
