"""PTX text to tokens (PTX ISA, "Syntax")."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, NoReturn, TypeVar

from ..util.errors import PtxSyntaxError
from ..util.grammar import join_choices

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|//[^\n]*|/\*.*?\*/)
    | (?P<string>"[^"\n]*")
    | (?P<dot>\.\w+(?:::\w+)*)
    | (?P<number>0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b|0[xX][0-9a-fA-F]+U?\b|0[bB][01]+U?\b
                |\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+\b|\d+U?\b)
    | (?P<name>[%$_A-Za-z][\w$]*)
    | (?P<mark>[{}\[\]()<>,;:=+\-!|@~*/&^?\\])
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
#: Braces, and the tokens in which braces are text.
_BRACES = re.compile(r"""\{|\}|//[^\n]*|/\*.*?\*/|"[^"\n]*\"""", re.DOTALL)
#: Decimal integers below 10**19 up to a closing brace.
_INTEGERS = re.compile(r"\s*(?:0|[1-9]\d{0,18})(?:\s*,\s*(?:0|[1-9]\d{0,18}))*\s*\}", re.ASCII)
_Item = TypeVar("_Item")
_FILE = re.compile(r"""\.file\s+(\d+)\s+"([^"\n]*)\"""", re.ASCII)


class Token(NamedTuple):
    """One token: kind (string, dot, number, name, mark or end), text, line, and offset in the PTX."""

    kind: str
    text: str
    line: int
    start: int


def parse_number(word: str, line: int) -> int | float:
    """Return the value of a literal: an integer in base 2, 8, 10 or 16, a ``0f`` or ``0d`` bit pattern, or a decimal.

    Raises `PtxSyntaxError` with the line if the word is no literal, or has more than 64 bits.
    """
    prefix, digits = word[:2].lower(), word[2:].rstrip("U")
    try:
        if prefix == "0f":
            return float(struct.unpack(">f", bytes.fromhex(digits))[0])
        if prefix == "0d":
            return float(struct.unpack(">d", bytes.fromhex(digits))[0])
        if prefix in ("0x", "0b"):
            value = int(digits, 16 if prefix == "0x" else 2)
        elif "." in word or "e" in word.lower():
            return float(word)
        else:
            value = int(word.rstrip("U"), 8 if word[0] == "0" and len(word) > 1 else 10)
    except ValueError:
        raise PtxSyntaxError(
            line, f"{word!r} is not a number of PTX, such as 12, 014, 0x1F, 1.5 or 0f3F800000"
        ) from None
    if value >= 2**64:
        raise PtxSyntaxError(line, f"{word!r} has more than 64 bits")
    return value


