"""The body of a kernel: registers, labels and instructions (PTX ISA, "Instruction Statements", "Operands")."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath

import numpy as np

from ..util.errors import PtxSyntaxError, Source
from .lexer import Stream
from .program import (
    NO_UNROLL,
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

#: Suffixes of C++ files, and folders of libraries: of the system, of Python packages, and of a CUDA toolkit.
_CPP = re.compile(r"\.(cuh?|hh?|[hc](pp|xx)|cc?|in[lc])$")
_LIBRARY = re.compile(r"^/(usr|opt)/|/(site|dist)-packages/|/targets/[^/]+/include/")
#: The state spaces that variables are declared in.
SPACES = (".global", ".const", ".shared", ".local")


def _is_library(file: str) -> bool:
    """Tell if a file belongs to a library. So do all files that are not C++: other languages inline their libraries."""
    return _CPP.search(file) is None or _LIBRARY.search(file) is not None


class _Scope:
    """Declarations between two braces: registers by name or as ranges such as ``%r<9>``, and labels.

    ``number`` makes the scope's names unique in the kernel. ``start`` is the index of the scope's first instruction.
    """

    def __init__(self, number: int, start: int) -> None:
        self.suffix = f"@{number}" if number else ""
        self.start = start
        self.labels: dict[str, int] = {}
        #: Parameters of calls -> their unique names.
        self.call_parameters: dict[str, str] = {}
        self.names: dict[str, Type] = {}
        self.ranges: dict[str, tuple[int, Type]] = {}

    def rename_label(self, operand: Operand) -> Operand:
        """Replace the labels of this scope in an operand of a branch by their unique names."""
        if isinstance(operand, Group):
            return Group(tuple(map(self.rename_label, operand.items)))
        if isinstance(operand, Symbol) and operand.name in self.labels:
            return Symbol(operand.name + self.suffix)
        return operand

    def find_register(self, name: str) -> Register | None:
        """Return a register of this scope with the register's unique name; None if the scope does not declare it."""
        if name in self.names:
            return Register(name + self.suffix, self.names[name])
        match = re.fullmatch(r"(.*?)(0|[1-9]\d{0,9})", name)
        if match and match[1] in self.ranges:
            count, kind = self.ranges[match[1]]
            if int(match[2]) < count:
                return Register(name + self.suffix, kind)
        return None


