"""PTX text to a typed program: the module and its declarations (PTX ISA, "Syntax", "Directives").

The bodies of kernels and functions are parsed on demand: a module may have thousands.

Unsupported parts are skipped, or marked with the problem. Only a kernel that needs them fails.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from math import prod

import numpy as np

from ..util.errors import PtxSyntaxError, Source
from .lexer import Stream
from .program import TYPES, Entry, Function, Program, Type, Variable
from .statements import SPACES, Body

#: Inline assembly. In Triton 3.9 and CuTe DSL 4.8, ``.loc`` in it adds the lines of the assembly to the source line.
_INLINE = re.compile(r"// begin inline asm\n.*?// end inline asm", re.DOTALL)
_LOC = re.compile(r"\.loc\b[^\n]*")


def parse(text: str) -> Program:
    """Parse the kernels, functions and variables of a PTX module; `PtxSyntaxError` names the line of an error.

    Bodies are parsed by `Entry.parse_body` and `Function.body`, which raise the same error. Of the errors in bodies,
    only a missing end is raised here.
    """
    stream = Stream(_INLINE.sub(lambda assembly: _LOC.sub(lambda location: " " * len(location[0]), assembly[0]), text))
    parser = _Parser(stream, stream.find_files())
    for _ in parser.iter_declarations():
        pass
    return parser.program


def list_essential_tokens(text: str, entry: str) -> list[str]:
    """List the tokens of a module, except other kernels, debug sections, source lines and comments.

    One kernel depends on no other tokens. Raises `PtxSyntaxError` as `parse` does.
    """
    parser = _Parser(Stream(text), {})
    declarations = [*parser.iter_declarations(), ("", len(text))]
    irrelevant = {".file", ".section", *parser.program.entries} - {entry}
    # A declaration ends where the next one begins.
    spans = [(start, stop) for (name, start), (_, stop) in pairwise(declarations) if name not in irrelevant]
    stream = Stream("\n".join(text[start:stop] for start, stop in spans))
    tokens = []
    while (token := stream.next()).kind != "end":
        if token.text == ".loc":
            stream.skip_line(token.line)
        else:
            tokens.append(token.text)
    return tokens


#: Directives of a kernel with one to three numbers -> the attribute of `Entry` that holds these numbers.
_EXTENTS = {".reqnctapercluster": "cluster", ".reqntid": "exact_block"}
#: Directives of a kernel with one to three numbers -> the attribute of `Entry` that holds their product.
_PRODUCTS = {".maxntid": "max_threads", ".language": "language"}
#: Directive of a kernel whose launch gives the grid in clusters.
_GRID_OF_CLUSTERS = ".blocksareclusters"


@dataclass
class _InitialValue:
    """Initial value of a variable. An address is 8 zero bytes in ``content``; for ``addresses``, see `Variable`."""

    content: bytearray = field(default_factory=bytearray)
    addresses: list[tuple[int, str, int]] = field(default_factory=list)
    problem: str = ""


class _Parser:
    """Parses the declarations of a module into ``program``. ``files`` are the source files by ``.file`` number."""

    def __init__(self, stream: Stream, files: dict[int, str]) -> None:
        self._stream, self._files = stream, files
        self.program = Program(files=files)

    def iter_declarations(self) -> Iterator[tuple[str, int]]:
        """Parse each declaration; yield a kernel's name, or else the directive, and the offset of the declaration."""
        while (first := self._stream.peek()).kind != "end":
            yield self._parse_declaration(), first.start

    def _parse_declaration(self) -> str:
        """Parse a declaration; return a kernel's name, or else the directive, such as ``.global``."""
        stream = self._stream
        while stream.accept(".visible", ".extern", ".weak", ".common"):
            pass
        token = stream.next()
        if token.text in (".version", ".target", ".address_size"):
            stream.parse_list(stream.next)
        elif token.text == ".file":
            stream.take_integer()
            stream.take("string", "a file name")
            stream.skip_line(token.line)
        elif token.text in SPACES:
            stream.parse_statement(lambda: self._parse_module_variable(token.text))
        elif token.text == ".entry":
            return self._parse_entry()
        elif token.text == ".func":
            self._parse_function()
        elif token.kind == "dot":  # sections, aliases: a kernel that needs one fails later
            if stream.skip_past("{", ";") == "{":
                stream.skip_block()
        elif token.text != ";":
            raise PtxSyntaxError(token.line, f"expected a directive, found {token.text!r}")
        return token.text

    def _parse_module_variable(self, space: str) -> None:
        variable = self.parse_variable(space)
        self.program.variables[variable.name] = variable

    def parse_variable(self, space: str) -> Variable:
        """Parse a variable after its state space: alignment, type, name, extents and initial value."""
        align, element, problem = self._parse_attributes()
        name = self._stream.take("name", "a name")
        extents = self._parse_extents()
        if element is None:
            problem, element = problem or "it has no type", TYPES["b8"]
        initial = self._parse_initial(element) if self._stream.accept("=") else _InitialValue()
        problem = initial.problem or problem
        content = bytes(initial.content)
        row_size = prod(extents[1:]) * element.size
        # ``[][3]`` has as many rows as the values fill. ptxas ignores braces within the outer ones.
        size = prod(extents) * element.size or -(-len(content) // row_size) * row_size or None
        if size is not None and len(content) > size:
            problem = f"more initial values than its {size} bytes hold"
        align = align or element.size
        addresses = tuple(initial.addresses)
        return Variable(name, space.lstrip("."), align, size, content, problem, addresses, element)

    def _parse_attributes(self) -> tuple[int | None, Type | None, str]:
        """Parse the words before a variable's name; return the alignment, the type, and a problem or ""."""
        stream, problem = self._stream, ""
        align: int | None = None
        element: Type | None = None
        while stream.peek().kind == "dot":
            word = stream.next().text
            if word == ".align":
                align = self._take_alignment()
            elif word == ".attribute":
                stream.skip_past(")")
            elif word == ".ptr":  # .global .align 8: facts about the pointee
                while stream.peek().kind == "dot":
                    if stream.next().text == ".align":
                        self._take_alignment()
            elif element is None and word[1:] in TYPES:
                element = TYPES[word[1:]]
            else:
                problem = f"{word} is not supported"
        return align, element, problem

    def _parse_extents(self) -> list[int]:
        """Parse ``[2][3]`` after a variable's name; return the extents, with 0 for ``[]``, the extent of all values."""
        stream = self._stream
        extents: list[int] = []
        while stream.accept("["):
            extents.append(0 if not extents and stream.peek().text == "]" else self._take_count())
            stream.expect("]")
        return extents

    def _take_alignment(self) -> int:
        line, align = self._stream.peek().line, self._stream.take_integer()
        if align <= 0 or align & (align - 1):
            raise PtxSyntaxError(line, f"the alignment is {align}; it must be a power of two")
        return align

    def _take_count(self) -> int:
        line, count = self._stream.peek().line, self._stream.take_integer()
        if not 0 < count < 2**32:
            raise PtxSyntaxError(line, f"an array has {count} elements; allowed are 1 to 4294967295")
        return count

    def _parse_initial(self, element: Type) -> _InitialValue:
        stream, initial = self._stream, _InitialValue()
        if element.kind in ("b", "s", "u") and element.size <= 8:  # libraries have tables of 100,000 numbers
            initial.content += np.array(stream.take_integers(), np.uint64).astype(f"u{element.size}").tobytes()
        while (token := stream.peek()).text != ";":
            if token.kind == "end":
                stream.fail("';'")
            if token.kind == "number" or token.text == "-":
                value = stream.take_number()
                try:
                    initial.content += _encode_value(value, element)
                except (ArithmeticError, ValueError):
                    initial.problem = f"its initial value {value} does not fit .{element.name}"
            elif token.kind == "name" and element.size == 8:
                initial.addresses.append((len(initial.content), *self._parse_address()))
                initial.content += bytes(element.size)
            elif stream.next().text not in ("{", "}", ","):
                initial.problem = f"its initial value {token.text!r} is not a number"
        return initial

    def _parse_address(self) -> tuple[str, int]:
        """Parse ``name`` or ``generic(name)``, and numbers added to it; return the name and the sum of the numbers."""
        stream, offset = self._stream, 0
        name = stream.take("name", "a variable's name")
        if name == "generic" and stream.accept("("):
            name = stream.take("name", "a variable's name")
            stream.expect(")")
        while stream.accept("+") or stream.peek().text == "-":
            offset += stream.take_integer()
        return name, offset

    def _parse_entry(self) -> str:
        """Parse a kernel after ``.entry``, except its body; return the kernel's name."""
        stream = self._stream
        line, name = stream.peek().line, stream.take("name", "a kernel's name")
        if name in self.program.entries:
            raise PtxSyntaxError(line, f"the kernel {name!r} is defined twice")
        entry = Entry(name, Source(line))
        try:
            if stream.accept("(") and not stream.accept(")"):
                stream.parse_list(lambda: self._parse_parameter(entry))
                stream.expect(")")
        except PtxSyntaxError as error:
            entry.problem = error.problem
        stops = ("{", ";", ".pragma", _GRID_OF_CLUSTERS, *_EXTENTS, *_PRODUCTS)
        while (stop := stream.skip_past(*stops)) not in ("{", ";"):
            if stop == ".pragma":
                stream.skip_past(";")
            elif stop == _GRID_OF_CLUSTERS:
                entry.has_grid_of_clusters = True
            else:
                extents = stream.parse_list(stream.take_integer)
                if stop in _PRODUCTS:
                    setattr(entry, _PRODUCTS[stop], prod(extents))
                else:
                    setattr(entry, _EXTENTS[stop], (*extents, 1, 1)[:3])
        if stop == "{":
            entry.body = self._make_body_parser()
            self.program.entries[name] = entry
        return name

    def _parse_function(self) -> None:
        stream = self._stream
        results = self._parse_parameter_names() if stream.peek().text == "(" else ()
        line, name = stream.peek().line, stream.take("name", "a function's name")
        parameters = self._parse_parameter_names() if stream.peek().text == "(" else ()
        if stream.skip_past("{", ";") == "{":
            self.program.functions[name] = Function(
                results, parameters, Entry(name, Source(line), body=self._make_body_parser()).parse_body
            )

    def _make_body_parser(self) -> Callable[[Entry], None]:
        """Skip a body; return a function that parses the body into an entry."""
        open_block, files = self._stream.skip_block(), self._files

        def parse_into(entry: Entry) -> None:
            parser = _Parser(open_block(), files)
            Body(parser._stream, entry, files, parser.parse_variable).parse()

        return parse_into

    def _parse_parameter_names(self) -> tuple[str, ...]:
        """Return the names in a list of parameters; the name is empty for a parameter that is no variable."""
        stream, names = self._stream, [""]
        while (token := stream.next()).text != ")":
            if token.kind == "end":
                stream.fail("')'")
            if token.text == ",":
                names.append("")
            elif token.kind == "name":
                names[-1] = names[-1] or token.text
        return tuple(names) if names != [""] else ()

    def _parse_parameter(self, entry: Entry) -> None:
        hidden = self._stream.accept(".hidden")
        self._stream.expect(".param")
        parameter = replace(self.parse_variable(".param"), hidden=hidden)
        if parameter.problem or parameter.size is None:
            entry.problem = f"parameter {parameter.name}: {parameter.problem or 'it has no size'}"
        entry.parameters.append(parameter)


def _encode_value(value: int | float, element: Type) -> bytes:
    """Return the bytes of an initial value; integers wrap around.

    A finite float out of range is a `FloatingPointError`.
    """
    if element.kind != "f":
        value = int(value) % 2**element.bits
    with np.errstate(over="raise"):
        return np.array(value, element.dtype).tobytes()


#: `parse` with a cache of the last texts.
parse_cached = lru_cache(maxsize=8)(parse)
