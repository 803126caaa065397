"""Findings of `check`: location, code and message; and the names of the codes."""

from typing import NamedTuple

from ..util.grammar import count_noun

(
    LIMIT, LINE_LIMIT, RISE, FALL, NOT_PINNED, WRONG_KERNEL, DIRECTIVE, GONE, NOT_COUNTED, OTHER_COMPILER,
    UNKNOWN_LIMITS,
) = (f"PC{number:03}" for number in range(1, 12))  # fmt: skip
#: Codes and their names; a waiver may use either.
CODES = {
    LIMIT: "limit", LINE_LIMIT: "line-limit", RISE: "rise", FALL: "fall", NOT_PINNED: "not-pinned",
    WRONG_KERNEL: "wrong-kernel", DIRECTIVE: "directive", GONE: "gone", NOT_COUNTED: "not-counted",
    OTHER_COMPILER: "other-compiler", UNKNOWN_LIMITS: "unknown-limits",
    "PC101": "strided-access", "PC102": "rows-and-columns", "PC103": "array-of-structs", "PC104": "misaligned",
    "PC105": "bank-conflict", "PC106": "narrow-access", "PC107": "short-rows", "PC108": "scattered-access",
}  # fmt: skip
#: Codes of launches that could not be checked.
UNCLEAR = (NOT_PINNED, NOT_COUNTED)


class Diagnostic(NamedTuple):
    """One finding of `check`.

    ``level`` is ``error``, which fails the check, ``warning`` or ``note``. ``also`` lists further files and lines with
    this finding. ``launch`` is the label of a launch, or empty. ``more_launches`` are labels of further launches with
    this finding.
    """

    file: str
    line: int
    code: str
    message: str
    level: str = "error"
    launch: str = ""
    also: tuple[tuple[str, int], ...] = ()
    more_launches: tuple[str, ...] = ()

    @property
    def is_advice(self) -> bool:
        """True for advice on an access, which fails no check: codes from PC101."""
        return self.code.startswith("PC1")

    @property
    def text(self) -> str:
        """The message, the other locations, and the launch: "...; also at 9, 12 [launch k, and 1 more launch]"."""
        also = ", ".join(f"{line}" if file == self.file else f"{file}:{line}" for file, line in self.also)
        text = "; ".join(filter(None, [self.message, f"also at {also}" if also else ""]))
        more = f", and {count_noun(len(self.more_launches), 'more launch')}" if self.more_launches else ""
        return f"{text} [launch {self.launch}{more}]" if self.launch else text

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.level}: {self.code} {self.text}"
