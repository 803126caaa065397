"""Which commit to judge next, and what is known once commits were judged."""

from __future__ import annotations

import math


class Halving:
    """A range of places of which the first is good and the last bad.

    Parameters
    ----------
    last : int
        The place of the bad end; the good end's is 0.
    """

    def __init__(self, last: int) -> None:
        self._good, self._bad = 0, last
        self._skipped: set[int] = set()

    @property
    def good(self) -> int:
        """The last place that is known to be good."""
        return self._good

    @property
    def suspects(self) -> range:
        """The places of which one turned good into bad: a single one, once it is found."""
        return range(self._good + 1, self._bad + 1)

    def next(self) -> int | None:
        """Return the place to judge: the farthest from all that is known; None where nothing is left to judge.

        With nothing skipped it is the middle. Around skipped places it is the middle of the widest gap, so that a long
        stretch of commits that do not build costs few steps.
        """
        untried = [place for place in self.suspects[:-1] if place not in self._skipped]
        known = {self._good, self._bad} | self._skipped
        return max(untried, key=lambda place: min(abs(place - each) for each in known), default=None)

    def note(self, place: int, is_bad: bool | None) -> None:
        """Take in what a place is; None skips it."""
        if is_bad is None:
            self._skipped.add(place)
        elif is_bad:
            self._bad = place
        else:
            self._good = place

    def steps_left(self) -> int:
        """About how many places are still to be judged."""
        untried = len(set(self.suspects[:-1]) - self._skipped)
        return math.ceil(math.log2(untried + 1))
