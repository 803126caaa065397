"""Keeps each answer of asv's processes until the commit is stored: a run that is killed loses the running one alone.

asv stores a commit when all its benchmarks are through. Until then its answers stand in a journal, a file beside its
results: a line each. The next run of the commit takes them from there and measures on. Results are written as always,
all at once, so no half of a commit replaces a whole one, and its rounds are those of an undisturbed run. The journal is
removed when the commit is stored. As long as there is one, the commit is not through, whatever else is stored of it.

A journal is continued on the same GPU, with the same driver, compiler and checkout; else it is begun anew.
"""

from __future__ import annotations

import functools
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from asv.console import log
from asv.results import Results
from asv.runner import ForkServer

from kernelwatch import settings
from kernelwatch.asv.patches import Patch
from kernelwatch.errors import ERRORS
from kernelwatch.instrument import fingerprint, machine
from kernelwatch.project import ROOT
from kernelwatch.store import folders
from kernelwatch.store.record import RunRecord
from kernelwatch.toolchain import nvcc

SUFFIX = ".journal"

#: What decides how a configuration is measured: the instrument and the catalog, as the checkout has them.
_INSTRUMENT = settings.code()


class Begun(msgspec.Struct, tag=True):
    """A run begins to write, or goes on."""

    started: str
    conditions: dict[str, Any]
    run: str = ""  # its identity, as in its records


class Answer(msgspec.Struct, tag=True):
    """What a process was asked, what it printed, and its result as it wrote it."""

    name: str
    params: str
    said: str
    result: str


_LINE = msgspec.json.Decoder(Begun | Answer)


class Journal:
    """The answers of one commit in one of asv's environments.

    Parameters
    ----------
    path : Path
        The file.
    begun : Begun
        The run that writes to it.

    Attributes
    ----------
    continued : list of str
        When the runs began that it goes on with.
    """

    def __init__(self, path: Path, begun: Begun) -> None:
        self._path = path
        self._known: defaultdict[tuple[str, str], deque[Answer]] = defaultdict(deque)
        lines = list(_read(path))
        before = [line for line in lines if isinstance(line, Begun)]
        fits = bool(before) and all(line.conditions == begun.conditions for line in before)
        self.continued = [line.started for line in before] if fits else []
        answers = [line for line in lines if isinstance(line, Answer) and fits]
        for answer in answers:
            self._known[answer.name, answer.params].append(answer)
        if answers:
            log.warning(f"{path}: goes on with {len(answers)} answers of a run that was ended; to ask again, remove it")
        elif before and not fits:
            log.warning(f"{path} is of another GPU, driver, compiler or checkout; its commit is measured anew")
        if not fits:
            path.unlink(missing_ok=True)
        self._is_kept = True
        self._write(begun, b"\n" if fits else b"")  # what was killed may have left half a line

    def take(self, name: str, params: str) -> Answer | None:
        """Return the next answer to a question, once; None if it is to be asked."""
        known = self._known[name, params]
        return known.popleft() if known else None

    def add(self, answer: Answer) -> None:
        """Keep an answer. If the disk is full, say so once and keep no more: the run goes on."""
        self._write(answer)

    def _write(self, line: Begun | Answer, before: bytes = b"") -> None:
        # Not brought to the disk at once: a kill leaves what was written, and a power cut costs some seconds of it.
        if self._is_kept:
            try:
                with self._path.open("ab") as file:
                    file.write(before + msgspec.json.encode(line) + b"\n")
            except OSError as error:
                self._is_kept = False
                log.warning(f"{self._path} cannot be written ({error.strerror}): a kill would lose more now")

    def remove(self) -> None:
        """Remove the file: all of it is stored."""
        self._path.unlink(missing_ok=True)


def _read(path: Path) -> Iterator[Begun | Answer]:
    """Yield the lines of a journal but for those that are torn."""
    for line in path.read_bytes().splitlines() if path.exists() else ():
        with suppress(msgspec.DecodeError):
            yield _LINE.decode(line)


class Journals:
    """Those of one run.

    Parameters
    ----------
    folder : Path
        The machine's folder of results.
    begun : Begun
        The run.
    in_rounds : bool
        Whether the run comes back to each commit, so that none is through before its end.
    """

    def __init__(self, folder: Path, begun: Begun, *, in_rounds: bool = False) -> None:
        self._folder, self._begun, self._in_rounds = folder, begun, in_rounds
        self._open: dict[str, Journal] = {}

    def of(self, commit: str, environment: str) -> Journal:
        """Return the journal of a commit."""
        name = _name(commit, environment)
        if name not in self._open:
            path, found = self._folder / name, folders.find(self._folder.parent, f"{self._folder.name}/{name}")
            if found != path and found.exists():  # of before runs wrote to the local folder
                found.rename(path)
            self._open[name] = Journal(path, self._begun)
        return self._open[name]

    def stored(self, commit: str, environment: str) -> None:
        """Remove the journal of a commit that is through, if a process was asked: one that was not built has none."""
        journal = None if self._in_rounds else self._open.get(_name(commit, environment))
        if journal is not None:
            journal.remove()

    def ended(self) -> None:
        """Remove the journals of a run that came to its end."""
        for journal in self._open.values():
            journal.remove()

    def continued(self) -> list[str]:
        """Return when the runs began that this one went on with."""
        return sorted({started for journal in self._open.values() for started in journal.continued})


