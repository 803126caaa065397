"""The times of a commit: the process that has its package describes jobs, and the measuring process takes samples."""

from __future__ import annotations

import hashlib
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from kernelwatch.benchmarks import timed
from kernelwatch.errors import ERRORS
from kernelwatch.instrument import build_job, client, device, fingerprint, prebuild
from kernelwatch.instrument.protocol import Job, Outcome, Ready
from kernelwatch.instrument.reference_memory import Reference, WrittenAhead
from kernelwatch.instrument.tolerance import WrongOutputError
from kernelwatch.kernel import Launch
from kernelwatch.runner import reuse
from kernelwatch.runner.measure_counts import configurations, groups
from kernelwatch.runner.protocol import Configuration, Sender, Step, Task
from kernelwatch.runner.reuse import Check
from kernelwatch.suite import registry
from kernelwatch.suite.benchmark_names import Kind, find_kind
from kernelwatch.suite.sweep import Sweep

#: How often a time is measured that does not agree with what is stored, before that is believed.
_TRIES = 2

#: How many configurations ahead references are looked for that can be written while the GPU is busy.
_AHEAD = 60

#: A class and the place of a configuration in it.
Key = tuple[str, int]


def send_all(task: Task, send: Sender, address: str | None, begin: Callable[[], None] = lambda: None) -> None:
    """Measure what is wanted, or write its jobs. Call `begin` once everything that is timed is compiled."""
    if task.turn is not None:
        return write_jobs(str(address), task.turn)
    wanted = configurations(task, registry.Kind.TIMED)
    if not wanted:
        return None
    try:
        ready = None if address is None else client.ready(address)
        if ready is None:
            device.context()
            raise NotImplementedError("the measuring process cannot use the GPU; its output says why")
    except NotImplementedError as error:
        for one, _, _ in wanted:
            one.skipped = str(error)
            send(one)
        return None
    assert address is not None, "somebody is ready"
    prebuild.for_device()
    begin()
    return Times(task, send, address, ready).measure(wanted)


def write_jobs(address: str, turn: int) -> None:
    """Write a job a line, of all that is timed, so that the measuring process can take turns with other commits."""
    prebuild.for_device()
    if ready := client.ready(address):
        lines = []
        for sweep in groups(registry.Kind.TIMED).values():
            for params in sweep.points():
                with suppress(NotImplementedError):  # what this commit lacks
                    job = timed.described(sweep, sweep.launch(params)).job(ready)
                    lines.append(msgspec.json.encode(job) + b"\n")
        Path(address).with_name(f"{turn}.jsonl").write_bytes(b"".join(lines))


