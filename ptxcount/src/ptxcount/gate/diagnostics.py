"""Findings of `check`: location, code and message; and the names of the codes."""

from typing import NamedTuple

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
#: Prefix of the codes of advice.
ADVICE = "PC1"


class Diagnostic(NamedTuple):
    """One finding of `check`.

    ``level`` is ``error``, which fails the check, ``warning`` or ``note``. ``launch`` is the label of its launch, if
    any. ``also`` lists other files and lines with the same finding.
    """

    file: str
    line: int
    code: str
    message: str
    level: str = "error"
    launch: str = ""
    also: tuple[tuple[str, int], ...] = ()

    @property
    def text(self) -> str:
        """The message, the other locations, and the launch."""
        also = ", ".join(f"{line}" if file == self.file else f"{file}:{line}" for file, line in self.also)
        text = "; ".join(filter(None, [self.message, f"also at {also}" if also else ""]))
        return f"{text} [launch {self.launch}]" if self.launch else text

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.code} {self.text}"
