"""Which shards are left to measure, from what is stored: a function of data, which starts nothing."""

from __future__ import annotations

import bisect
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kernelwatch import suite
from kernelwatch.fleet.shards import Shard
from kernelwatch.fleet.stored import Stored
from kernelwatch.suite import Kind

#: Series that a shard has at most. A worker that is killed loses its shard; asv begins anew for each.
LARGEST = 100

#: A GPU keeps all its series if they take up to this many times its share: handing some over would cost more.
_UNEVEN = 1.25


class Series(NamedTuple):
    """One timed configuration, over all commits; those that share inputs and references are neighbours when sorted."""

    benchmark: str
    dtype: str
    useful_bytes: int
    configuration: str

    @property
    def seconds(self) -> float:
        """Roughly what it takes a commit (docs/evidence/fleet.md, "What a series costs")."""
        return 0.10 + 0.12e-9 * self.useful_bytes


def texts(benchmark: str) -> list[str]:
    """Return the configurations of a benchmark, as asv writes them."""
    return [", ".join(map(repr, point.values())) for point in suite.BENCHMARKS[benchmark][1].points()]


def series() -> Iterator[Series]:
    """Yield all series that are timed."""
    for name, (kind, sweep) in suite.BENCHMARKS.items():
        if kind is Kind.TIMED:
            for text, point in zip(texts(name), sweep.points(), strict=True):
                yield Series(name, sweep.launch(point).dtype, suite.useful_bytes(name, point) or 0, text)


def select(chosen: Iterable[Series]) -> dict[str, tuple[str, ...]]:
    """Return the configurations of series: their times, and their ratios to copies."""
    found: dict[str, list[str]] = {}
    for one in chosen:
        for name in {one.benchmark: None, suite.control(one.benchmark): None}:
            if name in suite.BENCHMARKS:
                found.setdefault(name, []).append(one.configuration)
    return {name: tuple(each) for name, each in found.items()}


def by_commit(stored: Stored, commits: Sequence[str], *, has_gpu: bool, bench: str = "") -> list[Shard]:
    """Return what no GPU has a part in and is not stored yet, a commit each; on a machine without a GPU, everything."""
    kinds = (Kind.COUNTED, Kind.COMPILED) if has_gpu else tuple(Kind)
    names = [name for name, (kind, _) in suite.BENCHMARKS.items() if kind in kinds and re.search(bench, name)]
    lacking = [{name: () for name in names if set(texts(name)) - stored.has(commit, name)} for commit in commits]
    return [Shard((commit,), each) for commit, each in zip(commits, lacking, strict=True) if each]


def by_series(
    stored: Stored, commits: Sequence[str], devices: Sequence[str], bench: str = "", largest: int = LARGEST
) -> list[Shard]:
    """Return the times that are not stored yet: some series over all commits each, for one GPU.

    A GPU goes on with the series that it has measured before, up to its share. Those of a GPU that is gone, and those
    above a share, go to whoever is free.

    Parameters
    ----------
    stored : Stored
        What is there.
    commits : sequence of str
        Those wanted.
    devices : sequence of str
        UUIDs of the GPUs.
    bench : str
        Regular expression: only benchmarks in whose names it is found.
    largest : int
        Series that a shard has at most.
    """
    has = {(commit, name): stored.has(commit, name) for commit in commits for name in suite.BENCHMARKS}
    last = stored.last()
    #: Commits left -> the GPU that measured them before -> series.
    left: dict[tuple[str, ...], dict[str | None, list[Series]]] = defaultdict(lambda: defaultdict(list))
    owned = dict.fromkeys(devices, 0.0)
    total = 0.0
    for one in sorted(each for each in series() if re.search(bench, each.benchmark)):
        missing = tuple(each for each in commits if any(one.configuration not in has[each, n] for n in select([one])))
        if missing:
            device = last.get((one.benchmark, one.configuration))
            left[missing][device if device in owned else None].append(one)
            total += one.seconds
            if device in owned:
                owned[device] += one.seconds
    share = total / max(1, len(devices))
    room = {uuid: share if seconds > _UNEVEN * share else math.inf for uuid, seconds in owned.items()}
    found = []
    for missing, groups in left.items():
        free = groups.pop(None, [])
        for device, members in groups.items():
            assert device is not None
            ends = list(itertools.accumulate(one.seconds for one in members))
            keeps = bisect.bisect_right(ends, room[device])
            room[device] -= ends[keeps - 1] if keeps else 0.0
            free += members[keeps:]
            found += [Shard(missing, select(part), device) for part in cut(members[:keeps], 1, largest)]
        found += [Shard(missing, select(part)) for part in cut(free, len(devices), largest)]
    return found


def cut(chosen: Iterable[Series], devices: int, largest: int = LARGEST) -> list[list[Series]]:
    """Cut series into parts: as many for each device, which take about as long, of at most so many series.

    Series that share inputs are neighbours, so no more than two parts have some of them.
    """
    ordered = sorted(chosen)
    ends = list(itertools.accumulate(one.seconds for one in ordered))
    for count in itertools.count(devices, devices):
        parts: list[list[Series]] = [[] for _ in range(count)]
        for one, end in zip(ordered, ends, strict=True):
            parts[int(count * (end - one.seconds / 2) / ends[-1])].append(one)
        if max(map(len, parts)) <= largest:
            break
    return [part for part in parts if part]
