"""Counters of launches, by ptxcount and by a chip."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class CounterPair(NamedTuple):
    """A counter of a launch: the number that is expected, and the chip's."""

    kernel: str
    launch: str
    counter: str
    expectation: float
    chip: float

    @property
    def is_equal(self) -> bool:
        """Test that the chip counts as many."""
        return self.expectation == self.chip


def describe_differences(pairs: Iterable[CounterPair]) -> list[str]:
    """Describe each counter that is not the chip's."""
    return [
        f"{pair.launch}: {pair.counter} {pair.expectation:g}, the chip {pair.chip:g}"
        for pair in pairs
        if not pair.is_equal
    ]
