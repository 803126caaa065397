"""Uses of threads, scalars and arrays in a kernel's text, from which a launch is guessed."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ..source.constants import evaluate_constant
from ..source.cpp_types import TYPES, VECTORS, strip_qualifiers
from ..source.declarations import THREADS, Declaration, Member, find_structs
from ..util.architectures import MAX_THREADS, WARP

#: Data members of the structs of a source, by the struct's name.
Structs = Mapping[str, list[Member]]
_THREAD = re.compile(r"\b(\w+)\s*=\s*((?:thread|block)Idx\s*\.\s*[xyz])\s*(?=[,;])")
#: A loop that begins at a literal: its counter, its condition, and its increment.
_LOOP = re.compile(r"\bfor\s*\(\s*\w[\w\s]*\b(\w+)\s*=\s*\d+\w*\s*;([^;]*);([^;{}]*?)\)(?=\s*[^\s)])")
_CONSTANT = re.compile(r"__constant__\s+([\w\s]+?)\s*\b(\w+)\s*((?:\[[^]]*\]\s*)*);")
#: Steps from block to block: one row, and more elements than any array has.
ROW, _WHOLE_ARRAY = 1, 1 << 62
#: Initialization of an mbarrier: ``init(&barrier, arrivals);``.
_ARRIVALS = re.compile(r"\binit\(&[^,;]*,([^;]*)\);")
#: An index, which may contain indices; and all that may follow an array's name: indices, members, an assignment.
_INDEX = r"\[(?:[^][]|\[(?:[^][]|\[[^][]*\])*\])*\]"
_ACCESS = rf"((?:{_INDEX})*)(?:\.\w+)*((?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)?"
#: Text before an element: a call that takes the element's address, as ``atomicAdd(&``; and any other ``&``.
_INTRINSIC = re.compile(r"\b(atomic|__ld|__st)\w*\(&?$")
_ADDRESS = re.compile(r"(?<!&)&(\w+=)?$")
#: Maximum elements that pad a row or a column of a tile.
_MAX_PADDING = 8
_SHARED = re.compile(r"__shared__\s+[\w\s:]+?\b(\w+)\s*((?:\[[^]]*\]\s*)+);")


def _compress(text: str) -> str:
    """Remove spaces except those between words: "int i = a [j]" -> "int i=a[j]"."""
    return re.sub(r"(?<!\w)\s+|\s+(?!\w)", "", text)


def describe_element(kind: str, structs: Structs, types: Mapping[str, str] = TYPES) -> tuple[str, int] | None:
    """Return dtype and count of the numbers in an element of a C++ type: ``float2`` -> ("float32", 2).

    Return None unless the type is a scalar, a vector, or a struct with members of one dtype. ``types`` has the dtypes
    of scalars.
    """
    if vector := VECTORS.fullmatch(kind):
        return types[vector[1]], int(vector[2])
    members = structs.get(kind, ())
    dtypes = {types.get(member.kind, "") for member in members}
    if len(dtypes) == 1 and all(dtypes):
        return dtypes.pop(), sum(member.length or 1 for member in members)
    return (types[kind], 1) if kind in types else None


def _guess_width(lengths: list[int]) -> int:
    """Guess the threads along x from a shared array's lengths: [64] -> 64, padded [32, 33] -> 32, [4, 48] -> 0."""
    if len(lengths) == 1:
        return lengths[0]
    rows, columns = lengths[-2:]
    width = min(rows, columns) if abs(rows - columns) <= _MAX_PADDING else columns
    is_power_of_two = width & (width - 1) == 0
    return width if is_power_of_two else 0


