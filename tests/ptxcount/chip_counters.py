"""Launches whose counters are compared with those of a GPU."""

import copy
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ptxcount import LaunchCounters
from ptxcount.counting.counters import KINDS
from tests.ptxcount import sources


class ChipLaunch(NamedTuple):
    """A launch of ``tests/kernels/<source>.cu``, one warp a block, and the compared counters."""

    source: str
    name: str
    kernel: str
    arguments: Sequence[Any]
    counters: Sequence[str]
    blocks: int = 1
    variables: dict[str, Any] = {}

    def copy_arguments(self) -> list[Any]:
        return [copy.deepcopy(argument) for argument in self.arguments]

    def execute(self) -> LaunchCounters:
        options: dict[str, Any] = {"blocks": self.blocks, "variables": self.variables, "unwritten": "off"}
        return sources.execute(self.source, self.kernel, self.copy_arguments(), **options)

    def count_totals(self) -> dict[str, int]:
        totals = self.execute().totals()
        for amount in ("requests", "sectors"):
            totals[f"cluster_{amount}"] = sum(totals.get(f"cluster_{kind}_{amount}", 0) for kind in KINDS)
        return {name: totals.get(name, 0) for name in self.counters}


class CounterPair(NamedTuple):
    """A counter of a launch: the expected number, and the GPU's."""

    kernel: str
    launch: str
    counter: str
    expectation: float
    chip: float

    @property
    def is_equal(self) -> bool:
        return self.expectation == self.chip


def describe_differences(pairs: Iterable[CounterPair]) -> list[str]:
    return [
        f"{pair.launch}: {pair.counter} {pair.expectation:g}, the chip {pair.chip:g}"
        for pair in pairs
        if not pair.is_equal
    ]