class Body:
    """Parses the text between the braces of a kernel into the kernel's entry.

    The stream begins after the opening brace. ``files`` has the names of sources by their ``.file`` number.
    ``parse_variable`` parses the declaration of a variable in a state space, up to the ``;``.
    """

    def __init__(
        self, stream: Stream, entry: Entry, files: dict[int, str], parse_variable: Callable[[str], Variable]
    ) -> None:
        self._stream, self._entry, self._files, self._parse_variable = stream, entry, files, parse_variable
        self._scopes = [_Scope(0, 0)]
        self._scope_count = 1
        #: Number of the first file, which is the kernel's. Lines of this file are not replaced by lines of callers.
        self._file: int | None = None
        #: File and line of each line of library code -> file and line of its caller.
        self._callers: dict[tuple[int, int], tuple[int, int]] = {}
        #: File, line and caller of the next instruction, as in `Source`.
        self._location: tuple[str | None, int | None, str] = (None, None, "")
        #: Name of the last label, and the targets of each ``.branchtargets`` by the label before it.
        self._label = ""
        self._tables: dict[str, Group] = {}
        #: Index of the instruction behind the last ``.pragma "used_bytes_mask N"``.
        self._masked_place = -1

    def parse(self) -> None:
        """Parse to the closing brace; raise `PtxSyntaxError` for a missing end, or a label that is defined twice."""
        while self._scopes:
            self._parse_statement()

    def _parse_statement(self) -> None:
        stream, token = self._stream, self._stream.peek()
        if stream.accept("{"):
            self._scopes.append(_Scope(self._scope_count, len(self._entry.instructions)))
            self._scope_count += 1
        elif stream.accept("}"):
            self._leave_scope()
        elif stream.accept(".reg"):
            stream.parse_statement(self._declare_registers)
        elif stream.accept(*SPACES):
            stream.parse_statement(lambda: self._declare(self._parse_variable(token.text)))
        elif stream.accept(".loc"):
            self._locate(token.line)
        elif stream.accept(".param"):
            stream.parse_statement(self._declare_parameter)
        elif stream.accept(".branchtargets"):
            targets: list[Operand] = []
            stream.parse_statement(lambda: self._parse_operands(targets))
            self._tables[self._label] = Group(tuple(targets))
        elif stream.accept(".pragma"):
            place, text = len(self._entry.instructions), stream.peek().text
            if text == '"nounroll"':
                self._scopes[-1].labels[f"{NO_UNROLL}{place}"] = place
            elif text.startswith('"used_bytes_mask'):
                self._masked_place = place
            stream.parse_statement(lambda: None)
        elif token.kind == "dot":  # .callprototype
            stream.parse_statement(lambda: None)
        elif token.kind == "name" and stream.peek(1).text == ":":
            if token.text in self._scopes[-1].labels:
                raise PtxSyntaxError(token.line, f"the label {token.text!r} is defined twice")
            self._scopes[-1].labels[token.text] = len(self._entry.instructions)
            self._label = token.text
            stream.next()
            stream.next()
        elif not stream.accept(";"):
            self._parse_instruction()

    def _leave_scope(self) -> None:
        """Leave the innermost scope: give its labels unique names, also in branches to these labels."""
        scope, code = self._scopes.pop(), self._entry.instructions
        self._entry.labels |= {name + scope.suffix: index for name, index in scope.labels.items()}
        if not (scope.suffix and scope.labels):
            return
        for index, instruction in enumerate(code[scope.start :], scope.start):
            if instruction.opcode in ("bra", "brx"):
                code[index] = replace(instruction, operands=tuple(map(scope.rename_label, instruction.operands)))

    def _declare(self, variable: Variable) -> None:
        self._entry.variables[variable.name] = variable

    def _declare_parameter(self) -> None:
        """Declare a parameter or a result of a call: local memory of the thread, with a unique name per scope."""
        variable, scope = self._parse_variable(".local"), self._scopes[-1]
        unique_name = f"{variable.name}{scope.suffix}"
        scope.call_parameters[variable.name] = unique_name
        self._declare(replace(variable, name=unique_name))

    def _locate(self, ptx_line: int) -> None:
        """Set the location from ``.loc file line column``, and ``inlined_at file line column`` after it.

        For code inlined from a library, the location is the line that calls the library.
        """
        stream = self._stream
        place = (stream.take_integer(), stream.take_integer())
        caller = place
        if self._file is None:
            self._file = place[0]
        while stream.peek().line == ptx_line and stream.peek().kind != "end":
            if stream.next().text == "inlined_at":
                caller = (stream.take_integer(), stream.take_integer())
        caller = self._callers.get(caller, caller)
        if place[0] != self._file and _is_library(self._files.get(place[0], "")):
            self._callers[place] = caller
            place = caller
        if place[1]:  # line 0 marks code without a line: keep the last one
            file, caller_file = (self._files.get(number, f"file {number}") for number, _ in (place, caller))
            caller_text = f"{PurePath(caller_file).name}:{caller[1]}" if caller != place else ""
            self._location = (file, place[1], caller_text)

    def _declare_registers(self) -> None:
        stream = self._stream
        name = stream.take("dot", "a type")[1:]
        kind = TYPES.get(name) or Type(name, "?", 0, np.dtype(np.void))  # no instruction accepts an unsupported type

        def declare_register() -> None:
            register = stream.take("name", "a register's name")
            if stream.accept("<"):
                self._scopes[-1].ranges[register] = stream.take_integer(), kind
                stream.expect(">")
            else:
                self._scopes[-1].names[register] = kind

        stream.parse_list(declare_register)

    def _parse_instruction(self) -> None:
        """Parse an instruction into the entry. If its guard or operands are wrong, execution raises the problem."""
        stream, source = self._stream, Source(self._stream.peek().line, *self._location)
        guard, problem = None, ""
        if stream.accept("@"):
            guard, problem = self._parse_guard(stream.accept("!"))
        opcode = stream.take("name", "an instruction")
        modifiers: list[str] = []
        while stream.peek().kind == "dot":
            modifiers.append(stream.next().text[1:])
        operands: list[Operand] = []
        problem = stream.parse_statement(lambda: self._parse_operands(operands)) or problem
        if opcode == "brx":
            operands = [
                self._tables.get(operand.name, operand) if isinstance(operand, Symbol) else operand
                for operand in operands
            ]
        parsed, place = () if problem else tuple(operands), len(self._entry.instructions)
        is_masked = place == self._masked_place
        instruction = Instruction(opcode, tuple(modifiers), parsed, guard, source, problem, is_masked=is_masked)
        self._entry.instructions.append(instruction)

    def _parse_guard(self, negated: bool) -> tuple[Register | None, str]:
        """Parse a predicate register; return the register and an empty text, or None and the problem."""
        name = self._stream.take("name", "a predicate")
        register = self._find_register(name)
        if register is None or register.type.kind != "pred":
            return None, f"{name!r} is not a predicate register"
        return Register(register.name, register.type, negated), ""

    def _parse_operands(self, operands: list[Operand]) -> None:
        if self._stream.peek().text != ";":
            operands += self._stream.parse_list(self._parse_operand)

    def _find_register(self, name: str) -> Register | None:
        for scope in reversed(self._scopes):
            register = scope.find_register(name)
            if register is not None:
                return register
        return None

    def _parse_operand(self) -> Operand:
        stream = self._stream
        if stream.accept("{"):
            items = stream.parse_list(self._parse_single)
            stream.expect("}")
            return Group(tuple(items))
        if stream.accept("["):
            return self._parse_address()
        if stream.accept("("):  # the arguments of a call
            arguments = [] if stream.peek().text == ")" else stream.parse_list(self._parse_single)
            stream.expect(")")
            return Group(tuple(arguments))
        first = self._parse_single()
        if stream.peek().text == "|" and isinstance(first, (Register, Symbol)):
            stream.next()
            return Group((first, self._parse_single()))
        return first

    def _parse_single(self) -> Operand:
        stream, token = self._stream, self._stream.peek()
        if stream.accept("!"):
            guard, problem = self._parse_guard(True)
            if guard is None:
                raise PtxSyntaxError(token.line, problem)
            return guard
        if token.kind == "number" or token.text == "-":
            return Immediate(stream.take_number())
        return self._parse_name()

    def _parse_address(self) -> Address | Group:
        """Parse an address after ``[``; with coordinates after it, return a group of address and coordinates."""
        stream = self._stream
        base = None if stream.peek().kind == "number" else self._parse_name()
        offset = stream.take_integer() if base is None else 0
        while stream.accept("+") or stream.peek().text == "-":
            offset += stream.take_integer()
        if stream.accept(","):  # coordinates: of a texture, a surface or a tensor
            coordinates = self._parse_operand()
            stream.expect("]")
            return Group((Address(base, offset), coordinates))
        stream.expect("]")
        return Address(base, offset)

    def _parse_name(self) -> Register | Special | Symbol:
        stream = self._stream
        name = stream.take("name", "an operand")
        if name == "_":
            return SINK
        if stream.peek().kind == "dot":
            name += stream.next().text
        register = self._find_register(name)
        if register is not None:
            return register
        if name.startswith("%") or name == "WARP_SZ":
            return Special(name)
        for scope in reversed(self._scopes):
            if name in scope.call_parameters:
                return Symbol(scope.call_parameters[name])
        return Symbol(name)
