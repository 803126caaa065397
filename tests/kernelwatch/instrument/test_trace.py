"""Order of CUDA calls while a session measures jobs on a fake GPU."""

import math
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any, NamedTuple

import pytest

from gpu_kernels import catalog
from kernelwatch.instrument import build_job, device
from kernelwatch.instrument.graph_replay import ISOLATED_LAUNCHES, STAMP_OVERHEAD, TARGET_MS, WARM_UP_LIMIT
from kernelwatch.instrument.job_messages import Job, JobOutcome
from kernelwatch.instrument.session import Session
from kernelwatch.instrument.tolerance import WrongOutputError
from kernelwatch.kernel import Launch
from tests.fake_cuda import Entry, FakeGpu
from tests.on_fake_gpu import COPY_SECONDS, FACTS, LARGE, SECONDS, SMALL, fake_gpu, make_fetch
from tests.own_kernels import CASES
from tests.wrong_kernels import WRITING

COPY = "device_copy"
SHAPE = "rows=97 columns=101 float32"
PAIR = f"{LARGE} and transpose_write_coalesced {SHAPE}"
MIXED_PAIR = f"{LARGE} and transpose_row_per_thread {SHAPE}"

#: A job or a pair of jobs, its options, and whether it gets new buffers. One session measures all, in this order.
MEASURED: list[tuple[str, dict[str, Any], bool]] = [
    (str(SMALL), {}, True),
    (str(LARGE), {}, True),
    (f"transpose_write_coalesced {SHAPE}", {}, False),
    (f"transpose_write_coalesced {SHAPE}", {}, True),  # repeated jobs get new buffers
    (f"transpose_row_per_thread {SHAPE}", {}, True),
    (PAIR, {"samples": 3}, True),
    (f"transpose_read_write_coalesced {SHAPE}", {"samples": 3}, False),
    (f"transpose_clears_last_row {SHAPE}", {}, True),  # wrong output
    (f"transpose_read_write_coalesced {SHAPE}", {}, True),
    (MIXED_PAIR, {}, True),
    (str(SMALL), {"isolated": True}, True),
    (str(LARGE), {"isolated": True}, True),
    (str(SMALL), {"in_l2": True}, True),
    ("transpose_read_coalesced rows=64 columns=128 float32", {"in_l2": True}, True),
    (str(LARGE), {"in_l2": True}, False),  # larger than the L2
    (str(LARGE), {"seconds": WARM_UP_LIMIT}, True),
    (str(LARGE), {"seconds": 0.99 * WARM_UP_LIMIT}, True),
    ("histogram size=9000 bins=64 int8", {}, True),
    ("scale n=30000 float32", {"samples": 2}, True),
    ("matmul_tiled rows=33 inner=70 columns=40 float16", {}, True),
    ("stride_copy size=1000 stride=3 complex128", {}, True),
    ("offset_copy size=1100000 offset=1 float32", {}, True),
    ("offset_copy size=3000000 offset=1 float32", {}, False),  # larger than the memory
]


class Trace(NamedTuple):
    """The CUDA calls for a job or a pair of jobs, and the outcomes or the error."""

    jobs: list[Job]
    how: dict[str, Any]
    has_new_buffers: bool
    has_waves: bool
    is_repeated: bool
    log: list[Entry]
    outcomes: list[JobOutcome]
    error: str

    @property
    def timed(self) -> list[tuple[str, Entry]]:
        """Kernel and log entry of each graph launch that has events or stamps."""
        replays = [entry for entry in self.log if {"event", "stamp"} & {*entry.nodes}]
        helpers = ("event", "stamp", "flush_l2")
        return [(next(name for name in entry.address_sets if name not in helpers), entry) for entry in replays]


def _measure_jobs(gpu: FakeGpu, session: Session, text: str, how: dict[str, Any], has_new_buffers: bool) -> Trace:
    options = {"samples": 1, **how}
    seconds = options.pop("seconds", SECONDS)
    described = [build_job.describe_launch(launch, **options) for launch in map(Launch.parse, text.split(" and "))]
    jobs = [description.make_job(FACTS) for description in described]
    gpu.seconds |= {job.entry: seconds * (1 + place) for place, job in enumerate(jobs)}
    has_waves = options.get("isolated", False) or not any(map(device.fits_in_one_wave, jobs))
    outcomes, error, start, is_repeated = list[JobOutcome](), "", len(gpu.log), not session.needs_reference(jobs[0])
    try:
        outcomes = session.measure(jobs, make_fetch(described[0]))
    except (NotImplementedError, WrongOutputError) as raised:
        error = f"{type(raised).__name__}: {raised}"
    return Trace(jobs, how, has_new_buffers, has_waves, is_repeated, gpu.log[start:], outcomes, error)


