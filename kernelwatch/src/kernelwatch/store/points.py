"""The result of one configuration."""

from __future__ import annotations

import itertools
from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """One configuration's result: its parameters by name, and what asv stored."""

    params: dict[str, str]
    #: Lower is better; None if it failed, was skipped, or is not finite.
    value: float | None
    #: The recorded samples, those of one round after those of another; none if asv did not keep them.
    samples: tuple[float, ...] = ()
    #: True if the benchmark failed; a skipped one has no value either.
    failed: bool = False
    #: The commit that it was measured at; empty if at its own. All that it depends on was the same there.
    origin: str = ""
    #: Number of samples of each round.
    counts: tuple[int, ...] = ()
    #: The UUIDs of the GPUs that timed it; None stands for a run that said none.
    gpus: frozenset[str | None] = frozenset()
    #: Reasons why the GPU was slow while it was timed, with commas; empty if it was not.
    throttled: str = ""
    #: The time in copies of the same bytes, if one was timed beside it.
    copies: float | None = None

    @property
    def rounds(self) -> list[tuple[float, ...]]:
        """The samples by round.

        asv stores those of one round after those of another. Files of before 2026-11-21 16:00 hold 10 to 20 a
        round, plain asv does not say: the halves stand for two then, and a median does not mind a few that are wrong.
        """
        count = len(self.samples)
        sizes = self.counts if sum(self.counts) == count else (-(-count // 2), count // 2)
        ends = itertools.accumulate(sizes)
        return [self.samples[end - size : end] for end, size in zip(ends, sizes, strict=True) if size]

    def format_name(self, benchmark: str) -> str:
        """Return the configuration's name in asv's tables, without the quotes around texts."""
        return f"{benchmark}({', '.join(self.params.values())})" if self.params else benchmark
