"""What the measuring process does with a job, on a GPU that is none: real kernels, executed on the CPU."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from kernelwatch.instrument import arrangement, comparison, isolated, jobs, tools
from kernelwatch.instrument.clock import Stopwatch
from kernelwatch.instrument.session import Session
from kernelwatch.instrument.verification import WrongOutputError
from kernelwatch.kernel import Launch
from tests.cases import COVERING_TRANSPOSES
from tests.fake_cuda import FakeGpu
from tests.on_fake_gpu import COPY_SECONDS, LARGE, READY, SECONDS, SMALL, fetching, measured


@pytest.mark.parametrize("is_isolated", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        *(f"{name} rows={rows} columns=65 float16" for name in COVERING_TRANSPOSES for rows in (33, 97)),
        "offset_copy size=1000 offset=3 complex128",
        "stride_copy size=1000 stride=3 int8",
        "device_copy rows=30 columns=31 int8",
    ],
)
def test_outcome(text: str, is_isolated: bool, gpu: FakeGpu) -> None:
    """Samples and copies in seconds a launch; right outputs pass; all memory but the references' is given back."""
    session = Session()
    found, job, _ = measured(gpu, Launch.parse(text), session, isolated=is_isolated)
    more = isolated.BEYOND_STAMPS + 1e-8 if is_isolated else 0.0
    assert found.samples == pytest.approx([gpu.seconds[job.entry] + more] * 3, rel=1e-3)
    assert found.copies == pytest.approx([COPY_SECONDS + more] * 3, rel=1e-3)
    session.close()
    assert list(gpu.allocations) == [int(session.references._pool)]
    assert {"buffers", "graphs", "samples", "verification"} <= found.seconds.keys()


