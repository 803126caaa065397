"""The counted and compiled numbers of a commit, in the process that has its package."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from kernelwatch.benchmarks.compiled import cubin
from kernelwatch.benchmarks.counted import in_groups
from kernelwatch.counting import source_lines, transactions
from kernelwatch.counting.transactions import CountOutcome
from kernelwatch.errors import ERRORS
from kernelwatch.instrument import skip_reasons
from kernelwatch.kernel import Launch
from kernelwatch.runner import reuse
from kernelwatch.runner.protocol import Configuration, Line, Sender, Task
from kernelwatch.runner.reuse import Check
from kernelwatch.suite import registry
from kernelwatch.suite.sweep import Sweep
from kernelwatch.toolchain import machine_code
from kernelwatch.toolchain.build import Cubin


def send_all(task: Task, send: Sender) -> None:
    """Count and compile what is wanted."""
    compiled(task, send)
    counted(task, send)
    if task.lines:
        classes = {sweep.name for group, sweep in groups(registry.Kind.COUNTED).items() if group in task.places}
        for line in source_lines.missing(Path(task.lines), classes):
            send(Line(line))


def groups(kind: registry.Kind) -> dict[str, Sweep]:
    """Return the sweep of each class of a kind, in asv's order."""
    return {
        name.rpartition(".")[0]: sweep
        for name, (one, sweep) in sorted(registry.current().benchmarks.items())
        if one is kind
    }


def configurations(task: Task, kind: registry.Kind) -> list[tuple[Configuration, Launch, Sweep]]:
    """Return the wanted configurations of a kind, and what each launches."""
    found = []
    for group, sweep in groups(kind).items():
        points = list(sweep.points()) if group in task.places else []
        for place in task.places.get(group, ()):
            one = Configuration(group=group, place=place, params=", ".join(map(str, points[place].values())))
            found.append((one, sweep.launch(points[place]), sweep))
    return found


def counted(task: Task, send: Sender) -> None:
    """Count the launches that are wanted, but for those whose numbers are stored."""
    wanted = configurations(task, registry.Kind.COUNTED)
    if not wanted:
        return
    launches = {id(one): launch for one, launch, _ in wanted}
    done: dict[str, CountOutcome] = {}

    def numbers(one: Configuration) -> dict[str, float]:
        found = done[str(launches[id(one)])].metrics
        return {name: found[metric] for name, metric in _metrics(one.group) if metric in found}

    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:

        def measure(checks: Sequence[Check]) -> list[float | None]:
            done.update(in_groups(pool, transactions.outcomes, [launches[id(check.one)] for check in checks]))
            return [_ratio(numbers(check.one), check.entry.values) for check in checks]

        found = in_groups(pool, transactions.fingerprints, launches.values())
        for one, launch, _ in wanted:
            known = found.get(str(launch))
            one.fingerprint = f"{known}-{task.versions[one.group]}" if known else ""
        ones = [one for one, _, _ in wanted]
        for difference in reuse.decide(ones, task, measure):
            send(difference)
        rest = [one for one in ones if not one.numbers]
        left = (launches[id(one)] for one in rest if str(launches[id(one)]) not in done)
        done.update(in_groups(pool, transactions.outcomes, left))
    for one in rest:
        outcome = done[str(launches[id(one)])]
        one.skipped = skip_reasons.because(outcome.missing) if outcome.missing else ""
        one.failed, one.numbers = outcome.failure, numbers(one)
    for one in ones:
        send(one)


def _metrics(group: str) -> list[tuple[str, str]]:
    """Return each benchmark of a class, and what its number is called there."""
    return [(name, name.partition(".track_")[2]) for name in registry.current().together[group]]


def _ratio(now: Mapping[str, float], before: Mapping[str, float]) -> float | None:
    """Return the number that differs most over what is stored; 1 if all are equal, None if one is missing."""
    if not before.keys() <= now.keys():
        return None
    ratios = [now[name] / before[name] if before[name] else 1.0 + now[name] for name in before]
    return max(ratios, key=lambda ratio: abs(ratio - 1), default=1.0)


def compiled(task: Task, send: Sender) -> None:
    """Compile what is wanted, and read what the compiler reported. All of it then lies in the cache of cubins."""
    wanted = configurations(task, registry.Kind.COMPILED)
    if not wanted:
        return
    axes, points = registry.current().compiled.axes, list(registry.current().compiled.points())
    named = [tuple(map(str, points[one.place].values())) for one, _, _ in wanted]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:
        every = list(pool.map(_made, named, chunksize=len(axes["flags"]) * len(axes["arch"])))
    for (*_, arch), made, (one, launch, _) in zip(named, every, wanted, strict=True):
        if isinstance(made, NotImplementedError):
            one.skipped = str(made)
        elif isinstance(made, Exception):
            one.failed = f"{type(made).__name__}: {made}"
        else:
            one.machine_code = (made.sha256, launch.code_name, arch, machine_code.sha256(made.data))
            one.block = registry.kernel(launch.kernel).fixed(launch.dtype)
            one.numbers = {name: getattr(made.resources, resource) for name, resource in _metrics(one.group)}
        send(one)


def _made(named: tuple[str, str, str, str]) -> Cubin | Exception:
    """Return what the compiler made of a configuration, or why there is nothing."""
    try:
        return cubin(*named)
    except (NotImplementedError, *ERRORS) as error:
        return error
