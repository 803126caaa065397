"""What the measuring process does with a job, on a GPU that is none: real kernels, executed on the CPU."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import pytest

from benchmarks import jobs
from benchmarks.checkout import today
from benchmarks.instruments import buffers, comparison, isolated, measurement, replay, tools
from benchmarks.instruments.job import Job, Ready
from benchmarks.instruments.measurement import Arrangement, Session
from benchmarks.instruments.verification import Near, WrongOutputError
from gpu_kernels import build, catalog
from gpu_kernels.sweep import Launch
from tests import fake_cuda
from tests.cases import TRANSPOSES
from tests.fake_cuda import FakeGpu
from tests.wrong_kernels import WRONG

READY = Ready(arch=fake_cuda.ARCH, multiprocessors=2)

SECONDS, COPY_SECONDS = 5e-6, 2e-6

SMALL = Launch.parse("transpose_read_coalesced rows=31 columns=63 float32")
LARGE = Launch.parse("transpose_read_coalesced rows=97 columns=101 float32")


def _forget() -> None:
    for cached in (tools.cubin, buffers._staging, buffers._pinned_block):
        cached.cache_clear()


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGpu]:
    """A small one: a wave is four blocks of 1024 threads, or 16 of 256."""
    monkeypatch.setattr(build, "cubin", fake_cuda.ptx_for_cubin)
    monkeypatch.setattr(buffers, "_STAGED", 64 << 10)
    _forget()
    made = fake_cuda.install(monkeypatch, FakeGpu(total=16 << 20))
    made.seconds = {"device_copy": COPY_SECONDS, "stamp": 1e-8}
    yield made
    _forget()


def measured(gpu: FakeGpu, launch: Launch, session: Session | None = None, **how: Any) -> Any:
    """Return a launch's outcome, its job, and the bytes that were asked for."""
    described = jobs.of(launch, **{"samples": 3, **how})
    job = described.job(READY)
    gpu.seconds.setdefault(job.entry, SECONDS)
    asked: list[int] = []

    def fetch(length: int) -> Any:
        asked.append(length)
        return described.reference.content(length)

    (found,) = (session or Session()).measure([job], fetch)
    return found, job, asked


