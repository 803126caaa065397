"""What a fleet measures: shards, from what is stored. No worker is needed."""

from __future__ import annotations

import heapq
import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from kernelwatch.asv import suite
from kernelwatch.fleet import plan, shards
from kernelwatch.fleet.shards import Series, Shard
from kernelwatch.fleet.stored import Last, Stored

A, B, C = ("a" * 40, "b" * 40, "c" * 40)
ONE, TWO, GONE = "GPU-1", "GPU-2", "GPU-gone"


class Known(Stored):
    """What a test says is stored: all configurations of some commits, and who measured the timed ones last."""

    def __init__(self, commits: Sequence[str] = (), last: Mapping[tuple[str, str], Last] | None = None) -> None:
        self._commits, self._last = commits, dict(last or {})

    def has(self, commit: str, benchmark: str) -> set[str]:
        """Everything or nothing."""
        return set(shards.texts(benchmark)) if commit in self._commits else set()

    def last(self) -> dict[tuple[str, str], Last]:
        """As said."""
        return self._last


def _all(found: Sequence[Shard]) -> Counter[tuple[str, str, str]]:
    """How often each configuration is measured at each commit, controls and overlaps left out."""
    return Counter(
        (commit, name, text)
        for shard in found
        for commit in shard.commits
        if commit != shard.overlap
        for name, texts in shard.series.items()
        for text in texts
    )


def _wanted(commits: Sequence[str]) -> Counter[tuple[str, str, str]]:
    kinds = (suite.Kind.TIMED, suite.Kind.CONTROL)
    names = [name for name, (kind, _) in suite.BENCHMARKS.items() if kind in kinds]
    return Counter((commit, name, text) for commit in commits for name in names for text in shards.texts(name))


#: Regular expressions of benchmarks.
SOME = ["", "time_copy", "OffsetCopy|StrideCopy", "StrideCopy", "IsolatedTranspose", "time_kernel", "time_transpose"]


@pytest.mark.parametrize("devices", [1, 2, 4, 7, 8])
@pytest.mark.parametrize("largest", [30, 100, 10_000])
@pytest.mark.parametrize("some", SOME)
def test_series_are_dealt_evenly(devices: int, largest: int, some: str) -> None:
    """Each is in one part of `largest` at most; parts are as many for each device, and take about as long."""
    chosen = [one for one in shards.series() if re.search(some, one.benchmark)]
    parts = shards.cut(chosen, devices, largest)
    assert Counter(itertools.chain(*parts)) == Counter(chosen)
    assert len(parts) % devices == 0
    assert max(map(len, parts)) <= largest
    costs = [sum(map(shards.seconds, part)) for part in parts]
    assert max(costs) <= 1.15 * sum(costs) / len(costs)


def test_nothing_is_dealt() -> None:
    """To nobody."""
    assert shards.cut([], 2) == []


def test_what_a_series_costs() -> None:
    """What two shards of copies took on two H200s, by docs/evidence/fleet.md."""
    for count, moved, seconds in ((76, 47.4e9, 81.2 / 6), (74, 22.8e9, 62.5 / 6)):
        series = [Series("b", "c", ("b", "float32", moved / count))] * count
        assert sum(map(shards.seconds, series)) == pytest.approx(seconds, rel=0.05)


@pytest.mark.parametrize("devices", [1, 2, 4, 8])
@pytest.mark.parametrize("some", SOME)
def test_the_next_commit_moves_no_series(devices: int, some: str) -> None:
    """GPUs that are still there keep all that they got, whoever was free first."""
    uuids = [f"GPU-{number}" for number in range(devices)]
    last: dict[tuple[str, str], Last] = {}
    free = [(0.0, uuid) for uuid in uuids]
    for part in shards.cut([one for one in shards.series() if re.search(some, one.benchmark)], devices):
        ends, uuid = free[0]
        heapq.heapreplace(free, (ends + sum(map(shards.seconds, part)), uuid))
        last |= {(one.benchmark, one.configuration): Last(uuid, A) for one in part}
    found = plan.plan(Known([A], last), [B], uuids, bench=some).by_series
    assert found
    for shard in found:
        names = {(name, text) for name, texts in shard.series.items() for text in texts if (name, text) in last}
        assert {last[each].uuid for each in names} == {shard.device}


@pytest.mark.parametrize(
    ("stored", "devices", "commits", "by_commit", "measured"),
    [
        ([], [], [A, B], 2, []),
        ([A], [], [A, B], 1, []),
        ([], [ONE, TWO], [A, B], 2, [A, B]),
        ([A], [ONE, TWO], [A, B], 1, [B]),
        ([A, B], [ONE], [A, B], 0, []),
    ],
)
def test_what_is_not_stored_is_measured_once(
    stored: list[str], devices: list[str], commits: list[str], by_commit: int, measured: list[str]
) -> None:
    """Each configuration at each commit, and nothing that is stored; a copy of a control comes beside."""
    found = plan.plan(Known(stored), commits, devices)
    assert len(found.by_commit) == by_commit
    assert _all(found.by_series) == _wanted(measured)
    assert len({shard.key for shard in found.by_series}) == len(found.by_series)
    copy = shards.control()
    for shard in found.by_series:
        assert copy.configuration in shard.selected[copy.benchmark], "every shard measures the plain copy"
        assert (shard.control is None) == (copy.configuration in shard.series.get(copy.benchmark, ()))


