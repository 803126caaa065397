"""Counted and compiled numbers of a commit, computed in the commit's process."""

import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from kernelwatch.benchmarks.compiled import compile_cubin
from kernelwatch.benchmarks.counted import map_groups
from kernelwatch.counting import launch_counts, source_lines
from kernelwatch.counting.launch_counts import CountOutcome
from kernelwatch.errors import ERRORS
from kernelwatch.kernel import Launch
from kernelwatch.runner import reuse
from kernelwatch.runner.protocol import RunConfiguration, Sender, SourceLine, Task
from kernelwatch.runner.reuse import Check
from kernelwatch.suite import registry
from kernelwatch.suite.sweep import Sweep
from kernelwatch.toolchain import code_hash
from kernelwatch.toolchain.build import Cubin


def compile_and_count(task: Task, send: Sender) -> None:
    """Compile and count the task's configurations, and send each outcome.

    If `task.lines` is set, also send the source lines missing there.
    """
    compile_cubins(task, send)
    count_launches(task, send)
    if task.lines:
        classes = {
            sweep.name for group, sweep in sweeps_by_class(registry.Kind.COUNTED).items() if group in task.indices
        }
        for line in source_lines.iter_missing(Path(task.lines), classes):
            send(SourceLine(line))


def sweeps_by_class(kind: registry.Kind) -> dict[str, Sweep]:
    """Return benchmark class -> its sweep, for the classes of a kind, in asv's order."""
    return {
        name.rpartition(".")[0]: sweep
        for name, (benchmark_kind, sweep) in sorted(registry.current_suite().benchmarks.items())
        if benchmark_kind is kind
    }


def list_configurations(task: Task, kind: registry.Kind) -> list[tuple[RunConfiguration, Launch, Sweep]]:
    """Return the task's configurations of a kind, each with its launch and sweep."""
    configurations = []
    for group, sweep in sweeps_by_class(kind).items():
        points = list(sweep.points()) if group in task.indices else []
        for index in task.indices.get(group, ()):
            configuration = RunConfiguration(
                group=group, index=index, params=", ".join(map(str, points[index].values()))
            )
            configurations.append((configuration, sweep.launch(points[index]), sweep))
    return configurations


def count_launches(task: Task, send: Sender) -> None:
    """Count the task's launches, except those whose stored numbers are reused; send all outcomes."""
    selected = list_configurations(task, registry.Kind.COUNTED)
    if not selected:
        return
    launches = {id(configuration): launch for configuration, launch, _ in selected}
    outcomes: dict[str, CountOutcome] = {}

    def numbers(configuration: RunConfiguration) -> dict[str, float]:
        metrics = outcomes[str(launches[id(configuration)])].metrics
        return {name: metrics[metric] for name, metric in _metric_names(configuration.group) if metric in metrics}

    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:

        def count_checks(checks: Sequence[Check]) -> list[float | None]:
            outcomes.update(
                map_groups(pool, launch_counts.count_launches, [launches[id(check.configuration)] for check in checks])
            )
            return [_worst_ratio(numbers(check.configuration), check.stored.values) for check in checks]

        fingerprints = map_groups(pool, launch_counts.hash_launches, launches.values())
        for configuration, launch, _ in selected:
            fingerprint = fingerprints.get(str(launch))
            configuration.fingerprint = f"{fingerprint}-{task.versions[configuration.group]}" if fingerprint else ""
        configurations = [configuration for configuration, _, _ in selected]
        for difference in reuse.reuse_stored(configurations, task, count_checks):
            send(difference)
        unmeasured = [configuration for configuration in configurations if not configuration.numbers]
        uncounted = (
            launches[id(configuration)]
            for configuration in unmeasured
            if str(launches[id(configuration)]) not in outcomes
        )
        outcomes.update(map_groups(pool, launch_counts.count_launches, uncounted))
    for configuration in unmeasured:
        outcome = outcomes[str(launches[id(configuration)])]
        configuration.skipped, configuration.failed = outcome.missing, outcome.failure
        configuration.numbers = numbers(configuration)
    for configuration in configurations:
        send(configuration)


def _metric_names(group: str) -> list[tuple[str, str]]:
    """Return the benchmarks of a class as (name, name of its metric or resource)."""
    return [(name, name.partition(".track_")[2]) for name in registry.current_suite().benchmarks_by_class[group]]


def _worst_ratio(current: Mapping[str, float], stored: Mapping[str, float]) -> float | None:
    """Return the ratio of a current number to the stored one that differs most from 1; None if a number is missing."""
    if not stored.keys() <= current.keys():
        return None
    ratios = [current[name] / stored[name] if stored[name] else 1.0 + current[name] for name in stored]
    return max(ratios, key=lambda ratio: abs(ratio - 1), default=1.0)


def compile_cubins(task: Task, send: Sender) -> None:
    """Compile the task's kernels, and send the resources that ptxas reports. All cubins are then in the cache."""
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
            configuration.machine_code = (
                compiled.sha256,
                launch.code_name,
                arch,
                code_hash.hash_machine_code(compiled.data),
            )
            configuration.block = registry.find_kernel(launch.kernel).find_fixed_block(launch.dtype)
            configuration.numbers = {
                name: getattr(compiled.resources, resource) for name, resource in _metric_names(configuration.group)
            }
        send(configuration)


def _compile_or_error(arguments: tuple[str, str, str, str]) -> Cubin | Exception:
    """Return the cubin of (kernel, dtype, flags, arch), or the error of its compilation."""
    try:
        return compile_cubin(*arguments)
    except (NotImplementedError, *ERRORS) as error:
        return error
