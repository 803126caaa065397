"""Findings: warnings of a launch that change no count, reported once per source line; races, per pair of lines."""

from dataclasses import dataclass

from .errors import Source

#: Policies for races and stale reads. ``report``: findings; ``strict``: findings also for stores that change nothing,
#: and for volatile accesses in a warp; ``error``: an exception; ``off``: no check.
RACES = ("report", "strict", "error", "off")
#: Policies for reads of shared or tensor memory that was not written: findings, an exception, no check.
UNWRITTEN = ("report", "error", "off")


@dataclass
class Finding:
    """A warning about one instruction: wrong, undefined or unmodelled behaviour.

    Attributes
    ----------
    code : str
        ``shared-race``, ``global-race``, ``stale-read``, ``unwritten-read``, ``divergent-barrier``,
        ``inactive-lane``, ``mask-without-lane``, ``uncounted-read``, ``printf``, ``child-kernel``, ``heap``,
        ``graph-condition``, ``failed-cancel``, ``lost-alignment`` or ``unknown-limits``.
    source : Source
        The instruction; line 1 of the PTX for ``lost-alignment`` and ``unknown-limits``.
    message : str
        Description of the first occurrence.
    times : int
        Number of executions by threads. Races, stale and unwritten reads count once per execution by a group of
        blocks; ``lost-alignment`` and ``unknown-limits`` never.
    """

    code: str
    source: Source
    message: str
    times: int = 0

    def __str__(self) -> str:
        return f"{self.source}: {self.code}: {self.message}"
