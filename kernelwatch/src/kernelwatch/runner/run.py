"""A run: one process a commit, one that measures, what is known taken over, and asv's own files as asv writes them."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from types import FrameType
from typing import Any

from asv import environment as environments
from asv.benchmarks import Benchmarks
from asv.commands.run import Run as AsvRun
from asv.commands.show import Show
from asv.console import log
from asv.machine import Machine, MachineCollection
from asv.repo import NoSuchNameError, get_repo
from asv.results import Results, get_filename
from asv.runner import run_benchmarks
from asv.util import ProcessError, UserError

from kernelwatch import scratch
from kernelwatch.instrument import machine
from kernelwatch.project import ROOT
from kernelwatch.runner import commits, compiler, process
from kernelwatch.runner.commit import Commit
from kernelwatch.runner.messages import Suite
from kernelwatch.runner.process import CommitProcess, PackageError
from kernelwatch.runner.record import RunRecord
from kernelwatch.store import folders, git
from kernelwatch.store.reading import UnreadableError
from kernelwatch.toolchain import cache


def run(conf: Any, options: Mapping[str, Any]) -> int | None:
    """Measure what a person has asked `asv run` for; return its exit code."""
    compiler.choose(conf)
    unkept = cache.problem()
    if unkept:
        log.warning(unkept)
    device = machine.gpu()
    if device is None:
        # A slice of a GPU, say, that NVML does not name: its times would go by the name of a machine without one.
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    results = folders.results(Path(conf.results_dir))
    several = list(environments.get_environments(conf, options.get("env_spec")))
    if not several:
        raise UserError("No environments selected")
    repo = get_repo(conf)
    if options.get("pull", True):
        repo.pull()
    chosen = commits.selected(conf, repo, options, results)
    in_turns = chosen if options.get("interleave_rounds", False) is not False and len(chosen) > 1 and device else []
    # `asv continuous`, which takes what is returned, reads there afterwards, by asv's own names.
    stage = tempfile.TemporaryDirectory() if "_returns" in options else None
    options.get("_returns", {})["stage"] = stage
    with (
        _terminated(),
        folders.alone(results),
        scratch.of_a_run() as folder,
        _measuring(in_turns, device) as facts,
    ):
        conf.results_dir = stage.name if stage else str(folder / "stage")  # asv saves there
        options = {**options, "interleave_rounds": bool(in_turns)}
        return Run(conf, repo, machine_of(options, device), options, results, folder, facts).measure(chosen, several)


def machine_of(options: Mapping[str, Any], device: machine.Gpu | None) -> Machine:
    """Return the machine that is named, or else the one called after its GPU, as far as asv has been told of it."""
    name = options.get("machine") or Machine.hardcoded_machine_name or machine.default_name(device)
    found = Machine()
    try:
        vars(found).update(MachineCollection.load(name, _path=options.get("_machine_file")))
    except UserError:
        vars(found).update(machine.stable(name, device))
    return found


@contextmanager
def _measuring(in_turns: Sequence[str], device: machine.Gpu | None) -> Iterator[dict[str, Any]]:
    """Run a measuring process on a GPU, if there is one, and describe to it what it measures in turns."""
    if device is None:
        yield {}
        return
    from kernelwatch.instrument import exchange, measuring  # noqa: PLC0415 -- without a GPU nobody needs them
    from kernelwatch.runner import turns  # noqa: PLC0415

    with measuring.running() as facts:
        if in_turns:
            turns.describe(in_turns, os.environ[exchange.ADDRESS])
        yield facts


@contextmanager
def _terminated() -> Iterator[None]:
    """End as after Ctrl-C if the system asks this process to end: nothing stays at work, and no lock stays held."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Run:
    """Measures commits.

    Parameters
    ----------
    conf, repo, machine : object
        Asv's.
    options : mapping
        Of `asv run`, as asv calls them.
    results, folder : Path
        Where results are, and for files that go with the run.
    facts : dict
        What the measuring process says of the device.
    """

    def __init__(
        self, conf: Any, repo: Any, machine: Machine, options: Mapping[str, Any], results: Path, folder: Path,
        facts: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self._conf, self._repo, self._machine, self._options = conf, repo, machine, options
        self._results, self._folder, self._facts = results, folder, facts
        self._failed = False
        self._first = ExitStack()
        #: The process that has said which benchmarks there are, with its environment's name and commit.
        self._begun: tuple[str, str, CommitProcess] | None = None

    def measure(self, commits: Sequence[str], several: Sequence[Any]) -> int | None:
        """Measure commits in environments of asv's; return the exit code."""
        with self._first:
            suite = self._discover(commits, several[0])
            benchmarks = Benchmarks(self._conf, suite.benchmarks, regex=self._options.get("bench"))
            if not self._options.get("dry_run"):
                self._machine.save(self._conf.results_dir)
                benchmarks.save()
                try:
                    folders.describe(self._results, Path(self._conf.results_dir), self._machine.machine)
                except UnreadableError as error:
                    raise UserError(str(error)) from None
            if not benchmarks:
                if self._options.get("bench") == ["just-discover"]:
                    return None
                raise UserError("No benchmarks selected")
            if machine.nvml() is None:
                log.warning("No GPU here: the time_* benchmarks are skipped; everything else runs.")
            known = {"machine_params": vars(self._machine), "environments": several, "benchmarks": benchmarks}
            self._options.get("_returns", {}).update(known)
            for commit, environment in product(commits, several):
                self._commit(commit, environment, benchmarks, suite.groups)
        return 2 if self._failed else None

    def _discover(self, commits: Sequence[str], environment: Any) -> Suite:
        """Return the benchmarks as the first commit that can be imported has them; tips of branches are tried, too."""
        tips = []
        for branch in self._conf.branches:
            try:
                tips.append(self._repo.get_hash_from_name(branch))
            except NoSuchNameError:
                continue
        said: dict[str, str] = {}
        for commit in dict.fromkeys((commits[0], *tips, *commits[1:])):
            try:
                one: CommitProcess = self._first.enter_context(self._process(environment, commit))
            except PackageError as error:
                said.setdefault(str(error), commit[:8])
            else:
                self._begun = (environment.name, commit, one)
                return one.suite
        raise UserError("\n".join(f"{error} (at {commit})" for error, commit in said.items()))

    def _process(self, environment: Any, commit: str) -> Any:
        return process.begun(self._conf, environment, self._repo, commit, self._folder)

    def _commit(self, commit: str, environment: Any, every: Benchmarks, groups: Mapping[str, list[str]]) -> None:
        """Measure one commit and store its results."""
        skip = commits.left_out(self._results, self._machine.machine, commit, environment.name, every, self._options)
        benchmarks = every if skip is None else every.filter_out(skip)
        if skip is None or not benchmarks:
            return
        log.info(f"{self._conf.project} {self._repo.get_decorated_hash(commit, 8)}: {len(benchmarks)} benchmarks")
        params = {**vars(self._machine), "python": environment.python, **environment.requirements}
        results = Results(
            params,
            environment.requirements,
            commit,
            self._repo.get_date(commit),
            environment.python,
            environment.name,
            environment.env_vars,
        )
        name = self._machine.machine
        stored = folders.CommitFiles(self._results / name, commit, environment.name)
        saved = Path(self._conf.results_dir, get_filename(name, commit, environment.name))
        if found := stored.read():
            saved.parent.mkdir(exist_ok=True)
            saved.write_text(json.dumps(found), encoding="utf-8")
            results.load_data(self._conf.results_dir)
        record = RunRecord(commit, self._facts)
        ours = {name for each in groups.values() for name in each} & set(benchmarks)
        if ours:
            is_head = commit == git.asked(ROOT, "rev-parse", "HEAD")
            some = benchmarks.filter_out(set(benchmarks) - ours)
            one = Commit(results, some, groups, self._options, self._results / name, record, is_head=is_head)
            one.measure(lambda closing: self._enter(closing, environment, commit))
        if set(benchmarks) - ours:
            self._plain(results, environment, benchmarks.filter_out(ours))
        self._failed = self._failed or any(results.errcode.values())
        if not self._options.get("dry_run"):
            results.save(self._conf.results_dir)
            stored.save(json.loads(saved.read_bytes()), record.lines())
        if self._options.get("durations"):
            durations = Show._get_durations([(self._machine.machine, results)], benchmarks)
            found = durations[self._machine.machine, environment.name]
            log.info(AsvRun.format_durations(found, self._options["durations"]))

    def _enter(self, closing: ExitStack, environment: Any, commit: str) -> CommitProcess:
        """Return the commit's process: the one that discovered benchmarks, if it has this commit."""
        begun, self._begun = self._begun, None
        if begun is not None and begun[:2] == (environment.name, commit):
            return begun[2]
        self._first.close()
        child: CommitProcess = closing.enter_context(self._process(environment, commit))
        return child

    def _plain(self, results: Results, environment: Any, benchmarks: Benchmarks) -> None:
        """Have asv run benchmarks that are no kernel's, in its own environment."""
        try:
            environment.create()
            environment.install_project(self._conf, self._repo, results.commit_hash)
        except ProcessError:
            self._failed = True
            log.error(f"{results.commit_hash[:8]} cannot be installed: {', '.join(benchmarks)} are left out")
            return
        names = ("show_stderr", "quick", "record_samples", "append_samples")
        run_benchmarks(
            benchmarks,
            environment,
            results=results,
            extra_params=self._options.get("attribute"),
            launch_method=self._options.get("launch_method") or self._conf.launch_method or "auto",
            **{name: bool(self._options.get(name)) for name in names},
        )
