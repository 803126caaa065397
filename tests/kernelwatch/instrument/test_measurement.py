"""Jobs in the measuring process, on a fake GPU that executes real kernels on the CPU."""

import gc
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from kernelwatch import Kernel
from kernelwatch.config.project_root import CHECKOUT
from kernelwatch.instrument import build_job, graph_replay, memory, timed_job
from kernelwatch.instrument.inputs import POISON
from kernelwatch.instrument.session import Session
from kernelwatch.instrument.timed_job import TimedJob
from kernelwatch.instrument.tolerance import WrongOutputError
from kernelwatch.kernel import Launch
from kernelwatch.suite import registry
from tests.fake_cuda import FakeGpu
from tests.on_fake_gpu import FACTS, LARGE, SECONDS, SMALL, make_fetch, measure_launch
from tests.own_kernels import CASES


def test_isolated_sample_is_a_mean_of_launches(gpu: FakeGpu) -> None:
    """All launches but one take 1 µs, the last 25 µs: the mean is 2 µs. The stamps add STAMP_OVERHEAD and 10 ns."""
    took = [1e-6] * (graph_replay.ISOLATED_LAUNCHES - 1) + [(1 + graph_replay.ISOLATED_LAUNCHES) * 1e-6]
    gpu.seconds[LARGE.kernel] = itertools.cycle(took)
    outcome, _, _ = measure_launch(gpu, LARGE, isolated=True)
    assert outcome.samples == pytest.approx([2e-6 + graph_replay.STAMP_OVERHEAD + 1e-8] * 3, rel=1e-3)


def test_copy_stays_loaded_after_a_verification(gpu: FakeGpu) -> None:
    """The fake fails if a later job on these buffers uses a copy that was unloaded."""
    session, names = Session(), itertools.count()
    for action in ("verify", "measure", "measure"):
        described = build_job.describe_launch(LARGE, samples=3)
        job = msgspec.structs.replace(described.make_job(FACTS), name=str(next(names)))
        gpu.seconds.setdefault(job.entry, SECONDS)
        jobs: Any = job if action == "verify" else [job]
        gc.collect()  # the fake's kernels have reference cycles
        getattr(session, action)(jobs, make_fetch(described))


@pytest.mark.parametrize("fetched", [32, 128])
def test_l2_fetch_size_has_its_own_context(fetched: int, gpu: FakeGpu) -> None:
    """The context ends with the job."""
    session = Session()
    settings: list[dict[str, int]] = [{}, {"l2_fetch_bytes": fetched}, {}]
    for options in settings:
        measure_launch(gpu, LARGE, session, **options)
    names = [entry.call for entry in gpu.log if entry.call.startswith(("context", "end of context"))]
    context = f"context 1 that fetches {fetched} bytes"
    assert set(names) == {context, f"end of {context}"}
    assert names[-1] == f"end of {context}"


