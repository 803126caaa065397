"""The body of a kernel: registers, labels and instructions (PTX ISA, "Instruction Statements", "Operands")."""

from __future__ import annotations

import re
from collections.abc import Callable

from .errors import PtxSyntaxError, Source, UnsupportedInstructionError
from .instructions import OPCODES
from .lexer import Stream
from .program import (
    SINK,
    TYPES,
    Address,
    Entry,
    Group,
    Immediate,
    Instruction,
    Operand,
    Register,
    Special,
    Symbol,
    Type,
    Variable,
)

_SPACES = (".global", ".const", ".shared", ".local")
_AXES = ("x", "y", "z")
SPECIAL_REGISTERS = frozenset(
    [f"%{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in _AXES]
    + [f"%lanemask_{order}" for order in ("eq", "le", "lt", "ge", "gt")]
    + ["%laneid", "%warpid", "%nwarpid", "WARP_SZ"]
)


class _Scope:
    """The registers declared between two braces: single names, and ranges such as ``%r<9>``."""

    def __init__(self, index: int) -> None:
        self._suffix = f"@{index}" if index else ""
        self._names: dict[str, Type] = {}
        self._ranges: dict[str, tuple[int, Type]] = {}

    def declare(self, name: str, count: int | None, kind: Type) -> None:
        if count is None:
            self._names[name] = kind
        else:
            self._ranges[name] = (count, kind)

    def find(self, name: str) -> Register | None:
        if name in self._names:
            return Register(name + self._suffix, self._names[name])
        match = re.fullmatch(r"(.*?)(0|[1-9]\d{0,9})", name)
        if match and match[1] in self._ranges:
            count, kind = self._ranges[match[1]]
            if int(match[2]) < count:
                return Register(name + self._suffix, kind)
        return None


class Body:
    """Parses what stands between the braces of a kernel into its entry.

    Parameters
    ----------
    stream : Stream
        The tokens, the opening brace taken.
    entry : Entry
        What to fill.
    files : dict
        The names of the source files by their ``.file`` number.
    variable : callable
        Parses the declaration of a variable in the given state space.
    """

    def __init__(
        self, stream: Stream, entry: Entry, files: dict[int, str], variable: Callable[[str], Variable]
    ) -> None:
        self._stream, self._entry, self._files, self._variable = stream, entry, files, variable
        self._scopes = [_Scope(0)]
        self._scope_count = 1
        self._file = 0
        self._location: tuple[str | None, int | None] = (None, None)

    def parse(self) -> None:
        """Parse to the closing brace."""
        while self._scopes:
            self._statement()

    def _statement(self) -> None:
        stream, token = self._stream, self._stream.peek()
        if stream.accept("{"):
            self._scopes.append(_Scope(self._scope_count))
            self._scope_count += 1
        elif stream.accept("}"):
            self._scopes.pop()
        elif stream.accept(".reg"):
            self._registers()
        elif stream.accept(*_SPACES):
            variable = self._variable(token.text)
            self._entry.variables[variable.name] = variable
        elif stream.accept(".loc"):
            self._locate(token.line)
        elif stream.accept(".pragma"):
            stream.skip_past(";")
        elif stream.accept(".param"):  # what a call is handed over in
            self._unknown("call", token.line)
        elif token.kind == "dot":
            self._unknown(stream.next().text, token.line)
        elif token.kind == "name" and stream.peek(1).text == ":":
            if token.text in self._entry.labels:
                raise PtxSyntaxError(token.line, f"a second label {token.text!r}")
            self._entry.labels[token.text] = len(self._entry.instructions)
            stream.next()
            stream.next()
        elif not stream.accept(";"):
            self._instruction()

    def _locate(self, ptx_line: int) -> None:
        """``.loc file line column``, and ``inlined_at file line column`` behind it."""
        stream = self._stream
        file, line = stream.integer(), stream.integer()
        self._file = self._file or file
        while stream.peek().line == ptx_line and stream.peek().kind != "end":
            if stream.next().text == "inlined_at" and file != self._file:
                file, line = stream.integer(), stream.integer()  # a header's line tells less than the call of it
        if line:  # line 0 marks code that belongs to no line: the last one stays
            self._location = (self._files.get(file, f"file {file}"), line)

    def _registers(self) -> None:
        stream = self._stream
        line, name = stream.peek().line, stream.take("dot", "a type").lstrip(".")
        if name not in TYPES:
            raise UnsupportedInstructionError(line, f".reg .{name}")
        while True:
            register, count = stream.take("name", "a register's name"), None
            if stream.accept("<"):
                count = stream.integer()
                stream.expect(">")
            self._scopes[-1].declare(register, count, TYPES[name])
            if not stream.accept(","):
                break
        stream.expect(";")

    def _unknown(self, name: str, line: int) -> None:
        """Keep what is not supported without its operands: it only matters if this kernel is the one to run."""
        self._stream.skip_past(";")
        self._entry.instructions.append(Instruction(name, (), (), None, Source(line, *self._location)))

    def _instruction(self) -> None:
        stream, token = self._stream, self._stream.peek()
        guard = None
        if stream.accept("@"):
            guard = self._predicate(stream.accept("!"))
        opcode = stream.take("name", "an instruction")
        modifiers: list[str] = []
        while stream.peek().kind == "dot":
            modifiers.append(stream.next().text[1:])
        if opcode not in OPCODES:
            self._unknown(".".join([opcode, *modifiers]), token.line)
            return
        operands: list[Operand] = []
        if stream.peek().text != ";":
            operands.append(self._operand())
            while stream.accept(","):
                operands.append(self._operand())
        stream.expect(";")
        source = Source(token.line, *self._location)
        self._entry.instructions.append(Instruction(opcode, tuple(modifiers), tuple(operands), guard, source))

    def _predicate(self, negated: bool) -> Register:
        line, name = self._stream.peek().line, self._stream.take("name", "a predicate")
        register = self._register(name)
        if register is None or register.type.kind != "p":
            raise PtxSyntaxError(line, f"{name!r} is not a predicate register")
        return Register(register.name, register.type, negated)

    def _register(self, name: str) -> Register | None:
        found = (scope.find(name) for scope in reversed(self._scopes))
        return next((register for register in found if register is not None), None)

    def _operand(self) -> Operand:
        stream = self._stream
        first = self._single()
        if stream.peek().text == "|" and isinstance(first, (Register, Symbol)):
            stream.next()
            return Group((first, self._single()))
        return first

    def _single(self) -> Operand:
        stream, token = self._stream, self._stream.peek()
        if stream.accept("{"):
            items = [self._single()]
            while stream.accept(","):
                items.append(self._single())
            stream.expect("}")
            return Group(tuple(items))
        if stream.accept("["):
            return self._address()
        if stream.accept("!"):
            return self._predicate(True)
        if token.kind == "number" or token.text == "-":
            return Immediate(stream.number())
        return self._named()

    def _address(self) -> Address:
        stream = self._stream
        base = None if stream.peek().kind == "number" else self._named()
        offset = stream.integer() if base is None else 0
        while stream.accept("+") or stream.peek().text == "-":
            offset += stream.integer()
        stream.expect("]")
        if not isinstance(base, (Register, Symbol, type(None))):
            stream.fail("an address in a register or a variable before")
        return Address(base, offset)

    def _named(self) -> Register | Special | Symbol:
        stream, token = self._stream, self._stream.peek()
        name = stream.take("name", "an operand")
        if name == "_":
            return SINK
        if stream.peek().kind == "dot":
            name += stream.next().text
        if name in SPECIAL_REGISTERS:
            return Special(name)
        register = self._register(name)
        if register is not None:
            return register
        if name.startswith("%"):
            raise UnsupportedInstructionError(
                token.line, name, "neither a declared register nor a special register known here"
            )
        return Symbol(name)
