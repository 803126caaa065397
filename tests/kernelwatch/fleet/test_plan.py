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
from kernelwatch.fleet.plan import Series, Shard, Stored

A, B, C = ("a" * 40, "b" * 40, "c" * 40)
ONE, TWO, GONE = "GPU-1", "GPU-2", "GPU-gone"
COMPILED = {suite.Kind.COUNTED, suite.Kind.COMPILED}


class Known(Stored):
    """What a test says is stored: all of some kinds at some commits, and who measured the timed ones last."""

    def __init__(
        self,
        commits: Sequence[str] = (),
        last: Mapping[tuple[str, str], str] | None = None,
        compiled: Sequence[str] = (A, B, C),
    ) -> None:
        self._commits, self._last, self._compiled = commits, dict(last or {}), compiled

    def has(self, commit: str, benchmark: str) -> set[str]:
        """Everything or nothing."""
        stored = self._compiled if suite.BENCHMARKS[benchmark][0] in COMPILED else self._commits
        return set(plan.texts(benchmark)) if commit in stored else set()


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
    names = [name for name, (kind, _) in suite.BENCHMARKS.items() if kind not in COMPILED]
    return Counter((commit, name, text) for commit in commits for name in names for text in plan.texts(name))


def _seconds(part: Sequence[Series]) -> float:
    return sum(one.seconds for one in part)


#: Regular expressions of benchmarks.
SOME = ["", "time_copy", "OffsetCopy|StrideCopy", "IsolatedTranspose", "time_kernel", "time_transpose"]


@pytest.mark.parametrize(("devices", "largest"), [(1, 30), (2, 100), (7, 100), (8, 10_000)])
@pytest.mark.parametrize("some", SOME)
def test_series_are_cut_evenly(devices: int, largest: int, some: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is in one part of `LARGEST` at most; parts are as many for each device, and take about as long."""
    monkeypatch.setattr(plan, "LARGEST", largest)
    chosen = [one for one in plan.series() if re.search(some, one.benchmark)]
    parts = plan.cut(chosen, devices)
    assert Counter(itertools.chain(*parts)) == Counter(chosen)
    assert len(parts) % devices == 0
    assert max(map(len, parts)) <= largest
    longest = max(one.seconds for one in chosen)
    assert max(map(_seconds, parts)) <= _seconds(chosen) / len(parts) + longest


@pytest.mark.parametrize(
    ("count", "devices", "sizes"), [(0, 2, []), (100, 1, [100]), (100, 4, [25] * 4), (100, 100, [1] * 100)]
)
def test_work_is_divided_where_devices_would_idle(count: int, devices: int, sizes: list[int]) -> None:
    """Even if all series share their inputs; those over the same data are in one part, unless it would be too large."""
    assert [len(part) for part in plan.cut([Series("b", "float32", 1, f"{n}") for n in range(count)], devices)] == sizes
    parts = plan.cut([Series("b", "float32", number // 10, f"{number}") for number in range(100)], 2)
    assert [len({one.useful_bytes for one in part}) for part in parts] == [5, 5]


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
    found = plan.todo(Known([A], last), [B], uuids, some)
    assert found
    for shard in found:
        names = {(name, text) for name, texts in shard.selected.items() for text in texts if (name, text) in last}
        assert {last[each] for each in names} == {shard.device}


@pytest.mark.parametrize("devices", [[], [ONE, TWO]])
@pytest.mark.parametrize("stored", [[], [A], [A, B]])
def test_what_is_not_stored_is_measured_once(stored: list[str], devices: list[str]) -> None:
    """What no GPU has a part in comes first, a commit each; then each time at each commit that lacks it."""
    lacking = [each for each in (A, B) if each not in stored]
    found = plan.todo(Known(stored, compiled=stored), [A, B], devices)
    assert [(shard.commits, shard.device) for shard in found] == [((commit,), None) for commit in lacking]
    for shard in found:
        assert {suite.BENCHMARKS[name][0] for name in shard.selected} == (COMPILED if devices else set(suite.Kind))
    if devices:
        found = plan.todo(Known(stored), [A, B], devices)
        assert _all(found) == _wanted(lacking)
        assert len({str(shard) for shard in found}) == len(found)


def test_half_a_benchmark_is_measured() -> None:
    """As a whole: it is quick."""

    class Half(Known):
        def has(self, commit: str, benchmark: str) -> set[str]:
            return set(plan.texts(benchmark)[1:])

    (found,) = plan.todo(Half(), [A], [])
    assert found.selected == dict.fromkeys(suite.BENCHMARKS, ())


@pytest.mark.parametrize("devices", [[ONE], [ONE, TWO], [TWO]])
def test_a_gpu_keeps_its_series(devices: list[str]) -> None:
    """Those of one that is gone, any other may measure."""
    last = {(one.benchmark, one.configuration): (ONE, GONE)[at % 2] for at, one in enumerate(plan.series())}
    found = plan.todo(Known([A], last), [B, C], devices)
    assert _all(found) == _wanted([B, C])
    for shard in found:
        assert shard.device in (*devices, None)
        owners = {last[name, text] for name, texts in shard.selected.items() for text in texts if (name, text) in last}
        assert owners <= ({ONE} if shard.device == ONE else {ONE, GONE} - set(devices))


def test_patterns_select_what_they_say() -> None:
    """A pattern may match anywhere in "name(parameters)"; a whole benchmark is none whose name it begins or ends."""
    names = [f"{name}({text})" for name in suite.BENCHMARKS for text in plan.texts(name)]
    shard = plan.todo(Known(), [A], [ONE, TWO])[0]
    patterns = [re.compile(pattern) for pattern in shard.patterns]
    found = {name for name in names if any(pattern.search(name) for pattern in patterns)}
    assert found == {f"{name}({text})" for name, texts in shard.selected.items() for text in texts}
    (pattern,) = Shard((A,), {"track_x.X.track_sectors": ()}).patterns
    matching = ["track_x.X.track_sectors", "track_x.X.track_sectors('a')"]
    others = ["track_x.X.track_sectors_2", "a.track_x.X.track_sectors"]
    assert [name for name in matching + others if re.search(pattern, name)] == matching
    (pattern,) = Shard((A,), {"track_x.X.track_sectors": ("'a+b', '(1)'",)}).patterns
    assert re.search(pattern, "track_x.X.track_sectors('a+b', '(1)')")
