"""What happens to each configuration of a commit: measured, or taken from an earlier commit.

The run writes what is stored into a file (`kernelwatch.asv.reuse`). Before a commit's first configuration,
`setup_cache` makes a plan of it: which configurations have a stored number, and which of these are measured all the
same. If one of those differs, nothing is reused. The plan lies in the folder of asv's cache. There the run finds it,
and starts no process for what the plan answers.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

#: The environment variable with the path of what is stored; without it everything is measured.
STORED = "KERNELWATCH_STORED"

#: Of a class's numbers that could be reused, the share that is measured all the same: the standing comparison of equals
#: with equals. A run takes those that were measured longest ago: each is measured again within 1 / SHARE runs.
SHARE = 0.02

#: The plan's name in the folder of asv's cache.
PLAN = "plan.json"


class Entry(msgspec.Struct):
    """What is stored under a fingerprint, and the commit that it was measured at."""

    commit: str
    #: Benchmark -> its number, or its samples.
    values: dict[str, Any]
    #: Relative difference up to which a time is the same; counted numbers must be equal.
    threshold: float = 0.0
    #: Of the runs that measured something, the place of the one that measured it, oldest first.
    run: int = 0


class Stored(msgspec.Struct):
    """What a run knows of earlier ones."""

    #: Class and fingerprint, as `key` joins them -> what is stored.
    entries: dict[str, Entry] = {}
    #: The commit whose plan is made. Numbers that are its own are not called reused.
    commit: str = ""
    #: Class -> the places of the configurations that the run asks for; None if it does not say, and asks for all.
    selected: dict[str, list[int]] | None = None

    def asks(self, name: str, place: int) -> bool:
        """Whether the run asks for a configuration of a class."""
        return self.selected is None or place in self.selected.get(name, [])


class Configuration(msgspec.Struct):
    """Of a plan: one configuration of a class, by its parameters as reports print them."""

    params: str
    #: Of its numbers; empty if there is none, and they are never reused.
    fingerprint: str = ""
    #: SHA-256, launch and architecture, for the record; empty if the plan does not know. Where it was looked at, also
    #: the SHA-256 of the machine code alone.
    machine_code: tuple[str, ...] = ()
    #: The commit whose numbers it has; empty if it is measured.
    reused: str = ""
    #: Why no process could measure it at this commit; empty if one can.
    skipped: str = ""
    #: Benchmark -> what asv's processes would return, one after the other. Those that are not here are run.
    answers: dict[str, list[Any]] = {}


class Checked(msgspec.Struct):
    """Of a plan: a configuration that was measured although its number is stored, by its class and parameters."""

    configuration: str
    #: What was measured over what is stored; None if it could not be measured.
    ratio: float | None
    #: Relative difference up to which both are the same.
    threshold: float

    @property
    def differs(self) -> bool:
        """Whether the stored number does not hold."""
        return self.ratio is None or abs(self.ratio - 1) > self.threshold


class Plan(msgspec.Struct):
    """What happens to each configuration."""

    #: Class, with its module -> its configurations, in asv's order.
    configurations: dict[str, list[Configuration]]
    #: What could be reused and was measured all the same. If one of them differs, nothing is reused.
    checked: list[Checked] = []
    #: SHA-256 of machine code -> its instructions by class.
    instructions: dict[str, dict[str, int]] = {}

    def write(self, folder: Path) -> None:
        """Leave it where the run finds it."""
        (folder / PLAN).write_bytes(msgspec.json.encode(self))


class Check(NamedTuple):
    """A configuration to measure although its number is stored: its class, its place there, and what is stored."""

    name: str
    place: int
    entry: Entry


def text(params: Mapping[str, Any]) -> str:
    """Return a configuration's parameters as reports print them."""
    return ", ".join(map(str, params.values()))


def read(folder: Path) -> Plan | None:
    """Return the plan that lies in a folder; None if there is none."""
    path = folder / PLAN
    return msgspec.json.decode(path.read_bytes(), type=Plan) if path.exists() else None


def key(name: str, found: str) -> str:
    """Return what an entry is found by: a class and a fingerprint."""
    return f"{name} {found}"


def stored() -> Stored:
    """Return what the run knows of earlier ones; nothing if it does not say."""
    path = os.environ.get(STORED)
    return msgspec.json.decode(Path(path).read_bytes(), type=Stored) if path else Stored()


def decide(
    plan: Plan,
    known: Stored,
    measure: Callable[[Sequence[Check]], Sequence[float | None]],
    answers: Callable[[str, Mapping[str, Any]], dict[str, list[Any]]],
) -> None:
    """Give configurations of a plan their stored numbers, if those that are measured all the same agree with theirs.

    The plan is changed in place. `measure` returns of each what it is now over what is stored, None if it cannot be
    measured; `answers`, of a class and stored values, what asv's processes would return.
    """
    found = {
        name: [
            Check(name, place, known.entries[key(name, one.fingerprint)])
            for place, one in enumerate(ones)
            if one.fingerprint and key(name, one.fingerprint) in known.entries
        ]
        for name, ones in plan.configurations.items()
    }
    checks = [check for each in found.values() for check in chosen(each)]
    plan.checked = [
        Checked(f"{name}({plan.configurations[name][place].params})", ratio, entry.threshold)
        for (name, place, entry), ratio in zip(checks, measure(checks), strict=True)
    ]
    if any(each.differs for each in plan.checked):
        return
    measured = {(name, place) for name, place, _ in checks}
    for name, place, entry in (check for each in found.values() for check in each):
        if (name, place) not in measured:
            one = plan.configurations[name][place]
            one.reused = entry.commit if entry.commit != known.commit else ""
            one.answers = answers(name, entry.values)


def chosen(checks: Sequence[Check]) -> list[Check]:
    """Return a share of the configurations of a class, rounded up: those that were measured longest ago, side by side.

    Neighbours have references and buffers in common, so that they take less time than others.
    """
    return sorted(checks, key=lambda check: (check.entry.run, check.place))[: math.ceil(SHARE * len(checks))]
