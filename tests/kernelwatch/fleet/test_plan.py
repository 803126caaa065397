"""What a fleet measures: shards, from what is stored. No worker is needed."""

from __future__ import annotations

import heapq
import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from kernelwatch import suite
from kernelwatch.fleet import plan
from kernelwatch.fleet.plan import Series
from kernelwatch.fleet.shards import Shard
from kernelwatch.fleet.stored import Stored

A, B, C = ("a" * 40, "b" * 40, "c" * 40)
ONE, TWO, GONE = "GPU-1", "GPU-2", "GPU-gone"


class Known(Stored):
    """What a test says is stored: all configurations of some commits, and who measured the timed ones last."""

    def __init__(self, commits: Sequence[str] = (), last: Mapping[tuple[str, str], str] | None = None) -> None:
        self._commits, self._last = commits, dict(last or {})

    def has(self, commit: str, benchmark: str) -> set[str]:
        """Everything or nothing."""
        return set(plan.texts(benchmark)) if commit in self._commits else set()

    def last(self) -> dict[tuple[str, str], str]:
        """As said."""
        return self._last


def _all(found: Sequence[Shard]) -> Counter[tuple[str, str, str]]:
    """How often each configuration is measured at each commit."""
    return Counter(
        (commit, name, text)
        for shard in found
        for commit in shard.commits
        for name, texts in shard.selected.items()
        for text in texts
    )


def _wanted(commits: Sequence[str]) -> Counter[tuple[str, str, str]]:
    kinds = (suite.Kind.TIMED, suite.Kind.CONTROL)
    names = [name for name, (kind, _) in suite.BENCHMARKS.items() if kind in kinds]
    return Counter((commit, name, text) for commit in commits for name in names for text in plan.texts(name))


def _seconds(part: Sequence[Series]) -> float:
    return sum(one.seconds for one in part)


#: Regular expressions of benchmarks.
SOME = ["", "time_copy", "OffsetCopy|StrideCopy", "IsolatedTranspose", "time_kernel", "time_transpose"]


@pytest.mark.parametrize("devices", [1, 2, 7, 8])
@pytest.mark.parametrize("largest", [30, 100, 10_000])
@pytest.mark.parametrize("some", SOME)
def test_series_are_cut_evenly(devices: int, largest: int, some: str) -> None:
    """Each is in one part of `largest` at most; parts are as many for each device, and take about as long."""
    chosen = [one for one in plan.series() if re.search(some, one.benchmark)]
    parts = plan.cut(chosen, devices, largest)
    assert Counter(itertools.chain(*parts)) == Counter(chosen)
    assert len(parts) % devices == 0
    assert max(map(len, parts)) <= largest
    longest = max(one.seconds for one in chosen)
    assert max(map(_seconds, parts)) <= _seconds(chosen) / len(parts) + longest


@pytest.mark.parametrize(
    ("count", "devices", "sizes"), [(0, 2, []), (100, 1, [100]), (100, 4, [25] * 4), (100, 100, [1] * 100)]
)
def test_work_is_divided_where_devices_would_idle(count: int, devices: int, sizes: list[int]) -> None:
    """Even if all series share their inputs."""
    assert [len(part) for part in plan.cut([Series("b", "float32", 1, f"{n}") for n in range(count)], devices)] == sizes


