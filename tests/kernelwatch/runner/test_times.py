"""Times of a commit on a fake GPU: rounds, ratios, reuse and failures; and times in asv without the plugin."""

import timeit
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import numpy as np
import pytest

import kernelwatch.benchmarks as kw
from kernelwatch import Kernel, inputs, outputs
from kernelwatch.instrument import device, machine, session, stopping_rule
from kernelwatch.instrument.clock import SampleClock
from kernelwatch.instrument.job_messages import Job, JobOutcome
from kernelwatch.instrument.session import Session
from kernelwatch.instrument.stopping_rule import MIN_SAMPLES
from kernelwatch.instrument.tolerance import WrongOutputError
from kernelwatch.kernel import matrix_copy
from kernelwatch.runner import measure_counts, measure_times
from kernelwatch.runner.protocol import Difference, RoundStart, RunConfiguration, StoredNumbers, Task
from kernelwatch.suite import registry
from tests import on_fake_gpu, served
from tests.fake_cuda import FakeGpu
from tests.kernelwatch.runner.test_counts import split_messages

GROUP = "time_small.Small"
TIME, RATIO = f"{GROUP}.time_back_to_back", "track_control.Small.track_copy_ratio"

COPY = """extern "C" __global__ void NAME(float* out, const float* in, int n)
{ if (threadIdx.x < n) out[threadIdx.x] = in[threadIdx.x] * FACTOR; }"""

#: Kernel -> factor by which it multiplies. The reference multiplies by 4.
FACTORS = {"right": "4.0f", "also_right": "2.0f * 2.0f", "wrong": "3.0f"}
ARGUMENTS: list[Any] = [outputs("out", "n"), inputs("image", "n"), "n"]
SOURCES = {name: COPY.replace("NAME", name).replace("FACTOR", factor) for name, factor in FACTORS.items()}
KERNELS = {
    name: Kernel(name, ARGUMENTS, 64, over=("n",), text=text, reference=lambda image: image * np.float32(4))
    for name, text in SOURCES.items()
}


class Small(kw.BackToBack):
    module = "time_small"
    param_names = ("kernel", "n")
    params = (("right", "also_right", "wrong", "missing"), (64,))


class Copy(kw.BackToBack):
    module = "time_copy"
    kernel = matrix_copy.NAME
    param_names = ("rows x columns", "dtype")
    params = (("8x8",), ("float32",))


class Counted(kw.Counted):
    param_names = ("kernel", "n", "dtype", "flags")
    params = (*Small.params, ("float32",), ("-Xptxas -O3",))


class Compiled(kw.Compiled):
    param_names = ("kernel", "dtype", "flags", "arch")
    params = (tuple(KERNELS), ("float32",), ("-Xptxas -O3",), ("sm_90",))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGpu]:
    """Yield a fake GPU. The suite has the classes above."""
    small = registry.Suite(lambda: KERNELS, (Small.sweep,), Copy.sweep, (Counted.sweep,), Compiled.sweep)
    monkeypatch.setattr(registry, "_registered", [small])
    monkeypatch.setattr(machine, "find_gpu", lambda: None)  # no compilation ahead
    # The L2 is so small that all sets of buffers, a dozen, are verified.
    with on_fake_gpu.fake_gpu(monkeypatch, l2_bytes=8 << 10) as fake:
        fake.seconds |= dict.fromkeys(KERNELS, on_fake_gpu.SECONDS)
        yield fake


NO_DRIVER = "there is no CUDA driver"