@pytest.fixture(scope="module")
def gpu_and_traces() -> Iterator[tuple[FakeGpu, list[Trace]]]:
    """Measure all jobs in one session and release the session's buffers; yield the fake GPU and the traces."""
    with pytest.MonkeyPatch.context() as patch, fake_gpu(patch) as gpu:
        for kernel in (CASES["in place"].declared, WRITING[1][0]):
            patch.setitem(catalog.KERNELS, kernel.name, kernel)
        session = Session()
        traces = [_measure_jobs(gpu, session, *measured) for measured in MEASURED]
        session.release_buffers()
        yield gpu, traces


@pytest.fixture
def traces(gpu_and_traces: tuple[FakeGpu, list[Trace]]) -> list[Trace]:
    return gpu_and_traces[1]


def test_copies_precede_samples(traces: list[Trace]) -> None:
    """Each turn begins with a copy. The order of two jobs alternates."""
    for trace in traces:
        entries = [job.entry for job in trace.jobs]
        turns = range(trace.jobs[0].samples)
        expected = [kernel for turn in turns for kernel in (COPY, *entries[:: 1 if turn % 2 else -1])]
        assert trace.error or [kernel for kernel, _ in trace.timed][-len(expected) :] == expected


def test_back_to_back_launches_follow_a_warm_up(traces: list[Trace]) -> None:
    """Warm-up launches fill the L2. Long launches, and graphs that use each buffer once, have none."""
    for trace in traces:
        how, moved = trace.how, {job.entry: job.set_bytes for job in trace.jobs}
        moved[COPY] = 2 * (trace.jobs[0].useful_bytes // 2)
        seconds = {job.entry: how.get("seconds", SECONDS) * (1 + place) for place, job in enumerate(trace.jobs)}
        seconds[COPY] = COPY_SECONDS
        warmed_up = set()
        for kernel, (_, _, nodes, address_sets, _) in trace.timed if not how.get("isolated") else ():
            warm_up, stop = (place for place, name in enumerate(nodes) if name == "event")
            launches = stop - warm_up - 1
            assert nodes == [*[kernel] * warm_up, "event", *[kernel] * launches, "event"]
            assert (address_sets[kernel] == 1) if how.get("in_l2") else (launches % address_sets[kernel] == 0)
            if warm_up:
                warmed_up.add(kernel)
                l2_bytes = 64 << 10
                assert (warm_up - 1) * moved[kernel] < l2_bytes <= warm_up * moved[kernel]
                assert launches * seconds[kernel] >= TARGET_MS * 1e-3
            else:
                assert launches == address_sets[kernel]
        long_kernels = {kernel for kernel, duration in seconds.items() if duration >= WARM_UP_LIMIT}
        assert trace.error or how.get("isolated") or warmed_up == {*seconds} - long_kernels


def test_isolated_launches_follow_a_flush(traces: list[Trace]) -> None:
    """Each lies between two stamps of the GPU's timer."""
    isolated = [trace for trace in traces if trace.how.get("isolated")]
    for trace in isolated:
        for kernel, entry in trace.timed:
            assert entry.nodes == ["flush_l2", "stamp", kernel, "stamp"] * ISOLATED_LAUNCHES
        (outcome,) = trace.outcomes
        assert outcome.samples == pytest.approx([SECONDS + STAMP_OVERHEAD + 1e-8])
    assert len(isolated) == 2


def test_small_grids_have_a_clean_context(traces: list[Trace]) -> None:
    """Grids of at most one wave are timed in a context of their own, in which no memory is set."""
    for trace in traces:
        contexts = {entry.context.partition(" ")[0] for _, entry in trace.timed}
        assert trace.error or contexts == ({""} if trace.has_waves else {"context"})
        assert not [entry for entry in trace.log if entry.context and entry.call.startswith("set ")]
    assert {trace.has_waves for trace in traces} == {True, False}


def test_outputs_are_compared_on_the_device(traces: list[Trace]) -> None:
    """The host reads 8 bytes per array; for a kernel with a tolerance, it may read values."""
    for trace in traces:
        if trace.outcomes and not trace.is_repeated and not trace.jobs[0].name.startswith("matmul"):
            (launched,) = (place for place, entry in enumerate(trace.log) if {*entry.nodes} == {trace.jobs[0].entry})
            calls = [entry.call for entry in trace.log[launched:]]
            assert {call for call in calls if call.startswith("read ")} == {"read 8 bytes"}
            if trace is traces[2]:
                assert sum(call.startswith("upload ") for call in calls) == 3, "two flags and the input, no reference"


def test_repeated_jobs_are_not_verified_again(traces: list[Trace]) -> None:
    """They are only timed. They have the fields of an earlier job: other buffers and durations do not matter."""
    assert [place for place, trace in enumerate(traces) if trace.is_repeated] == [3, 9, 15, 16], (
        "3 repeats 2; 9, 15 and 16 begin with LARGE, as 1"
    )
    for trace in traces:
        is_compared = any("compare" in entry.nodes for entry in trace.log)
        assert trace.error or (trace.timed and is_compared is not trace.is_repeated)


def test_changed_inputs_are_restored(traces: list[Trace]) -> None:
    """Arrays that a kernel reads and writes are uploaded before every launch of a graph."""
    prefilled = [trace for trace in traces if any(array.direction == "in and out" for array in trace.jobs[0].arrays)]
    for trace in prefilled:
        entry = trace.jobs[0].entry
        replays = [place for place, (_, _, nodes, *_) in enumerate(trace.log) if entry in nodes]
        assert len(replays) == 3 + trace.jobs[0].samples, "a probe, the graph's upload, and the verification"
        assert all(trace.log[place - 1].call.startswith("upload ") for place in replays)
    assert len(prefilled) == 2


def test_new_buffers_are_allocated_as_expected(traces: list[Trace]) -> None:
    for trace in traces:
        before = trace.log[: next((place for place, entry in enumerate(trace.log) if entry.nodes), None)]
        assert any(entry.call.startswith("allocate ") for entry in before) == trace.has_new_buffers


def _sum_bytes(entries: Iterable[Entry], words: str) -> int:
    return sum(int(entry.call.split()[1]) for entry in entries if words in entry.call)


def _measure_spans(job: Job) -> tuple[int, int]:
    """Return the bytes of a set's outputs and of its inputs. Each array has a gap of at least 512 bytes behind it."""
    outputs, inputs = (
        sum((array.nbytes + 1023) // 512 * 512 for array in job.arrays if array.is_written is is_written)
        for is_written in (True, False)
    )
    return outputs, inputs


#: Bytes of the stamps of an isolated sample: 64-bit values of the GPU's timer, before and after each launch.
STAMP_BYTES = ISOLATED_LAUNCHES * 2 * 8


def test_sets_are_three_times_the_l2(gpu_and_traces: tuple[FakeGpu, list[Trace]]) -> None:
    """Outputs, inputs, and an array that flushes the L2 are allocated in this order; uploads fill all inputs."""
    gpu, traces = gpu_and_traces
    for trace in (trace for trace in traces if trace.has_new_buffers):
        job, first = trace.jobs[0], next(place for place, entry in enumerate(trace.log) if entry.nodes)
        sets = next(entry.address_sets[job.entry] for kernel, entry in trace.timed if kernel == job.entry)
        assert sets == (1 if trace.how.get("in_l2") else -(-3 * gpu.l2 // job.set_bytes))
        output_bytes, input_bytes = (sets * span for span in _measure_spans(job))
        outputs, inputs, *flushed = (entry for entry in trace.log[:first] if entry.call.startswith("allocate "))
        assert _sum_bytes([outputs], "") == output_bytes
        assert _sum_bytes([inputs], "") == (input_bytes or output_bytes // sets), "the plain copy needs an input"
        assert _sum_bytes(flushed, "") == ((2 * gpu.l2 + STAMP_BYTES) if trace.how.get("isolated") else 0)
        assert _sum_bytes(trace.log[:first], "upload ") == input_bytes


def test_outputs_are_poisoned(traces: list[Trace]) -> None:
    """Guards are poisoned, too, in all sets."""
    for trace in traces:
        (job, *_), log = trace.jobs, trace.log
        launched = [place for place, entry in enumerate(log) if {*entry.nodes} == {job.entry}]
        assert trace.error.startswith("NotImplementedError") or len(launched) == (0 if trace.is_repeated else 1)
        for place in launched:
            fills = takewhile(lambda entry: entry.call.startswith(("upload ", "set ")), reversed(log[:place]))
            assert _sum_bytes(fills, " of poison") == len(log[place].nodes) * _measure_spans(job)[0]


def test_launches_have_their_grids(traces: list[Trace]) -> None:
    """A block of the plain copy copies 4096 bytes."""
    for trace in traces:
        for entry in trace.log:
            for job in trace.jobs:
                assert entry.blocks.get(job.entry) in (None, math.prod(job.grid))
            assert entry.blocks.get(COPY) in (None, -(-trace.jobs[0].useful_bytes // 2 // 4096))


def test_samples_are_the_device_times(traces: list[Trace]) -> None:
    """The second job of a pair takes twice as long. Three of the jobs fail, which does not affect later ones."""
    for trace in traces:
        if not trace.how.get("isolated"):
            for place, outcome in enumerate(trace.outcomes):
                seconds = trace.how.get("seconds", SECONDS) * (1 + place)
                assert outcome.samples == pytest.approx([seconds] * trace.jobs[0].samples, rel=1e-5)
                assert outcome.copies == pytest.approx([COPY_SECONDS] * trace.jobs[0].samples, rel=1e-5)
    assert [trace.error.split(":")[0] for trace in traces if trace.error] == [
        "WrongOutputError", "NotImplementedError", "NotImplementedError",
    ]  # fmt: skip


def test_session_releases_everything(gpu_and_traces: tuple[FakeGpu, list[Trace]]) -> None:
    gpu, _ = gpu_and_traces
    assert not gpu.allocations
    assert not +gpu.live
