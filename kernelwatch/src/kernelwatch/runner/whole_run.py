"""A whole run: the commits and environments, one process for each commit, and the results in asv's files."""

import json
import os
import platform
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from asv import environment as environments
from asv.benchmarks import Benchmarks
from asv.console import log
from asv.machine import Machine
from asv.repo import NoSuchNameError, get_repo
from asv.results import Results, get_filename
from asv.runner import run_benchmarks
from asv.util import ProcessError, UserError

from kernelwatch.config import cache_dir, project_root
from kernelwatch.config.project_root import ROOT
from kernelwatch.error_text import one_line
from kernelwatch.instrument import machine, parent_death
from kernelwatch.runner import commit_process, commit_run, compiler, revision_range, run_machine, uncommitted
from kernelwatch.runner.commit_process import CommitProcess, PackageError
from kernelwatch.runner.commit_run import CommitMeasurement
from kernelwatch.runner.protocol import Discovery
from kernelwatch.runner.run_record import RunRecord
from kernelwatch.store import folders, git
from kernelwatch.store.reading import UnreadableError
from kernelwatch.toolchain import cache, releases
from ptxcount.util.environment import set_variables
from ptxcount.util.grammar import count_noun


def run_suite(conf: Any, options: Mapping[str, Any]) -> int | None:
    """Measure the commits and benchmarks that the options of `asv run` select; return its exit code, None for 0.

    Raises UserError if an option, the compiler or a commit cannot be used.
    """
    revision_range.check_options(options)
    compiler.choose_compiler(conf)
    if problem := cache.find_problem():
        log.warning(problem)
    device = machine.find_gpu()
    if device is None:
        # NVML may not name a device such as a MIG slice. Hide it: its times would be stored under "no GPU".
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    results = folders.results_folder(ROOT, conf)
    asv_environments = _select_environments(conf, options)
    if not Path(conf.benchmark_dir).is_dir():
        raise UserError(f"benchmark_dir of asv.conf.json, {conf.benchmark_dir}, is not a folder; correct it")
    try:
        repo = get_repo(conf)
    except ProcessError as error:
        problem = f"repo of asv.conf.json, {conf.repo}, cannot be cloned: {one_line(error.stderr)}"
        raise UserError(f"{problem}; correct it") from None
    if options.get("pull", True):
        repo.pull()
    commits = revision_range.select_commits(conf, repo, options, results)
    interleaves = options.get("interleave_rounds", False) is not False  # None is the default of `asv continuous`
    interleaved = commits if interleaves and len(commits) > 1 and device else []
    returns = options.get("_returns")
    with (
        nullcontext() if options.get("dry_run") else folders.exclusive_lock(results),
        prepare_run_folder() as folder,
        _start_measuring(device) as facts,
    ):
        for index, commit in enumerate(interleaved):
            log.info(f"preparing the launches of {commit[:8]} ({index + 1} of {len(interleaved)})")
            try:
                with commit_process.start_process(conf, asv_environments[0], repo, commit, folder) as child:
                    child.write_jobs(index)
            except PackageError as error:
                raise UserError(f"{commit[:8]} cannot be measured in an interleaved run: {error}") from None
        conf.results_dir = str(folder / "stage") if returns is None else returns["stage"].name  # asv saves there
        options = {**options, "interleave_rounds": bool(interleaved)}
        return SuiteRun(conf, repo, run_machine.load_machine(options, device), options, results, folder, facts).measure(
            commits, asv_environments
        )


def _select_environments(conf: Any, options: Mapping[str, Any]) -> list[Any]:
    """Return asv's selected environments.

    Raises UserError if no type of environment is configured, none is selected, or one has another version of Python.
    """
    try:
        selected = list(environments.get_environments(conf, options.get("env_spec")))
    except RuntimeError as error:  # from asv
        raise UserError(f'{error}; write "environment_type": "virtualenv" in asv.conf.json') from None
    if not selected:
        raise UserError("no environment is selected; correct --environment, or `environment_type` in asv.conf.json")
    own = platform.python_version()
    for environment in selected:
        if not f"{own}.".startswith(f"{environment.python}."):
            raise UserError(
                f"kernelwatch measures only in the Python that runs asv, {own}; run asv in Python "
                f'{environment.python}, or correct --python, or write "pythons": ["3"] in asv.conf.json'
            )
    return selected