def test_a_large_control_of_a_small_grid(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the control would disturb the launches to come, the context is for this job alone."""
    monkeypatch.setattr(tools, "copy_shape", lambda _: ((1000, 1, 1), (256, 1, 1)))
    session = Session()
    for _ in range(2):
        measured(gpu, SMALL, session)
    session.close()
    contexts = dict.fromkeys(each for each in gpu.log if "context" in each and "lasting" not in each)
    assert list(contexts) == ["context 1", "end of context 1", "context 2", "end of context 2"]


@pytest.mark.parametrize("launch", [SMALL, LARGE])
def test_jobs_with_the_same_buffers(launch: Launch, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one finds them filled, and the copy's graph; one that comes again, or after a wrong one, does not."""
    session = Session()
    others = [replace(launch, kernel=name) for name in ("transpose_write_coalesced", launch.kernel)]

    def uploads_and_copies(one: Launch) -> tuple[int, bool]:
        del gpu.log[:], gpu.launched[:]
        measured(gpu, one, session)
        return gpu.log[: gpu.log.index("replay of 1")].count("upload"), any("copy" in name for name, _ in gpu.launched)

    (filled, copied), (again, copied_again), (new, copied_anew) = map(uploads_and_copies, [launch, *others])
    assert (copied, copied_again, copied_anew) == (True, False, True)
    assert again < filled == new
    with monkeypatch.context() as patch:
        patch.setattr(comparison, "check", _wrong)
        with pytest.raises(WrongOutputError):
            measured(gpu, others[0], session)
    assert uploads_and_copies(replace(launch, kernel="transpose_read_write_coalesced")) == (filled, True)


def _wrong(*_: Any) -> None:
    raise WrongOutputError


def test_in_l2(gpu: FakeGpu) -> None:
    """What is larger than the cache is skipped with both sizes."""
    with pytest.raises(NotImplementedError, match=f"needs {8 * 97 * 101} bytes of L2 cache, the GPU has {gpu.l2}"):
        measured(gpu, LARGE, in_l2=True)
    measured(gpu, Launch.parse("transpose_read_coalesced rows=64 columns=128 float32"), in_l2=True)  # fills it


def test_in_turns(gpu: FakeGpu) -> None:
    """Two jobs on the same buffers have their own samples, and one copy for both."""
    session = Session()
    one = jobs.of(LARGE, samples=4)
    other = jobs.of(Launch("transpose_write_coalesced", LARGE.dtype, LARGE.flags, LARGE.arguments), samples=4)
    pair = [each.job(READY) for each in (one, other)]
    assert pair[0].shares_buffers(pair[1])
    gpu.seconds |= {pair[0].entry: 5e-6, pair[1].entry: 7e-6}
    first, second = session.measure(pair, fetching(one))
    assert first.samples == pytest.approx([5e-6] * 4, rel=1e-3)
    assert second.samples == pytest.approx([7e-6] * 4, rel=1e-3)
    assert first.copies == second.copies


def test_one_of_two_in_turns_is_small(gpu: FakeGpu) -> None:
    """Both are measured in a context in which nothing else runs: here a grid of 16 blocks and one of four."""
    two = [jobs.of(replace(LARGE, kernel=name), samples=1) for name in (LARGE.kernel, "transpose_row_per_thread")]
    gpu.seconds |= dict.fromkeys((LARGE.kernel, "transpose_row_per_thread"), SECONDS)
    Session().measure([each.job(READY) for each in two], fetching(two[0]))
    assert "context 1" in gpu.log


def test_isolated_launches_find_no_data_in_the_cache(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each twice as much as the cache holds is read."""
    load, flushed = tools.load, []

    def noting(tool: Any, **arguments: int) -> Any:
        flushed.extend([arguments["size"] * tools.WIDTH] * (tool is tools.FLUSH_L2))
        return load(tool, **arguments)

    monkeypatch.setattr(tools, "load", noting)
    measured(gpu, LARGE, isolated=True)
    assert set(flushed) == {2 * gpu.l2}


class _Uneven(dict[str, float]):
    """Seconds of launches, of which one kernel's differ."""

    def __init__(self, entry: str, took: list[float], others: dict[str, float]) -> None:
        super().__init__(others)
        self._entry, self._took = entry, itertools.cycle(took)

    def get(self, name: str, default: Any = None) -> Any:
        """Of the kernel the next."""
        return next(self._took) if name == self._entry else super().get(name, default)


def test_isolated_launches_that_differ(gpu: FakeGpu) -> None:
    """A sample is the mean of its launches: also of those that took longer."""
    took = [1e-6] * (isolated.LAUNCHES - 1) + [(1 + isolated.LAUNCHES) * 1e-6]
    gpu.seconds = _Uneven(LARGE.kernel, took, gpu.seconds)
    found, _, _ = measured(gpu, LARGE, isolated=True)
    assert found.samples == pytest.approx([2e-6 + isolated.BEYOND_STAMPS + 1e-8] * 3, rel=1e-3)


@pytest.mark.parametrize(
    ("held", "scatter", "taken", "reasons", "stopped"),
    [
        ([], [0.0], 5, (), "sufficed"),
        ([], [0.01, -0.01], 20, (), "limit"),
        ([], [0.01, -0.01, *[0.0] * 18], 19, (), "sufficed"),
        ([], [0.0107, -0.0107, *[0.0] * 18], 20, (), "sufficed"),
        ([], [0.001, -0.001, *[0.0] * 18], 5, (), "sufficed"),
        ([2, 4], [0.0], 5, (), "sufficed"),
        (range(15), [0.0], 5, (), "sufficed"),
        (range(16), [0.0], 5, ("hot",), "sufficed"),
        (range(20), [0.0], 5, ("hot",), "sufficed"),
        ([2, 4], [0.01, -0.01, -0.01], 18, (), "limit"),
    ],
)
def test_samples_until_they_suffice(
    held: Sequence[int],
    scatter: list[float],
    taken: int,
    reasons: tuple[str, ...],
    stopped: str,
    gpu: FakeGpu,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Five if they agree, twenty if they never do; those of a GPU that was held back are taken again, if any are left.

    The kernel takes 30 µs, so 1 % is the same, and the median must be known to 0.1 %.
    """

    class Watch:
        asked = itertools.count()

        def held_back(self) -> list[str]:
            return ["hot"] if next(self.asked) in held else []

    class Scattered(_Counting):
        def sample(self) -> float:
            return 30e-6 * (1 + scatter[int(super().sample() - 2) % len(scatter)])

    monkeypatch.setattr(arrangement, "back_to_back", Scattered)
    found, _, _ = measured(gpu, SMALL, Session(Watch()), samples=5, most=20)  # type: ignore[arg-type]
    assert (len(found.samples), len(found.copies), found.held_back) == (taken, taken, reasons)
    assert found.stopped == stopped


class _Counting:
    """An instrument that counts its replays."""

    def __init__(self, *_: Any) -> None:
        self.replays = 0

    def sample(self) -> float:
        """Return the number of the replay."""
        self.replays += 1
        return float(self.replays)


def test_spent() -> None:
    """Seconds add up, also where what was done failed."""
    spent = Stopwatch()
    begin = time.perf_counter()
    for _ in range(2):
        with suppress(ValueError), spent.on("a"):
            for _ in range(2):
                with spent.on("b"):
                    time.sleep(0.01)
            raise ValueError
    assert spent.seconds.keys() == {"a", "b"}
    assert spent.seconds["b"] >= 0.04 > 0.02 > spent.seconds["a"] > 0
    assert sum(spent.seconds.values()) <= time.perf_counter() - begin