@pytest.mark.parametrize("is_isolated", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        *(f"{name} rows={rows} columns=65 float16" for name in TRANSPOSES for rows in (33, 97)),
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
    assert list(gpu.allocations) == [int(session.references._pool)]
    assert {"buffers", "graphs", "samples", "verification"} <= found.seconds.keys()


@pytest.mark.parametrize(
    ("launch", "how", "expected"),
    [
        (SMALL, {}, "context 1"),
        (SMALL, {"isolated": True}, None),  # what flushes the L2 before each launch is a grid of many waves
        (LARGE, {}, None),
        (Launch.parse("device_copy rows=64 columns=256 float32"), {}, "context 1"),
        (Launch.parse("device_copy rows=257 columns=256 float32"), {}, None),
    ],
)
def test_context(launch: Launch, how: dict[str, Any], expected: str | None, gpu: FakeGpu) -> None:
    """A launch smaller than the GPU has a context in which nothing else runs: no memset, no grid of many waves."""
    session = Session()
    gpu.log.clear()
    for _ in range(2):
        measured(gpu, launch, session, **how)
    contexts = [each for each in gpu.log if each.startswith("context")]
    assert contexts == ([expected] * 2 if expected else [])
    assert ("memset" in gpu.log) == (expected is None)


def test_a_large_control_of_a_small_grid(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the control would disturb the launches to come, the context is for this job alone."""
    monkeypatch.setattr(tools, "copy_shape", lambda _: ((1000, 1, 1), (256, 1, 1)))
    session = Session()
    for _ in range(2):
        measured(gpu, SMALL, session)
    assert [each for each in gpu.log if "context" in each and "lasting" not in each] == [
        "context 1", "end of context 1", "context 2", "end of context 2"
    ]  # fmt: skip


def test_order(gpu: FakeGpu) -> None:
    """Nothing but uploads before the samples; a copy before each; poison only afterwards."""
    _, job, _ = measured(gpu, LARGE)
    first = gpu.log.index("memset")
    assert set(gpu.log[: gpu.log.index("upload")]) <= {"lasting context", "back"}
    replays = [each for each in gpu.log[:first] if each.startswith("replay")]
    sets = len({addresses[0] for name, addresses in gpu.launched if name == job.entry})
    assert [each for each in gpu.log[first:] if each.startswith("replay")] == [f"replay of {sets}", "replay of 1"]
    launched = [name for name, _ in gpu.launched]
    own, copies = launched.count(job.entry), launched.count("device_copy")
    once_each, sample = replays[-8:-6], replays[-6:]
    assert sample == once_each * 3
    assert (own, copies) > (0, 0)


def test_every_buffer_is_used(gpu: FakeGpu) -> None:
    """Before a launch meets its data again, the others have moved three times the L2; all outputs are verified."""
    _, job, _ = measured(gpu, LARGE)
    outputs = Counter(addresses[0] for name, addresses in gpu.launched if name == job.entry)
    assert len(outputs) * job.set_bytes >= buffers.L2_MULTIPLE * gpu.l2
    assert min(outputs.values()) >= 2


def test_in_l2(gpu: FakeGpu) -> None:
    """One set of buffers, for the control too; what is larger than the cache is skipped with both sizes."""
    _, job, _ = measured(gpu, SMALL, in_l2=True)
    assert len({addresses for name, addresses in gpu.launched if name in (job.entry, "device_copy")}) == 1
    with pytest.raises(NotImplementedError, match=f"needs {8 * 97 * 101} bytes of L2 cache, the GPU has {gpu.l2}"):
        measured(gpu, LARGE, in_l2=True)


def test_references_are_made_once(gpu: FakeGpu) -> None:
    """One a shape, dtype and operation, whatever kernel and flags; also in the other context."""
    session = Session()
    assert [len(measured(gpu, LARGE, session)[2]) for _ in range(2)] == [1, 0]
    other = Launch("transpose_write_coalesced", LARGE.dtype, "-Xptxas -O0", LARGE.arguments)
    assert measured(gpu, other, session)[2] == []
    assert len(measured(gpu, Launch.parse("transpose_read_coalesced rows=101 columns=97 float32"), session)[2]) == 1
    assert [len(measured(gpu, SMALL, session)[2]) for _ in range(2)] == [1, 0]


def test_no_room_for_references(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where buffers need their memory they give way, and outputs are compared in pieces; what never fits is skipped."""
    monkeypatch.setattr(comparison, "_PIECE", 4096)
    session = Session()
    half = gpu.total // 2
    pool = session.references._pool
    huge = Launch.parse(f"offset_copy size={half // 8 + 5000} offset=1 float32")
    measured(gpu, LARGE, session)
    assert len(pool.held) >= half
    measured(gpu, huge, session)
    assert session.references._pool is None
    measured(gpu, LARGE, session)
    assert not gpu.allocations
    with pytest.raises(NotImplementedError, match=r"needs \d+ bytes of GPU memory, \d+ are free"):
        measured(gpu, Launch.parse(f"offset_copy size={gpu.total // 4} offset=1 float32"), session)


@pytest.mark.parametrize("has_pool", [True, False])
@pytest.mark.parametrize(("kernel", "arguments", "message"), WRONG, ids=lambda value: getattr(value, "name", ""))
def test_wrong_kernels_are_rejected(
    kernel: Any,
    arguments: dict[str, int],
    message: str,
    has_pool: bool,
    gpu: FakeGpu,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each wrong kernel is rejected by its name; there is no outcome."""
    monkeypatch.setattr(catalog, "get", lambda _: kernel)
    monkeypatch.setattr(today.catalog, "get", lambda given: kernel if isinstance(given, str) else given)
    session = Session()
    if not has_pool:
        session.references.forget()
    with pytest.raises(WrongOutputError, match=message):
        measured(gpu, Launch(kernel.name, arguments=arguments), session)


@pytest.mark.parametrize("piece", [64 << 20, 4096])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "complex128"])
@pytest.mark.parametrize("place", [0, 1, 15, 16, 4097, -1, "guard", "last guard byte"])
@pytest.mark.parametrize("in_last_buffer", [False, True])
def test_a_flipped_bit_is_found(
    in_last_buffer: bool, place: int | str, dtype: str, piece: int, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anywhere: in the first buffer or the last, in an output's first byte, its last, and in the guard."""
    monkeypatch.setattr(comparison, "_PIECE", piece)
    launch = Launch(LARGE.kernel, dtype, arguments=LARGE.arguments)
    once = Arrangement.launch_once
    itemsize = np.dtype(dtype).itemsize
    length = 97 * 101 * itemsize
    named: dict[int | str, int] = {-1: length - 1, "guard": length, "last guard byte": buffers.pitch(length) - 1}
    where = named[place] if place in named else int(place)
    flipped: list[int] = []

    def flip(self: Arrangement, job: Job, *, has_waves: bool) -> None:
        once(self, job, has_waves=has_waves)
        flipped.append(self.rotation.sets - 1 if in_last_buffer else 0)
        gpu.view(self.rotation.output(flipped[-1]))[where] ^= 64

    monkeypatch.setattr(Arrangement, "launch_once", flip)
    session = Session()
    if piece == 4096:
        session.references.forget()
    with pytest.raises(WrongOutputError) as found:
        measured(gpu, launch, session)
    index = list(map(int, np.unravel_index(where // itemsize, (101, 97)))) if where < length else None
    said = f"element {index} is" if index else f"behind the end of its output, first {where - length} bytes on"
    assert f"buffer {flipped[0]}: " in str(found.value)
    assert said in str(found.value)


@pytest.mark.parametrize(("wrong_by", "passes"), [(0, True), (1, True), (3, False)])
def test_near(wrong_by: int, passes: bool, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an output need only be near, it is compared on the host within its bound."""
    described = jobs.of(LARGE, samples=1)
    near = jobs.of(LARGE, samples=1).job(READY)
    job = Job(**{name: getattr(near, name) for name in near.__struct_fields__} | {"near": Near("float32", 2.0)})
    gpu.seconds[job.entry] = SECONDS
    once = Arrangement.launch_once

    def ones(self: Arrangement, one: Job, *, has_waves: bool) -> None:
        once(self, one, has_waves=has_waves)
        for index in range(self.rotation.sets):
            held = gpu.view(self.rotation.output(index))[: 4 * 97 * 101].view(np.float32)
            held[:] = 1.0
            held[5:6].view(np.int32)[0] += wrong_by

    monkeypatch.setattr(Arrangement, "launch_once", ones)
    expected = np.ones(97 * 101, np.float64).view(np.uint8)

    def fetch(length: int) -> Any:
        assert length == len(expected)
        return expected

    assert described.reference.length != len(expected)
    if passes:
        Session().measure([job], fetch)
    else:
        with pytest.raises(
            WrongOutputError, match=r"element \[0, 5\] is 1.00000035\d+, NumPy expects 1.0 within 2 units"
        ):
            Session().measure([job], fetch)


@pytest.mark.parametrize("launch", [SMALL, LARGE])
def test_verify(launch: Launch, gpu: FakeGpu) -> None:
    """What was timed in turns with another is verified without being timed; nothing is left of it."""
    session = Session()
    described = jobs.of(launch, samples=3)
    session.verify(described.job(READY), described.reference.content)
    assert [each for each in gpu.log if each.startswith("replay")][-1] == "replay of 1"
    assert not any(name == "device_copy" for name, _ in gpu.launched)
    assert list(gpu.allocations) == [int(session.references._pool)]
    with pytest.raises(WrongOutputError):
        session.verify(
            msgspec.structs.replace(described.job(READY), reference="another"),
            lambda length: np.zeros(length, np.uint8),
        )


@pytest.mark.parametrize("every", [0, 50, 10])
def test_extra_launches(every: int, gpu: FakeGpu) -> None:
    """One more after each so many, and the time is still divided by the number of the others."""
    found, _, _ = measured(gpu, LARGE, every=every)
    assert found.samples == pytest.approx([SECONDS * (1 + (1 / every if every else 0))] * 3, rel=1e-4)


def test_in_turns(gpu: FakeGpu) -> None:
    """Two jobs on the same buffers, the order changing; one copy for both; only the first is verified."""
    session = Session()
    one = jobs.of(LARGE, samples=4)
    other = jobs.of(Launch("transpose_write_coalesced", LARGE.dtype, LARGE.flags, LARGE.arguments), samples=4)
    pair = [each.job(READY) for each in (one, other)]
    assert pair[0].shares_buffers(pair[1])
    gpu.seconds |= {pair[0].entry: 5e-6, pair[1].entry: 7e-6}
    first, second = session.measure(pair, one.reference.content)
    assert first.samples == pytest.approx([5e-6] * 4, rel=1e-3)
    assert second.samples == pytest.approx([7e-6] * 4, rel=1e-3)
    assert first.copies == second.copies
    written = [{addresses[0] for name, addresses in gpu.launched if name == each.entry} for each in pair]
    assert written[0] == written[1]


def test_what_holds_the_gpu_back(gpu: FakeGpu) -> None:
    """It is asked after every sample, and each reason told once."""

    class Watch:
        asked = 0

        def held_back(self) -> list[str]:
            self.asked += 1
            return ["hot"] if self.asked == 2 else ["hot", "slow"] if self.asked == 3 else []

    found, _, _ = measured(gpu, LARGE, Session(Watch()))  # type: ignore[arg-type]
    assert found.held_back == ("hot", "slow")


@pytest.mark.parametrize(
    ("seconds", "length", "launches"),
    [(5e-6, 1, 200), (5e-6, 360, 360), (5e-6, 150, 300), (1e-2, 1, replay.MIN_LAUNCHES), (1e-2, 3, 3)],
)
def test_launches(seconds: float, length: int, launches: int) -> None:
    """Enough for a replay, at least two, going through all buffers equally often."""
    assert replay.launches_for(seconds, length) == launches


def test_spent() -> None:
    """Seconds add up, also where what was done failed."""
    spent = measurement.Stopwatch()
    begin = time.perf_counter()
    for _ in range(2):
        with suppress(ValueError), spent.on("a"), spent.on("b"):
            time.sleep(0.01)
            raise ValueError
    assert spent.seconds.keys() == {"a", "b"}
    assert spent.seconds["b"] >= 0.02 > 0.01 > spent.seconds["a"] > 0
    assert sum(spent.seconds.values()) <= time.perf_counter() - begin
