"""Findings of a launch that change no count: reported beside the counts, once a source line."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import Source

#: Policies for races: a finding (strict: also of stores that change nothing), an error, or nothing.
RACES = ("report", "strict", "error", "off")
#: Policies for reads of shared memory that nobody wrote.
UNWRITTEN = ("report", "error", "off")


@dataclass
class Finding:
    """Something to know of an instruction: what is wrong, or undefined, or seen by nobody else.

    Attributes
    ----------
    code : str
        ``shared-race``, ``global-race``, ``unwritten-read``, ``divergent-barrier``, ``inactive-lane``,
        ``mask-without-lane``, ``uncounted-read``, ``printf``, ``child-kernel``, ``heap``, ``graph-condition``,
        ``failed-cancel`` or ``unknown-limits``.
    source : Source
        The instruction.
    message : str
        What it did where it did so first.
    times : int
        How many threads were met doing so.
    """

    code: str
    source: Source
    message: str
    times: int = 0

    def __str__(self) -> str:
        return f"{self.source}: {self.code}: {self.message}"
