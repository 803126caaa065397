"""PTX text to tokens (PTX ISA, "Syntax")."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple, NoReturn

from .errors import PtxSyntaxError

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


class Token(NamedTuple):
    """One token: its kind (string, dot, number, name, mark or end), its text, and its line."""

    kind: str
    text: str
    line: int


def tokens(text: str) -> Iterator[Token]:
    """Split a PTX module, without comments and white space; the last token is of kind ``end``.

    Raises `PtxSyntaxError` at a character that belongs to no token.
    """
    position, line = 0, 1
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise PtxSyntaxError(line, f"unexpected character {text[position]!r}")
        kind, word = str(match.lastgroup), match.group()
        if kind != "space":
            yield Token(kind, word, line)
        line += word.count("\n")
        position = match.end()
    yield Token("end", "end of file", line)


def number(word: str, line: int) -> int | float:
    """The value of a literal: integers in base 2, 8, 10 or 16, ``0f`` and ``0d`` bit patterns, decimals.

    Raises `PtxSyntaxError`, with the line that is given, if the word is none.
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
        raise PtxSyntaxError(line, f"{word!r} is not a number") from None
    if value >= 2**64:
        raise PtxSyntaxError(line, f"{word!r} has more than 64 bits")
    return value


class Stream:
    """The tokens of a module, read from front to back; every failure names the line and what was expected."""

    def __init__(self, text: str) -> None:
        self._tokens = list(tokens(text))
        self._at = 0

    def tell(self) -> int:
        """The place of the next token, for `seek`."""
        return self._at

    def seek(self, place: int) -> None:
        """Go on at a place."""
        self._at = place

    def peek(self, ahead: int = 0) -> Token:
        """The next token, or one further ahead."""
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def next(self) -> Token:
        """Take the next token; the end stays the end."""
        token = self.peek()
        self._at += 1
        return token

    def accept(self, *texts: str) -> bool:
        """Take the next token if it is one of these."""
        found = self.peek().text in texts and self.peek().kind not in ("string", "end")
        self._at += found
        return found

    def fail(self, wanted: str) -> NoReturn:
        """Report that something else was expected here."""
        raise PtxSyntaxError(self.peek().line, f"expected {wanted}, found {self.peek().text!r}")

    def expect(self, text: str) -> None:
        """Take the next token, which must be this one."""
        if not self.accept(text):
            self.fail(repr(text))

    def take(self, kind: str, wanted: str) -> str:
        """Take the next token, which must be of this kind."""
        if self.peek().kind != kind:
            self.fail(wanted)
        return self.next().text

    def number(self) -> int | float:
        """Take a literal with its sign."""
        sign = -1 if self.accept("-") else 1
        line = self.peek().line
        return sign * number(self.take("number", "a number"), line)

    def integer(self) -> int:
        """Take an integer literal with its sign."""
        line, value = self.peek().line, self.number()
        if not isinstance(value, int):
            raise PtxSyntaxError(line, f"expected an integer, found {value}")
        return value

    def skip_past(self, *stops: str) -> str:
        """Leave out everything up to and with the first of these tokens, which is returned."""
        while self.peek().text not in stops:
            if self.next().kind == "end":
                self.fail(" or ".join(map(repr, stops)))
        return self.next().text

    def skip_line(self, line: int) -> None:
        """Leave out the rest of a line."""
        while self.peek().line == line and self.peek().kind != "end":
            self.next()

    def skip_block(self) -> None:
        """Leave out the rest of a ``{ ... }`` whose opening brace was taken."""
        depth = 1
        while depth:
            depth += {"{": 1, "}": -1}[self.skip_past("{", "}")]

    def statement(self, parse: Callable[[], None]) -> str:
        """Take the rest of a statement with its ``;``, which ``parse`` takes up to there.

        If that fails, the statement is left out and the problem returned: only a kernel that needs it fails. Raises
        `PtxSyntaxError` if the statement has no end.
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

    def files(self) -> dict[int, str]:
        """The names that ``.file`` directives give, which may come after their uses in ``.loc``."""
        triples = zip(self._tokens, self._tokens[1:], self._tokens[2:], strict=False)
        return {
            int(number(index.text, index.line)): name.text.strip('"')
            for directive, index, name in triples
            if directive.text == ".file" and index.text.isdecimal() and name.kind == "string"
        }
