"""Counters of a launch, by ptxcount and by a GPU."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class CounterPair(NamedTuple):
    """A counter of a launch: the expected number, and the GPU's."""

    kernel: str
    launch: str
    counter: str
    expectation: float
    chip: float

    @property
    def is_equal(self) -> bool:
        """Test that the numbers are equal."""
        return self.expectation == self.chip


def describe_differences(pairs: Iterable[CounterPair]) -> list[str]:
    """Describe each counter that differs."""
    return [
        f"{pair.launch}: {pair.counter} {pair.expectation:g}, the chip {pair.chip:g}"
        for pair in pairs
        if not pair.is_equal
    ]
