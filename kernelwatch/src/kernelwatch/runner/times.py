"""The times of a commit: the process that has its package describes jobs, and the measuring process takes samples."""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache

from kernelwatch import suite
from kernelwatch.benchmarks import timed
from kernelwatch.errors import ERRORS
from kernelwatch.instrument import device, exchange, fingerprint, jobs, prebuild
from kernelwatch.instrument.exchange import Reference
from kernelwatch.instrument.job import Job, Outcome, Ready
from kernelwatch.instrument.verification import WrongOutputError
from kernelwatch.instrument.written_ahead import WrittenAhead
from kernelwatch.runner import reuse
from kernelwatch.runner.counts import configurations
from kernelwatch.runner.messages import Sender, Step, Task
from kernelwatch.runner.reuse import Check
from kernelwatch.store.outcomes import Checks, Configuration
from kernelwatch.sweep import Sweep

#: How often a time is measured that does not agree with what is stored, before that is believed.
_TRIES = 2

#: How many configurations ahead references are looked for that can be written while the GPU is busy.
_AHEAD = 60

#: A class and the place of a configuration in it.
Key = tuple[str, int]


def groups() -> dict[str, Sweep]:
    """Return the sweep of each class that is timed, in asv's order."""
    timed_ones = ((name, sweep) for name, (kind, sweep) in suite.BENCHMARKS.items() if kind is suite.Kind.TIMED)
    return {name.rpartition(".")[0]: sweep for name, sweep in sorted(timed_ones)}


def send_all(task: Task, send: Sender, address: str | None, begin: Callable[[], None] = lambda: None) -> None:
    """Measure what is wanted. Call `begin` once everything that is timed is compiled."""
    ones = [one for one, _, _ in configurations(task, groups())]
    if not ones:
        return
    try:
        ready = None if address is None else exchange.ready(address)
        if ready is None:
            device.context()
            raise NotImplementedError("the measuring process cannot use the GPU; its output says why")
    except NotImplementedError as error:
        for one in ones:
            one.skipped = str(error)
            send(one)
        return
    assert address is not None, "somebody is ready"
    prebuild.for_device()
    begin()
    Times(task, send, address, ready).measure(ones)


class Times:
    """Measures configurations of a commit.

    Parameters
    ----------
    task : Task
        What is wanted.
    send : callable
        Takes what became of each.
    address : str
        The measuring process's socket.
    ready : Ready
        Its device.
    """

    def __init__(self, task: Task, send: Sender, address: str, ready: Ready) -> None:
        self._task, self._send, self._address, self._ready = task, send, address, ready
        self._sweeps = groups()
        self._points = {name: list(sweep.points()) for name, sweep in self._sweeps.items()}
        self._described: dict[Key, jobs.Description] = {}
        self._references = WrittenAhead()
        #: What was measured to see whether stored numbers hold.
        self._checked: dict[Key, Outcome] = {}

    def measure(self, ones: Sequence[Configuration]) -> None:
        """Measure configurations, round by round, but for those whose numbers are stored."""
        for one in ones:
            self._identify(one)
        self._send(Checks(reuse.decide(ones, self._task.stored, self._check)))
        for one in ones:
            if one.numbers:
                self._take_over(one)
        left = [one for one in ones if not one.numbers and not one.skipped]
        for one in (one for one in ones if one.numbers or one.skipped):
            self._send(one)
        taken: dict[Key, list[Outcome]] = {_key(one): [] for one in left}
        for number in range(max(self._task.rounds.values())):
            several = [one for one in left if not one.failed and number < self._task.rounds[one.group]]
            for place, one in enumerate(several):
                self._send(Step(one.group, one.place))
                self._once(one, [_key(each) for each in several[place + 1 : place + 1 + _AHEAD]], taken)
                if number + 1 == self._task.rounds[one.group] or one.failed or one.skipped:
                    self._send(one)
            left = [one for one in left if not one.failed and not one.skipped]

    def _identify(self, one: Configuration) -> None:
        """Describe a configuration; say what its samples depend on, and why it cannot be measured."""
        launch = self._sweeps[one.group].launch(self._points[one.group][one.place])
        known = suite.current().kernels()
        try:
            job = self._describe(_key(one)).job(self._ready)
        except NotImplementedError as error:
            one.skipped = str(error)
        except ERRORS:
            pass  # who measures it meets it again
        else:
            if launch.kernel in known:
                one.machine_code = (hashlib.sha256(job.cubin).hexdigest(), launch.code_name, self._ready.arch)
            if self._ready.conditions:
                says = fingerprint.function(known[launch.kernel].reference) if launch.kernel in known else ""
                version = self._task.versions[one.group]
                one.fingerprint = fingerprint.job(job, self._ready.conditions, version, says)

    def _describe(self, key: Key) -> jobs.Description:
        """Return a configuration's description, whose job is made once. Raises as `jobs.of`."""
        if key not in self._described:
            group, place = key
            found = timed.described(self._sweeps[group], self._points[group][place])
            self._described[key] = jobs.Description(cache(found.job), found.reference)
        return self._described[key]

    def _check(self, checks: Sequence[Check]) -> list[float | None]:
        """Measure each configuration; return the medians over those of the stored samples, and keep what was taken."""
        keys = [_key(check.one) for check in checks]
        return [self._ratio(check, keys[place + 1 :]) for place, check in enumerate(checks)]

    def _ratio(self, check: Check, later: Sequence[Key]) -> float | None:
        key, before = _key(check.one), statistics.median(_time(check.entry.values))
        ratio: float | None = None
        for _ in range(_TRIES):
            try:
                found = self._checked[key] = self._measured(key, later)
            except (NotImplementedError, WrongOutputError, exchange.MeasuringError):
                return None
            ratio = statistics.median(found.samples) / before
            if abs(ratio - 1) <= check.entry.threshold:
                break
        return ratio

    def _take_over(self, one: Configuration) -> None:
        """Leave of stored numbers what is wanted, and split samples as if rounds had taken them."""
        count = len(_time(one.numbers))
        each = -(-count // self._task.rounds[one.group])
        one.rounds = [min(each, count - first) for first in range(0, count, each)]
        one.numbers = {name: value for name, value in one.numbers.items() if name in self._task.benchmarks}

    def _once(self, one: Configuration, later: Sequence[Key], taken: dict[Key, list[Outcome]]) -> None:
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
        taken[key].append(outcome)
        time = f"{one.group}.time_{'isolated' if self._sweeps[one.group].isolated else 'back_to_back'}"
        samples = [sample for each in taken[key] for sample in each.samples]
        numbers = {time: samples, suite.control(time): timed.ratios(*taken[key])}
        one.numbers = {name: value for name, value in numbers.items() if name in self._task.benchmarks}
        one.rounds.append(len(outcome.samples))
        one.stopped += [outcome.stopped] if outcome.stopped else []
        one.held_back = list(dict.fromkeys([*one.held_back, *outcome.held_back]))
        one.spent = {what: one.spent.get(what, 0.0) + seconds for what, seconds in outcome.seconds.items()}

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

        return exchange.ask(self._address, describe, what.reference, self._references.write)

    def _later(self, keys: Sequence[Key], ready: Ready) -> Iterator[tuple[str, Reference]]:
        for key in keys:
            with suppress(NotImplementedError, *ERRORS):  # whoever asks for it meets it again
                what = self._describe(key)
                yield what.job(ready).reference, what.reference


def _key(one: Configuration) -> Key:
    return one.group, one.place


def _time(values: dict[str, list[float]]) -> list[float]:
    """The samples of a time among its numbers."""
    return next(samples for name, samples in values.items() if ".time_" in name)
