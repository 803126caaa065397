"""The result of one configuration."""

import itertools

import msgspec


class Point(msgspec.Struct, frozen=True):
    """The stored result of one configuration at a commit."""

    params: dict[str, str]
    #: The value, lower is better; None if the configuration failed or was skipped, or the value is not finite.
    value: float | None
    #: The recorded samples, round by round; empty if asv did not store them.
    samples: tuple[float, ...] = ()
    #: True if the configuration failed; false if it was skipped or has a value.
    failed: bool = False
    #: The commit at which a reused number was measured; empty if it was measured at this commit.
    origin: str = ""
    #: Number of samples of each round.
    counts: tuple[int, ...] = ()
    #: The UUIDs of the GPUs that timed the configuration; None for a run that recorded no UUID. `load_commit` sets this
    #: field and the next two, for times only.
    gpus: frozenset[str | None] = frozenset()
    #: Reasons why the GPU was throttled or shared, separated by commas; empty if it was not.
    throttle_reasons: str = ""
    #: The time divided by the time of a copy of the same bytes, if a copy was timed.
    copies: float | None = None

    @property
    def rounds(self) -> list[tuple[float, ...]]:
        """The samples of each round, in seconds.

        asv stores the rounds one after another. Without recorded sizes of rounds, as before 2026-11-21 16:00 and with
        plain asv, the samples are split in halves. A few samples in the wrong half hardly change a median.
        """
        count = len(self.samples)
        sizes = self.counts if sum(self.counts) == count else (-(-count // 2), count // 2)
        ends = itertools.accumulate(sizes)
        return [self.samples[end - size : end] for end, size in zip(ends, sizes, strict=True) if size]

    def format_name(self, benchmark: str) -> str:
        """Return the configuration's name in asv's tables, without the quotes around strings."""
        return f"{benchmark}({', '.join(self.params.values())})" if self.params else benchmark
