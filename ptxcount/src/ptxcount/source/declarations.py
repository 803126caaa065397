"""The kernels that a source declares. Compiled code lacks parameter names, and templates without an instance."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from .names import split_list

#: Comments, string literals and directives, which are skipped; then words, shifts, and single characters.
_SKIPPED = re.compile(
    r"//(?:\\\n|[^\n])*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M
)
_TOKEN = re.compile(r"[A-Za-z_]\w*|::|<<|\s+|.", re.S)
_BOUNDS = re.compile(r"__launch_bounds__\s*\(\s*(\d{1,4})\s*[,)]")
#: A macro that stands for ``__global__ void`` or more, in one line.
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n\\]*\b__global__\b[^\n\\]*)$", re.M)
#: Code in braces, with braces in it; a struct; and a function defined in a struct.
_BRACES = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
_STRUCT = re.compile(rf"\bstruct\s+(\w+)\s*({_BRACES})")
_METHOD = re.compile(rf"(?<![^;{{}}])[^;{{}}]*\)[^;{{}}()]*{_BRACES};?")
_MEMBER = re.compile(r"\s*([*&\s]*)((?!operator\b)[A-Za-z_]\w*)\s*(?:\[\s*(\d+)\s*\])?\s*")
#: Statements in a struct that declare no data member, and the initializer of a member.
_NO_DATA = re.compile(r"\s*(?:\w+\s*:\s*)?(?:inline\s+)?(?:static|using|typedef|friend)\b")
_INITIAL = re.compile(r"\s*=[^,]*")
#: Guesses for the threads of a block, and for an integer template argument, as most are tile sizes.
THREADS = 256
_INTEGER = "16"
_CLOSING = {"(": ")", "<": ">", "{": "}", "[": "]"}


class Declaration(NamedTuple):
    """A kernel in a source."""

    #: Name with namespaces.
    name: str
    #: Line of the name.
    line: int
    #: Template parameters, such as ``typename T``; empty without a template.
    template: list[str]
    #: Type and name of each parameter.
    parameters: list[tuple[str, str]]
    #: True if the body uses the y index of a thread or a block.
    planar: bool
    #: Maximum threads per block, if ``__launch_bounds__`` has a number; else 0.
    max_threads: int = 0
    #: True if the kernel is planar without ``blockDim.y``: a block may loop over the rows of a tile.
    tiled: bool = False
    #: The code from the opening brace on, without the last brace, comments, string literals and directives.
    body: str = ""

    def __str__(self) -> str:
        head = f"template <{', '.join(self.template)}> " if self.template else ""
        return f"{head}{self.name}({', '.join(' '.join(parameter) for parameter in self.parameters)})"


def find_declarations(text: str) -> list[Declaration]:
    """Find the kernels that a source defines, in order, also in a false ``#if``; none from function-like macros."""
    blanked = _SKIPPED.sub(lambda skipped: re.sub(r"[^\n]", " ", skipped[0]), text)  # keeps the line numbers
    for macro, value in _MACRO.findall(text):
        blanked = re.sub(rf"\b{macro}\b", value.partition("//")[0], blanked)
    tokens = [(match[0], match.start()) for match in _TOKEN.finditer(blanked)]
    return list(_scan_tokens(blanked, [(word, start) for word, start in tokens if not word.isspace()]))


def guess_instance(declaration: Declaration) -> str:
    """Guess an instance of a template, such as ``k<float, 16>``.

    A parameter N without default is the block size, `THREADS`, if a one-dimensional kernel uses ``blockIdx.x * N``.
    """
    guesses = []
    for parameter in declaration.template:
        name = re.escape(parameter.split()[-1].lstrip("."))
        is_width = re.search(rf"blockIdx\s*\.\s*x\s*\*\s*{name}\b", declaration.body)
        is_block_size = is_width and not (declaration.planar or "=" in parameter)
        guesses.append(str(THREADS) if is_block_size else guess_template_argument(parameter))
    return f"{declaration.name}<{', '.join(guesses)}>"


def guess_template_argument(parameter: str) -> str:
    """Guess an argument for a template parameter: "int N = 4" -> "4", "typename T" -> "float", "int N" -> "16"."""
    head, _, default = parameter.partition("=")
    if default.strip():
        return default.strip()
    if re.match(r"(typename|class)\b", head):
        return "float"
    return "true" if head.startswith("bool") else _INTEGER


class Member(NamedTuple):
    """A data member of a struct: type, name, and length, which is 0 for a member that is no array."""

    kind: str
    name: str
    length: int


def find_structs(text: str) -> dict[str, list[Member]]:
    """Return the data members of the structs of a source, by the struct's name.

    Left out are structs with a base class, an alignment, a virtual function, or a member that cannot be parsed, such as
    a nested struct. So are structs that share a name, but differ, as in two namespaces.
    """
    structs: dict[str, list[Member] | None] = {}
    for name, body in _STRUCT.findall(_SKIPPED.sub(" ", text)):
        members = None if re.search(r"\bvirtual\b", body) else _parse_members(_METHOD.sub("", body[1:-1]))
        structs[name] = members if structs.get(name, members) == members else None
    return {name: members for name, members in structs.items() if members is not None}


