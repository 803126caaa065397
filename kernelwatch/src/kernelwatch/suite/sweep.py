"""The launches over which a kernel is measured."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kernelwatch.kernel.launch import Launch, read_parameters


@dataclass(frozen=True)
class Sweep:
    """The launches of a benchmark class. The fields are the attributes of `Benchmark`.

    `axes` maps each of `param_names` to its `params`.
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
    l2_fetch_bytes: int = 0
    shared: bool = True

    def launch(self, params: Mapping[str, object]) -> Launch:
        """Return the launch of a configuration, from its parameters as asv passes or stores them.

        Raises
        ------
        ArgumentError
            A value does not have the form of its axis, such as "5003x2999" for "rows x columns".
        """
        launch_fields = read_parameters(params)
        launch_fields["arguments"] = {**self.fixed, **launch_fields["arguments"]}
        return Launch(**({"kernel": self.kernel} | launch_fields))

    def points(self) -> Iterator[dict[str, str | int]]:
        """Yield the parameters of every configuration, the last axis varying fastest, as in asv."""
        for values in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))

    def summary_point(self) -> dict[str, str | int]:
        """Return axis -> its value in summaries: that of `shown` if the axis has it, or else the first."""
        return {
            axis: self.shown[axis] if self.shown.get(axis) in values else values[0]
            for axis, values in self.axes.items()
        }
