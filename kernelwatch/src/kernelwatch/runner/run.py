"""A run: one process a commit, one that measures, what is known taken over, and asv's own files as asv writes them."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

from asv import environment as environments
from asv.benchmarks import Benchmarks
from asv.console import log
from asv.machine import Machine, MachineCollection
from asv.repo import NoSuchNameError, get_repo
from asv.results import Results, get_filename
from asv.runner import run_benchmarks
from asv.util import ProcessError, UserError

from kernelwatch.config import cache_dir, project_root
from kernelwatch.config.project_root import ROOT
from kernelwatch.instrument import machine, parent_death
from kernelwatch.runner import commit_process, compiler, revision_range
from kernelwatch.runner.commit_process import CommitProcess, PackageError
from kernelwatch.runner.commit_run import Commit
from kernelwatch.runner.protocol import Discovery
from kernelwatch.runner.record import RunRecord
from kernelwatch.store import folders, git
from kernelwatch.store.reading import UnreadableError
from kernelwatch.toolchain import cache


def run(conf: Any, options: Mapping[str, Any]) -> int | None:
    """Measure what a person has asked `asv run` for; return its exit code."""
    compiler.choose(conf)
    if unkept := cache.problem():
        log.warning(unkept)
    device = machine.gpu()
    if device is None:
        # A slice of a GPU, say, that NVML does not name: its times would go by the name of a machine without one.
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    results = folders.results_folder(Path(conf.results_dir))
    several = list(environments.get_environments(conf, options.get("env_spec")))
    if not several:
        raise UserError("No environments selected")
    repo = get_repo(conf)
    if options.get("pull", True):
        repo.pull()
    chosen = revision_range.selected(conf, repo, options, results)
    in_turns = chosen if options.get("interleave_rounds", False) is not False and len(chosen) > 1 and device else []
    returns = options.get("_returns")
    with (
        folders.exclusive_lock(results),
        scratch_folder() as folder,
        _measuring(device) as facts,
    ):
        for place, commit in enumerate(in_turns):
            log.info(f"describing what {commit[:8]} launches ({place + 1} of {len(in_turns)})")
            try:
                with commit_process.begun(conf, several[0], repo, commit, folder) as child:
                    child.describe(place)
            except PackageError as error:
                raise UserError(f"{commit[:8]} cannot be measured in turns: {error}") from None
        conf.results_dir = str(folder / "stage") if returns is None else returns["stage"].name  # asv saves there
        options = {**options, "interleave_rounds": bool(in_turns)}
        return Run(conf, repo, machine_of(options, device), options, results, folder, facts).measure(chosen, several)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Give this run and its processes a temporary folder, in which their home is if they have none."""
    with tempfile.TemporaryDirectory(prefix="kernelwatch-", ignore_cleanup_errors=True) as folder:
        names = {"TMPDIR": folder, parent_death.RUN: str(os.getpid()), project_root.VARIABLE: str(ROOT)}
        if not cache_dir.is_there():
            names["HOME"] = folder  # pip needs one
        with mock.patch.object(tempfile, "tempdir", folder), mock.patch.dict(os.environ, names):
            yield Path(folder)


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
def _measuring(device: machine.Gpu | None) -> Iterator[dict[str, Any]]:
    """Run a measuring process on a GPU, if there is one; give what it says of the device."""
    if device is None:
        yield {}
        return
    from kernelwatch.instrument import server  # noqa: PLC0415 -- without a GPU nobody needs it

    with server.running() as facts:
        yield facts