def test_work_stays_together() -> None:
    """Series over the same data are in one part, unless that would be too large."""
    parts = plan.cut([Series("b", "float32", number // 10, f"{number}") for number in range(100)], 2, 50)
    assert [len({one.useful_bytes for one in part}) for part in parts] == [5, 5]


def test_what_a_series_costs() -> None:
    """What two shards of copies took on two H200s, by docs/evidence/fleet.md."""
    for count, moved, seconds in ((76, 47.4e9, 81.2 / 6), (74, 22.8e9, 62.5 / 6)):
        assert count * Series("b", "float32", int(moved / count), "c").seconds == pytest.approx(seconds, rel=0.05)


@pytest.mark.parametrize("devices", [1, 2, 4])
@pytest.mark.parametrize("some", SOME)
def test_the_next_commit_moves_no_series(devices: int, some: str) -> None:
    """GPUs that are still there keep all that they got, whoever was free first: parts of a few series are uneven."""
    uuids = [f"GPU-{number}" for number in range(devices)]
    last: dict[tuple[str, str], str] = {}
    free = [(0.0, uuid) for uuid in uuids]
    for part in plan.cut([one for one in plan.series() if re.search(some, one.benchmark)], devices):
        ends, uuid = free[0]
        heapq.heapreplace(free, (ends + _seconds(part), uuid))
        last |= {(one.benchmark, one.configuration): uuid for one in part}
    found = plan.by_series(Known([A], last), [B], uuids, some)
    assert found
    for shard in found:
        names = {(name, text) for name, texts in shard.selected.items() for text in texts if (name, text) in last}
        assert {last[each] for each in names} == {shard.device}


@pytest.mark.parametrize(
    ("stored", "devices", "by_commit", "measured"),
    [
        ([], [], [A, B], []),
        ([A], [], [B], []),
        ([], [ONE, TWO], [A, B], [A, B]),
        ([A], [ONE, TWO], [B], [B]),
        ([A, B], [ONE], [], []),
    ],
)
def test_what_is_not_stored_is_measured_once(
    stored: list[str], devices: list[str], by_commit: list[str], measured: list[str]
) -> None:
    """Each configuration at each commit, and nothing that is stored."""
    found = plan.by_commit(Known(stored), [A, B], has_gpu=bool(devices))
    assert [shard.commits for shard in found] == [(commit,) for commit in by_commit]
    if devices:
        by_series = plan.by_series(Known(stored), [A, B], devices)
        assert _all(by_series) == _wanted(measured)
        assert len({shard.key for shard in by_series}) == len(by_series)


@pytest.mark.parametrize("has_gpu", [False, True])
def test_half_a_benchmark_is_measured(has_gpu: bool) -> None:
    """As a whole: it is quick."""

    class Half(Known):
        def has(self, commit: str, benchmark: str) -> set[str]:
            return set(plan.texts(benchmark)[1:])

    (found,) = plan.by_commit(Half(), [A], has_gpu=has_gpu)
    kinds = {suite.BENCHMARKS[name][0] for name in found.selected}
    assert kinds == ({suite.Kind.COUNTED, suite.Kind.COMPILED} if has_gpu else set(suite.Kind))


@pytest.mark.parametrize(
    ("owner", "devices", "kept"),
    [
        (lambda _: ONE, [ONE], 1.0),
        (lambda _: ONE, [ONE, TWO], 0.5),
        (lambda at: (ONE, GONE)[at % 2], [ONE, TWO], 0.5),
        (lambda _: ONE, [TWO], 0.0),
        (lambda _: ONE, [ONE, TWO, "GPU-3", "GPU-4"], 0.25),
    ],
)
def test_a_gpu_keeps_its_series_up_to_its_share(owner: object, devices: list[str], kept: float) -> None:
    """What it gives away, any other may measure."""
    assert callable(owner)
    last = {(one.benchmark, one.configuration): owner(at) for at, one in enumerate(plan.series())}
    found = plan.by_series(Known([A], last), [B, C], devices)
    assert _all(found) == _wanted([B, C])
    seconds = {(one.benchmark, one.configuration): one.seconds for one in plan.series()}
    taken: dict[str | None, float] = {ONE: 0.0, None: 0.0}
    for shard in found:
        taken[shard.device] += sum(
            seconds.get((name, text), 0) for name, each in shard.selected.items() for text in each
        )
    assert taken[ONE] / sum(taken.values()) == pytest.approx(kept, abs=0.02)


def test_patterns_select_what_they_say() -> None:
    """A pattern may match anywhere in "name(parameters)"."""
    names = [f"{name}({text})" for name in suite.BENCHMARKS for text in plan.texts(name)]
    shard = plan.by_series(Known(), [A], [ONE, TWO])[0]
    patterns = [re.compile(pattern) for pattern in shard.patterns]
    found = {name for name in names if any(pattern.search(name) for pattern in patterns)}
    assert found == {f"{name}({text})" for name, texts in shard.selected.items() for text in texts}


def test_a_whole_benchmark_is_no_other() -> None:
    """Nor one that begins with its name, nor one whose name ends with it."""
    (pattern,) = Shard((A,), {"track_x.X.track_sectors": ()}).patterns
    found = ["track_x.X.track_sectors", "track_x.X.track_sectors('a')"]
    others = ["track_x.X.track_sectors_2", "a.track_x.X.track_sectors"]
    assert [name for name in found + others if re.search(pattern, name)] == found
    (pattern,) = Shard((A,), {"track_x.X.track_sectors": ("'a+b', '(1)'",)}).patterns
    assert re.search(pattern, "track_x.X.track_sectors('a+b', '(1)')")
