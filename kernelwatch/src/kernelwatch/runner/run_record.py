"""The records of a run at one commit: its facts, the hashes of machine code, and the origins of reused numbers."""

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from typing import Any

from msgspec import to_builtins

from kernelwatch.error_text import first_error, one_line
from kernelwatch.errors import ERRORS
from kernelwatch.instrument import machine
from kernelwatch.runner.protocol import RunConfiguration
from kernelwatch.store import models, record
from kernelwatch.suite.benchmark_names import Kind, find_kind
from kernelwatch.toolchain import nvcc, releases


class RunRecord:
    """Collects the facts of a run at a commit. The run lasts from the construction to the call of `collect_lines`.

    Parameters
    ----------
    commit : str
        The commit's hash.
    facts : mapping of str to object, optional
        More facts of the machine, by name; the caller may add facts until `collect_lines`.
    uncommitted : sequence of str, optional
        Files with uncommitted changes that the run imports.
    """

    def __init__(self, commit: str, facts: Mapping[str, Any] | None = None, uncommitted: Sequence[str] = ()) -> None:
        self._facts_at_start, self._facts = machine.volatile_facts(), {} if facts is None else facts
        self._commit = commit
        self._run = models.RunLine(run=uuid.uuid4().hex, started=_utc_timestamp(), commits=[commit], began={commit: {}})
        self._run.uncommitted = list(uncommitted)
        #: Each configuration with its outcome, and the selected benchmarks of its class.
        self.configurations: list[tuple[RunConfiguration, Sequence[str]]] = []
        #: Controls, as in `models.RunLine.controls`.
        self.controls: Mapping[str, dict[str, dict[str, float]]] = {}
        #: Generator of PTX -> its version.
        self.generators: Mapping[str, str] = {}
        #: Costs of the source lines of kernels.
        self.source_lines: list[dict[str, Any]] = []

    def begin_benchmark(self, benchmark: str, started_ms: int, selected: Sequence[str] = ()) -> None:
        """Record the start of a benchmark, and its selected configurations if only some are selected.

        `started_ms` is the start in milliseconds. asv stores it with the numbers, so it identifies their run.
        """
        self._run.began[self._commit][benchmark] = started_ms
        self._run.selected[benchmark] = list(selected)

    def collect_lines(self) -> dict[str, list[dict[str, Any]]]:
        """Complete the facts of the run; return suffix of a record's files -> lines to add."""
        self._complete_run()
        compiler = releases.parse_version(self._run.nvcc)
        return {
            record.RUNS_FILE: _make_json_lines([self._run]),
            record.CUBINS_FILE: _make_json_lines(self._cubin_records(compiler)),
            record.FINGERPRINTS_FILE: _make_json_lines(self._fingerprint_records(compiler)),
            record.LINES_FILE: self.source_lines,
        }

    def _complete_run(self) -> None:
        run, device = self._run, machine.find_gpu()
        if device is not None:
            run.gpu, run.arch, run.peak_bytes_per_second = device.name, device.arch, device.peak_bytes_per_second
        run.ended, run.nvcc, run.host = _utc_timestamp(), _nvcc_release_line(), dict(machine.host_facts())
        run.asv, run.asv_runner, run.generators = version("asv"), version("asv_runner"), dict(self.generators)
        run.controls = dict(self.controls)
        run.before, run.after = {**self._facts_at_start, **self._facts}, dict(machine.volatile_facts())
        measured = sorted(
            ((name, configuration) for configuration, names in self.configurations for name in names),
            key=lambda pair: (pair[0], pair[1].params),
        )
        run.held_back = [
            models.ThrottledConfiguration(
                commit=self._commit,
                configuration=f"{name}({configuration.params})",
                reasons=configuration.throttle_reasons,
            )
            for name, configuration in measured
            if configuration.throttle_reasons
        ]
        run.skipped = self._count_reasons((name, configuration.skipped) for name, configuration in measured)
        run.failed = self._count_reasons(
            (name, first_error(configuration.failed).encode("ascii", "replace").decode())
            for name, configuration in measured
        )
        # Time -> sizes of its rounds, such as "5 6" -> parameters of the configurations with these sizes.
        params_by_sizes: dict[str, dict[str, list[str]]] = {}
        for name, configuration in measured:
            if find_kind(name) is Kind.TIMED and isinstance(configuration.numbers.get(name), list):
                sizes = " ".join(map(str, configuration.round_sizes))
                params_by_sizes.setdefault(name, {}).setdefault(sizes, []).append(configuration.params)
        for by_sizes in params_by_sizes.values():
            most_frequent = max(by_sizes, key=lambda sizes: len(by_sizes[sizes]))
            by_sizes[most_frequent] = []  # an empty list stands for all others
        run.processes = {self._commit: params_by_sizes} if params_by_sizes else {}
        if not any(run.selected.values()):  # an empty table means all configurations
            run.selected = {}

    def _count_reasons(self, reasons: Iterable[tuple[str, str]]) -> list[models.SkippedConfigurations]:
        counts = Counter((benchmark, one_line(reason)) for benchmark, reason in reasons if reason)
        return [
            models.SkippedConfigurations(commit=self._commit, benchmark=benchmark, reason=reason, configurations=count)
            for (benchmark, reason), count in sorted(counts.items())
        ]

    def _cubin_records(self, compiler: str | None) -> list[models.CubinsLine]:
        by_arch: dict[str, models.CubinsLine] = {}
        for configuration, _ in self.configurations:
            if (code := configuration.machine_code) is None:
                continue
            new_line = models.CubinsLine(commit=self._commit, arch=code.arch, nvcc=compiler, cubins={})
            line = by_arch.setdefault(code.arch, new_line)
            line.cubins[code.name] = code.cubin_sha256
            if code.code_sha256:
                line.code[code.name] = code.code_sha256
            if configuration.block:
                line.blocks[" ".join(code.name.split()[:2])] = configuration.block  # by kernel and dtype
        return [by_arch[arch] for arch in sorted(by_arch)]

    def _fingerprint_records(self, compiler: str | None) -> list[models.FingerprintsLine]:
        measured: dict[str, dict[str, str]] = {}
        reused: dict[str, dict[str, list[str]]] = {}
        for configuration, _ in self.configurations:
            if configuration.reused:
                reused.setdefault(configuration.group, {}).setdefault(configuration.reused, []).append(
                    configuration.params
                )
            # Times of a throttled GPU are not reused.
            elif configuration.fingerprint and not configuration.throttle_reasons:
                measured.setdefault(configuration.group, {})[configuration.params] = configuration.fingerprint
        run_fields: dict[str, Any] = {name: getattr(self._run, name) for name in ("run", "started", "ended")}
        line = models.FingerprintsLine(
            commit=self._commit, nvcc=compiler, fingerprints=measured, reused=reused, **run_fields
        )
        return [line] if measured or reused else []


def _make_json_lines(lines: Iterable[models.Record]) -> list[dict[str, Any]]:
    return [to_builtins(line, order="deterministic") for line in lines]


def _utc_timestamp() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _nvcc_release_line() -> str | None:
    """Return the line with nvcc's release, or all of nvcc's output if no line has it; None without a working nvcc."""
    try:
        text = nvcc.version_text(nvcc.find_nvcc())
    except ERRORS:
        return None
    return next((line for line in text.splitlines() if "release" in line), text.strip())
