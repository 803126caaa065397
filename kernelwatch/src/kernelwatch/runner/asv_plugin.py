"""The connection to asv: `asv run`, `asv continuous` and `asv update` call the runner if asv is compatible.

asv.conf.json lists this module in `plugins`. `asv publish` adds the project's pages to asv's. If a release of asv is
incompatible, one warning names the problem, and asv runs the same classes itself.
"""

import functools
import importlib
import inspect
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import asv
from asv.commands.run import Run
from asv.console import log
from asv.publishing import OutputPublisher
from asv.util import UserError

from kernelwatch.config import project_root
from kernelwatch.error_text import one_line
from kernelwatch.errors import KernelwatchError
from kernelwatch.instrument import parent_death  # noqa: F401 -- a run started by a fleet ends with its worker
from kernelwatch.store.git import text as run_git
from ptxcount.cli.ending import interruptible_import, scratch_folder
from ptxcount.util import git_environment

#: Function of asv -> the parameters that the runner passes, separated by spaces; attribute of asv -> None. The plugin
#: replaces the first function. The runner uses all others.
REQUIRED_PARAMETERS: dict[str, str | None] = {
    "asv.commands.run:Run.run": "conf range_spec bench attribute machine env_spec dry_run record_samples _returns",
    "asv.benchmarks:Benchmarks": "conf benchmarks regex",
    "asv.benchmarks:Benchmarks.benchmark_selection": None,
    "asv.benchmarks:Benchmarks.filter_out": "skip",
    "asv.benchmarks:Benchmarks.save": "",
    "asv.environment:Environment.create": "",
    "asv.environment:Environment.env_vars": None,
    "asv.environment:Environment.find_executable": "executable",
    "asv.environment:Environment.install_project": "conf repo commit_hash",
    "asv.environment:Environment.name": None,
    "asv.environment:Environment.python": None,
    "asv.environment:Environment.requirements": None,
    "asv.environment:get_environments": "conf env_specifiers",
    "asv.machine:Machine": "",
    "asv.machine:Machine.hardcoded_machine_name": None,
    "asv.machine:Machine.save": "results_dir",
    "asv.machine:MachineCollection.load": "machine_name _path",
    "asv.machine:MachineCollection.save": "machine_name machine_info _path",
    "asv.plugins.git:Git._run_git": "args",
    "asv.plugins.git:Git.get_date": "hash",
    "asv.plugins.git:Git.get_hash_from_name": "name",
    "asv.plugins.git:Git.get_hashes_from_range": "range_spec",
    "asv.plugins.git:Git.get_tags": "",
    "asv.plugins.git:Git.pull": "",
    "asv.repo:get_repo": "conf",
    "asv.repo:Repo.filter_date_period": "commits period old_commits",
    "asv.repo:Repo.get_decorated_hash": "commit hash_length",
    "asv.repo:Repo.get_new_branch_commits": "branches existing",
    "asv.results:get_filename": "machine commit_hash env_name",
    "asv.results:Results": "params requirements commit_hash date python env_name env_vars",
    "asv.results:Results.add_result": "benchmark result started_at duration record_samples append_samples selected_idx",
    "asv.results:Results.commit_hash": None,
    "asv.results:Results.env_name": None,
    "asv.results:Results.errcode": None,
    "asv.results:Results.load_data": "result_dir",
    "asv.results:Results.save": "result_dir",
    "asv.runner:BenchmarkResult": "result samples number errcode stderr profile",
    "asv.runner:run_benchmarks": "benchmarks env results extra_params launch_method show_stderr",
    "asv.util:datetime_to_js_timestamp": "dt",
    "asv.util:pick_n": "items n",
}

#: End of the message if the runner is not used.
_FALLBACK = "asv runs the benchmarks itself, which is slower"

#: Options of `asv run` that the runner does not support.
_UNSUPPORTED_OPTIONS = ("profile", "set_commit_hash", "durations")


def setup() -> None:
    """Prepare the environment; replace `Run.run` if asv is compatible. asv calls this after it imported the plugin."""
    sys.excepthook = _print_uncaught_error
    git_environment.set_environment()
    # asv.conf.json calls `kernelwatch`, which is beside this Python. PATH may lack this folder.
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])
    os.environ.setdefault(project_root.LIBRARIES, os.pathsep.join(project_root.list_libraries()))
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # the order of NVML, which names the machine
    checks = (find_incompatibility(location, parameters) for location, parameters in REQUIRED_PARAMETERS.items())
    problems = list(filter(None, checks))
    if problems:
        _warn_of_fallback("; ".join(problems))
        return
    if not hasattr(Run.run.__func__, "__wrapped__"):
        Run.run = classmethod(wrap_run(Run.run.__func__))