@pytest.mark.parametrize(
    ("throttled", "scatter", "count", "reasons"),
    [
        ([], [0.0], 5, ()),
        ([], [0.01, -0.01], 20, ()),
        ([], [0.01, -0.01, *[0.0] * 18], 19, ()),  # 17 equal samples bring the error to 0.1 %
        ([], [0.0107, -0.0107, *[0.0] * 18], 20, ()),
        ([], [0.001, -0.001, *[0.0] * 18], 5, ()),
        ([2, 4], [0.0], 5, ()),
        (range(20 - 5), [0.0], 5, ()),
        (range(20 - 4), [0.0], 5, ("hot",)),  # the attempts end: one throttled sample is kept
        (range(20), [0.0], 5, ("hot",)),
        ([2, 4], [0.01, -0.01, -0.01], 20 - 2, ()),
    ],
)
def test_sampling_stops_when_samples_agree(
    throttled: Sequence[int], scatter: list[float], count: int, reasons: tuple[str, ...], gpu: FakeGpu,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Samples agree if the median is known to 0.1 %. Throttled ones are repeated, within 20 attempts for 5 samples."""

    class Watch:
        queries = itertools.count()

        def find_reasons(self) -> list[str]:
            return ["hot"] if next(self.queries) in throttled else []

    class Scattered:
        def __init__(self, *_: Any) -> None:
            self.replays = itertools.count(-1)  # upload of the graph

        def take_sample(self) -> float:
            return 30e-6 * (1 + scatter[next(self.replays) % len(scatter)])

    monkeypatch.setattr(timed_job, "make_back_to_back", Scattered)
    outcome, _, _ = measure_launch(gpu, SMALL, Session(Watch()), samples=5, most=20)  # type: ignore[arg-type]
    assert (len(outcome.samples), len(outcome.copies), outcome.throttle_reasons) == (count, count, reasons)


@pytest.mark.parametrize("launch", [SMALL, LARGE])
def test_verification_frees_its_memory(launch: Launch, gpu: FakeGpu) -> None:
    """Only the kernel and the comparison are launched. Only the pool of references stays allocated."""
    session = Session()
    described = build_job.describe_launch(launch, samples=3)
    session.verify(described.make_job(FACTS), make_fetch(described))
    assert {name for name, _ in gpu.launched} == {launch.kernel, "compare"}
    session.release_buffers()
    assert list(gpu.allocations) == [int(session.references._pool)]
    # A reference of poison, which the output does not equal.
    another = msgspec.structs.replace(described.make_job(FACTS), reference="another")
    with pytest.raises(WrongOutputError):
        session.verify(another, lambda length: memory.make_reader(np.full(length, POISON, np.uint8)))


@pytest.fixture
def own_gpu(small_l2_gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeGpu:
    monkeypatch.setenv(CHECKOUT, str(tmp_path))
    return small_l2_gpu


def _launch(kernel: Kernel, name: str, monkeypatch: pytest.MonkeyPatch) -> Launch:
    monkeypatch.setattr(registry, "find_kernel", lambda _: kernel)
    return Launch(kernel.name, CASES[name].dtype, arguments=CASES[name].small)


@pytest.mark.parametrize("how", [{}, {"isolated": True}, {"in_l2": True}], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_user_kernels_are_timed(
    name: str, how: dict[str, Any], own_gpu: FakeGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Afterwards, only the pool of references and module variables stay allocated."""
    session = Session()
    launch = _launch(CASES[name].kernel(CASES[name].text, tmp_path), name, monkeypatch)
    outcome, _, fetched_lengths = measure_launch(own_gpu, launch, session, **how)
    assert outcome.samples == pytest.approx([SECONDS] * 3, rel=0.1)
    assert len(fetched_lengths) <= 1, "a reference was fetched twice"
    session.release_buffers()
    assert set(own_gpu.allocations) - set(own_gpu.variables) == {int(session.references._pool)}


@pytest.mark.parametrize("name", CASES)
def test_wrong_user_kernels_fail(name: str, own_gpu: FakeGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a reference, they fail only for writes past the end of an array."""
    wrong = CASES[name].kernel(CASES[name].text.replace(*CASES[name].wrong), tmp_path)
    launch = _launch(wrong, name, monkeypatch)
    with pytest.raises(WrongOutputError, match=wrong.name):
        measure_launch(own_gpu, launch)
    wrong.reference = None
    assert measure_launch(own_gpu, launch)[0].samples
    once = TimedJob.launch_on_all_sets

    def behind(self: TimedJob, job: Any) -> None:
        once(self, job)
        written = next(array for array in job.arrays if array.is_written)
        own_gpu.view(self.rotation.address(written, self.rotation.sets - 1))[written.nbytes] ^= 1

    monkeypatch.setattr(TimedJob, "launch_on_all_sets", behind)
    with pytest.raises(WrongOutputError, match="the first wrong byte is 0 bytes after the end"):
        measure_launch(own_gpu, launch)


@pytest.mark.parametrize("size", [48 << 10, (48 << 10) + 1])
def test_block_may_have_more_than_48_kib_of_shared_memory(
    size: int, own_gpu: FakeGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = CASES["a text"].kernel(CASES["a text"].text, tmp_path)
    kernel.dynamic_shared = size
    assert measure_launch(own_gpu, _launch(kernel, "a text", monkeypatch))[0].samples
