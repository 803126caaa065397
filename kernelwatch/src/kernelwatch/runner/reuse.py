"""Which numbers of earlier commits are taken over: those whose fingerprints are the same, if a sample of them holds.

A share of what could be reused is measured all the same: the standing comparison of equals with equals. If one of these
differs, nothing is reused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from kernelwatch.store.models import Checked
from kernelwatch.store.outcomes import Configuration

#: Of a class's numbers that could be reused, the share that is measured all the same. A run takes those that were
#: measured longest ago: each is measured again within 1 / SHARE runs.
SHARE = 0.02


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
    #: The commit that is measured. Numbers that are its own are not called reused.
    commit: str = ""

    def of(self, one: Configuration) -> Entry | None:
        """Return what is stored under a configuration's fingerprint."""
        return self.entries.get(key(one.group, one.fingerprint)) if one.fingerprint else None


class Check(NamedTuple):
    """A configuration to measure although its number is stored."""

    one: Configuration
    entry: Entry


def key(group: str, fingerprint: str) -> str:
    """Return what an entry is found by: a class and a fingerprint."""
    return f"{group} {fingerprint}"


def decide(
    ones: Sequence[Configuration], stored: Stored, measure: Callable[[Sequence[Check]], Sequence[float | None]]
) -> list[Checked]:
    """Give configurations their stored numbers, if those that are measured all the same agree with theirs.

    The configurations are changed in place. `measure` returns of each what it is now over what is stored, None if it
    cannot be measured.
    """
    groups: dict[str, list[Check]] = {}
    for one in ones:
        entry = stored.of(one)
        if entry is not None:
            groups.setdefault(one.group, []).append(Check(one, entry))
    checks = [check for group in groups.values() for check in chosen(group)]
    checked = [
        Checked(configuration=f"{one.group}({one.params})", ratio=ratio, threshold=entry.threshold)
        for (one, entry), ratio in zip(checks, measure(checks), strict=True)
    ]
    if not any(each.differs for each in checked):
        measured = {id(check.one) for check in checks}
        for one, entry in (check for group in groups.values() for check in group if id(check.one) not in measured):
            one.reused = entry.commit if entry.commit != stored.commit else ""
            one.numbers = entry.values
    return checked


def chosen(checks: Sequence[Check]) -> list[Check]:
    """Return a share of the configurations of a class, rounded up: those that were measured longest ago, side by side.

    Neighbours have references and buffers in common, so that they take less time than others.
    """
    return sorted(checks, key=lambda check: (check.entry.run, check.one.place))[: math.ceil(SHARE * len(checks))]
