"""The methods that asv itself runs: this suite's clock, and what suites do that have none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from asv_runner.benchmarks.time import TimeBenchmark

from benchmarks.instruments import device
from benchmarks.instruments.experiment import Work
from benchmarks.instruments.isolated import Isolated
from benchmarks.instruments.replay import Cycle
from benchmarks.timed import _Timed
from experiments.peers.configurations import Configuration
from experiments.peers.launcher import Launcher
from experiments.peers.measured import one_by_one


def _run(suite: Any, settings: dict[str, Any], run_folder: str | None = None) -> list[float]:
    """The samples, in seconds, that asv takes of `suite.time_back_to_back` in one process.

    Parameters
    ----------
    suite : a benchmark class's instance.
    settings : its attributes that asv reads: repeat, warmup_time and so on.
    run_folder : what its `setup_cache` would have returned.
    """
    for name, value in settings.items():
        setattr(suite, name, value)
    benchmark = TimeBenchmark(type(suite).__name__, suite.time_back_to_back, [suite])
    benchmark.set_cache(run_folder)
    if benchmark.do_setup():
        raise RuntimeError("asv skipped it; its own line above says why")
    return list(benchmark.do_run()["samples"])


class _Suite(_Timed):
    """One configuration as the suite measures it."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    def work(self, *_: Any) -> Work:
        """What is launched."""
        return self._configuration.work()

    def time_back_to_back(self, *_: Any) -> None:
        """The benchmark."""
        self.replay()


class _IsolatedSuite(_Suite):
    """The same, of launches by themselves."""

    @staticmethod
    def instrument(cycle: Cycle) -> Isolated:
        """What a sample runs."""
        return Isolated(cycle)


class _OneLaunch:
    """A suite without an instrument of its own: one launch a sample. asv's defaults, unless settings say otherwise."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._stream = device.cuda.Stream()
        self._handle = self._stream.handle

    def setup(self) -> None:
        """Nothing; but that there is one makes asv time calls singly, as in every suite that prepares arrays."""

    def time_back_to_back(self) -> None:
        """The benchmark."""
        self._launcher(self._handle)


class _HostWall(_OneLaunch):
    """asv's own clock around a launch and a synchronisation."""

    def time_back_to_back(self) -> None:
        """The benchmark."""
        super().time_back_to_back()
        device.cuda.Context.synchronize()


class _Events(_OneLaunch):
    """A timer that records an event and waits for it, before and after the launch."""

    def __init__(self, launcher: Launcher) -> None:
        super().__init__(launcher)
        self._first = self._recorded()

    def _recorded(self) -> Any:
        event = device.cuda.Event()
        event.record(self._stream)
        event.synchronize()
        return event

    def timer(self) -> float:
        """Seconds from the first event to one recorded now."""
        return float(self._first.time_till(self._recorded())) * 1e-3


@one_by_one
def suite_clock(configuration: Configuration, verified: Path, **settings: Any) -> list[float]:
    """Replays of a graph, as in every benchmark of this suite."""
    return _run(_Suite(configuration), settings, str(verified))


@one_by_one
def suite_isolated(configuration: Configuration, verified: Path, **settings: Any) -> list[float]:
    """Launches by themselves, as in the suite's isolated benchmarks."""
    return _run(_IsolatedSuite(configuration), settings, str(verified))


@one_by_one
def events(configuration: Configuration, verified: Path, **settings: Any) -> list[float]:
    """A pair of events around one launch."""
    return _run(_Events(Launcher(configuration, rotate=True, verified=verified)), settings)


@one_by_one
def host_wall(configuration: Configuration, verified: Path, **settings: Any) -> list[float]:
    """The host's clock around one launch and a synchronisation."""
    return _run(_HostWall(Launcher(configuration, rotate=True, verified=verified)), settings)
