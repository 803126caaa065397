"""The counted and compiled numbers of a commit, in the process that has its package."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from kernelwatch import suite
from kernelwatch.benchmarks.compiled import cubin
from kernelwatch.benchmarks.counted import in_groups
from kernelwatch.counting import source_lines, transactions
from kernelwatch.counting.transactions import CountOutcome
from kernelwatch.errors import ERRORS
from kernelwatch.instrument import skips
from kernelwatch.kernel import Launch
from kernelwatch.runner import reuse
from kernelwatch.runner.messages import Sender, Task
from kernelwatch.runner.reuse import Check
from kernelwatch.store.outcomes import Checks, Configuration, Line
from kernelwatch.sweep import Sweep
from kernelwatch.toolchain import machine_code
from kernelwatch.toolchain.build import Cubin


def send_all(task: Task, send: Sender) -> None:
    """Count and compile what is wanted."""
    compiled(task, send)
    counted(task, send)
    if task.lines:
        classes = {group.partition(".")[2] for group in task.places if group.startswith("track_counted.")}
        for line in source_lines.missing(Path(task.lines), classes):
            send(Line(line))


def configurations(task: Task, groups: Mapping[str, Sweep]) -> Iterator[tuple[Configuration, Launch, Sweep]]:
    """Yield the wanted configurations of some classes."""
    for group, sweep in groups.items():
        points = list(sweep.points())
        for place in task.places.get(group, ()):
            params = ", ".join(map(str, points[place].values()))
            yield Configuration(group=group, place=place, params=params), sweep.launch(points[place]), sweep


def counted(task: Task, send: Sender) -> None:
    """Count the launches that are wanted, but for those whose numbers are stored."""
    groups = {f"track_counted.{sweep.name}": sweep for sweep in suite.current().counted}
    wanted = list(configurations(task, groups))
    if not wanted:
        return
    launches = {id(one): launch for one, launch, _ in wanted}
    metrics = {group: suite.metrics(sweep) for group, sweep in groups.items()}
    done: dict[str, CountOutcome] = {}

    def numbers(one: Configuration) -> dict[str, float]:
        found = done[str(launches[id(one)])].metrics
        return {f"{one.group}.track_{metric}": found[metric] for metric in metrics[one.group] if metric in found}

    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:

        def measure(checks: Sequence[Check]) -> list[float | None]:
            done.update(in_groups(pool, transactions.outcomes, [launches[id(check.one)] for check in checks]))
            return [_ratio(numbers(check.one), check.entry.values) for check in checks]

        found = in_groups(pool, transactions.fingerprints, launches.values())
        for one, launch, _ in wanted:
            known = found.get(str(launch))
            one.fingerprint = f"{known}-{task.versions[one.group]}" if known else ""
        ones = [one for one, _, _ in wanted]
        checked = reuse.decide(ones, task.stored, measure)
        send(Checks(checked))
        rest = [one for one in ones if not one.numbers]
        done.update(
            in_groups(
                pool, transactions.outcomes, (launches[id(one)] for one in rest if str(launches[id(one)]) not in done)
            )
        )
    for one in rest:
        outcome = done[str(launches[id(one)])]
        one.skipped = skips.because(outcome.missing) if outcome.missing else ""
        one.failed, one.numbers = outcome.failure, numbers(one)
    for one in ones:
        send(one)


def _ratio(now: Mapping[str, float], before: Mapping[str, float]) -> float | None:
    """Return the number that differs most over what is stored; 1 if all are equal, None if one is missing."""
    if not before.keys() <= now.keys():
        return None
    ratios = [now[name] / before[name] if before[name] else 1.0 + now[name] for name in before]
    return max(ratios, key=lambda ratio: abs(ratio - 1), default=1.0)


def compiled(task: Task, send: Sender) -> None:
    """Compile what is wanted, and read what the compiler reported. All of it then lies in the cache of cubins."""
    sweep = suite.COMPILED
    group = f"track_compiled.{sweep.name}"
    wanted = list(configurations(task, {group: sweep}))
    if not wanted:
        return
    points = list(sweep.points())
    named = [tuple(map(str, points[one.place].values())) for one, _, _ in wanted]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:
        every = list(pool.map(_made, named, chunksize=len(sweep.axes["flags"]) * len(sweep.axes["arch"])))
    for place, (made, (one, launch, _)) in enumerate(zip(every, wanted, strict=True)):
        if isinstance(made, NotImplementedError):
            one.skipped = str(made)
        elif isinstance(made, Exception):
            one.failed = f"{type(made).__name__}: {made}"
        else:
            *_, arch = named[place]
            one.machine_code = (made.sha256, launch.code_name, arch, machine_code.sha256(made.data))
            one.block = suite.kernel(launch.kernel).fixed(launch.dtype)
            one.numbers = {f"{group}.track_{name}": getattr(made.resources, name) for name in suite.RESOURCES}
    for one, _, _ in wanted:
        send(one)


def _made(named: tuple[str, str, str, str]) -> Cubin | Exception:
    """Return what the compiler made of a configuration, or why there is nothing."""
    try:
        return cubin(*named)
    except (NotImplementedError, *ERRORS) as error:
        return error
