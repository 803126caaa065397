"""What became of the configurations of a commit, as the process that measured them tells it."""

from __future__ import annotations

from typing import Any

import msgspec

from kernelwatch.store.models import Checked


class Configuration(msgspec.Struct, tag=True, omit_defaults=True, kw_only=True):
    """What became of a configuration: its numbers, or why there are none.

    Parameters
    ----------
    group : str
        The class of benchmarks, with its module.
    place : int
        Among the configurations of the class, in asv's order.
    params : str
        Its parameters, as reports print them.
    fingerprint : str
        Of all that its numbers depend on; empty if that is not known, and they are never reused.
    machine_code : tuple of str
        SHA-256, launch and architecture; also the SHA-256 of the machine code alone, where that was looked at.
    block : tuple of int
        Threads of a block and its bytes of dynamic shared memory, of what was compiled; None where they depend on a
        launch.
    reused : str
        The commit whose numbers it has; empty if it was measured.
    skipped, failed : str
        Why it could not be measured, and what went wrong.
    numbers : dict
        Benchmark -> a number, or samples.
    rounds : list of int
        Samples that each round took of a time.
    stopped : list of str
        Why each round took no more.
    held_back : list of str
        Why the GPU did not run as fast as it might.
    spent : dict
        Seconds of the measuring process, by what they were spent on.
    """

    group: str
    place: int
    params: str
    fingerprint: str = ""
    machine_code: tuple[str, ...] = ()
    block: tuple[int, int] | None = None
    reused: str = ""
    skipped: str = ""
    failed: str = ""
    numbers: dict[str, Any] = {}
    rounds: list[int] = []
    stopped: list[str] = []
    held_back: list[str] = []
    spent: dict[str, float] = {}


class Checks(msgspec.Struct, tag=True):
    """All that were measured of the numbers that could be reused. If one of them differs, nothing is reused."""

    checked: list[Checked]


class Line(msgspec.Struct, tag=True):
    """What a run records of a kernel's source lines."""

    line: dict[str, Any]
