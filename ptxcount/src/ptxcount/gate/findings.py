"""What `check` finds: where, a code, in words; and the names of the codes."""

from __future__ import annotations

from dataclasses import dataclass

#: Codes and their names; a waiver may use either.
CODES = {
    "PC001": "limit", "PC002": "line-limit", "PC003": "rise", "PC004": "fall", "PC005": "not-pinned",
    "PC006": "wrong-kernel", "PC007": "waiver", "PC008": "gone", "PC009": "not-counted",
    "PC101": "strided-access", "PC102": "rows-and-columns", "PC103": "array-of-structs", "PC104": "misaligned",
    "PC105": "bank-conflict", "PC106": "narrow-access", "PC107": "short-rows", "PC108": "scattered-access",
}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One line of what `check` says; ``level`` is ``error``, which fails, ``warning``, advice, or ``note``."""

    file: str
    line: int
    code: str
    message: str
    level: str = "error"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.code} {self.message}"