@dataclass
class Run:
    """Measures commits."""

    #: Asv's, and the options of `asv run` as asv calls them.
    conf: Any
    repo: Any
    machine: Machine
    options: Mapping[str, Any]
    #: Where results are, and for files that go with the run.
    results: Path
    folder: Path
    #: What the measuring process says of the device.
    facts: Mapping[str, Any]

    has_failed: bool = False
    #: The process that has said which benchmarks there are, with its environment's name and commit, and its end.
    begun: tuple[str, str, CommitProcess] | None = None
    closing: ExitStack = field(default_factory=ExitStack)

    def measure(self, commits: Sequence[str], several: Sequence[Any]) -> int | None:
        """Measure commits in environments of asv's; return the exit code."""
        with self.closing:
            discovery = self._discover(commits, several[0])
            benchmarks = Benchmarks(self.conf, discovery.benchmarks, regex=self.options.get("bench"))
            if not self.options.get("dry_run"):
                self.machine.save(self.conf.results_dir)
                benchmarks.save()
                try:
                    folders.copy_descriptions(self.results, Path(self.conf.results_dir), self.machine.machine)
                except UnreadableError as error:
                    raise UserError(str(error)) from None
            if not benchmarks:
                if self.options.get("bench") == ["just-discover"]:
                    return None
                raise UserError("No benchmarks selected")
            if machine.nvml() is None:
                log.warning("No GPU here: the time_* benchmarks are skipped; everything else runs.")
            if (returns := self.options.get("_returns")) is not None:
                returns.update(machine_params=vars(self.machine), environments=several, benchmarks=benchmarks)
            for commit, environment in product(commits, several):
                self._commit(commit, environment, benchmarks, discovery.groups)
        return 2 if self.has_failed else None

    def _discover(self, commits: Sequence[str], environment: Any) -> Discovery:
        """Return the benchmarks as the first commit that can be imported has them; tips of branches are tried, too."""
        tips = []
        for branch in self.conf.branches:
            try:
                tips.append(self.repo.get_hash_from_name(branch))
            except NoSuchNameError:
                continue
        said: dict[str, str] = {}
        for commit in dict.fromkeys((commits[0], *tips, *commits[1:])):
            try:
                begun = commit_process.begun(self.conf, environment, self.repo, commit, self.folder)
                child: CommitProcess = self.closing.enter_context(begun)
            except PackageError as error:
                said.setdefault(str(error), commit[:8])
            else:
                self.begun = (environment.name, commit, child)
                return child.discovery
        raise UserError("\n".join(f"{error} (at {commit})" for error, commit in said.items()))

    @contextmanager
    def _child(self, environment: Any, commit: str) -> Iterator[CommitProcess]:
        """Give the commit's process: the one that discovered benchmarks, if it has this commit."""
        begun, self.begun = self.begun, None
        if begun is not None and begun[:2] == (environment.name, commit):
            yield begun[2]
        else:
            self.closing.close()
            with commit_process.begun(self.conf, environment, self.repo, commit, self.folder) as child:
                yield child

    def _commit(self, commit: str, environment: Any, every: Benchmarks, groups: Mapping[str, list[str]]) -> None:
        """Measure one commit and store its results."""
        name, date = self.machine.machine, self.repo.get_date(commit)
        skip = revision_range.left_out(self.results, name, commit, environment.name, every, self.options)
        benchmarks = every if skip is None else every.filter_out(skip)
        if skip is None or not benchmarks:
            return
        log.info(f"{self.conf.project} {self.repo.get_decorated_hash(commit, 8)}: {len(benchmarks)} benchmarks")
        required, python = environment.requirements, environment.python
        params = {**vars(self.machine), "python": python, **required}
        results = Results(params, required, commit, date, python, environment.name, environment.env_vars)
        stored = folders.CommitFiles(self.results / name, commit, environment.name)
        saved = Path(self.conf.results_dir, get_filename(name, commit, environment.name))
        if found := stored.read_merged():
            saved.parent.mkdir(exist_ok=True)
            saved.write_text(json.dumps(found), encoding="utf-8")
            results.load_data(self.conf.results_dir)
        record = RunRecord(commit, self.facts)
        ours = {name for each in groups.values() for name in each} & set(benchmarks)
        if ours:
            is_head = commit == git.try_text(ROOT, "rev-parse", "HEAD")
            some = benchmarks.filter_out(set(benchmarks) - ours)
            one = Commit(results, some, groups, self.options, self.results / name, record, is_head)
            one.measure(self._child(environment, commit))
        if set(benchmarks) - ours:
            self._plain(results, environment, benchmarks.filter_out(ours))
        self.has_failed = self.has_failed or any(results.errcode.values())
        if not self.options.get("dry_run"):
            results.save(self.conf.results_dir)
            stored.save(json.loads(saved.read_bytes()), record.lines())

    def _plain(self, results: Results, environment: Any, benchmarks: Benchmarks) -> None:
        """Have asv run benchmarks that are no kernel's, in its own environment."""
        try:
            environment.create()
            environment.install_project(self.conf, self.repo, results.commit_hash)
        except ProcessError:
            self.has_failed = True
            log.error(f"{results.commit_hash[:8]} cannot be installed: {', '.join(benchmarks)} are left out")
            return
        names = ("show_stderr", "quick", "record_samples", "append_samples")
        run_benchmarks(
            benchmarks,
            environment,
            results=results,
            extra_params=self.options.get("attribute"),
            launch_method=self.options.get("launch_method") or self.conf.launch_method or "auto",
            **{name: bool(self.options.get(name)) for name in names},
        )
