"""Warps in which threads have yielded to those that had left a loop: from then on, no thread waits behind the loop."""

from collections import defaultdict
from collections.abc import Mapping, Set

import numpy as np

from ..lanes.warps import LANES, Array, warp_count


class YieldedWarps:
    """The yielded warps of a chunk of a shape (blocks, threads), for each basic block that yields.

    ``yields`` has these basic blocks, and those behind their loops.
    """

    def __init__(self, yields: Mapping[int, Set[int]], shape: tuple[int, ...]) -> None:
        blocks, self._threads = shape
        #: Warps of which threads have left the loop, and those in which others have yielded since.
        self._left = {index: np.zeros((blocks, warp_count(self._threads)), bool) for index in yields}
        self._yielded = {index: left.copy() for index, left in self._left.items()}
        self._loops_before = defaultdict[int, list[int]](list)
        for index, behind in yields.items():
            for place in behind:
                self._loops_before[place].append(index)

    def note_run(self, index: int, warps: Array) -> None:
        """Note that warps, a mask (1 or blocks, warps), run a basic block."""
        if index in self._left:
            self._yielded[index] |= self._left[index] & warps
        for loop in self._loops_before.get(index, ()):
            self._left[loop] |= warps

    def find_threads(self, index: int) -> Array | None:
        """Return a mask (blocks, threads) of those that wait for no others in a basic block; None if all wait."""
        masks = [self._yielded[loop] for loop in self._loops_before.get(index, ())]
        if not any(mask.any() for mask in masks):
            return None
        warps: Array = np.logical_or.reduce(masks)
        return warps.repeat(LANES, axis=1)[:, : self._threads]
