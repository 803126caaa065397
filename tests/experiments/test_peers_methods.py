"""The methods of the comparison with other tools, and the process that runs one: fakes stand in for GPU and tools."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from experiments.peers import tools, worker
from experiments.peers.launcher import square
from experiments.peers.methods import METHODS
from gpu_kernels.sweep import Launch
from kernelwatch.asv import timed
from kernelwatch.instrument.job import Outcome
from kernelwatch.project import ROOT

ONE = square("transpose_read_coalesced", 1024)
TWO = square("transpose_read_write_coalesced", 1024)

WORKER = """
import os, sys
from types import SimpleNamespace
from experiments.peers import worker
from experiments.peers.methods import Method
from experiments.peers.tools import one_by_one

seen = []

@one_by_one
def measure(launch, **settings):
    os.write(1, b"noise")
    print("more noise")
    if launch.arguments["rows"] == 3:
        raise ValueError("three")
    if launch.arguments["rows"] == 4:
        os._exit(5)
    seen.append(launch)
    if len(seen) > settings.get("most", 9):
        raise ValueError("not the first here")
    return [launch.arguments["rows"] * 1e-6, settings.get("n", 7)]

worker.METHODS["fake"] = Method("", "", measure, settings={"n": 8}, needs=("json:dumps",))
worker.METHODS["one"] = Method("", "", measure, settings={"most": 1})
worker.METHODS["forked"] = Method("", "", measure, settings={"most": 1}, processes=2)
worker.METHODS["missing"] = Method("", "", measure, needs=("no_such_peer:at_all",))
worker.machine = SimpleNamespace(gpu=lambda: SimpleNamespace(arch="sm_90"))
worker.device = SimpleNamespace(require=lambda: None)
worker.build = SimpleNamespace(cubin=lambda kernel, dtype, flags, arch: SimpleNamespace(sha256=arch))
sys.exit(worker.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("method", "defaults", "sides", "code", "samples", "error"),
    [
        ("fake", False, [1, 2], 0, [[1e-6, 8], [2e-6, 8]], []),
        ("fake", True, [1], 0, [[1e-6, 7]], []),
        ("fake", False, [1, 3, 2], 1, [[1e-6, 8]], ["ValueError: three"]),
        ("one", False, [1, 2], 1, [[1e-6, 7]], ["ValueError: not the first here"]),
        ("forked", False, [1, 2], 0, [[1e-6, 7], [2e-6, 7]], []),
        ("forked", False, [1, 3, 2], 1, [[1e-6, 7]], ["ValueError: three"]),
        ("forked", False, [1, 4], 1, [[1e-6, 7]], ["BrokenProcessPool: A process in the process pool"]),
        ("missing", False, [1], 1, [], ["ModuleNotFoundError: No module named 'no_such_peer'"]),
    ],
)
def test_worker(
    method: str,
    defaults: bool,
    sides: list[int],
    code: int,
    samples: list[list[float]],
    error: list[str],
) -> None:
    """A line for each configuration, on a standard output that nothing else reaches; a failure is a line too."""
    launches = [square("transpose_read_coalesced", side) for side in sides]
    command = worker.command(method, launches, defaults=defaults)
    assert command[1:3] == ["-m", "experiments.peers.worker"]
    done = subprocess.run(
        [sys.executable, "-c", WORKER, *command[3:]], capture_output=True, text=True, cwd=ROOT, env=os.environ
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == code, done.stderr
    found = [line for line in lines if "samples" in line]
    assert [line["samples"] for line in found] == samples
    assert [line["launch"] for line in found] == list(map(str, launches))[: len(samples)]
    errors = [line["error"] for line in lines if "error" in line]
    assert len(errors) == len(error)
    assert all(found.startswith(expected) for found, expected in zip(errors, error, strict=True))
    assert all(0 < line["start"] < 60 and line["cubin"] == "sm_90" for line in found)


class FakeLauncher:
    """Notes whether buffers rotate, and the streams that it is launched on."""

    made: list[FakeLauncher]

    def __init__(self, launch: Launch, *, rotate: bool) -> None:
        self.rotate = rotate
        self.streams: list[int] = []
        self.made.append(self)

    def __call__(self, stream: int) -> None:
        """A launch."""
        self.streams.append(stream)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[FakeLauncher]:
    """The fake launchers that a test makes."""
    FakeLauncher.made = []
    monkeypatch.setattr(tools, "Launcher", FakeLauncher)
    return FakeLauncher.made


def _install(monkeypatch: pytest.MonkeyPatch, **modules: SimpleNamespace) -> None:
    """Let modules with these attributes be imported; `__` stands for a dot."""
    for name, attributes in modules.items():
        module = ModuleType(name.replace("__", "."))
        vars(module).update(vars(attributes))
        monkeypatch.setitem(sys.modules, module.__name__, module)


def test_cupyx(made: list[FakeLauncher], monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches on CuPy's current stream, rotating; the GPU's times count."""

    def benchmark(launch: Callable[[], None], n_repeat: int) -> SimpleNamespace:
        for _ in range(n_repeat):
            launch()
        return SimpleNamespace(cpu_times=[9.0], gpu_times=[[1e-6] * n_repeat])

    stream = SimpleNamespace(cuda=SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=5)))
    _install(monkeypatch, cupy=stream, cupyx__profiler=SimpleNamespace(benchmark=benchmark))
    monkeypatch.setitem(sys.modules, "cupyx", ModuleType("cupyx"))
    (found,) = METHODS["cupyx"].measure([ONE], n_repeat=3)
    assert (found.launch, found.samples) == (ONE, [1e-6] * 3)
    assert [(one.rotate, one.streams) for one in made] == [(True, [5, 5, 5])]


@pytest.mark.parametrize(("name", "rotates"), [("do_bench", False), ("do_bench_cudagraph", True)])
def test_triton(name: str, rotates: bool, made: list[FakeLauncher], monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches on whatever stream is PyTorch's current one at the time; milliseconds become seconds."""
    current = iter([5, 6])

    def bench(launch: Callable[[], None], return_mode: str) -> list[float]:
        launch()
        launch()
        return [2.0] if return_mode == "all" else []

    stream = SimpleNamespace(current_stream=lambda: SimpleNamespace(cuda_stream=next(current)))
    testing = SimpleNamespace(**{name: bench})
    _install(monkeypatch, torch=SimpleNamespace(cuda=stream), triton=SimpleNamespace(testing=testing))
    (found,) = METHODS[name].measure([ONE])
    assert found.samples == [2e-3]
    assert [(one.rotate, one.streams) for one in made] == [(rotates, [5, 6])]


class FakeNVBench:
    """Runs what is registered once, as NVBench does."""

    def __init__(self, skip_reason: str | None) -> None:
        self.skip_reason = skip_reason
        self.registered: dict[str, Callable[[Any], None]] = {}
        self.arguments: list[str] = []
        self.batched: list[bool] = []

    def register(self, benchmark: Callable[[Any], None]) -> SimpleNamespace:
        """As cuda.bench's."""
        return SimpleNamespace(set_name=lambda name: self.registered.update({name: benchmark}))

    def run_all_benchmarks(self, arguments: list[str]) -> None:
        """As cuda.bench's."""
        self.arguments = arguments
        launch = SimpleNamespace(get_stream=lambda: SimpleNamespace(addressof=lambda: 5))

        def execute(launcher: Callable[[Any], None], *, batched: bool) -> None:
            self.batched.append(batched)
            launcher(launch)

        for benchmark in self.registered.values():
            benchmark(SimpleNamespace(exec=execute))

    def from_json(self, path: str) -> dict[str, list[SimpleNamespace]]:
        """As BenchmarkResult's."""
        assert path in self.arguments
        summaries = {"nv/batch/time/gpu/mean": SimpleNamespace(value=4e-6)}
        skipped = {"is_skipped": self.skip_reason is not None, "skip_reason": self.skip_reason}
        return {
            name: [SimpleNamespace(samples=[1e-6, 2e-6], summaries=summaries, **skipped)] for name in self.registered
        }


@pytest.mark.parametrize(
    ("name", "batched", "samples"), [("nvbench_cold", False, [1e-6, 2e-6]), ("nvbench_batch", True, [4e-6])]
)
@pytest.mark.parametrize("skip_reason", [None, "boom"])
def test_nvbench(
    name: str,
    batched: bool,
    samples: list[float],
    skip_reason: str | None,
    made: list[FakeLauncher],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All configurations in one run, with NVBench's own options; one that it skipped is an error."""
    fake = FakeNVBench(skip_reason)
    _install(
        monkeypatch,
        cuda=SimpleNamespace(bench=fake),
        cuda__bench=SimpleNamespace(),
        cuda__bench__results=SimpleNamespace(BenchmarkResult=fake),
    )
    measure = METHODS[name].measure([ONE, TWO], options=["--timeout", "2"])
    if skip_reason is not None:
        with pytest.raises(RuntimeError, match=f"NVBench skipped {ONE}: boom"):
            list(measure)
        return
    assert [(one.launch, one.samples) for one in measure] == [(ONE, samples), (TWO, samples)]
    assert fake.arguments[-2:] == ["--timeout", "2"]
    assert fake.batched == [batched, batched]
    assert [(one.rotate, one.streams) for one in made] == [(batched, [5]), (batched, [5])]


class FakeSuite:
    """A suite as asv finds it."""

    cache = None

    def __init__(self, launch: Launch) -> None:
        self.skips = launch == TWO

    def setup(self) -> None:
        """Skip, or nothing."""
        if self.skips:
            raise NotImplementedError("no room")

    def time_launch(self) -> None:
        """Nothing."""


def test_asv() -> None:
    """asv_runner takes as many samples as the settings say, one call each, and says so if it skips."""
    measure = tools.by_asv(FakeSuite)
    (found,) = measure([ONE], repeat=4, warmup_time=0.0)
    assert len(found.samples) == 4
    with pytest.raises(RuntimeError, match="asv skipped it"):
        list(measure([TWO]))


@pytest.mark.parametrize(("name", "isolated"), [("suite", False), ("suite_isolated", True)])
def test_suite(name: str, isolated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The protocol of every benchmark here: the measuring process is asked once, for all samples."""
    asked: list[tuple[Launch, dict[str, Any]]] = []
    samples = tuple(1e-6 * (1 + place) for place in range(timed.SAMPLES))

    def measured(launch: Launch, **how: Any) -> Outcome:
        asked.append((launch, how))
        return Outcome(samples=samples, copies=samples)

    monkeypatch.setattr(tools, "measured", measured)
    (found,) = METHODS[name].measure([ONE])
    assert found.samples == list(samples)
    assert asked == [(ONE, {"isolated": isolated})]
