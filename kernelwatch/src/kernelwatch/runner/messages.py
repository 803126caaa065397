"""What a run and the process of a commit tell each other: JSON, a line each."""

from __future__ import annotations

import multiprocessing
import os
from typing import Any

import msgspec

from kernelwatch.runner.reuse import Stored
from kernelwatch.store.outcomes import Checks, Configuration, Line


class Suite(msgspec.Struct, tag=True):
    """The benchmarks that the commit's process has found, as asv's discovery describes them.

    Parameters
    ----------
    benchmarks : list of dict
        As of asv's `benchmarks.json`.
    groups : dict
        Class, with its module -> the benchmarks whose numbers one measurement gives: a time comes first.
    """

    benchmarks: list[dict[str, Any]]
    groups: dict[str, list[str]]


class Refusal(msgspec.Struct, tag=True):
    """Why the commit's package or the suite cannot be imported, and whether something was not found."""

    text: str
    is_missing: bool


class Step(msgspec.Struct, tag=True):
    """A round of a configuration of a class begins."""

    group: str
    place: int


class Task(msgspec.Struct):
    """What is asked of the commit's process.

    Parameters
    ----------
    places : dict
        Class, with its module -> the configurations that are wanted, by their places.
    benchmarks : list of str
        Those that are wanted.
    versions : dict
        Class -> the version of its benchmarks.
    rounds : dict
        Class -> how often a time is measured.
    stored : Stored
        What earlier runs measured.
    lines : str, optional
        The machine's folder, with the source lines that are known; none are counted if not given.
    """

    places: dict[str, list[int]]
    benchmarks: list[str]
    versions: dict[str, str]
    rounds: dict[str, int]
    stored: Stored
    lines: str = ""


Message = Suite | Refusal | Step | Configuration | Checks | Line


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