class Times:
    """Measures configurations of a commit, by the measuring process at an address, whose device is ready."""

    def __init__(self, task: Task, send: Sender, address: str, ready: Ready) -> None:
        self._task, self._send, self._address, self._ready = task, send, address, ready
        self._launches: dict[Key, tuple[Launch, Sweep]] = {}
        self._describe = cache(self._described)
        self._references = WrittenAhead()
        #: What was measured to see whether stored numbers hold; it stands for a first round.
        self._checked: dict[Key, Outcome] = {}
        self._taken: defaultdict[Key, list[Outcome]] = defaultdict(list)

    def measure(self, wanted: Sequence[tuple[Configuration, Launch, Sweep]]) -> None:
        """Measure configurations, round by round, but for those whose numbers are stored."""
        ones = [one for one, _, _ in wanted]
        for one, launch, sweep in wanted:
            self._launches[_key(one)] = launch, sweep
            self._identify(one, launch)
        for difference in reuse.decide(ones, self._task, self._check):
            self._send(difference)
        for one in ones:
            if one.numbers:
                self._take_over(one)
            if one.numbers or one.skipped:
                self._send(one)
        left = [one for one in ones if not one.numbers and not one.skipped]
        for number in range(max(self._task.rounds.values())):
            several = [one for one in left if number < self._task.rounds[one.group]]
            for place, one in enumerate(several):
                self._send(Step(one.group, one.place))
                self._measure_once(one, list(map(_key, several[place + 1 : place + 1 + _AHEAD])))
                if number + 1 == self._task.rounds[one.group] or one.failed or one.skipped:
                    self._send(one)
            left = [one for one in left if not one.failed and not one.skipped]

    def _identify(self, one: Configuration, launch: Launch) -> None:
        """Say what a configuration's samples depend on, and why it cannot be measured."""
        try:
            job = self._describe(_key(one)).job(self._ready)
        except NotImplementedError as error:
            one.skipped = str(error)
            return
        except ERRORS:
            return  # who measures it meets it again
        says = ""
        if kernel := registry.current().kernels().get(launch.kernel):
            one.machine_code = (hashlib.sha256(job.cubin).hexdigest(), launch.code_name, self._ready.arch)
            says = fingerprint.function(kernel.reference) if self._ready.conditions else ""
        if self._ready.conditions:
            one.fingerprint = fingerprint.job(job, self._ready.conditions, self._task.versions[one.group], says)

    def _described(self, key: Key) -> build_job.Description:
        """Return a configuration's description, whose job is made once. Raises as `jobs.of`."""
        launch, sweep = self._launches[key]
        found = timed.described(sweep, launch)
        return build_job.Description(cache(found.job), found.reference)

    def _check(self, checks: Sequence[Check]) -> list[float | None]:
        """Measure each configuration; return the medians over those of the stored samples, and keep what was taken."""
        keys = [_key(check.one) for check in checks]
        return [self._ratio(check, keys[place + 1 :]) for place, check in enumerate(checks)]

    def _ratio(self, check: Check, later: Sequence[Key]) -> float | None:
        key = _key(check.one)
        ratio: float | None = None
        for _ in range(_TRIES):
            try:
                found = self._checked[key] = self._measured(key, later)
            except (NotImplementedError, WrongOutputError, client.MeasuringError):
                return None
            ratio = statistics.median(found.samples) / statistics.median(_samples(check.entry.values))
            if abs(ratio - 1) <= check.entry.threshold:
                break
        return ratio

    def _take_over(self, one: Configuration) -> None:
        """Leave of stored numbers what is wanted, and split samples as if rounds had taken them."""
        count = len(_samples(one.numbers))
        each = -(-count // self._task.rounds[one.group])
        one.rounds = [min(each, count - first) for first in range(0, count, each)]
        one.numbers = self._wanted(one.numbers)

    def _wanted(self, numbers: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in numbers.items() if name in self._task.benchmarks}

    def _measure_once(self, one: Configuration, later: Sequence[Key]) -> None:
        """Measure a configuration once more, and add that to what it says."""
        key = _key(one)
        try:
            outcome = self._checked.pop(key, None) or self._measured(key, later)
        except NotImplementedError as error:
            one.skipped, one.numbers = str(error), {}
            return
        except Exception as error:  # noqa: BLE001 -- whatever it is, this configuration fails and no other
            one.failed, one.numbers = f"{type(error).__name__}: {error}", {}
            return
        taken = [*self._taken[key], outcome]
        self._taken[key] = taken
        time = registry.time(self._launches[key][1])
        samples = [sample for each in taken for sample in each.samples]
        one.numbers = self._wanted({time: samples, registry.control(time): timed.ratios(*taken)})
        one.rounds.append(len(outcome.samples))
        one.held_back = list(dict.fromkeys([*one.held_back, *outcome.held_back]))

    def _measured(self, key: Key, later: Sequence[Key]) -> Outcome:
        """Have a configuration measured; meanwhile references are written that the next ones are compared with.

        Raises
        ------
        NotImplementedError, WrongOutputError, MeasuringError
            As `exchange.ask`.
        """
        what = self._describe(key)

        def describe(ready: Ready) -> Job:
            job = what.job(ready)
            self._references.look_ahead(job.reference, self._later(later, ready))
            return job

        return client.ask(self._address, describe, what.reference, self._references.write)

    def _later(self, keys: Sequence[Key], ready: Ready) -> Iterator[tuple[str, Reference]]:
        for key in keys:
            with suppress(NotImplementedError, *ERRORS):  # whoever asks for it meets it again
                what = self._describe(key)
                yield what.job(ready).reference, what.reference


def _key(one: Configuration) -> Key:
    return one.group, one.place


def _samples(values: dict[str, list[float]]) -> list[float]:
    """The samples of a time among its numbers."""
    return next(samples for name, samples in values.items() if find_kind(name) is Kind.TIMED)
