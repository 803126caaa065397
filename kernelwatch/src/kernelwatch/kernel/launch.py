"""A launch as one text: a kernel, its arguments, the element type and nvcc's flags."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernelwatch.errors import ArgumentError, UnknownFlagsError

#: The dtype, and nvcc's flags, of a launch whose text names none.
DTYPE = "float32"
FLAGS = "-Xptxas -O3"


def words(flags: str) -> tuple[str, ...]:
    """Split flags into nvcc's arguments. Raises UnknownFlagsError if a quote has no end."""
    try:
        return tuple(shlex.split(flags))
    except ValueError as error:
        raise UnknownFlagsError(
            f"flags {flags!r} are no words: {error}; write them as on nvcc's command line"
        ) from None


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


@dataclass(frozen=True)
class Launch:
    """A kernel, its arguments, the element type and nvcc's flags.

    Its text is what is typed, stored and shown everywhere: "transpose rows=65 columns=33 float32
    -Xptxas -O3". Without arguments it names machine code.
    """

    kernel: str
    dtype: str = DTYPE
    flags: str = FLAGS
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Launch:
        """Read a launch; without dtype or flags it has the defaults. Raises ArgumentError if the text is none."""
        if ", " in text:  # as stored up to 917313d: "kernel, dtype, flags"
            text = text.replace(", ", " ")
        words = text.split()
        dash = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
        kernel, *rest = words[:dash] or [""]
        pairs = [word.split("=", 1) for word in rest if "=" in word]
        others = [word for word in rest if "=" not in word]
        names = [name for name, _ in pairs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ArgumentError(f"{text!r}: {twice} is given twice")
        if not kernel or len(others) > 1:
            raise ArgumentError(f"{text!r} is not a launch; write KERNEL NAME=NUMBER ... DTYPE FLAGS")
        try:
            arguments = {name: _number(value) for name, value in pairs}
        except ValueError:
            raise ArgumentError(f"{text!r}: an argument is NAME=NUMBER") from None
        return cls(kernel, others[0] if others else DTYPE, " ".join(words[dash:]) or FLAGS, arguments)

    @property
    def code_name(self) -> str:
        """What its machine code is called: the text without arguments, which do not change that."""
        return str(Launch(self.kernel, self.dtype, self.flags))

    def __str__(self) -> str:
        arguments = (f"{name}={value}" for name, value in self.arguments.items())
        return " ".join([self.kernel, *arguments, self.dtype, self.flags]).rstrip()

    def __hash__(self) -> int:
        return hash((self.kernel, self.dtype, self.flags, frozenset(self.arguments.items())))


def read(params: Mapping[str, object]) -> dict[str, Any]:
    """Return what the parameters of a benchmark say of a launch: some of kernel, dtype, flags, and arguments.

    The axis "copy" has kernels with some of their arguments, as "copy offset=1"; one such as "rows x columns"
    several arguments, as "5003x2999". Raises ValueError where a value is not one of its axis.
    """
    known: dict[str, Any] = {}
    arguments: dict[str, int | float] = {}
    for axis, value in params.items():
        text = str(value)
        if axis in ("kernel", "dtype", "flags"):
            known[axis] = text
        elif axis == "copy":
            found = Launch.parse(text)
            known["kernel"], arguments = found.kernel, {**arguments, **found.arguments}
        elif axis != "arch":
            names = axis.split(" x ")
            arguments |= dict(zip(names, map(_number, text.split("x") if names[1:] else [text]), strict=True))
    return known | {"arguments": arguments}
