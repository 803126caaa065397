"""The plan of a commit's times."""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelwatch import suite
from kernelwatch.asv.plans import plan as plans
from kernelwatch.asv.plans.plan import Check, Configuration, Plan
from kernelwatch.errors import ERRORS
from kernelwatch.instrument import device, exchange, fingerprint
from kernelwatch.instrument.verification import WrongOutputError

if TYPE_CHECKING:
    from kernelwatch.asv.agent import Agent
    from kernelwatch.asv.timed import Timed
    from kernelwatch.instrument.job import Ready

#: How often a time is measured that does not agree with what is stored, before that is believed.
_TRIES = 2


def times(agent: Agent, address: str, folder: Path) -> Plan:
    """Plan the times of a commit, for the device of the measuring process.

    Parameters
    ----------
    agent : Agent
        The commit's; it keeps what is measured to make the plan.
    address : str
        The measuring process's socket.
    folder : Path
        Where the plan goes.
    """
    ready = exchange.ready(address)
    named = {benchmark.rpartition(".")[0]: (benchmark, each) for benchmark, each in agent.classes.items()}
    plan = Plan(
        {
            name: [_time(agent, (benchmark, place), point, ready) for place, point in enumerate(each.points)]
            for name, (benchmark, each) in named.items()
        }
    )

    def measure(checks: Sequence[Check]) -> list[float | None]:
        keys = [(named[check.name][0], check.place) for check in checks]
        return [_ratio(agent, check, keys[place:]) for place, check in enumerate(checks)]

    def answers(name: str, values: Mapping[str, Any]) -> dict[str, list[Any]]:
        benchmark, each = named[name]
        return {one: _processes(samples, each.rounds if one == benchmark else 1) for one, samples in values.items()}

    plans.decide(plan, plans.stored(), measure, answers)
    plan.write(folder)
    return plan


def without_device(classes: Mapping[str, type[Timed]], folder: Path) -> None:
    """Plan that all times are skipped, if there is no device; the plan goes into a folder."""
    try:
        device.require()
    except NotImplementedError as error:
        why, named = str(error), {benchmark.rpartition(".")[0]: each for benchmark, each in classes.items()}
        ones = {name: [Configuration(plans.text(point), skipped=why) for point in named[name].points] for name in named}
        Plan(ones).write(folder)


def _time(agent: Agent, key: tuple[str, int], point: Mapping[str, Any], ready: Ready | None) -> Configuration:
    one, timed = Configuration(plans.text(point)), agent.classes[key[0]]
    try:
        described = agent.described(key)
        if ready is not None and ready.conditions:
            job, launch = described.job(ready), timed.sweep.launch(point)
            one.fingerprint = fingerprint.job(job, ready.conditions, timed.version, _expected(launch.kernel))
            if launch.kernel in suite.current().kernels():
                one.machine_code = (hashlib.sha256(job.cubin).hexdigest(), launch.machine_code, ready.arch)
    except NotImplementedError as error:
        one.skipped = str(error)
    except ERRORS:
        pass  # asv's process meets it again, and reports it
    return one


def _expected(name: str) -> str:
    """Return the fingerprint of what says what a kernel's output must hold; empty for the instrument's own."""
    known = suite.current().kernels().get(name)
    return "" if known is None else fingerprint.function(known.says)


def _ratio(agent: Agent, check: Check, keys: Sequence[tuple[str, int]]) -> float | None:
    """Measure the first of some configurations, keep its samples, and return their median over that of those stored."""
    key, *later = keys
    before = statistics.median(check.entry.values[key[0]])
    ratio: float | None = None
    for _ in range(_TRIES):
        try:
            outcome = agent.kept[key] = agent.measured(key, later)
        except (NotImplementedError, WrongOutputError, exchange.MeasuringError):
            return None
        ratio = statistics.median(outcome.samples) / before
        if abs(ratio - 1) <= check.entry.threshold:
            break
    return ratio


def _processes(samples: Sequence[float], count: int) -> list[Any]:
    """Return what so many processes of asv's would return, together these samples."""
    each = -(-len(samples) // count)
    return [{"samples": samples[first : first + each], "number": 1} for first in range(0, len(samples), each)]
