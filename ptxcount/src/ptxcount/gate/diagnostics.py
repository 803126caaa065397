"""Findings of `check`: location, code and message; and the names of the codes."""

from typing import NamedTuple

from ..util.grammar import count_noun

#: Codes and their names; a waiver may use either.
CODES = {
    "PC001": "limit", "PC002": "line-limit", "PC003": "rise", "PC004": "fall", "PC005": "not-pinned",
    "PC006": "wrong-kernel", "PC007": "directive", "PC008": "gone", "PC009": "not-counted", "PC010": "other-compiler",
    "PC011": "unknown-limits",
    "PC101": "strided-access", "PC102": "rows-and-columns", "PC103": "array-of-structs", "PC104": "misaligned",
    "PC105": "bank-conflict", "PC106": "narrow-access", "PC107": "short-rows", "PC108": "scattered-access",
}  # fmt: skip
#: Codes of launches that could not be checked.
UNCLEAR = ("PC005", "PC009")


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
