"""What a run and the process of a commit tell each other: JSON, a line each.

A group is a class of benchmarks, with its module: `time_copy.OffsetCopy`. A place is that of a configuration among the
group's, in asv's order.
"""

from __future__ import annotations

import multiprocessing
import os
from typing import Any

import msgspec


class Entry(msgspec.Struct):
    """What is stored under a fingerprint, and the commit that it was measured at."""

    commit: str
    #: Benchmark -> its number, or its samples.
    values: dict[str, Any]
    #: Relative difference up to which a time is the same; counted numbers must be equal.
    threshold: float = 0.0
    #: Of the runs that measured something, the place of the one that measured it, oldest first.
    run: int = 0


#: What a run knows of earlier ones: group -> fingerprint -> what is stored.
Entries = dict[str, dict[str, Entry]]


class Task(msgspec.Struct):
    """What is asked of the commit's process."""

    #: Group -> the places that are wanted.
    places: dict[str, list[int]] = {}
    #: The benchmarks that are wanted.
    benchmarks: list[str] = []
    #: Group -> the version of its benchmarks, and how often a time is measured.
    versions: dict[str, str] = {}
    rounds: dict[str, int] = {}
    #: What earlier runs measured, and the commit that is measured: numbers that are its own are not called reused.
    stored: Entries = {}
    commit: str = ""
    #: The machine's folder, with the source lines that are known; none are counted without it.
    lines: str = ""
    #: The commit's place among those that are measured in turns, if nothing is wanted but the jobs of what is timed.
    turn: int | None = None


class Discovery(msgspec.Struct, tag=True):
    """The benchmarks that the commit's process has found."""

    #: As of asv's `benchmarks.json`.
    benchmarks: list[dict[str, Any]]
    #: Group -> the benchmarks whose numbers one measurement gives: a time comes first.
    groups: dict[str, list[str]]


class Refusal(msgspec.Struct, tag=True):
    """Why the commit's package or the suite cannot be imported, and whether something was not found."""

    text: str
    is_missing: bool


class Step(msgspec.Struct, tag=True):
    """A round of a configuration begins."""

    group: str
    place: int


class Configuration(msgspec.Struct, tag=True, omit_defaults=True, kw_only=True):
    """What became of a configuration: its numbers, or why there are none."""

    group: str
    place: int
    #: Its parameters, as reports print them.
    params: str
    #: Of all that its numbers depend on; empty if that is not known, and they are never reused.
    fingerprint: str = ""
    #: SHA-256, launch and architecture; also the SHA-256 of the machine code alone, where that was looked at.
    machine_code: tuple[str, ...] = ()
    #: Threads of a block and its bytes of dynamic shared memory, of what was compiled; None where a launch decides.
    block: tuple[int, int] | None = None
    #: The commit whose numbers it has; empty if it was measured.
    reused: str = ""
    #: Why it could not be measured, and what went wrong.
    skipped: str = ""
    failed: str = ""
    #: Benchmark -> a number, or samples.
    numbers: dict[str, Any] = {}
    #: Of a time: the samples that each round took.
    rounds: list[int] = []
    #: Why the GPU did not run as fast as it might.
    held_back: list[str] = []


class Difference(msgspec.Struct, tag=True):
    """A number that could be reused, and is not what is stored: so nothing is reused of its kind."""

    configuration: str
    #: What was measured over what is stored; None if it could not be measured.
    ratio: float | None


class Line(msgspec.Struct, tag=True):
    """What a run records of a kernel's source lines."""

    line: dict[str, Any]


Message = Discovery | Refusal | Step | Configuration | Difference | Line


class Sender:
    """Writes messages to a file descriptor, from this process and from those that it forks."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._writing = multiprocessing.get_context("fork").Lock()

    def __call__(self, message: Message) -> None:
        """Write a message, whole."""
        line = memoryview(msgspec.json.encode(message) + b"\n")
        with self._writing:
            while line:
                line = line[os.write(self._descriptor, line) :]