@pytest.fixture
def no_driver(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    monkeypatch.setattr(device, "process_context", mock.Mock(side_effect=NotImplementedError(NO_DRIVER)))
    return gpu


Measure = Callable[..., tuple[list[RunConfiguration], list[Any]]]


@pytest.fixture
def measure(gpu: FakeGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Return a function that measures configurations, and returns these and the other messages."""
    monkeypatch.setattr(served, "FACTS", msgspec.structs.replace(on_fake_gpu.FACTS, conditions="a GPU"))

    def ask(stored: Any = None, rounds: int = 2, benchmarks: Any = (TIME, RATIO), **task_fields: Any) -> Any:
        del gpu.launched[:]
        group, indices = task_fields.get("group", GROUP), task_fields.get("indices", [0, 1, 2, 3])
        task = Task(
            indices={group: indices}, benchmarks=list(benchmarks), versions={group: "3"}, rounds={group: rounds},
            stored={group: stored or {}}, commit="c1",
        )  # fmt: skip
        messages: list[Any] = []
        with served.serve_session(Session(), tmp_path) as address:  # type: ignore[arg-type]
            measure_times.measure_task(task, messages.append, address)  # type: ignore[arg-type]
        return split_messages(messages)

    return ask


def test_each_round_measures_each_configuration(measure: Measure) -> None:
    """A wrong and a missing kernel do not stop the others. Two kernels begin two rounds, the wrong one begins one."""
    configurations, other_messages = measure()
    right, also_right, wrong, missing = configurations
    for configuration in (right, also_right):
        ratio = on_fake_gpu.SECONDS / on_fake_gpu.COPY_SECONDS
        assert configuration.round_sizes == [MIN_SAMPLES, MIN_SAMPLES]
        assert configuration.numbers[TIME] == pytest.approx([on_fake_gpu.SECONDS] * 2 * MIN_SAMPLES)
        assert configuration.numbers[RATIO] == pytest.approx([ratio] * 2 * MIN_SAMPLES)
        kernel = configuration.params.partition(",")[0]
        code = configuration.machine_code
        assert code is not None
        assert (code.name, code.arch) == (f"{kernel} float32 -Xptxas -O3", "sm_90")
    assert right.fingerprint != also_right.fingerprint
    assert wrong.failed.startswith("WrongOutputError: wrong n=64")
    assert "there is no kernel 'missing'" in missing.skipped
    assert not wrong.numbers
    assert not missing.numbers
    assert [type(message) for message in other_messages] == [RoundStart] * (2 + 2 + 1), "a failed one was tried again"


def test_plain_copy_has_machine_code(measure: Measure) -> None:
    """The hash of the library's plain copy is recorded, so that a review can compare it."""
    time = "time_copy.Copy.time_back_to_back"
    (copy,), _ = measure(rounds=1, benchmarks=(time,), group="time_copy.Copy", indices=[0])
    assert copy.numbers[time]
    assert copy.machine_code is not None
    assert (copy.machine_code.name, copy.machine_code.arch) == ("device_copy float32 -Xptxas -O3", "sm_90")


@pytest.mark.parametrize("selected", [TIME, RATIO])
def test_only_selected_numbers_are_measured(selected: str, measure: Measure) -> None:
    (configuration,), other_messages = measure(rounds=1, benchmarks=(selected,), indices=[1])
    assert (set(configuration.numbers), configuration.index) == ({selected}, 1)
    assert configuration.round_sizes == [MIN_SAMPLES]
    assert [type(message) for message in other_messages] == [RoundStart]


#: Factors of the first two measurements to the stored time (0: the output is wrong), and the number of reused
#: configurations of two.
TRIES = [([1.0, 9.9], 1), ([1.2, 1.0], 1), ([1.2, 0.8], 0), ([1.2, 0.0], 0)]  # 1.0 agrees; 9.9 is its second round


@pytest.mark.parametrize(("tries", "reused"), TRIES)
def test_difference_stops_reuse_of_times(
    tries: list[float], reused: int, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two stored times is measured, and once more if it differs. Unless a try agrees, no time is reused.

    The samples of the first try are stored, whether or not they agree.
    """
    first, _ = measure(indices=[0, 1])
    entries = {}
    for configuration in first:
        # Eleven samples, which two rounds divide into 6 and 5.
        numbers: dict[str, Any] = {TIME: [*configuration.numbers[TIME], 4e-6], RATIO: [2.5] * 11}
        entries[configuration.fingerprint] = StoredNumbers("c0", numbers, threshold=0.05)
    factors, measured = iter(tries), measure_times.TimeMeasurement._ask_for_outcome

    def measure_by_factor(*arguments: Any) -> Any:
        outcome, factor = measured(*arguments), next(factors, 1.0)
        if not factor:
            raise WrongOutputError("it is wrong now")
        return msgspec.structs.replace(outcome, samples=tuple(sample * factor for sample in outcome.samples))

    monkeypatch.setattr(measure_times.TimeMeasurement, "_ask_for_outcome", measure_by_factor)
    configurations, other_messages = measure(entries, indices=[0, 1])
    differences = [message for message in other_messages if isinstance(message, Difference)]
    assert len(differences) == (not reused)
    assert all(difference.ratio is None or difference.ratio == pytest.approx(tries[1]) for difference in differences)
    for configuration in configurations:
        origin, rounds = ("c0", [6, 5]) if configuration.reused else ("", [MIN_SAMPLES, MIN_SAMPLES])
        assert (configuration.reused, configuration.round_sizes) == (origin, rounds)
        assert len(configuration.numbers[TIME]) == sum(rounds)
    assert [bool(configuration.reused) for configuration in configurations].count(True) == reused
    first_factors = [
        configuration.numbers[TIME][0] / on_fake_gpu.SECONDS
        for configuration in configurations
        if not configuration.reused
    ]
    assert pytest.approx(tries[0]) in first_factors, "the first of two measurements was not kept"


@pytest.mark.usefixtures("gpu")
def test_rounds_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ratios and throttle reasons are joined, too. A skipped configuration is tried once."""
    outcomes = [
        JobOutcome(samples=(4.0,), copies=(2.0,), throttle_reasons=("hot",)),
        NotImplementedError("no room"),
        JobOutcome(samples=(6.0, 9.0), copies=(2.0, 3.0), throttle_reasons=("cap", "hot")),
    ]
    monkeypatch.setattr(measure_times.TimeMeasurement, "_ask_for_outcome", mock.Mock(side_effect=outcomes))
    monkeypatch.setattr(measure_times.TimeMeasurement, "_identify", lambda *_: None)
    messages: list[Any] = []
    task = Task(indices={GROUP: [0, 1]}, benchmarks=[TIME, RATIO], versions={GROUP: "3"}, rounds={GROUP: 2})
    measuring = measure_times.TimeMeasurement(task, messages.append, "", on_fake_gpu.FACTS)  # type: ignore[arg-type]
    measuring.measure(measure_counts.list_configurations(task, registry.Kind.TIMED))
    measured, skipped = split_messages(messages)[0]
    assert (skipped.index, skipped.skipped, skipped.numbers) == (1, "no room", {})
    assert (measured.throttle_reasons, measured.round_sizes) == (["hot", "cap"], [1, 2])
    assert measured.numbers == {TIME: [4.0, 6.0, 9.0], RATIO: [2.0, 3.0, 3.0]}


@pytest.mark.usefixtures("no_driver")
def test_no_device_skips_every_time() -> None:
    messages: list[Any] = []
    task = Task(indices={GROUP: [0, 1]}, benchmarks=[TIME], versions={GROUP: "3"}, rounds={GROUP: 2})
    measure_times.measure_task(task, messages.append, None)  # type: ignore[arg-type]
    assert [(message.index, message.skipped) for message in messages] == [(0, NO_DRIVER), (1, NO_DRIVER)]


@pytest.mark.usefixtures("gpu")
def test_jobs_for_interleaving_are_written(tmp_path: Path) -> None:
    """The jobs are those that the commit's process measures. Missing kernels have none."""
    facts = on_fake_gpu.FACTS
    with served.serve_session(Session(), tmp_path) as address:  # type: ignore[arg-type]
        measure_times.write_jobs(address, 0)
    lines = Path(address).with_name("0.jsonl").read_bytes().splitlines()
    expected = [
        kw.timed.describe_job(sweep, sweep.launch(point)).make_job(facts)
        for sweep in (Copy.sweep, Small.sweep)
        for point in list(sweep.points())[:3]  # the fourth kernel of Small is missing
    ]
    assert [msgspec.json.decode(line, type=Job) for line in lines] == expected


@pytest.fixture
def own_gpu(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGpu]:
    """Yield the fake GPU. This process measures, as if without a measuring process."""
    monkeypatch.setattr(machine, "nvml_handle", lambda: None)
    session._process_session.cache_clear()
    yield gpu
    session._process_session.cache_clear()


class SmallRatios(kw.Control):
    timed = Small


@pytest.mark.usefixtures("own_gpu")
def test_asv_loop_takes_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asv calls `setup` before each sample, and reads the timer twice. A ratio is a kernel's time over the copy's."""
    more = stopping_rule.MIN_SAMPLES + 2
    monkeypatch.setattr(stopping_rule, "MIN_SAMPLES", more)  # the number of samples that the instrument takes
    benchmark = Small()
    samples = []
    benchmark.setup("right", 64)
    for _ in range(benchmark.repeat):
        benchmark.setup("right", 64)
        benchmark.timer()  # a sample that raises has no second reading and is repeated
        benchmark.setup("right", 64)
        begin = benchmark.timer()
        benchmark.time_back_to_back("right", 64)
        samples.append(benchmark.timer() - begin)
    assert samples == pytest.approx([on_fake_gpu.SECONDS] * benchmark.repeat)
    assert benchmark.timer.is_used_up
    ratios = SmallRatios()
    ratios.setup("right", 64)
    ratio = ratios.track_copy_ratio("right", 64)
    assert ratio["samples"] == pytest.approx([on_fake_gpu.SECONDS / on_fake_gpu.COPY_SECONDS] * benchmark.repeat)
    assert ratio["number"] == 1
    method: Any = SmallRatios.track_copy_ratio
    assert method.benchmark_name.endswith(".SmallRatios.track_copy_ratio")
    for kernel, error in (("wrong", WrongOutputError), ("missing", NotImplementedError)):
        with pytest.raises(error, match=kernel):
            Small().setup(kernel, 64)


def test_setup_skips_without_a_device(no_driver: FakeGpu) -> None:
    with pytest.raises(NotImplementedError, match=NO_DRIVER):
        Small().setup("right", 64)
    assert not no_driver.launched


def test_timeit_returns_samples_exactly() -> None:
    """An exception loses no sample, because asv's setup calls `reset`."""
    clock = SampleClock()
    samples = [2e-3, 2.0000002e-3, 1e-6, 59.999996, float(np.float32(3.3)) * 1e-3 / 7]
    clock.add(samples)
    failing = timeit.Timer("raise OSError('boom')", setup=clock.reset, timer=clock)
    with pytest.raises(OSError, match="boom"):
        failing.timeit(1)
    timer = timeit.Timer("pass", setup=clock.reset, timer=clock)
    assert [timer.timeit(1) for _ in samples] == samples
    assert clock.is_used_up
