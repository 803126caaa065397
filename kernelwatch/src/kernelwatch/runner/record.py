"""The lines of a run's records at one commit: its facts, the machine code, and whose the numbers are."""

from __future__ import annotations

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
from kernelwatch.runner.protocol import Configuration
from kernelwatch.store import models, record
from kernelwatch.suite.benchmark_names import Kind, find_kind
from kernelwatch.toolchain import nvcc, releases


class RunRecord:
    """Collects the facts of a run at a commit, from its making to `lines`.

    Parameters
    ----------
    commit : str
        The commit's hash.
    facts : mapping of str to object, optional
        More facts of the machine, by name; they may come in later.
    """

    def __init__(self, commit: str, facts: Mapping[str, Any] | None = None) -> None:
        self._before, self._facts = machine.volatile(), {} if facts is None else facts
        self._commit = commit
        self._run = models.RunLine(run=uuid.uuid4().hex, started=_moment(), commits=[commit], began={commit: {}})
        #: What became of each configuration, and the benchmarks of its class that were measured.
        self.heard: list[tuple[Configuration, Sequence[str]]] = []
        #: What each source line of a kernel costs.
        self.source_lines: list[dict[str, Any]] = []

    def begin(self, benchmark: str, began: int, selected: Sequence[str] = ()) -> None:
        """Record that a benchmark is measured, and its configurations if not all were selected.

        Its stored numbers are recognised by when asv began with it, in milliseconds.
        """
        self._run.began[self._commit][benchmark] = began
        self._run.selected[benchmark] = list(selected)

    def lines(self) -> dict[str, list[dict[str, Any]]]:
        """Return the lines of each record, by what the names of its files end in."""
        self._finish()
        compiler = releases.version(self._run.nvcc)
        return {
            record.RUNS_FILE: _written([self._run]),
            record.CUBINS_FILE: _written(self._cubins(compiler)),
            record.FINGERPRINTS_FILE: _written(self._fingerprints(compiler)),
            record.LINES_FILE: self.source_lines,
        }

    def _finish(self) -> None:
        """Complete the facts of the run."""
        run, device = self._run, machine.gpu()
        if device is not None:
            run.gpu, run.arch, run.peak_bytes_per_second = device.name, device.arch, device.peak_bytes_per_second
        run.ended, run.nvcc, run.host = _moment(), _nvcc(), dict(machine.host())
        run.asv, run.asv_runner = version("asv"), version("asv_runner")
        run.before, run.after = {**self._before, **self._facts}, dict(machine.volatile())
        each = sorted(
            ((name, one) for one, names in self.heard for name in names), key=lambda pair: (pair[0], pair[1].params)
        )
        run.held_back = [
            models.ThrottledConfiguration(
                commit=self._commit, configuration=f"{name}({one.params})", reasons=one.held_back
            )
            for name, one in each
            if one.held_back
        ]
        run.skipped = self._counted((name, one.skipped) for name, one in each)
        run.failed = self._counted(
            (name, first_error(one.failed).encode("ascii", "replace").decode()) for name, one in each
        )
        taken: dict[str, dict[str, list[str]]] = {}
        for name, one in each:
            if find_kind(name) is Kind.TIMED and isinstance(one.numbers.get(name), list):
                taken.setdefault(name, {}).setdefault(" ".join(map(str, one.rounds)), []).append(one.params)
        for known in taken.values():
            known[max(known, key=lambda text: len(known[text]))] = []  # none stands for all others
        run.processes = {self._commit: taken} if taken else {}
        if not any(run.selected.values()):  # of a run of all configurations nothing is said
            run.selected = {}

    def _counted(self, reasons: Iterable[tuple[str, str]]) -> list[models.SkippedConfigurations]:
        """Return each reason of a benchmark, and of how many configurations it is one."""
        counted = Counter((benchmark, one_line(reason)) for benchmark, reason in reasons if reason)
        return [
            models.SkippedConfigurations(commit=self._commit, benchmark=benchmark, reason=reason, configurations=count)
            for (benchmark, reason), count in sorted(counted.items())
        ]

    def _cubins(self, compiler: str | None) -> list[models.CubinsLine]:
        """Return the hashes of machine code, a line an architecture."""
        found: dict[str, models.CubinsLine] = {}
        for one in (one for one, _ in self.heard if one.machine_code):
            sha256, launch, arch, *code = one.machine_code
            line = found.setdefault(arch, models.CubinsLine(commit=self._commit, arch=arch, nvcc=compiler, cubins={}))
            line.cubins[launch] = sha256
            line.code |= dict.fromkeys([launch], *code) if code else {}
            if one.block:
                line.blocks[" ".join(launch.split()[:2])] = one.block
        return [found[arch] for arch in sorted(found)]

    def _fingerprints(self, compiler: str | None) -> list[models.FingerprintsLine]:
        """Return which configurations were measured, by fingerprint, and whose numbers the rest has."""
        measured: dict[str, dict[str, str]] = {}
        reused: dict[str, dict[str, list[str]]] = {}
        for one, _ in self.heard:
            if one.reused:
                reused.setdefault(one.group, {}).setdefault(one.reused, []).append(one.params)
            elif one.fingerprint and not one.held_back:  # what a slow GPU took is not taken over
                measured.setdefault(one.group, {})[one.params] = one.fingerprint
        same: dict[str, Any] = {name: getattr(self._run, name) for name in ("run", "started", "ended")}
        line = models.FingerprintsLine(commit=self._commit, nvcc=compiler, fingerprints=measured, reused=reused, **same)
        return [line] if measured or reused else []


def _written(lines: Iterable[models.Record]) -> list[dict[str, Any]]:
    return [to_builtins(line, order="deterministic") for line in lines]


def _moment() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _nvcc() -> str | None:
    """The compiler's own version line."""
    try:
        text = nvcc.version(nvcc.find_nvcc())
    except ERRORS:
        return None
    return next((line for line in text.splitlines() if "release" in line), text.strip())
