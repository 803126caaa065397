"""Findings of `check`: a place, a code and a message; and the names of the codes."""

from __future__ import annotations

from typing import NamedTuple

#: Codes and their names; a waiver may use either.
CODES = {
    "PC001": "limit", "PC002": "line-limit", "PC003": "rise", "PC004": "fall", "PC005": "not-pinned",
    "PC006": "wrong-kernel", "PC007": "directive", "PC008": "gone", "PC009": "not-counted", "PC010": "other-compiler",
    "PC011": "unknown-limits",
    "PC101": "strided-access", "PC102": "rows-and-columns", "PC103": "array-of-structs", "PC104": "misaligned",
    "PC105": "bank-conflict", "PC106": "narrow-access", "PC107": "short-rows", "PC108": "scattered-access",
}  # fmt: skip
#: Codes that say that nothing is known.
UNCLEAR = ("PC005", "PC009")
#: From here on codes are advice.
ADVICE = "PC1"


class Diagnostic(NamedTuple):
    """One line of what `check` says.

    ``level`` is ``error``, which fails, ``warning`` or ``note``; ``launch`` the label of the launch, if it is of one;
    ``also`` are other files and lines of which the same is true.
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
        """The message, the other places, and the launch that it is of."""
        also = ", ".join(f"{line}" if file == self.file else f"{file}:{line}" for file, line in self.also)
        text = "; ".join(filter(None, [self.message, f"also at {also}" if also else ""]))
        return f"{text} [launch {self.launch}]" if self.launch else text

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.code} {self.text}"