#: Those of the run under way.
_current: list[Journals] = []


def _name(commit: str, environment: str) -> str:
    """What a journal is called: as asv calls the commit's results."""
    return f"{commit[:8]}-{environment}{SUFFIX}"


def conditions(device: Mapping[str, Any], in_turns: Sequence[str], root: Path = ROOT) -> dict[str, Any]:
    """Return what a run must share with the one whose journal it continues.

    Parameters
    ----------
    device : mapping of str to object
        The GPU's facts, as `machine.volatile` gives them.
    in_turns : sequence of str
        The commits that are measured in turns.
    root : Path
        The checkout.
    """
    files = (path for name in _INSTRUMENT for path in (root / name).rglob("*") if path.suffix in (".py", ".cu"))
    return {
        "uuid": device.get("uuid"),
        "driver": device.get("driver"),
        "nvcc": _nvcc(),
        "options": nvcc.options_of_environment(),
        "in_turns": list(in_turns),
        "checkout": fingerprint.of({str(path.relative_to(root)): path.read_bytes() for path in files}),
    }


def _nvcc() -> str | None:
    try:
        return nvcc.version(nvcc.find_nvcc())
    except ERRORS:
        return None


@contextmanager
def of_a_run(folder: Path, record: RunRecord, in_turns: Sequence[str], options: Mapping[str, Any]) -> Iterator[None]:
    """Keep the journals of a run, and remove them at its end.

    Parameters
    ----------
    folder : Path
        The machine's folder of results.
    record : RunRecord
        Takes which runs were continued.
    in_turns : sequence of str
        The commits that are measured in turns.
    options : mapping of str to object
        What `asv run` was told.
    """
    if options.get("dry_run"):
        yield
        return
    begun = Begun(record.started, conditions(machine.volatile(), in_turns), record.run)
    journals = Journals(folder, begun, in_rounds=bool(options.get("interleave_rounds")))
    _current.append(journals)
    try:
        yield
        journals.ended()
    finally:
        record.continued = journals.continued()
        _current.remove(journals)


def _answering(run: Any) -> Any:
    @functools.wraps(run)
    def wrapped(self: ForkServer, **asked: Any) -> tuple[str, int]:
        """Give the answer that is known, else run the process and keep its answer, unless it failed."""
        commit = self.env.installed_commit_hash
        journals = _current if commit and asked["profile_path"] == "None" else ()
        question, result = (asked["name"], asked["params_str"]), Path(asked["result_file_name"])
        for journal in (each.of(commit, self.env.name) for each in journals):
            known = journal.take(*question)
            if known is not None:
                result.write_text(known.result, encoding="utf-8")
                return known.said, 0
        said, code = run(self, **asked)
        for journal in (each.of(commit, self.env.name) for each in journals if code == 0):
            journal.add(Answer(*question, said, result.read_text(encoding="utf-8")))
        return said, code

    return wrapped


def _removing(save: Any) -> Any:
    @functools.wraps(save)
    def wrapped(self: Results, *args: Any) -> None:
        """Save a commit, then remove its journal."""
        save(self, *args)
        for journals in _current:
            journals.stored(self.commit_hash, self._env_name)

    return wrapped


def _through(stored: Any) -> Any:
    @functools.wraps(stored)
    def wrapped(results: str, machine: str, commit: str) -> Iterator[Results]:
        """Yield nothing of a commit that has a journal: asv skips those that have results, and would skip it."""
        places = folders.places(Path(results))
        under_way = any(any(place.glob(f"{machine}/{commit[:8]}-*{SUFFIX}")) for place in places)
        return iter(()) if under_way else (each for place in places for each in stored(str(place), machine, commit))

    return wrapped


#: Put this between asv and its processes.
PATCHES = (
    Patch("asv.runner:ForkServer.run", _answering, "self name params_str profile_path result_file_name"),
    Patch("asv.results:Results.save", _removing, "self result_dir"),
    Patch("asv.commands.run:iter_results_for_machine_and_hash", _through, "results machine_name commit"),
)