@dataclass(frozen=True)
class KernelUses:
    """Uses of threads, scalars and arrays in one kernel. ``source`` is the text of the kernel's file."""

    declaration: Declaration
    source: str

    @cached_property
    def structs(self) -> Structs:
        """The structs of the source, as `find_structs` returns them."""
        return find_structs(self.source)

    def find_constants(self) -> dict[str, tuple[str, int]]:
        """Return, by name, dtype and element count of each ``__constant__`` variable that the kernel uses.

        Variables that the source initializes, and unknown types or lengths, are left out.
        """
        constants = {}
        for kind, name, lengths in _CONSTANT.findall(self.source):
            sizes = self._evaluate_lengths(lengths)
            element = describe_element(strip_qualifiers(kind), self.structs)
            if element and all(sizes) and re.search(rf"\b{name}\b" + (r"\[" if sizes else ""), self.body):
                constants[name] = (element[0], element[1] * math.prod(sizes))
        return constants

    def _evaluate_lengths(self, brackets: str) -> list[int]:
        """Return the lengths in a text such as "[4][N]", 0 for an unknown one."""
        return [evaluate_constant(length, self.source) or 0 for length in re.findall(r"\[([^]]*)\]", brackets)]

    @cached_property
    def body(self) -> str:
        """The body without spaces between signs, and with aliases of ``threadIdx`` and ``blockIdx`` expanded."""
        body = self.declaration.body
        for name, thread in _THREAD.findall(body):
            body = re.sub(rf"(?<![.\w]){name}\b(?!\s*=)", re.sub(r"\s", "", thread), body)
        return _compress(body)

    @cached_property
    def _index_expressions(self) -> list[str]:
        """All index expressions of the body: ``a[b[i]]`` has ``i`` and ``b[i]``."""
        indices, starts = [], list[int]()
        for place, letter in enumerate(self.body):
            if letter == "[":
                starts.append(place + 1)
            elif letter == "]" and starts:
                indices.append(self.body[starts.pop() : place])
        return indices

    def find_tile(self, axis: str) -> int:
        """Return the first constant N in ``blockIdx.x * N + threadIdx.x``, or with exchanged terms; else 0."""
        tile = (
            rf"blockIdx\.{axis}\*(\w+)\+threadIdx\.{axis}(?![%/*])|threadIdx\.{axis}\+blockIdx\.{axis}\*(\w+)(?![.\w])"
        )
        # One of the two groups is empty.
        sizes = (evaluate_constant("".join(names), self.source) for names in re.findall(tile, self.body))
        return next(filter(None, sizes), 0)

    def is_used(self, axis: str) -> bool:
        """Tell if the body uses ``threadIdx`` or ``blockDim`` along an axis."""
        return re.search(rf"\bthreadIdx\.{axis}|\bblockDim\.{axis}", self.body) is not None

    def find_step(self, axis: str, block: tuple[int, ...], pitch: int = 1) -> int:
        """Guess the number of elements between the first elements of neighbouring blocks along an axis.

        ``pitch`` stands for unknown factors of ``blockIdx``. If none is known, return `ROW` if the threads of a block
        loop over a row of their own, `_WHOLE_ARRAY` if they loop over the array, else 0.
        """
        sizes = {f"blockDim.{letter}": size for letter, size in zip("xyz", block, strict=False)}
        # The other factors of each product with blockIdx: "4*blockIdx.x*blockDim.x" -> ["4", "blockDim.x"].
        products = [
            [factor for factor in "*".join(sides).split("*") if factor]
            for sides in re.findall(rf"(?<![\w.])(?<![\w.]\*)((?:[\w.]+\*)*)blockIdx\.{axis}((?:\*[\w.]+)*)", self.body)
        ]
        for factors in filter(None, products):
            values = [sizes.get(factor) or evaluate_constant(factor, self.source) for factor in factors]
            if any(values):
                return math.prod(value or pitch for value in values)
        names = {name for factors in products for name in factors}
        if any(re.search(rf"=threadIdx\.\w;[\w.]+<{re.escape(name)};", self.body) for name in names):
            return ROW
        is_row = re.search(rf"=blockIdx\.{axis}[,;]", self.body) is not None
        loops_over_array = not (is_row or names.isdisjoint(self._loop_bounds))
        return _WHOLE_ARRAY if loops_over_array else 0

    def find_block(self) -> tuple[int, int]:
        """Guess the block size along x and y; a size is 0 if the text does not suggest one."""
        width = self.find_tile("x") or self._find_most_arrivals() or self._find_shortest_shared_row()
        return width, self._find_row_step()

    def _find_most_arrivals(self) -> int:
        """Return the largest arrival count of an mbarrier that may be a block size: 33 to 1,024; else 0."""
        counts = [evaluate_constant(count, self.source) or 0 for count in _ARRIVALS.findall(self.body)]
        return max((count for count in counts if WARP < count <= MAX_THREADS), default=0)

    def _find_shortest_shared_row(self) -> int:
        """Return the length of the shortest row of a shared array that ``threadIdx.x`` indexes; else 0.

        Longer rows may have a halo. From the default block size on, a length says nothing.
        """
        widths = [
            _guess_width(self._evaluate_lengths(lengths))
            for name, lengths in _SHARED.findall(self.declaration.body)
            if re.search(rf"\b{name}(?:\[[^]]*\])*\[threadIdx\.x\]", self.body)
        ]
        return min((width for width in widths if 0 < width < THREADS), default=0)

    def _find_row_step(self) -> int:
        """Return the step of the last loop over rows of a tile, as in ``j += 8``; else the tile's rows, or 0."""
        steps = []
        for counter, _, increment in _LOOP.findall(self.declaration.body):
            step = re.fullmatch(rf"\s*{counter}\s*\+=\s*(\w+)\s*", increment)
            if step and re.search(rf"threadIdx\.y\+{counter}\b|\b{counter}\+threadIdx\.y", self.body):
                steps.append(evaluate_constant(step[1], self.source) or 0)
        return steps[-1] if steps else self.find_tile("y")

    @cached_property
    def iteration_counts(self) -> frozenset[str]:
        """Names that bound loops, but do not bound threads, and are no factor of an index or of ``blockIdx``."""
        return frozenset(name for name in self._loop_bounds if not self.is_pitch(name) and not self.is_bound(name))

    @cached_property
    def _loop_bounds(self) -> set[str]:
        """Names that bound loops which begin at a literal, such as n in ``for (int i = 0; i < n; ++i)``."""
        conditions = (condition for _, condition, _ in _LOOP.findall(self.declaration.body))
        return {name for condition in conditions for name in re.findall(r"[<>]=?\s*(\w+)\s*$", condition)}

    def is_pitch(self, name: str) -> bool:
        """Tell if a scalar is a factor in an index, or of ``blockIdx``."""
        factor = re.compile(rf"\*{name}\b(?!\.)|(?<![.\w]){name}\*")
        of_block = rf"blockIdx\.\w\*{name}\b(?!\.)|(?<![.\w]){name}\*blockIdx"
        return any(map(factor.search, self._index_expressions)) or re.search(of_block, self.body) is not None

    def is_bound(self, name: str) -> bool:
        """Tell if a scalar bounds threads, as n in ``if (i < n)``.

        The other side of such a comparison has a variable that is not the counter of a loop.
        """
        counters = {counter for counter, *_ in _LOOP.findall(self.declaration.body)}
        # The other side of a comparison, before "<n" or after "n>"; one of the two groups is empty.
        comparison = rf"(?<![\w+*/.\-])([\w+*/.\-]*)[<>]=?{name}\b(?![.\[(])|(?<![.\w>]){name}[<>]=?([\w+*/.\-]*)"
        for sides in re.findall(comparison, _compress(_LOOP.sub("", self.declaration.body))):
            variables = {*re.findall(r"[A-Za-z_]\w*", "".join(sides))}
            if variables - counters:
                return True
        return False

    @cached_property
    def is_bounded(self) -> bool:
        """True if a scalar parameter bounds threads."""
        return any(self.is_bound(name) for kind, name in self.declaration.parameters if name and "*" not in kind)

    def has_plain_indices(self, name: str) -> bool:
        """Tell if an array always has an index without numbers, except factors of ``blockIdx`` and single literals."""
        for index in re.findall(rf"(?<![.\w]){name}\b(\[[^]]*|.?)", self.body):
            without_exceptions = re.sub(r"blockIdx\.\w\*\w+|(?<=^\[)\d+$", "", index)
            if not index.startswith("[") or re.search(r"\d", without_exceptions):
                return False
        return True

    def find_direction(self, name: str) -> str:
        """Return "in", "out" or "in and out" for an array; "" if it is unused, or another name may have its address."""
        directions = set[str]()
        for access in re.finditer(rf"(?<![.\w])(?<!->){name}\b{_ACCESS}", self.body):
            index, operator = access.groups()
            before = self.body[: access.start()]
            if intrinsic := _INTRINSIC.search(before):
                directions |= {"atomic": {"in", "out"}, "__ld": {"in"}, "__st": {"out"}}[intrinsic[1]]
            elif not index or _ADDRESS.search(before):
                return ""
            elif operator or before.endswith(("++", "--")):
                directions |= {"out"} if operator == "=" else {"in", "out"}
            else:
                directions.add("in")
        return " and ".join(sorted(directions))

    def is_index(self, name: str) -> bool:
        """Tell if elements of an array are used as indices, directly or through a variable."""
        values = [rf"\b{name}\[", *(rf"\b{alias}\b" for alias in re.findall(rf"(\w+)={name}\[", self.body))]
        return any(re.search(value, index) for value in values for index in self._index_expressions)
