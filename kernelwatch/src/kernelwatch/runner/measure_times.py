"""Times of a commit: the commit's process describes the jobs, and the measuring process takes the samples."""

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
from kernelwatch.instrument.job_messages import DeviceFacts, Job, JobOutcome
from kernelwatch.instrument.reference_memory import Reference, ReferenceWriter
from kernelwatch.instrument.tolerance import WrongOutputError
from kernelwatch.kernel import Launch
from kernelwatch.runner import reuse
from kernelwatch.runner.measure_counts import SelectedConfiguration, list_configurations, sweeps_by_class
from kernelwatch.runner.protocol import MachineCode, RoundStart, RunConfiguration, Sender, Task
from kernelwatch.runner.reuse import Check
from kernelwatch.suite import registry
from kernelwatch.suite.benchmark_names import Kind, copy_ratio_name, find_kind
from kernelwatch.suite.sweep import Sweep

#: Maximum number of measurements to check a stored time.
_TRIES = 2

#: Maximum number of later configurations whose references may be written in advance, while the GPU measures.
_LOOK_AHEAD = 60

#: A class and the index of a configuration in it.
ConfigurationKey = tuple[str, int]


def measure_task(
    task: Task, send: Sender, address: str | None, start_counting: Callable[[], None] = lambda: None
) -> None:
    """Measure the task's times and send the outcomes; with an `interleaved_index`, only write the jobs.

    `address` is the socket of the measuring process, None without a GPU. If the measuring process has a device, call
    `start_counting` once all timed kernels are compiled; otherwise skip all times.
    """
    if task.interleaved_index is not None:
        write_jobs(str(address), task.interleaved_index)
        return
    selected = list_configurations(task, registry.Kind.TIMED)
    if not selected:
        return
    try:
        facts = None if address is None else client.query_device(address)
        if facts is None:
            device.process_context()  # raises the reason if it is this machine, such as a missing driver
            raise NotImplementedError("the measuring process cannot use the GPU; the run printed why on standard error")
    except NotImplementedError as error:
        for configuration, _, _ in selected:
            configuration.skipped = str(error)
            send(configuration)
        return
    assert address is not None, "a measuring process is ready"
    prebuild.compile_for_device(launch for _, launch, _ in selected)
    start_counting()
    TimeMeasurement(task, send, address, facts).measure(selected)


def write_jobs(address: str, index: int) -> None:
    """Write all timed jobs of the commit to `<index>.jsonl` beside the socket `address`, one per line.

    The measuring process interleaves them with the jobs of other commits. Without a usable GPU, no file is written.
    """
    prebuild.compile_for_device()
    if facts := client.query_device(address):
        lines = []
        for sweep in sweeps_by_class(registry.Kind.TIMED).values():
            for params in sweep.points():
                with suppress(NotImplementedError):  # this commit does not have the kernel
                    job = timed.describe_job(sweep, sweep.launch(params)).make_job(facts)
                    lines.append(msgspec.json.encode(job) + b"\n")
        Path(address).with_name(f"{index}.jsonl").write_bytes(b"".join(lines))


