"""Which shards are left to measure, from what is stored: a function of data, which starts nothing."""

from __future__ import annotations

import bisect
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kernelwatch.asv import suite
from kernelwatch.fleet import shards
from kernelwatch.fleet.shards import Series, Shard
from kernelwatch.fleet.stored import Last, Stored

#: A GPU keeps all its series if they take up to this many times its share: handing some over would cost more.
_UNEVEN = 1.25


@dataclass(frozen=True)
class Plan:
    """What is left to measure on the machines of one name.

    Parameters
    ----------
    by_commit : list of Shard
        A commit each. They need no GPU, and compile what the others need.
    by_series : list of Shard
        All commits each, for one GPU; measured once the others are through.
    """

    by_commit: list[Shard] = field(default_factory=list)
    by_series: list[Shard] = field(default_factory=list)


def plan(
    stored: Stored, commits: Sequence[str], devices: Sequence[str], largest: int = shards.LARGEST, bench: str = ""
) -> Plan:
    """Divide what is not stored yet.

    A GPU goes on with the series that it has measured before, up to its share. Those of a GPU that is gone, and those
    above a share, go to whoever is free, with the last commit once more.

    Parameters
    ----------
    stored : Stored
        What is there.
    commits : sequence of str
        Those wanted.
    devices : sequence of str
        UUIDs of the GPUs; without any, each commit is measured in one piece.
    largest : int
        Series that a shard has at most.
    bench : str
        Regular expression: only benchmarks in whose names it is found.
    """
    names = [name for name in (shards.untimed() if devices else suite.BENCHMARKS) if re.search(bench, name)]
    wanted = {name: frozenset(shards.texts(name)) for name in names}
    by_commit = []
    for commit in commits:
        lacking = {name: () for name, texts in wanted.items() if texts - stored.has(commit, name)}
        if lacking:
            by_commit.append(Shard((commit,), lacking))
    return Plan(by_commit, _by_series(stored, commits, devices, largest, bench) if devices else [])


def _by_series(stored: Stored, commits: Sequence[str], devices: Sequence[str], largest: int, bench: str) -> list[Shard]:
    has = {(commit, name): stored.has(commit, name) for commit in commits for name in suite.BENCHMARKS}
    last = stored.last()
    alike: dict[tuple[tuple[str, ...], Last | None], list[Series]] = defaultdict(list)
    for one in shards.series():
        if not re.search(bench, one.benchmark):
            continue
        names = shards.select([one])
        left = tuple(each for each in commits if any(one.configuration not in has[each, name] for name in names))
        if left:
            alike[left, last.get((one.benchmark, one.configuration))].append(one)
    room = _room(alike, devices)
    found: list[Shard] = []
    for (left, before), members in alike.items():
        keeps = 0
        if before and before.uuid in devices:
            ends = list(itertools.accumulate(map(shards.seconds, members)))
            keeps = bisect.bisect_right(ends, room[before.uuid])
            room[before.uuid] -= ends[keeps - 1] if keeps else 0.0
            found += (_shard(part, left, before.uuid) for part in shards.cut(members[:keeps], 1, largest))
        overlap = before.commit if before and before.commit not in left else None
        found += (_shard(part, left, None, overlap) for part in shards.cut(members[keeps:], len(devices), largest))
    return found


def _room(
    alike: Mapping[tuple[tuple[str, ...], Last | None], Sequence[Series]], devices: Sequence[str]
) -> dict[str, float]:
    """Seconds of series that each GPU keeps: all that it has if that is about its share, else the share."""
    has = dict.fromkeys(devices, 0.0)
    for (_, before), members in alike.items():
        if before and before.uuid in has:
            has[before.uuid] += sum(map(shards.seconds, members))
    share = sum(shards.seconds(one) for members in alike.values() for one in members) / len(devices)
    return {uuid: share if seconds > _UNEVEN * share else math.inf for uuid, seconds in has.items()}


def _shard(part: Iterable[Series], commits: tuple[str, ...], device: str | None, overlap: str | None = None) -> Shard:
    copy, members = shards.control(), list(part)
    has_copy = any((one.benchmark, one.configuration) == (copy.benchmark, copy.configuration) for one in members)
    selected = shards.select(members if has_copy else [*members, copy])
    control = None if has_copy else copy.configuration
    return Shard((overlap, *commits) if overlap else commits, selected, device, overlap, control)
