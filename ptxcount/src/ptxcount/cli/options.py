"""Options shared by the command lines of counting and of ``ptxcount check``, and text that is safe to print."""

import re
import shlex
from argparse import ArgumentTypeError
from collections.abc import Sequence

from ..util.errors import Index3

#: The commands of the package `gate`.
GATE_COMMANDS = ("init", "pin", "check", "compare")


def is_gate_command(words: Sequence[str]) -> bool:
    """Tell if a command line is one of `GATE_COMMANDS`."""
    return bool(words) and words[0] in GATE_COMMANDS


def parse_dimensions(text: str) -> Index3:
    """Parse ``X``, ``X,Y`` or ``X,Y,Z`` to three numbers, 1 for a missing one; raise `ArgumentTypeError` for others."""
    if not re.fullmatch(r"\d{1,10}(,\d{1,10}){0,2}", text, re.ASCII):
        raise ArgumentTypeError(f"{text[:60]!r}: one to three numbers are needed, as in 64,64")
    x, y, z = ([int(word) for word in text.split(",")] + [1, 1])[:3]
    return x, y, z


def join_flags(include: Sequence[str], flags: str) -> str:
    """Return the options of nvcc as one text: ``-I`` for each include folder, then ``flags``."""
    return " ".join(filter(None, (shlex.join(f"-I{folder}" for folder in include), flags)))


def escape_unprintable(text: str) -> str:
    """Escape characters that a terminal could interpret, except line ends and tabs."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else ascii(character)[1:-1] for character in text
    )


def plain(name: object, longest: int = 240) -> str:
    """Return a name in one line of at most ``longest`` characters, with unprintable ones replaced."""
    shown = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in str(name))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def attach_flags(words: Sequence[str]) -> list[str]:
    """Join ``--flags -O3`` to ``--flags=-O3``: argparse would parse nvcc's flags as its own options."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--flags":
            joined[-1] = f"--flags={word}"
        else:
            joined.append(word)
    return joined