class TimeMeasurement:
    """Measures configurations of a commit by requests to the measuring process, whose device has `facts`."""

    def __init__(self, task: Task, send: Sender, address: str, facts: DeviceFacts) -> None:
        self._task, self._send, self._address, self._facts = task, send, address, facts
        self._launches: dict[ConfigurationKey, tuple[Launch, Sweep]] = {}
        self._cached_description = cache(self._describe_job)
        self._references = ReferenceWriter()
        #: Outcomes measured to check stored numbers. If these are not reused, each serves as a first round.
        self._checked_outcomes: dict[ConfigurationKey, JobOutcome] = {}
        self._outcomes: defaultdict[ConfigurationKey, list[JobOutcome]] = defaultdict(list)

    def measure(self, selected: Sequence[SelectedConfiguration]) -> None:
        """Reuse stored numbers, measure all other configurations round by round, and send all outcomes."""
        configurations = [configuration for configuration, _, _ in selected]
        for configuration, launch, sweep in selected:
            self._launches[_configuration_key(configuration)] = launch, sweep
            self._identify(configuration, launch)
        for difference in reuse.reuse_stored(configurations, self._task, self._measure_checks):
            self._send(difference)
        unmeasured = []
        for configuration in configurations:
            if configuration.numbers:
                self._split_stored(configuration)
            if configuration.numbers or configuration.skipped:
                self._send(configuration)
            else:
                unmeasured.append(configuration)
        for number in range(1, max(self._task.rounds.values()) + 1):
            unmeasured = self._measure_round(number, unmeasured)

    def _measure_round(self, number: int, configurations: Sequence[RunConfiguration]) -> list[RunConfiguration]:
        """Measure configurations once, and send those that end with this round; return the others."""
        unfinished = []
        for index, configuration in enumerate(configurations):
            self._send(RoundStart(configuration.group, configuration.index))
            later = configurations[index + 1 : index + 1 + _LOOK_AHEAD]
            self._measure_once(configuration, list(map(_configuration_key, later)))
            is_last_round = number == self._task.rounds[configuration.group]
            if is_last_round or configuration.failed or configuration.skipped:
                self._send(configuration)
            else:
                unfinished.append(configuration)
        return unfinished

    def _identify(self, configuration: RunConfiguration, launch: Launch) -> None:
        """Set a configuration's fingerprint and machine code, or the reason to skip it."""
        try:
            job = self._cached_description(_configuration_key(configuration)).make_job(self._facts)
        except NotImplementedError as error:
            configuration.skipped = str(error)
            return
        except ERRORS:
            return  # its measurement raises the same error
        cubin_sha256 = hashlib.sha256(job.cubin).hexdigest()
        configuration.machine_code = MachineCode(cubin_sha256, launch.code_name, self._facts.arch)
        if self._facts.conditions:
            kernel = registry.current_suite().kernels().get(launch.kernel)
            reference_hash = fingerprint.hash_function(kernel.reference) if kernel else ""
            configuration.fingerprint = fingerprint.hash_job(
                job, self._facts.conditions, self._task.versions[configuration.group], reference_hash
            )

    def _describe_job(self, key: ConfigurationKey) -> build_job.JobDescription:
        """Describe a configuration's job, which is built only once."""
        launch, sweep = self._launches[key]
        description = timed.describe_job(sweep, launch)
        return build_job.JobDescription(cache(description.make_job), description.reference)

    def _measure_checks(self, checks: Sequence[Check]) -> list[float | None]:
        keys = [_configuration_key(check.configuration) for check in checks]
        return [self._measure_ratio(check, keys[index + 1 :]) for index, check in enumerate(checks)]

    def _measure_ratio(self, check: Check, later: Sequence[ConfigurationKey]) -> float | None:
        """Measure up to _TRIES times, until the median agrees with the stored one; return the last ratio of new to old.

        Return None if a measurement fails.
        """
        key = _configuration_key(check.configuration)
        ratio: float | None = None
        for _ in range(_TRIES):
            try:
                outcome = self._ask_for_outcome(key, later)
            except (NotImplementedError, WrongOutputError, client.MeasuringError):
                return None
            self._checked_outcomes.setdefault(key, outcome)  # keep the first: a later one would be biased
            ratio = statistics.median(outcome.samples) / statistics.median(_find_samples(check.stored.values))
            if abs(ratio - 1) <= check.stored.threshold:
                break
        return ratio

    def _split_stored(self, configuration: RunConfiguration) -> None:
        """Keep only the selected benchmarks' numbers of a reused configuration, and set `round_sizes`.

        The samples are divided evenly: 7 samples of two rounds as 4 and 3.
        """
        count = len(_find_samples(configuration.numbers))
        per_round = -(-count // self._task.rounds[configuration.group])
        configuration.round_sizes = [min(per_round, count - first) for first in range(0, count, per_round)]
        configuration.numbers = self._select_numbers(configuration.numbers)

    def _select_numbers(self, numbers: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in numbers.items() if name in self._task.benchmarks}

    def _measure_once(self, configuration: RunConfiguration, later: Sequence[ConfigurationKey]) -> None:
        key = _configuration_key(configuration)
        try:
            outcome = self._checked_outcomes.pop(key, None) or self._ask_for_outcome(key, later)
        except NotImplementedError as error:
            configuration.skipped, configuration.numbers = str(error), {}
            return
        except Exception as error:  # noqa: BLE001 -- any error fails only this configuration
            configuration.failed, configuration.numbers = f"{type(error).__name__}: {error}", {}
            return
        outcomes = [*self._outcomes[key], outcome]
        self._outcomes[key] = outcomes
        _, sweep = self._launches[key]
        time = registry.time_benchmark_name(sweep)
        samples = [sample for outcome in outcomes for sample in outcome.samples]
        numbers = {time: samples, copy_ratio_name(time): timed.copy_ratios(*outcomes)}
        configuration.numbers = self._select_numbers(numbers)
        configuration.round_sizes.append(len(outcome.samples))
        configuration.throttle_reasons = list(
            dict.fromkeys([*configuration.throttle_reasons, *outcome.throttle_reasons])
        )

    def _ask_for_outcome(self, key: ConfigurationKey, later: Sequence[ConfigurationKey]) -> JobOutcome:
        """Measure a configuration. When its job is made, begin to write the references of later ones."""
        description = self._cached_description(key)

        def make_job(facts: DeviceFacts) -> Job:
            job = description.make_job(facts)
            self._references.look_ahead(job.reference, self._iter_references(later, facts))
            return job

        return client.request_outcome(self._address, make_job, description.reference, self._references.write)

    def _iter_references(self, keys: Sequence[ConfigurationKey], facts: DeviceFacts) -> Iterator[tuple[str, Reference]]:
        for key in keys:
            with suppress(NotImplementedError, *ERRORS):  # its own measurement raises the same error
                description = self._cached_description(key)
                yield description.make_job(facts).reference, description.reference


def _configuration_key(configuration: RunConfiguration) -> ConfigurationKey:
    return configuration.group, configuration.index


def _find_samples(values: dict[str, list[float]]) -> list[float]:
    """Return the samples of the time, which is one of the benchmarks in `values`."""
    return next(samples for name, samples in values.items() if find_kind(name) is Kind.TIMED)
