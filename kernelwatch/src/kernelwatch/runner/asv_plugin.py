"""The one seam to asv: `asv run`, `asv continuous` and `asv update` call the runner, where asv is as it needs it.

asv.conf.json names this module among its plugins. `asv publish` adds the project's pages to its own. With another
release of asv that lacks something, one line says so, and asv runs the same classes the plain way.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

import asv
from asv.commands.run import Run
from asv.console import log
from asv.publishing import OutputPublisher
from asv.util import UserError

from kernelwatch.config import project_root
from kernelwatch.errors import KernelwatchError
from kernelwatch.instrument import parent_death  # noqa: F401 -- a run that a fleet has begun ends with its worker
from kernelwatch.store.git import GitError
from kernelwatch.store.git import text as run_git
from ptxcount.cli.ending import interruptible_import, scratch_folder
from ptxcount.util import git_environment

#: What the runner calls of asv; the first is replaced -> the parameters that it gives.
NEEDS = {
    "asv.commands.run:Run.run": "conf range_spec bench attribute machine env_spec dry_run record_samples _returns",
    "asv.environment:get_environments": "conf env_specifiers",
    "asv.environment:Environment.install_project": "conf repo commit_hash",
    "asv.environment:Environment.find_executable": "executable",
    "asv.benchmarks:Benchmarks": "conf benchmarks regex",
    "asv.benchmarks:Benchmarks.filter_out": "skip",
    "asv.results:Results": "params requirements commit_hash date python env_name env_vars",
    "asv.results:Results.add_result": "benchmark result started_at duration record_samples append_samples selected_idx",
    "asv.results:Results.load_data": "result_dir",
    "asv.runner:BenchmarkResult": "result samples number errcode stderr profile",
    "asv.runner:run_benchmarks": "benchmarks env results launch_method",
    "asv.machine:MachineCollection.load": "machine_name _path",
    "asv_runner.discovery:list_benchmarks": "root fp",
}

#: What `asv run` may be asked for that only asv's own way has.
_PLAIN = ("profile", "set_commit_hash", "durations")


def setup() -> None:
    """Called by asv once the plugin is imported."""
    sys.excepthook = _excepthook
    git_environment.set_environment()
    # `kernelwatch provide` of asv.conf.json is this Python's, whether its environment is activated or not.
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])
    os.environ.setdefault(project_root.LIBRARIES, os.pathsep.join(project_root.libraries()))
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # as NVML counts, which names the machine
    lacks = [told for where, names in NEEDS.items() if (told := problem(where, names))]
    if lacks:
        log.warning(f"asv {asv.__version__} runs benchmarks the plain way, which is slower: {'; '.join(lacks)}")
        return
    if not hasattr(Run.run.__func__, "__wrapped__"):
        Run.run = classmethod(replaced(Run.run.__func__))


def _excepthook(kind: type[BaseException], error: BaseException, place: TracebackType | None) -> None:
    """Say an interrupt in a line, which asv lets through, and all else as Python does."""
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
        """Add the pages to the site that asv is making."""
        from kernelwatch.show.site import publisher  # noqa: PLC0415 -- other commands of asv's do without

        try:
            publisher.write(conf, repo)
        except KernelwatchError as error:  # asv shows an error of its own in a line
            raise UserError(str(error)) from None


def problem(where: str, names: str) -> str:
    """Return why something of asv's is not as the runner needs it; empty if it is."""
    module, _, path = where.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for each in path.split("."):
            found = getattr(found, each)
        taken = inspect.signature(found).parameters
    except (ImportError, AttributeError):
        return f"there is no {where}"
    lacks = [name for name in names.split() if name not in taken]
    return f"{where} does not take {', '.join(lacks)}" if lacks else ""


def replaced(plain: Any) -> Any:
    """Return what stands in the place of asv's own `Run.run`."""

    @functools.wraps(plain)
    def run(cls: type[Run], conf: Any, *args: Any, **kwargs: Any) -> Any:
        """Run the suite, or have asv do so where that alone can."""
        options = inspect.signature(plain).bind(cls, conf, *args, **kwargs).arguments
        asked = [f"--{name.replace('_', '-')}" for name in _PLAIN if options.get(name)]
        given = options.get("env_spec") or ()
        given = [conf.environment_type, *([given] if isinstance(given, str) else given)]
        if any("existing" in (each or "") or "same" in (each or "") for each in given):
            asked.append("an environment that asv has not made")
        if asked:
            log.info(f"The plain way, which is slower: {' and '.join(asked)} is asv's own")
            return plain(cls, conf, *args, **kwargs)
        with interruptible_import("asv"):
            from kernelwatch.runner import run as runner  # noqa: PLC0415 -- other commands of asv's do without

        if (returns := options.get("_returns")) is not None:  # `asv continuous` reads there afterwards
            returns["stage"] = tempfile.TemporaryDirectory()
        try:
            run_git(project_root.ROOT, "rev-parse", "--git-dir")
            with scratch_folder("kernelwatch-"):
                return runner.run(conf, {name: options[name] for name in options if name not in ("cls", "conf")})
        except GitError as error:  # asv shows an error of its own in a line
            raise UserError(str(error)) from None

    return run
