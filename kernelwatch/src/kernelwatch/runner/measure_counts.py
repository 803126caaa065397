"""Counted and compiled numbers of a commit, computed in the commit's process."""

import multiprocessing
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from kernelwatch.benchmarks.compiled import compile_cubin
from kernelwatch.benchmarks.counted import map_groups
from kernelwatch.counting import launch_counts, source_lines
from kernelwatch.counting.launch_counts import CountOutcome
from kernelwatch.errors import ERRORS
from kernelwatch.kernel import Launch
from kernelwatch.runner import reuse
from kernelwatch.runner.protocol import MachineCode, RunConfiguration, Sender, SourceLine, Task
from kernelwatch.runner.reuse import Check
from kernelwatch.suite import registry
from kernelwatch.suite.sweep import Sweep
from kernelwatch.toolchain import code_hash
from kernelwatch.toolchain.build import Cubin


def compile_and_count(task: Task, send: Sender) -> None:
    """Compile and count the task's configurations, and send each outcome.

    If `task.source_lines_folder` is set, also count and send the source lines that the folder lacks.
    """
    compile_cubins(task, send)
    count_launches(task, send)
    if task.source_lines_folder:
        classes = {
            sweep.name for group, sweep in sweeps_by_class(registry.Kind.COUNTED).items() if group in task.indices
        }
        for line in source_lines.iter_missing(Path(task.source_lines_folder), classes):
            send(SourceLine(line))


def sweeps_by_class(kind: registry.Kind) -> dict[str, Sweep]:
    """Return benchmark class -> its sweep, for the classes of a kind, in asv's order."""
    return {
        name.rpartition(".")[0]: sweep
        for name, (benchmark_kind, sweep) in sorted(registry.current_suite().benchmarks.items())
        if benchmark_kind is kind
    }


class SelectedConfiguration(NamedTuple):
    """A configuration of a task, without an outcome at first, with its launch and its sweep."""

    configuration: RunConfiguration
    launch: Launch
    sweep: Sweep


def list_configurations(task: Task, kind: registry.Kind) -> list[SelectedConfiguration]:
    """Return the task's configurations of a kind of benchmark."""
    selected = []
    for group, sweep in sweeps_by_class(kind).items():
        points = list(sweep.points()) if group in task.indices else []
        for index in task.indices.get(group, ()):
            params = ", ".join(map(str, points[index].values()))
            configuration = RunConfiguration(group=group, index=index, params=params)
            selected.append(SelectedConfiguration(configuration, sweep.launch(points[index]), sweep))
    return selected


class _LaunchCounts:
    """Counts launches of configurations in a pool of processes, and keeps the outcomes by the text of the launch."""

    def __init__(self, selected: Sequence[SelectedConfiguration], pool: ProcessPoolExecutor) -> None:
        self._launches = {id(configuration): launch for configuration, launch, _ in selected}
        self._pool = pool
        self._outcomes: dict[str, CountOutcome] = {}

    def count(self, configurations: Iterable[RunConfiguration]) -> None:
        launches = (self._launches[id(configuration)] for configuration in configurations)
        uncounted = [launch for launch in launches if str(launch) not in self._outcomes]
        self._outcomes.update(map_groups(self._pool, launch_counts.count_launches, uncounted))

    def find_outcome(self, configuration: RunConfiguration) -> CountOutcome:
        return self._outcomes[str(self._launches[id(configuration)])]

    def find_numbers(self, configuration: RunConfiguration) -> dict[str, float]:
        """Return benchmark -> number of a counted configuration; empty if it was skipped or failed."""
        metrics = self.find_outcome(configuration).metrics
        names = _metric_names(configuration.group)
        return {benchmark: metrics[metric] for benchmark, metric in names.items() if metric in metrics}

    def measure_ratios(self, checks: Sequence[Check]) -> list[float | None]:
        """Count the launches of checks; return the ratio of the current to the stored numbers of each."""
        self.count(check.configuration for check in checks)
        return [_worst_ratio(self.find_numbers(check.configuration), check.stored.values) for check in checks]


def count_launches(task: Task, send: Sender) -> None:
    """Count the task's launches, except those whose stored numbers are reused; send all outcomes."""
    selected = list_configurations(task, registry.Kind.COUNTED)
    if not selected:
        return
    configurations = [configuration for configuration, _, _ in selected]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:
        fingerprints = map_groups(pool, launch_counts.hash_launches, (launch for _, launch, _ in selected))
        for configuration, launch, _ in selected:
            fingerprint = fingerprints.get(str(launch))
            configuration.fingerprint = f"{fingerprint}-{task.versions[configuration.group]}" if fingerprint else ""
        counts = _LaunchCounts(selected, pool)
        for difference in reuse.reuse_stored(configurations, task, counts.measure_ratios):
            send(difference)
        unmeasured = [configuration for configuration in configurations if not configuration.numbers]
        counts.count(unmeasured)
    for configuration in unmeasured:
        outcome = counts.find_outcome(configuration)
        configuration.skipped, configuration.failed = outcome.missing, outcome.failure
        configuration.numbers = counts.find_numbers(configuration)
    for configuration in configurations:
        send(configuration)


def _metric_names(group: str) -> dict[str, str]:
    """Return benchmark -> name of its metric or resource, for the benchmarks of a class."""
    return {name: name.partition(".track_")[2] for name in registry.current_suite().benchmarks_by_class[group]}


def _worst_ratio(current: Mapping[str, float], stored: Mapping[str, float]) -> float | None:
    """Return the ratio of a current to a stored number that differs most from 1; None if a number is missing.

    For a stored 0, the ratio is 1 plus the current number.
    """
    if not stored.keys() <= current.keys():
        return None
    ratios = [current[name] / stored[name] if stored[name] else 1.0 + current[name] for name in stored]
    return max(ratios, key=lambda ratio: abs(ratio - 1), default=1.0)


def compile_cubins(task: Task, send: Sender) -> None:
    """Compile the task's kernels into the cache, and send the resources that ptxas reports."""
    selected = list_configurations(task, registry.Kind.COMPILED)
    if not selected:
        return
    axes, points = registry.current_suite().compiled.axes, list(registry.current_suite().compiled.points())
    arguments = [tuple(map(str, points[configuration.index].values())) for configuration, _, _ in selected]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:
        cubins = list(pool.map(_compile_or_error, arguments, chunksize=len(axes["flags"]) * len(axes["arch"])))
    for (*_, arch), compiled, (configuration, launch, _) in zip(arguments, cubins, selected, strict=True):
        if isinstance(compiled, NotImplementedError):
            configuration.skipped = str(compiled)
        elif isinstance(compiled, Exception):
            configuration.failed = f"{type(compiled).__name__}: {compiled}"
        else:
            code_sha256 = code_hash.hash_machine_code(compiled.data)
            configuration.machine_code = MachineCode(compiled.sha256, launch.code_name, arch, code_sha256)
            configuration.block = registry.find_kernel(launch.kernel).find_fixed_block(launch.dtype)
            configuration.numbers = {
                benchmark: getattr(compiled.resources, resource)
                for benchmark, resource in _metric_names(configuration.group).items()
            }
        send(configuration)


def _compile_or_error(arguments: tuple[str, str, str, str]) -> Cubin | Exception:
    try:
        return compile_cubin(*arguments)
    except (NotImplementedError, *ERRORS) as error:
        return error
