"""PTX text to a typed program: the module and its declarations (PTX ISA, "Syntax", "Directives")."""

from __future__ import annotations

import numpy as np

from .errors import PtxSyntaxError, UnsupportedInstructionError
from .lexer import Stream
from .program import TYPES, Entry, Parameter, Program, Type, Variable
from .statements import Body

_SPACES = (".global", ".const", ".shared", ".local")


def parse(text: str) -> Program:
    """Parse a PTX module.

    Raises
    ------
    PtxSyntaxError
        The text is not PTX; names the line.
    UnsupportedInstructionError
        A directive or operand outside of the supported subset; names it and the line.
    """
    return _Parser(text).module()


class _Parser:
    def __init__(self, text: str) -> None:
        self._stream = Stream(text)
        self._files = self._stream.files()
        self._program = Program()

    def module(self) -> Program:
        while self._stream.peek().kind != "end":
            self._declaration()
        return self._program

    def _declaration(self) -> None:
        stream = self._stream
        while stream.accept(".visible", ".extern", ".weak", ".common"):
            pass
        token = stream.next()
        if token.text in (".version", ".target", ".address_size"):
            stream.skip_line(token.line)
        elif token.text == ".file":
            stream.integer()
            stream.take("string", "a file name")
            stream.skip_line(token.line)
        elif token.text == ".section":
            stream.skip_past("{")
            stream.skip_block()
        elif token.text in _SPACES:
            variable = self._variable(token.text)
            self._program.variables[variable.name] = variable
        elif token.text == ".entry":
            self._entry()
        elif token.text == ".func":  # its body is left out: a call to it is what is not supported
            if stream.skip_past("{", ";") == "{":
                stream.skip_block()
        elif token.text == ".pragma":
            stream.skip_past(";")
        elif token.kind == "dot":
            raise UnsupportedInstructionError(token.line, token.text)
        elif token.text != ";":
            raise PtxSyntaxError(token.line, f"expected a directive, found {token.text!r}")

    def _type(self) -> Type:
        name = self._stream.peek().text.lstrip(".")
        if self._stream.peek().kind != "dot" or name not in TYPES:
            self._stream.fail("a type")
        self._stream.next()
        return TYPES[name]

    def _align(self) -> int:
        line, align = self._stream.peek().line, 0
        while self._stream.accept(".align"):
            align = self._stream.integer()
        if align < 0 or align & (align - 1):
            raise PtxSyntaxError(line, f"an alignment is a power of two, not {align}")
        return align

    def _variable(self, space: str) -> Variable:
        stream = self._stream
        align, element = self._align(), self._type()
        name = stream.take("name", "a variable's name")
        count: int | None = 1
        while stream.accept("["):
            if stream.accept("]"):
                count = None
            else:
                count = (count or 1) * self._count()
                stream.expect("]")
        initial = self._initial(element) if stream.accept("=") else b""
        stream.expect(";")
        size = None if count is None else count * element.size
        return Variable(name, space.lstrip("."), align or element.size, size, initial)

    def _count(self) -> int:
        count = self._stream.integer()
        if not 0 < count < 2**32:
            self._stream.fail(f"a number of elements (not {count}) before")
        return count

    def _initial(self, element: Type) -> bytes:
        stream, values = self._stream, bytearray()
        while stream.peek().text != ";":
            token = stream.peek()
            if token.kind == "number" or token.text == "-":
                values += encode(stream.number(), element, token.line)
            elif not stream.accept("{", "}", ","):
                raise UnsupportedInstructionError(token.line, token.text, "in an initial value")
        return bytes(values)

    def _entry(self) -> None:
        stream = self._stream
        line, name = stream.peek().line, stream.take("name", "a kernel's name")
        if name in self._program.entries:
            raise PtxSyntaxError(line, f"a second kernel named {name!r}")
        entry = Entry(name, [])
        if stream.accept("(") and not stream.accept(")"):
            entry.parameters.append(self._parameter())
            while stream.accept(","):
                entry.parameters.append(self._parameter())
            stream.expect(")")
        if stream.skip_past("{", ";") == "{":
            Body(stream, entry, self._files, self._variable).parse()
            self._program.entries[name] = entry

    def _parameter(self) -> Parameter:
        stream = self._stream
        stream.expect(".param")
        self._align()
        kind = self._type()
        while stream.peek().kind == "dot":  # .ptr .global .align 8: what the pointer points to
            if stream.next().text == ".align":
                stream.integer()
        name = stream.take("name", "a parameter's name")
        if stream.accept("["):
            count = self._count()
            stream.expect("]")
            return Parameter(name, None, kind.size * count)
        return Parameter(name, kind, kind.size)


def encode(value: int | float, element: Type, line: int) -> bytes:
    """The bytes of one initial value."""
    try:
        number = value if element.kind == "f" else int(value) % 2**element.bits
        with np.errstate(over="raise"):
            return np.array(number, element.dtype).tobytes()
    except (OverflowError, ValueError, FloatingPointError):
        raise PtxSyntaxError(line, f"{value} does not fit .{element.name}") from None
