"""A launch: a kernel, its arguments, a dtype and nvcc's flags. Its text identifies it in commands and results."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelwatch.errors import ArgumentError, UnknownFlagsError

#: Defaults of a launch's dtype and nvcc's flags.
DTYPE = "float32"
FLAGS = "-Xptxas -O3"

#: Pattern of options of nvcc that are useless without the next word. Others, such as -arch, are left to nvcc.
_TAKES_NEXT_WORD = re.compile(r"-(X\w+|[DIU]|isystem)|--[\w-]+-options?")


def split_flags(flags: str) -> tuple[str, ...]:
    """Split flags into nvcc's arguments. Raises UnknownFlagsError if a quote has no end, or if `lacks_value`."""
    try:
        words = tuple(shlex.split(flags))
    except ValueError as error:
        raise UnknownFlagsError(
            f"flags {flags!r} cannot be split: {error}; write them as on nvcc's command line"
        ) from None
    if lacks_value(words):
        raise UnknownFlagsError(f"flags {flags!r}: {words[-1]} needs a value, as in -Xptxas -O3")
    return words


def lacks_value(options: Sequence[str]) -> bool:
    """Return whether the last option is one of _TAKES_NEXT_WORD."""
    return bool(options) and _TAKES_NEXT_WORD.fullmatch(options[-1]) is not None


def _parse_number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _parse_argument(name: str, text: str) -> int | float:
    try:
        return _parse_number(text)
    except ValueError:
        wrong_number = f"{text!r} is not a number; give one such as 64"
        problem = f"write the dtype without a name: {text}" if name == "dtype" else wrong_number
        raise ArgumentError(f"{name}={text}: {problem}") from None


@dataclass(frozen=True)
class Launch:
    """A kernel, its arguments, the swept dtype and nvcc's flags.

    Commands, results and reports use the launch's text: "transpose rows=65 columns=33 float32 -Xptxas -O3". The text
    without arguments names the machine code.
    """

    kernel: str
    dtype: str = DTYPE
    flags: str = FLAGS
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Launch:
        """Parse the text of a launch; the defaults are DTYPE and FLAGS. Raises ArgumentError if it is not a launch."""
        if ", " in text:  # the format until 917313d: "kernel, dtype, flags"
            text = text.replace(", ", " ")
        words = text.split()
        before_flags = list(itertools.takewhile(lambda word: not word.startswith("-"), words))
        flags = " ".join(words[len(before_flags) :])
        kernel, *arguments_and_dtype = before_flags or [""]
        dtypes = [word for word in arguments_and_dtype if "=" not in word]
        if not kernel or len(dtypes) > 1:
            raise ArgumentError(f"{text!r} is not a launch; write KERNEL NAME=NUMBER ... DTYPE FLAGS")
        arguments: dict[str, int | float] = {}
        for name, value in (word.split("=", 1) for word in arguments_and_dtype if "=" in word):
            if name in arguments:
                raise ArgumentError(f"{text!r}: {name} is given twice; give it once")
            arguments[name] = _parse_argument(name, value)
        return cls(kernel, dtypes[0] if dtypes else DTYPE, flags or FLAGS, arguments)

    @property
    def code_name(self) -> str:
        """The name of the machine code: the text without arguments."""
        return str(Launch(self.kernel, self.dtype, self.flags))

    def __str__(self) -> str:
        arguments = (f"{name}={value}" for name, value in self.arguments.items())
        return " ".join([self.kernel, *arguments, self.dtype, self.flags]).rstrip()

    def __hash__(self) -> int:
        return hash((self.kernel, self.dtype, self.flags, frozenset(self.arguments.items())))


def read_parameters(params: Mapping[str, object]) -> dict[str, Any]:
    """Return a benchmark's parameters as fields of `Launch`: arguments, and kernel, dtype and flags if present.

    The axis "copy" has kernels with arguments, such as "copy offset=1". An axis such as "rows x columns" has several
    arguments at once, such as "5003x2999". Raises ArgumentError if a value does not fit its axis.
    """
    launch_fields: dict[str, Any] = {}
    arguments: dict[str, int | float] = {}
    for axis, value in params.items():
        text = str(value)
        if axis in ("kernel", "dtype", "flags"):
            launch_fields[axis] = text
        elif axis == "copy":
            copy_launch = Launch.parse(text)
            launch_fields["kernel"] = copy_launch.kernel
            arguments |= copy_launch.arguments
        elif axis != "arch":
            names = axis.split(" x ")
            numbers = text.split("x") if len(names) > 1 else [text]
            try:
                arguments |= zip(names, map(_parse_number, numbers), strict=True)
            except ValueError:
                example = "x".join(["64"] * len(names))
                raise ArgumentError(f"{text!r} does not fit the axis {axis!r}; give one such as {example}") from None
    return launch_fields | {"arguments": arguments}