def _print_uncaught_error(kind: type[BaseException], error: BaseException, place: TracebackType | None) -> None:
    """Print an interrupt, which asv does not catch, as one line."""
    if issubclass(kind, KeyboardInterrupt):
        print("asv: interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, place)


class WatchPages(OutputPublisher):  # type: ignore[misc]
    """The project's pages; asv finds this class by its base."""

    name = "watch"
    button_label = "Kernels"
    description = "Verdicts by commit, bandwidth, memory transactions and resources"

    @classmethod
    def publish(cls, conf: Any, repo: Any, benchmarks: Any, graphs: Any, revisions: Any) -> None:
        """Write the pages into asv's site, and drop rows without values from asv's lists."""
        from kernelwatch.show.site import publisher  # noqa: PLC0415 -- no other command of asv needs it

        publisher.drop_empty_rows(Path(conf.html_dir))

        try:
            publisher.write_site(conf, Path(repo._path))
        except KernelwatchError as error:  # asv prints its own errors as one line
            raise UserError(str(error)) from None


def find_incompatibility(location: str, parameters_needed: str | None) -> str:
    """Return why the runner cannot use a function or attribute of asv; empty if it can.

    The arguments are a key and its value in REQUIRED_PARAMETERS. Attributes that asv sets only in instances cannot be
    checked: `Git._path` and `Benchmarks._all_benchmarks`.
    """
    module, _, path = location.partition(":")
    try:
        target: Any = importlib.import_module(module)
        for name in path.split("."):
            target = getattr(target, name)
        if parameters_needed is None:
            return ""
        parameters = inspect.signature(target).parameters
    except (ImportError, AttributeError):
        return f"there is no {location}"
    except (TypeError, ValueError):
        return f"{location} has no signature"
    missing = [name for name in parameters_needed.split() if name not in parameters]
    return f"{location} does not take {', '.join(missing)}" if missing else ""


def _warn_of_fallback(problem: object) -> None:
    fallback = f"{_FALLBACK}; a new machine needs `asv machine --yes` first"
    log.warning(f"kernelwatch's runner does not support asv {asv.__version__}: {problem}; {fallback}")


def is_existing_environment(environment: str) -> bool:
    """Return whether a value of `--environment` names an existing environment."""
    return environment == ":same" or environment.partition(":")[0] == "existing"


def _list_unsupported(options: Mapping[str, Any], environment_type: str | None) -> list[str]:
    unsupported = [f"--{name.replace('_', '-')}" for name in _UNSUPPORTED_OPTIONS if options.get(name)]
    unsupported += [f"--attribute {name}" for name in options.get("attribute") or () if name != "rounds"]
    selected = options.get("env_spec") or ()
    environments = [environment_type or "", *([selected] if isinstance(selected, str) else selected)]
    if any(map(is_existing_environment, environments)):
        unsupported.append("an existing environment")
    return unsupported


def _is_incompatibility(error: ImportError | AttributeError) -> bool:
    """Return whether an error means that asv lacks a module or an attribute."""
    if isinstance(error, AttributeError):
        module = getattr(error.obj, "__module__", None) or getattr(error.obj, "__name__", "")
    else:
        module = error.name
    return str(module).partition(".")[0] == "asv"


def wrap_run(asv_run: Any) -> Any:
    """Return a function that replaces asv's `Run.run`. It calls `asv_run` if an option or this asv is not supported."""

    @functools.wraps(asv_run)
    def run(cls: type[Run], conf: Any, *args: Any, **kwargs: Any) -> Any:
        arguments = inspect.signature(asv_run).bind(cls, conf, *args, **kwargs).arguments
        options = {name: value for name, value in arguments.items() if name not in ("cls", "conf")}
        if unsupported := _list_unsupported(options, conf.environment_type):
            log.info(f"kernelwatch's runner does not support {' and '.join(unsupported)}; {_FALLBACK}")
            from kernelwatch.runner import run_machine  # noqa: PLC0415 -- other commands of asv do not need it

            run_machine.describe_machine(options)
            return asv_run(cls, conf, *args, **kwargs)
        configuration = dict(vars(conf))
        if (returns := options.get("_returns")) is not None:  # `asv continuous` reads the results there afterwards
            returns["stage"] = tempfile.TemporaryDirectory()
        try:
            with interruptible_import("asv"):
                from kernelwatch.runner import whole_run  # noqa: PLC0415 -- other commands of asv do not need it

            if folder := run_git(project_root.ROOT, "rev-parse", "--show-prefix"):
                raise KernelwatchError(
                    f"{project_root.CONFIG_FILE} is in the subfolder {folder}, which is not supported; "
                    'move it and the benchmarks to the top folder, with "repo": "."'
                )
            with scratch_folder("kernelwatch-"):
                return whole_run.run_suite(conf, options)
        except KernelwatchError as error:  # asv prints its own errors as one line
            raise UserError(str(error)) from None
        except (ImportError, AttributeError) as error:
            if not _is_incompatibility(error):
                raise
            _warn_of_fallback(one_line(error))
        vars(conf).update(configuration)
        return asv_run(cls, conf, *args, **kwargs)

    return run
