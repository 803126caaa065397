"""The launches over which a kernel is measured."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kernelwatch.kernel.launch import Launch, read


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