@pytest.mark.parametrize(
    ("devices", "kept", "overlaps"),
    [([ONE], 1.0, 0.0), ([ONE, TWO], 0.5, 0.5), ([TWO], 0.0, 1.0), ([ONE, TWO, "GPU-3", "GPU-4"], 0.25, 0.75)],
)
def test_a_gpu_keeps_its_series_up_to_its_share(devices: list[str], kept: float, overlaps: float) -> None:
    """What it gives away, another one measures with the commit before: the step between the two is known."""
    last = {(one.benchmark, one.configuration): Last(ONE, A) for one in shards.series()}
    found = plan.plan(Known([A], last), [B, C], devices).by_series
    assert _all(found) == _wanted([B, C])
    count = {True: 0, False: 0}
    for shard in found:
        assert shard.device == (None if shard.overlap else ONE)
        assert shard.commits == ((A, B, C) if shard.overlap else (B, C))
        count[bool(shard.overlap)] += sum(len(texts) for name, texts in shard.series.items() if "time_" in name)
    whole = sum(count.values())
    assert count[False] / whole == pytest.approx(kept, abs=0.01)
    assert count[True] / whole == pytest.approx(overlaps, abs=0.01)


def test_a_share_is_one_share() -> None:
    """Also of a GPU that measured some of its series at one commit last, and some at another."""
    last = {(one.benchmark, one.configuration): Last(ONE, (A, B)[at % 2]) for at, one in enumerate(shards.series())}
    found = plan.plan(Known([A, B], last), [C], [ONE, TWO]).by_series
    kept, given = (
        _wanted([C]).total() - _all([one for one in found if one.device != device]).total() for device in (ONE, None)
    )
    assert kept / (kept + given) == pytest.approx(0.5, abs=0.05)


def test_a_commit_that_is_measured_anyway_is_no_overlap() -> None:
    """What a GPU that is gone measured last, and is to be measured again."""
    last = {(one.benchmark, one.configuration): Last(GONE, A) for one in shards.series()}
    found = plan.plan(Known([], last), [A, B], [ONE]).by_series
    assert {(shard.commits, shard.overlap) for shard in found} == {((A, B), None)}


@pytest.mark.parametrize("devices", [[], [ONE]])
def test_half_a_benchmark_is_measured(devices: list[str]) -> None:
    """As a whole: it is quick."""

    class Half(Known):
        def has(self, commit: str, benchmark: str) -> set[str]:
            return set(shards.texts(benchmark)[1:])

    (found,) = plan.plan(Half(), [A], devices).by_commit
    kinds = {suite.BENCHMARKS[name][0] for name in found.selected}
    assert kinds == ({suite.Kind.COUNTED, suite.Kind.COMPILED} if devices else set(suite.Kind))


def test_patterns_select_what_they_say() -> None:
    """A pattern may match anywhere in "name(parameters)"."""
    names = [f"{name}({text})" for name in suite.BENCHMARKS for text in shards.texts(name)]
    shard = plan.plan(Known(), [A], [ONE, TWO]).by_series[0]
    patterns = [re.compile(pattern) for pattern in shard.patterns]
    found = {name for name in names if any(pattern.search(name) for pattern in patterns)}
    assert found == {f"{name}({text})" for name, texts in shard.selected.items() for text in texts}
    whole = Shard((A,), {"track_compiled.Compiled.track_registers": ()})
    (pattern,) = whole.patterns
    found = {name for name in names if re.search(pattern, name)}
    assert found == {name for name in names if name.startswith("track_compiled.Compiled.track_registers(")}


def test_a_whole_benchmark_is_no_other() -> None:
    """Nor one that begins with its name, nor one whose name ends with it."""
    (pattern,) = Shard((A,), {"track_x.X.track_sectors": ()}).patterns
    names = [
        "track_x.X.track_sectors",
        "track_x.X.track_sectors('a')",
        "track_x.X.track_sectors_2",
        "a.track_x.X.track_sectors",
    ]
    assert [name for name in names if re.search(pattern, name)] == names[:2]
    (pattern,) = Shard((A,), {"track_x.X.track_sectors": ("'a+b', '(1)'",)}).patterns
    assert re.search(pattern, "track_x.X.track_sectors('a+b', '(1)')")


@pytest.mark.parametrize(("devices", "sizes"), [(1, [100]), (3, [34, 33, 33]), (100, [1] * 100)])
def test_work_is_divided_where_devices_would_idle(devices: int, sizes: list[int]) -> None:
    """Even if all series share their inputs."""
    series = [Series("b", str(number), ("b", "float32", 1)) for number in range(100)]
    assert [len(part) for part in shards.cut(series, devices)] == sizes


def test_work_stays_together() -> None:
    """Series over the same data are one piece, unless it is too large."""
    series = [Series("b", str(number), ("b", "float32", number // 10)) for number in range(100)]
    parts = shards.cut(series, 2, 50)
    assert [len(part) for part in parts] == [50, 50]
    assert all(len({one.work for one in part}) == 5 for part in parts)
