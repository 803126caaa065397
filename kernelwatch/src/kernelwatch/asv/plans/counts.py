"""The plan of a commit's counted numbers."""

from __future__ import annotations

import multiprocessing
from collections import ChainMap, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from kernelwatch import suite
from kernelwatch.asv.plans import plan as plans
from kernelwatch.asv.plans.plan import Check, Configuration, Plan
from kernelwatch.asv.sweep import Sweep
from kernelwatch.counting import transactions
from kernelwatch.counting.transactions import CountOutcome
from kernelwatch.instrument import fingerprint, skips
from kernelwatch.kernel import Launch

T = TypeVar("T")

#: A launch, and its class: launches of a class and a dtype have PTX in common.
_Named = tuple[str, Launch]


def counts(sweeps: Mapping[str, Sweep], version: str, folder: Path) -> dict[str, CountOutcome]:
    """Plan the counted numbers of a commit. Compile everything and execute what is not reused, in parallel.

    Parameters
    ----------
    sweeps : mapping
        Class, with its module -> its sweep.
    version : str
        Of the benchmarks.
    folder : Path
        Where the plan goes.

    Returns
    -------
    dict
        The text of each launch that was executed -> what became of it.
    """
    launches = {name: [sweep.launch(point) for point in sweep.points()] for name, sweep in sweeps.items()}
    done: dict[str, CountOutcome] = {}
    fingerprint.counter()  # once, before the fork, and not in each process
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:

        def apply(function: Callable[[Sequence[Launch]], dict[str, T]], named: Iterable[_Named]) -> dict[str, T]:
            groups: defaultdict[tuple[str, str], list[Launch]] = defaultdict(list)
            for name, launch in named:
                groups[name, launch.dtype].append(launch)
            return dict(ChainMap(*pool.map(function, groups.values())))

        def measure(checks: Sequence[Check]) -> list[float | None]:
            wanted = [(check.name, launches[check.name][check.place]) for check in checks]
            done.update(apply(transactions.outcomes, wanted))
            return [
                _ratio(_of(check.name, sweeps[check.name], done[str(launch)].metrics), check.entry.values)
                for check, (_, launch) in zip(checks, wanted, strict=True)
            ]

        everything = [(name, launch) for name, each in launches.items() for launch in each]
        fingerprints = apply(transactions.fingerprints, everything)
        plan = Plan(
            {
                name: [
                    Configuration(plans.text(point), _versioned(fingerprints.get(str(launch)), version))
                    for point, launch in zip(sweeps[name].points(), each, strict=True)
                ]
                for name, each in launches.items()
            }
        )
        plans.decide(plan, plans.stored(), measure, lambda _, values: {one: [value] for one, value in values.items()})
        rest = [
            (name, launch) for name, launch, one in _each(launches, plan) if not one.answers and str(launch) not in done
        ]
        done.update(apply(transactions.outcomes, rest))
    for name, launch, one in _each(launches, plan):
        if not one.answers:
            outcome = done[str(launch)]
            one.skipped = skips.because(outcome.missing) if outcome.missing else ""
            one.answers = {metric: [value] for metric, value in _of(name, sweeps[name], outcome.metrics).items()}
    plan.write(folder)
    return done


def _ratio(now: Mapping[str, float], before: Mapping[str, float]) -> float | None:
    """Return the number that differs most over what is stored; 1 if all are equal, None if one is missing."""
    if now.keys() != before.keys():
        return None
    ratios = [now[name] / before[name] if before[name] else 1.0 + now[name] for name in now]
    return max(ratios, key=lambda ratio: abs(ratio - 1), default=1.0)


def _versioned(fingerprint: str | None, version: str) -> str:
    return f"{fingerprint}-{version}" if fingerprint else ""


def _of(name: str, sweep: Sweep, metrics: Mapping[str, float]) -> dict[str, Any]:
    """Return the numbers of a class by benchmark."""
    return {f"{name}.track_{metric}": metrics[metric] for metric in suite.metrics(sweep) if metric in metrics}


def _each(launches: Mapping[str, Sequence[Launch]], plan: Plan) -> Iterable[tuple[str, Launch, Configuration]]:
    for name, each in launches.items():
        for launch, one in zip(each, plan.configurations[name], strict=True):
            yield name, launch, one