def _parse_members(body: str) -> list[Member] | None:
    """Parse data members: "int n = 1, a[4];" -> [("int", "n", 0), ("int", "a", 4)]; None if one cannot be parsed."""
    members: list[Member] = []
    for statement in filter(str.strip, body.split(";")):
        if _NO_DATA.match(statement):
            continue
        first, *others = re.sub(r"\s*([*&])\s*", r"\1 ", _INITIAL.sub("", statement).strip()).split(",")
        kind, _, name = first.strip().rpartition(" ")
        for place, match in enumerate(map(_MEMBER.fullmatch, (name, *others))):
            if match is None or re.search("[({}]", kind):
                return None
            member_kind = kind if place == 0 else kind.rstrip("*& ") + match[1].strip()
            members.append(Member(member_kind, match[2], int(match[3] or 0)))
    return members


class _Signature(NamedTuple):
    """Indices of the tokens of a kernel: the name, and the parentheses around the parameters."""

    name: int
    opening: int
    closing: int


def _scan_tokens(text: str, tokens: list[tuple[str, int]]) -> Iterator[Declaration]:
    """Yield the kernels that the tokens define. A token is a word and its offset in the text."""
    scopes: list[str] = []  # of the open braces: a namespace, or empty
    template: list[str] = []
    place = 0
    while place < len(tokens):
        word = tokens[place][0]
        if word == "namespace":
            name, place = "", place + 1
            while place < len(tokens) and tokens[place][0] not in "{;=":
                name, place = name + tokens[place][0], place + 1
            if place < len(tokens) and tokens[place][0] == "{":
                scopes.append(name)
        elif word == "{":
            scopes.append("")
        elif word == "}":
            scopes, template = scopes[:-1], []
        elif word == ";":
            template = []
        elif word == "template" and place + 1 < len(tokens) and tokens[place + 1][0] == "<":
            end = _find_closing(tokens, place + 1)
            template, place = split_list(text[tokens[place + 1][1] + 1 : tokens[end][1]]), end
        elif word == "__global__" and (signature := _find_signature(tokens, place + 1)):
            place = signature.closing
            yield _make_declaration(text, tokens, signature, [*filter(None, scopes)], template)
        place += 1


def _make_declaration(
    text: str, tokens: list[tuple[str, int]], signature: _Signature, namespaces: list[str], template: list[str]
) -> Declaration:
    """Make the declaration of the kernel with this signature."""
    name, start = tokens[signature.name]
    opening, closing = tokens[signature.opening][1], tokens[signature.closing][1]
    brace = signature.closing + 1
    body = text[tokens[brace][1] : tokens[_find_closing(tokens, brace)][1]]
    parameters = [
        _parse_parameter(parameter)
        for parameter in split_list(" ".join(text[opening + 1 : closing].split()))
        if parameter not in ("", "void")
    ]
    planar = re.search(r"\b(threadIdx|blockIdx)\s*\.\s*y\b", body) is not None
    tiled = planar and not re.search(r"\bblockDim\s*\.\s*y\b", body)
    previous_end = max(text.rfind(mark, 0, start) for mark in ";{}")
    bounds = _BOUNDS.search(text[previous_end + 1 : start])
    max_threads = int(bounds[1]) if bounds else 0
    qualified_name, line = "::".join([*namespaces, name]), text.count("\n", 0, start) + 1
    return Declaration(qualified_name, line, template, parameters, planar, max_threads, tiled, body)


def _find_closing(tokens: list[tuple[str, int]], place: int) -> int:
    """Return the index of the bracket that closes the bracket at ``place``; the last index if none does."""
    opening, depth = tokens[place][0], 0
    while place < len(tokens):
        word = tokens[place][0]
        if opening == "<" and word == "(":  # "<" and ">" may compare in parentheses
            place = _find_closing(tokens, place)
        if word == opening:
            depth += 1
        elif word == _CLOSING[opening]:
            depth -= 1
        if depth == 0:
            return place
        place += 1
    return len(tokens) - 1


def _find_signature(tokens: list[tuple[str, int]], place: int) -> _Signature | None:
    """Find the signature of the kernel that begins after ``__global__``, at ``place``.

    Return None if there is no body, and for a specialization of a template, such as ``k<float>(``.
    """
    while place + 1 < len(tokens) and tokens[place][0] not in ";{}":
        word, following = tokens[place][0], tokens[place + 1][0]
        if following == "(" and word.startswith("__"):  # __launch_bounds__(256), __attribute__((x))
            place = _find_closing(tokens, place + 1)
        elif following == "(" and word.isidentifier():
            closing = _find_closing(tokens, place + 1)
            if closing + 1 < len(tokens) and tokens[closing + 1][0] == "{":
                return _Signature(place, place + 1, closing)
            place = closing  # a macro for __launch_bounds__
        place += 1
    return None


def _parse_parameter(text: str) -> tuple[str, str]:
    """Return type and name of a parameter: "const float* x" -> ("const float*", "x"); the name may be empty."""
    text = text.partition("=")[0].strip()
    match = re.fullmatch(r"(.*[\s*&>])([A-Za-z_]\w*)((?:\[[^]]*\])*|\s*\)\s*\(.*)", text)
    return (match[1].strip() + match[3], match[2]) if match else (text, "")
