"""Collects the facts of a run at one commit: the lines of its records."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from typing import Any

from msgspec import to_builtins

from kernelwatch.command import first_error, one_line
from kernelwatch.errors import ERRORS
from kernelwatch.instrument import machine
from kernelwatch.store import models, record
from kernelwatch.store.models import Checked
from kernelwatch.store.outcomes import Configuration
from kernelwatch.toolchain import nvcc
from kernelwatch.toolchain import releases as compilers

#: Class or benchmark -> parameters -> a text.
_Texts = dict[str, dict[str, str]]


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
        started = _moment()
        self._run = models.Run(
            run=uuid.uuid4().hex, nvcc=_nvcc(), started=started, ended=started, commits=[commit], before={}, after={},
            peak_bytes_per_second=None, began={commit: {}},
        )  # fmt: skip
        self._commit, self._nvcc = commit, compilers.version(self._run.nvcc)
        #: Architecture -> hashes.
        self._cubins: dict[str, models.Cubins] = {}
        self._source_lines: list[dict[str, Any]] = []
        #: Benchmark -> parameters -> why the GPU held itself back, in the order of asking.
        self._held_back: dict[str, dict[str, list[str]]] = {}
        #: Seconds of the measuring process, by what they were spent on.
        self._spent: Counter[str] = Counter()
        #: Benchmark -> the configurations that the run selected; none stands for all.
        self._selected: dict[str, list[str]] = {}
        #: Benchmark and reason -> how many configurations.
        self._skipped: Counter[tuple[str, str]] = Counter()
        self._failed: Counter[tuple[str, str]] = Counter()
        #: The fingerprints of what was measured, and the commits whose numbers the rest has.
        self._measured: _Texts = {}
        self._reused: _Texts = {}
        #: Samples that each process took of a time, one process after the other, and why it took no more.
        self._samples: _Texts = {}
        self._stopped: _Texts = {}

    def begin(self, benchmark: str, began: int, selected: Sequence[str] = ()) -> None:
        """Record that a benchmark is measured, and its configurations if not all were selected.

        Its stored numbers are recognised by when asv began with it, in milliseconds.
        """
        self._selected[benchmark] = list(selected)
        self._run.began[self._commit][benchmark] = began

    def note(self, one: Configuration, benchmarks: Sequence[str]) -> None:
        """Record what became of a configuration, of those benchmarks of its class that were measured."""
        if one.machine_code:
            sha256, launch, arch, *code = one.machine_code
            made = models.Cubins(commit=self._commit, arch=arch, nvcc=self._nvcc, cubins={})
            known = self._cubins.setdefault(arch, made)
            known.cubins[launch] = sha256
            known.code |= dict.fromkeys([launch], *code) if code else {}
            if one.block:
                known.blocks[" ".join(launch.split()[:2])] = one.block
        kept, what = (self._reused, one.reused) if one.reused else (self._measured, one.fingerprint)
        if what and not (one.held_back and kept is self._measured):  # what a slow GPU took is not taken over
            kept.setdefault(one.group, {})[one.params] = what
        self._spent.update(one.spent)
        for benchmark in benchmarks:
            if one.skipped:
                self._skipped[benchmark, one_line(one.skipped)] += 1
            if one.failed:
                self._failed[benchmark, one_line(first_error(one.failed)).encode("ascii", "replace").decode()] += 1
            if one.held_back:
                self._held_back.setdefault(benchmark, {})[one.params] = list(one.held_back)
            if isinstance(one.numbers.get(benchmark), list) and ".time_" in benchmark:
                self._samples.setdefault(benchmark, {})[one.params] = " ".join(map(str, one.rounds))
                if one.stopped:
                    self._stopped.setdefault(benchmark, {})[one.params] = " ".join(one.stopped)

    def note_checks(self, checked: Sequence[Checked]) -> None:
        """Record what was measured to see whether stored numbers hold."""
        if checked:
            self._run.checks.append(models.Check(commit=self._commit, checked=list(checked)))

    def note_line(self, line: dict[str, Any]) -> None:
        """Record what each source line of a kernel costs."""
        self._source_lines.append(line)

    def lines(self) -> dict[str, list[dict[str, Any]]]:
        """Return the lines of each record, by what the names of its files end in."""
        run = self._run
        self._finish()
        fingerprints = models.Fingerprints(
            run=run.run, commit=self._commit, started=run.started, ended=run.ended, nvcc=self._nvcc,
            fingerprints=self._measured, reused={name: _by_text(ones) for name, ones in self._reused.items()},
        )  # fmt: skip
        return {
            record.FILE: _written([run]),
            record.CUBINS_FILE: _written(self._cubins[arch] for arch in sorted(self._cubins)),
            record.FINGERPRINTS_FILE: _written([fingerprints] if self._measured or self._reused else []),
            record.LINES_FILE: self._source_lines,
        }

    def _finish(self) -> None:
        run, commit, device = self._run, self._commit, machine.gpu()
        if device is not None:
            run.gpu, run.arch, run.peak_bytes_per_second = device.name, device.arch, device.peak_bytes_per_second
        run.ended = _moment()
        run.asv, run.asv_runner = version("asv"), version("asv_runner")
        run.host = dict(machine.host())
        run.before, run.after = {**self._before, **self._facts}, dict(machine.volatile())
        run.spent = {what: round(seconds, 3) for what, seconds in self._spent.items()}
        run.held_back = [
            models.Held(commit=commit, configuration=f"{benchmark}({params})", reasons=reasons)
            for benchmark, each in sorted(self._held_back.items())
            for params, reasons in sorted(each.items())
        ]
        run.skipped, run.failed = self._listed(self._skipped), self._listed(self._failed)
        run.processes, run.stopped = (
            {commit: {benchmark: _most_for_all(each) for benchmark, each in told.items()}} if told else {}
            for told in (self._samples, self._stopped)
        )
        # Of a run of all configurations nothing is said.
        run.selected = self._selected if any(self._selected.values()) else {}

    def _listed(self, reasons: Mapping[tuple[str, str], int]) -> list[models.Skip]:
        return [
            models.Skip(commit=self._commit, benchmark=benchmark, reason=reason, configurations=count)
            for (benchmark, reason), count in sorted(reasons.items())
        ]


def _written(lines: Iterable[models.Record]) -> list[dict[str, Any]]:
    return [to_builtins(line, order="deterministic") for line in lines]


def _most_for_all(told: Mapping[str, str]) -> dict[str, list[str]]:
    """Return what processes told, as "5 5" -> configurations; none stands for all others."""
    texts = _by_text(told)
    return texts | {max(texts, key=lambda each: len(texts[each])): []}


def _by_text(ones: Mapping[str, str]) -> dict[str, list[str]]:
    """Return parameters by a text that several can have, such as the commit whose numbers they have."""
    found: dict[str, list[str]] = {}
    for params, text in ones.items():
        found.setdefault(text, []).append(params)
    return found


def _moment() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _nvcc() -> str | None:
    """The compiler's own version line."""
    try:
        text = nvcc.version(nvcc.find_nvcc())
    except ERRORS:
        return None
    return next((line for line in text.splitlines() if "release" in line), text.strip())