class Stream:
    """The tokens of a text from offset ``start`` up to ``stop``, read in order. Errors name the line.

    Tokens are made on demand: the text that `skip_block` skips is only searched for braces. ``line`` is the line at
    ``start``.
    """

    def __init__(self, text: str, start: int = 0, stop: int | None = None, line: int = 1) -> None:
        self._text, self._position, self._stop = text, start, len(text) if stop is None else stop
        self._line = line
        self._tokens: list[Token] = []
        self._at = 0

    def _read(self) -> None:
        """Read tokens up to ``{``, ``}`` or ``;``. The end of the text adds a token of kind ``end``."""
        text, position, line, stop = self._text, self._position, self._line, self._stop
        word, token_count = "", len(self._tokens)
        while position < stop and word not in ("{", "}", ";"):
            match = _TOKEN.match(text, position, stop)
            if match is None:
                if len(self._tokens) > token_count:  # fail when these tokens are taken
                    break
                raise PtxSyntaxError(line, f"unexpected character {text[position]!r}")
            kind, word = str(match.lastgroup), match.group()
            if kind != "space":
                self._tokens.append(Token(kind, word, line, position))
            line += word.count("\n")
            position = match.end()
            self._position, self._line = position, line
        if position >= stop:
            self._tokens.append(Token("end", "end of file", line, stop))

    def peek(self, ahead: int = 0) -> Token:
        """Return the next token, or the token ``ahead`` positions after it, without taking any."""
        place = self._at + ahead
        while place >= len(self._tokens):
            if self._tokens and self._tokens[-1].kind == "end":
                return self._tokens[-1]
            self._read()
        return self._tokens[place]

    def next(self) -> Token:
        """Take the next token; at the end, always the ``end`` token."""
        token = self.peek()
        self._at += 1
        return token

    def accept(self, *texts: str) -> bool:
        """Take the next token if its text is one of ``texts``; tell if it was taken."""
        if self.peek().text not in texts:
            return False
        self._at += 1
        return True

    def fail(self, expected: str) -> NoReturn:
        """Raise `PtxSyntaxError`: another token was expected here."""
        raise PtxSyntaxError(self.peek().line, f"expected {expected}, found {self.peek().text!r}")

    def expect(self, text: str) -> None:
        """Take the next token; raise `PtxSyntaxError` if the token has another text."""
        if not self.accept(text):
            self.fail(repr(text))

    def take(self, kind: str, expected: str) -> str:
        """Take the next token and return its text; raise `PtxSyntaxError` for a token of another kind."""
        if self.peek().kind != kind:
            self.fail(expected)
        return self.next().text

    def take_number(self) -> int | float:
        """Take a literal with its sign; return the signed value."""
        sign = -1 if self.accept("-") else 1
        line = self.peek().line
        return sign * parse_number(self.take("number", "a number"), line)

    def take_integer(self) -> int:
        """Take an integer literal with its sign; return the signed value. Raise `PtxSyntaxError` for a float."""
        line, value = self.peek().line, self.take_number()
        if not isinstance(value, int):
            raise PtxSyntaxError(line, f"expected an integer, found {value}")
        return value

    def take_integers(self) -> list[int]:
        """Take a list of decimal integers in braces, such as ``{1, 2}``, without tokens; return [] for another text."""
        if self.peek().text != "{" or self._at < len(self._tokens) - 1:
            return []
        match = _INTEGERS.match(self._text, self._position, self._stop)
        if match is None:
            return []
        self._position, self._line = match.end(), self._line + match[0].count("\n")
        self._at += 1
        return [int(word) for word in match[0].rstrip("}").split(",")]

    def parse_list(self, parse: Callable[[], _Item]) -> list[_Item]:
        """Parse items that are separated by commas."""
        items = [parse()]
        while self.accept(","):
            items.append(parse())
        return items

    def skip_past(self, *stops: str) -> str:
        """Skip tokens up to and including the first whose text is one of ``stops``; return that text."""
        while self.peek().text not in stops:
            if self.next().kind == "end":
                self.fail(join_choices(map(repr, stops)))
        return self.next().text

    def skip_line(self, line: int) -> None:
        """Skip the tokens of a line."""
        while self.peek().line == line and self.peek().kind != "end":
            self.next()

    def skip_block(self) -> Callable[[], Stream]:
        """Skip the rest of a ``{ ... }`` after the opening brace; return a function that makes a `Stream` of it."""
        start, line, depth = self._position, self._line, 1
        end = self._stop
        for match in _BRACES.finditer(self._text, start, self._stop):
            if match[0] == "{":
                depth += 1
            elif match[0] == "}":
                depth -= 1
            if not depth:
                end = match.end()
                break
        self._position, self._line = end, line + self._text.count("\n", start, end)
        if depth:
            self.fail("'}'")
        return partial(Stream, self._text, start, end, line)

    def parse_statement(self, parse: Callable[[], None]) -> str:
        """Parse the rest of a statement with ``parse``, and take its ``;``. Return an empty text, or the problem.

        If ``parse`` raises `PtxSyntaxError`, the statement is skipped, including its ``;``. So a bad statement fails
        only the kernel that contains it. Raises `PtxSyntaxError` if the braces before the ``;`` are not balanced.
        """
        start = self._at
        try:
            parse()
            self.expect(";")
        except PtxSyntaxError as error:
            self._at, depth = start, 0
            while (stop := self.skip_past("{", "}", ";")) != ";":
                depth += 1 if stop == "{" else -1
                if depth < 0:
                    raise
            if depth:
                raise
            return error.problem
        return ""

    def find_files(self) -> dict[int, str]:
        """Return the file names of all ``.file`` directives by number. A directive may follow its uses in ``.loc``."""
        names = {}
        for match in _FILE.finditer(self._text):
            line_start = self._text.rfind("\n", 0, match.start()) + 1
            is_comment = "//" in self._text[line_start : match.start()]
            if not is_comment:
                names[int(parse_number(match[1], 0))] = match[2]
        return names