@contextmanager
def prepare_run_folder() -> Iterator[Path]:
    """Yield a temporary folder of this run, and set the environment variables of the run's processes."""
    with tempfile.TemporaryDirectory(prefix="run-", ignore_cleanup_errors=True) as folder:
        variables = {parent_death.RUN: str(os.getpid()), project_root.VARIABLE: str(ROOT)}
        if not cache_dir.has_home():
            variables["HOME"] = folder  # pip needs a home folder
        with set_variables(variables):
            yield Path(folder)


@contextmanager
def _start_measuring(device: machine.Gpu | None) -> Iterator[dict[str, Any]]:
    """Run a measuring process if there is a GPU; yield the facts of the device, empty without one."""
    if device is None:
        yield {}
        return
    from kernelwatch.instrument import server  # noqa: PLC0415 -- only a run with a GPU needs it

    with server.start_server(defers_wait=True) as facts:  # the measuring process takes up to a second to end
        yield facts


@dataclass
class SuiteRun:
    """Measures the commits of a run, one after another, and stores their results."""

    #: Objects of asv, and the options of `asv run` under asv's names.
    conf: Any
    repo: Any
    machine: Machine
    options: Mapping[str, Any]
    #: Folder of results, and a folder for temporary files.
    results: Path
    scratch: Path
    #: Facts of the device, from the measuring process.
    device_facts: Mapping[str, Any]

    #: Hashes of the commits of the run.
    commits: Sequence[str] = ()
    has_failed: bool = False
    #: Files with uncommitted changes that the run imports.
    uncommitted: Sequence[str] = ()
    #: Name of the environment, commit and process that discovered the benchmarks. The exit stack ends the process.
    discovered: tuple[str, str, CommitProcess] | None = None
    exit_stack: ExitStack = field(default_factory=ExitStack)

    def measure(self, commits: Sequence[str], asv_environments: Sequence[Any]) -> int | None:
        """Measure commits in asv's environments; return the exit code: 2 if something failed, else None."""
        self.commits = commits
        with self.exit_stack:
            discovery = self._discover_benchmarks(commits, asv_environments[0])
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
                raise UserError("no benchmark is selected; correct --bench, or declare benchmarks")
            self.uncommitted = uncommitted.warn_of_changes(commits, self.results)
            if machine.nvml_handle() is None:
                log.warning("no GPU can be used: time_* and track_control benchmarks are skipped, all others run")
            if (returns := self.options.get("_returns")) is not None:
                returns.update(machine_params=vars(self.machine), environments=asv_environments, benchmarks=benchmarks)
            for commit, environment in product(commits, asv_environments):
                self._measure_commit(commit, environment, benchmarks, discovery.groups)
        return 2 if self.has_failed else None

    def _discover_benchmarks(self, commits: Sequence[str], environment: Any) -> Discovery:
        """Return the benchmarks that the process of the first importable commit discovers.

        After the first commit of the run, the tips of the branches are tried. Raises UserError if all fail.
        """
        tips = []
        for branch in self.conf.branches:
            with suppress(NoSuchNameError):
                tips.append(self.repo.get_hash_from_name(branch))
        errors: dict[str, str] = {}
        for commit in dict.fromkeys((commits[0], *tips, *commits[1:])):
            try:
                process = commit_process.start_process(self.conf, environment, self.repo, commit, self.scratch)
                child: CommitProcess = self.exit_stack.enter_context(process)
            except PackageError as error:
                errors.setdefault(str(error), commit[:8])
            else:
                self.discovered = (environment.name, commit, child)
                return child.discovery
        raise UserError("\n".join(f"{error} (at {commit})" for error, commit in errors.items()))

    @contextmanager
    def _enter_process(self, environment: Any, commit: str) -> Iterator[CommitProcess]:
        """Yield the process that discovered the benchmarks if it belongs to this commit, else a new one."""
        discovered, self.discovered = self.discovered, None
        if discovered is not None and discovered[:2] == (environment.name, commit):
            yield discovered[2]
        else:
            self.exit_stack.close()
            with commit_process.start_process(self.conf, environment, self.repo, commit, self.scratch) as child:
                yield child

    def _measure_commit(
        self, commit: str, environment: Any, all_benchmarks: Benchmarks, groups: Mapping[str, list[str]]
    ) -> None:
        name, date = self.machine.machine, self.repo.get_date(commit)
        benchmarks = all_benchmarks.filter_out(self._find_skipped(commit, environment, all_benchmarks))
        if not benchmarks:
            log.info(f"nothing to measure at {commit[:8]}: the --skip-existing options exclude all selected benchmarks")
            return
        count = count_noun(len(benchmarks), "benchmark")
        log.info(f"{self.conf.project} {self.repo.get_decorated_hash(commit, 8)}: {count}")
        required, python = environment.requirements, environment.python
        params = {**vars(self.machine), "python": python, **required}
        results = Results(params, required, commit, date, python, environment.name, environment.env_vars)
        folder = self.results / name
        commit_files = folders.CommitFiles(folder, commit, environment.name)
        asv_file = Path(self.conf.results_dir, get_filename(name, commit, environment.name))
        if document := commit_files.read_merged():
            asv_file.parent.mkdir(parents=True, exist_ok=True)
            asv_file.write_text(json.dumps(document), encoding="utf-8")
            results.load_data(self.conf.results_dir)
        record = RunRecord(commit, self.device_facts, self.uncommitted)
        kernel_benchmarks = {name for names in groups.values() for name in names} & set(benchmarks)
        if kernel_benchmarks:
            is_head = commit == git.try_text(ROOT, "rev-parse", "HEAD")
            selected = benchmarks.filter_out(set(benchmarks) - kernel_benchmarks)
            measurement = CommitMeasurement(results, selected, groups, self.options, folder, record, is_head)
            measurement.measure(self._enter_process(environment, commit))
            try:
                record.controls = self._measure_controls(commit, environment, selected, record)
            except KeyboardInterrupt:  # the numbers of kernels are complete
                self._save(results, record, commit_files, asv_file)
                raise
        if set(benchmarks) - kernel_benchmarks:
            self._run_with_asv(results, environment, benchmarks.filter_out(kernel_benchmarks))
        self.has_failed = self.has_failed or any(results.errcode.values())
        self._save(results, record, commit_files, asv_file)

    def _save(self, results: Results, record: RunRecord, files: folders.CommitFiles, asv_file: Path) -> None:
        if not self.options.get("dry_run"):
            results.save(self.conf.results_dir)
            files.save(json.loads(asv_file.read_bytes()), record.collect_lines())

    def _find_skipped(self, commit: str, environment: Any, benchmarks: Benchmarks) -> set[str]:
        folder = self.results, self.machine.machine
        return revision_range.find_benchmarks_to_skip(*folder, commit, environment.name, benchmarks, self.options)

    def _measure_controls(
        self, commit: str, environment: Any, benchmarks: Benchmarks, record: RunRecord
    ) -> Mapping[str, dict[str, dict[str, float]]]:
        """Return the controls of a commit; warn if they cannot be measured."""
        if not self.device_facts or any(self.options.get(name) for name in commit_run.NO_REUSE_OPTIONS):
            return {}
        from kernelwatch.runner import measure_controls  # noqa: PLC0415 -- only a run with a GPU needs it
        from kernelwatch.store.results import History  # noqa: PLC0415 -- as above

        def is_skipped(base: str) -> bool:
            return self._find_skipped(base, environment, benchmarks) == {*benchmarks}

        config = SimpleNamespace(branches=self.conf.branches, results_dir=str(self.results))
        compiler = releases.compiler_of_results(environment.env_vars)
        try:
            history = History(self.machine.machine, ROOT, config=config, compiler=compiler)
            base = measure_controls.find_base(history, commit, environment.name, self.commits, is_skipped)
            start = partial(self._enter_process, environment)
            configurations = [configuration for configuration, _ in record.configurations]
            return measure_controls.measure_controls(base, configurations, benchmarks, start) if base else {}
        except Exception as error:  # noqa: BLE001 -- the commit's own results must be saved
            log.warning(f"{commit[:8]} has no controls (docs/method.md): {one_line(error)}")
            return {}

    def _run_with_asv(self, results: Results, environment: Any, benchmarks: Benchmarks) -> None:
        try:
            environment.create()
            environment.install_project(self.conf, self.repo, results.commit_hash)
        except ProcessError:
            self.has_failed = True
            log.error(f"{results.commit_hash[:8]} cannot be installed; skipped: {', '.join(benchmarks)}")
            return
        options = ("show_stderr", "quick", "record_samples", "append_samples")
        run_benchmarks(
            benchmarks,
            environment,
            results=results,
            extra_params=self.options.get("attribute"),
            launch_method=self.options.get("launch_method") or self.conf.launch_method or "auto",
            **{name: bool(self.options.get(name)) for name in options},
        )
