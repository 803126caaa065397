"""Collects the facts of a run of asv, and adds them to the machine's records."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from msgspec import structs, to_builtins

from kernelwatch.command import one_line
from kernelwatch.counting import source_lines
from kernelwatch.errors import ERRORS
from kernelwatch.instrument import machine
from kernelwatch.store import folders, jsonl, models
from kernelwatch.store.outcomes import Checked, Configuration
from kernelwatch.store.record import CUBINS_FILE, FILE, FINGERPRINTS_FILE, INSTRUCTIONS_FILE
from kernelwatch.toolchain import nvcc
from kernelwatch.toolchain import releases as compilers

#: Commit -> class -> parameters -> a text.
_Texts = dict[str, dict[str, dict[str, str]]]

#: (commit, benchmark) -> parameters -> what each process told.
_OfProcesses = dict[tuple[str, str], dict[str, list[Any]]]


class RunRecord:
    """Collects the facts of a run, from its making to `append_to`.

    Parameters
    ----------
    facts : dict of str to object, optional
        More facts of the machine, by name; they may come in later.
    """

    def __init__(self, facts: dict[str, Any] | None = None) -> None:
        self._before = machine.volatile()
        self._facts = {} if facts is None else facts  # an empty one fills up later
        started = _moment()
        self._run = models.Run(
            run=uuid.uuid4().hex, nvcc=_nvcc(), started=started, ended=started, commits=[], before={}, after={},
            peak_bytes_per_second=None,
        )  # fmt: skip
        self._nvcc = compilers.version(self._run.nvcc)
        self._cubins: dict[tuple[str, str], models.Cubins] = {}
        self._instructions: dict[str, dict[str, int]] = {}
        self._lines: list[dict[str, Any]] = []
        #: (commit, benchmark, parameters) -> why the GPU held itself back, in the order of asking.
        self._held_back: dict[tuple[str, str, str], list[str]] = {}
        #: Seconds of the measuring process, by what they were spent on.
        self._spent: Counter[str] = Counter()
        #: Benchmark -> the configurations that the run selected; none stands for all.
        self._selected: dict[str, list[str]] = {}
        #: (commit, benchmark) -> reasons -> how many configurations.
        self._skipped: dict[tuple[str, str], Counter[str]] = {}
        self._failed: dict[tuple[str, str], Counter[str]] = {}
        #: The fingerprints of what was measured, and the commits whose numbers the rest has.
        self._measured: _Texts = {}
        self._reused: _Texts = {}
        #: (commit, benchmark) -> parameters -> samples that each process took of a time, one process after the other.
        self._samples: _OfProcesses = {}
        #: The same of why each took no more.
        self._stopped: _OfProcesses = {}

    def begin(self, commit: str, benchmark: str, began: int, selected: Sequence[str] = ()) -> None:
        """Record that a benchmark is measured at a commit, and its configurations if not all were selected.

        Its stored numbers are recognised by when asv began with it, in milliseconds.
        """
        self._selected[benchmark] = list(selected)
        self._skipped[commit, benchmark], self._failed[commit, benchmark] = Counter(), Counter()
        self._run.began.setdefault(commit, {})[benchmark] = began

    def note(self, commit: str, one: Configuration, benchmarks: Sequence[str]) -> None:
        """Record what became of a configuration, of those benchmarks of its class that were measured."""
        if one.machine_code:
            sha256, launch, arch, *code = one.machine_code
            known = self._cubins_of(commit, arch)
            known.cubins[launch] = sha256
            known.code |= dict.fromkeys([launch], *code) if code else {}
        kept, what = (self._reused, one.reused) if one.reused else (self._measured, one.fingerprint)
        if what:
            kept.setdefault(commit, {}).setdefault(one.group, {})[one.params] = what
        self._spent.update(one.spent)
        for benchmark in benchmarks:
            if one.skipped:
                self._skipped[commit, benchmark][one_line(one.skipped)] += 1
            if one.failed:
                self._failed[commit, benchmark][one_line(one.failed).encode("ascii", "replace").decode()] += 1
            if one.held_back:
                self._held_back[commit, benchmark, one.params] = list(one.held_back)
            if isinstance(one.numbers.get(benchmark), list) and ".time_" in benchmark:
                self._samples.setdefault((commit, benchmark), {})[one.params] = list(one.rounds)
                if one.stopped:
                    self._stopped.setdefault((commit, benchmark), {})[one.params] = list(one.stopped)

    def note_checks(self, commit: str, checked: Sequence[Checked]) -> None:
        """Record what was measured to see whether stored numbers hold."""
        if checked:
            told = [models.Checked(**structs.asdict(each)) for each in checked]
            self._run.checks.append(models.Check(commit=commit, checked=told))

    def note_instructions(self, known: Mapping[str, dict[str, int]]) -> None:
        """Record what machine code consists of."""
        self._instructions |= known

    def note_line(self, line: dict[str, Any]) -> None:
        """Record what each source line of a kernel costs."""
        self._lines.append(line)

    def _cubins_of(self, commit: str, arch: str) -> models.Cubins:
        made = models.Cubins(commit=commit, arch=arch, nvcc=self._nvcc, cubins={})
        return self._cubins.setdefault((commit, arch), made)

    def fingerprint_lines(self) -> list[dict[str, Any]]:
        """Return a line a commit, of what was measured so far; none of a configuration that the GPU held back."""
        held = {(commit, f"{benchmark.rpartition('.')[0]}({params})") for commit, benchmark, params in self._held_back}
        lines = [
            models.Fingerprints(
                run=self._run.run, commit=commit, started=self._run.started, ended=_moment(), nvcc=self._nvcc,
                fingerprints={
                    name: {params: found for params, found in ones.items() if (commit, f"{name}({params})") not in held}
                    for name, ones in self._measured.get(commit, {}).items()
                },
                reused={name: _by_text(ones) for name, ones in self._reused.get(commit, {}).items()},
            )
            for commit in sorted({*self._measured, *self._reused})
        ]  # fmt: skip
        return _written(lines)

    def identity(self) -> dict[str, Any]:
        """Return the record so far, by which `kernelwatch.store.record` knows the numbers that are the run's."""
        self._run.commits = sorted({commit for commit, _ in self._skipped})
        self._run.processes, self._run.stopped = _by_processes(self._samples), _by_processes(self._stopped)
        # Of a run of all configurations nothing is said.
        self._run.selected = self._selected if any(self._selected.values()) else {}
        (found,) = _written([self._run])
        return found

    def line(self) -> dict[str, Any]:
        """The record as it is written."""
        run, device = self._run, machine.gpu()
        if device is not None:
            run.gpu, run.arch, run.peak_bytes_per_second = device.name, device.arch, device.peak_bytes_per_second
        run.ended = _moment()
        run.asv, run.asv_runner = version("asv"), version("asv_runner")
        run.host = dict(machine.host())
        run.before, run.after = {**self._before, **self._facts}, dict(machine.volatile())
        run.spent = {what: round(seconds, 3) for what, seconds in self._spent.items()}
        run.held_back = [
            models.Held(commit=commit, configuration=f"{benchmark}({params})", reasons=reasons)
            for (commit, benchmark, params), reasons in sorted(self._held_back.items())
        ]
        run.skipped, run.failed = _listed(self._skipped), _listed(self._failed)
        return self.identity()

    def append_to(self, results_dir: str, name: str) -> None:
        """Append the record to the files of the machine `name`; a run that measured nothing leaves none."""
        if not self._skipped:
            return
        folder = Path(results_dir, name)
        folder.mkdir(parents=True, exist_ok=True)
        places = [place / name for place in folders.places(Path(results_dir))]
        lines: dict[str, Iterable[dict[str, Any]]] = {
            FILE: [self.line()],
            CUBINS_FILE: _written(self._cubins[key] for key in sorted(self._cubins)),
            INSTRUCTIONS_FILE: _written(self._instruction_lines(places)),
            FINGERPRINTS_FILE: self.fingerprint_lines(),
            source_lines.FILE: self._lines,
        }
        for file, each in lines.items():
            if found := list(each):
                jsonl.append(folder / file, *found)

    def _instruction_lines(self, places: Sequence[Path]) -> Iterator[models.Instructions]:
        known = {line["code"] for place in places for line in jsonl.read(place / INSTRUCTIONS_FILE)}
        for code in sorted(self._instructions.keys() - known):
            yield models.Instructions(code=code, instructions=self._instructions[code])


def _written(lines: Iterable[models.Record]) -> list[dict[str, Any]]:
    return [to_builtins(line, order="deterministic") for line in lines]


def _listed(reasons: Mapping[tuple[str, str], Counter[str]]) -> list[models.Skip]:
    return [
        models.Skip(commit=commit, benchmark=benchmark, reason=reason, configurations=count)
        for (commit, benchmark), each in sorted(reasons.items())
        for reason, count in sorted(each.items())
    ]


def _by_processes(known: _OfProcesses) -> dict[str, dict[str, dict[str, list[str]]]]:
    """Commit -> benchmark -> what each process told, as "5 5" -> configurations; none stands for all others."""
    found: dict[str, dict[str, dict[str, list[str]]]] = {}
    for (commit, benchmark), told in known.items():
        texts = _by_text({params: " ".join(map(str, each)) for params, each in told.items()})
        most = max(texts, key=lambda each: len(texts[each]))
        found.setdefault(commit, {})[benchmark] = texts | {most: []}
    return found


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
