"""What is measured: a launch as one text, and the sweeps over launches that asv's classes are made from."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from . import flags as flag_sets
from .errors import ArgumentError

#: The dtype of a launch whose text names none.
DTYPE = "float32"

#: The values of an axis "kernel": every kernel of the operation, in the order of the catalog, but those that name
#: other sweeps.
EVERY_KERNEL: tuple[str, ...] = ()


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


@dataclass(frozen=True)
class Launch:
    """A kernel, its arguments, the element type and nvcc's flags.

    Its text is what is typed, stored and shown everywhere: "transpose_read_coalesced rows=65 columns=33 float32
    -Xptxas -O3". Without arguments it names machine code.
    """

    kernel: str
    dtype: str = DTYPE
    flags: str = flag_sets.DEFAULT
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Launch:
        """Read a launch; without dtype or flags it has the defaults.

        Raises
        ------
        ArgumentError
            The text is no launch.
        """
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
        return cls(kernel, others[0] if others else DTYPE, " ".join(words[dash:]) or flag_sets.DEFAULT, arguments)

    @property
    def machine_code(self) -> str:
        """The text without arguments, which do not change the machine code."""
        return str(Launch(self.kernel, self.dtype, self.flags))

    def __str__(self) -> str:
        arguments = (f"{name}={value}" for name, value in self.arguments.items())
        return " ".join([self.kernel, *arguments, self.dtype, self.flags]).rstrip()

    def __hash__(self) -> int:
        return hash((self.kernel, self.dtype, self.flags, frozenset(self.arguments.items())))


def _argument(axis: str, value: str) -> dict[str, Any]:
    return {"arguments": {axis: _number(value)}}


def _sides(axis: str, value: str) -> dict[str, Any]:
    """Read the lengths that an axis names: "5003x2999" of "rows x columns"."""
    return {"arguments": dict(zip(axis.split(" x "), map(int, value.split("x")), strict=True))}


def _launch(axis: str, value: str) -> dict[str, Any]:
    """Read a kernel with some of its arguments: "offset_copy offset=1"."""
    found = Launch.parse(value)
    return {"kernel": found.kernel, "arguments": found.arguments}


#: Axes that are more than one number -> what a value of them says of a launch. All others are arguments.
_READERS: dict[str, Callable[[str, str], dict[str, Any]]] = {
    "kernel": lambda axis, value: {"kernel": value},
    "dtype": lambda axis, value: {"dtype": value},
    "flags": lambda axis, value: {"flags": value},
    "arch": lambda axis, value: {},
    "rows x columns": _sides,
    "rows x inner x columns": _sides,
    "copy": _launch,
}


def read(params: Mapping[str, object]) -> dict[str, Any]:
    """Return what the parameters of a benchmark say of a launch: some of kernel, dtype, flags, and arguments.

    Raises
    ------
    ValueError
        A value is not one of its axis.
    """
    known: dict[str, Any] = {}
    arguments: dict[str, int | float] = {}
    for axis, value in params.items():
        said = _READERS.get(axis, _argument)(axis, str(value))
        arguments |= said.pop("arguments", {})
        known |= said
    return known | {"arguments": arguments}


@dataclass(frozen=True)
class Sweep:
    """Launches over which a kernel is measured: one class of asv's.

    Parameters
    ----------
    name : str
        The class's, for ever.
    title : str
        What a person calls it.
    axes : dict of str to tuple
        Name -> values, texts and integers: kernel, dtype, flags, lengths such as "rows x columns", or any argument. asv
        finds stored values by these: append and reorder as you like, but another axis or another name begins a new
        history.
    module : str
        The module of `benchmarks` that holds a timed class.
    kernel : str
        The kernel where it is no axis.
    fixed : dict of str to int
        Arguments that are no axis.
    shown : dict
        The value that summaries show, for some axes. For all others it is the first.
    note : str
        What readers of its numbers should know.
    in_l2, isolated : bool
        Of a timed sweep: whether launches find their data in the L2 cache, and whether each runs by itself.
    shared : bool
        Of a counted sweep: whether its kernels use shared memory, so that bank conflicts are counted.
    """

    name: str
    title: str
    axes: Mapping[str, Sequence[str | int]]
    module: str = "time_kernel"
    kernel: str = ""
    fixed: Mapping[str, int] = field(default_factory=dict)
    shown: Mapping[str, str | int] = field(default_factory=dict)
    note: str = ""
    in_l2: bool = False
    isolated: bool = False
    shared: bool = True

    def of(self, kernels: Sequence[str]) -> Iterator[Sweep]:
        """Yield the sweeps over an operation's kernels: one, or if the kernel is no axis, one for each.

        The first kernel's then has the name as it is, the others' their kernel's behind it.
        """
        if "kernel" in self.axes or "copy" in self.axes:
            yield replace(self, axes={axis: tuple(values) or tuple(kernels) for axis, values in self.axes.items()})
            return
        for place, kernel in enumerate(kernels):
            name, title = (f"{self.name}_{kernel}", f"{self.title}, {kernel}") if place else (self.name, self.title)
            yield replace(self, name=name, title=title, kernel=kernel)

    def launch(self, params: Mapping[str, object]) -> Launch:
        """Return what the parameters of a configuration launch, whether as asv gives them or as it stores them.

        Raises
        ------
        ValueError
            A value is not one of its axis.
        """
        said = read(params)
        said["arguments"] = {**self.fixed, **said["arguments"]}
        return Launch(**({"kernel": self.kernel} | said))

    def points(self) -> Iterator[dict[str, str | int]]:
        """Yield the parameters of every configuration, the last axis varying fastest, as in asv."""
        for values in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))

    def chosen(self) -> dict[str, str | int]:
        """Return the value of each axis that summaries show."""
        shown = ((axis, self.shown.get(axis), values) for axis, values in self.axes.items())
        return {axis: values[0] if value is None or value not in values else value for axis, value, values in shown}
