"""Options shared by the command lines of counting and of the subcommands, and text that is safe to print."""

import re
import shlex
from argparse import ArgumentTypeError
from collections.abc import Sequence

from ..util.errors import Index3

#: The subcommands, which the package `gate` implements.
GATE_COMMANDS = ("init", "pin", "check", "compare")


def is_gate_command(words: Sequence[str]) -> bool:
    """Tell if a command line is one of `GATE_COMMANDS`."""
    return bool(words) and words[0] in GATE_COMMANDS


def parse_dimensions(text: str) -> Index3:
    """Parse one to three numbers of at most 10 digits: "32,8" -> (32, 8, 1). Raise `ArgumentTypeError` for others."""
    if not re.fullmatch(r"\d{1,10}(,\d{1,10}){0,2}", text, re.ASCII):
        raise ArgumentTypeError(f"{text[:60]!r} is no size; give one to three numbers, as in 64,64")
    x, y, z = ([int(word) for word in text.split(",")] + [1, 1])[:3]
    return x, y, z


def join_flags(include: Sequence[str], flags: str) -> str:
    """Return the options of nvcc as one text: ``-I`` for each include folder, then ``flags``."""
    return " ".join(filter(None, (shlex.join(f"-I{folder}" for folder in include), flags)))


def escape_unprintable(text: str) -> str:
    """Escape unprintable characters, which a terminal may interpret, except newlines and tabs."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else ascii(letter)[1:-1] for letter in text)


def plain(name: object, longest: int = 240) -> str:
    """Return a name in one line of at most ``longest`` characters. Unprintable characters become U+FFFD."""
    shown = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in str(name))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def attach_flags(words: Sequence[str]) -> list[str]:
    """Return the words with ``--flags -O3`` as ``--flags=-O3``: argparse would parse ``-O3`` as its own option."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--flags":
            joined[-1] = f"--flags={word}"
        else:
            joined.append(word)
    return joined
