"""The plugin replaces one function of a compatible asv. For another asv, it says what is missing."""

import ast
import importlib
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import asv.environment
import asv.util
import pytest
from asv.benchmarks import Benchmarks
from asv.console import log
from asv.environment import Environment
from asv.machine import Machine, MachineCollection
from asv.plugins.git import Git
from asv.results import Results
from asv.util import UserError

from kernelwatch.cli import site
from kernelwatch.config import project_root
from kernelwatch.config.project_root import ROOT
from kernelwatch.errors import KernelwatchError
from kernelwatch.runner import asv_plugin
from kernelwatch.store.git import GitError
from tests.commits import begin

#: A program that prints the functions of asv and asv_runner that the plugin replaces.
CHANGED = """
import importlib, inspect, pkgutil, sys, asv, asv_runner
for package in (asv, asv_runner):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        try: importlib.import_module(found.name)
        except ImportError: pass
def members():
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] in ("asv", "asv_runner"):
            for key, value in list(vars(module).items()):
                yield f"{name}:{key}", value
                if inspect.isclass(value) and value.__module__ == name:
                    for inner, member in vars(value).items():
                        yield f"{name}:{key}.{inner}", member
before = dict(members())
from kernelwatch.runner import asv_plugin
from kernelwatch.cli import site
asv_plugin.setup(); asv_plugin.setup()
changed = [name for name, value in members() if before.get(name) is not value]
print(*sorted(name for name in changed if callable(getattr(dict(members())[name], "__func__", dict(members())[name]))))
"""


def test_two_setups_replace_only_run() -> None:
    done = subprocess.run([sys.executable, "-c", CHANGED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["asv.commands.run:Run.run"]


def test_asv_starts_without_numpy() -> None:
    """Each command of asv sets the plugin up, and NumPy would take a third of its start."""
    program = "import sys; from kernelwatch.runner import asv_plugin; asv_plugin.setup(); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


#: Name of a variable in the runner -> asv's module or class that it holds.
OBJECTS = {
    "environments": asv.environment,
    "util": asv.util,
    "repo": Git,
    "environment": Environment,
    "benchmarks": Benchmarks,
    "all_benchmarks": Benchmarks,
    "results": Results,
    "machine": Machine,
    "Machine": Machine,
    "MachineCollection": MachineCollection,
}


def _iter_called_functions(tree: ast.Module) -> Iterator[tuple[str, set[str]]]:
    """Yield the functions and classes of asv that a module calls, with the keywords of the calls."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported = {alias.name: node.module or "" for node in imports for alias in node.names}
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        function, module, path = cast(Any, None), "", ""
        if isinstance(call.func, ast.Name) and imported.get(call.func.id, "").startswith("asv."):
            module, path = imported[call.func.id], call.func.id
            function = getattr(importlib.import_module(module), path)
        elif isinstance(call.func, ast.Attribute):
            owner: Any = call.func.value
            function = getattr(OBJECTS.get(getattr(owner, "id", getattr(owner, "attr", ""))), call.func.attr, None)
            module, path = getattr(function, "__module__", None) or "", getattr(function, "__qualname__", "")
        is_error = isinstance(function, type) and issubclass(function, Exception)  # missing ones fail at import
        if function is not None and module.startswith("asv.") and not is_error:
            keywords = {word.arg for word in call.keywords if word.arg} & {*inspect.signature(function).parameters}
            yield f"{module}:{path}", keywords


def _iter_attributes(tree: ast.Module) -> Iterator[str]:
    """Yield the attributes of asv's classes that a module reads and does not call."""
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Attribute)):
        owner = OBJECTS.get(getattr(node.value, "id", getattr(node.value, "attr", "")))
        if isinstance(owner, type) and hasattr(owner, node.attr) and not callable(getattr(owner, node.attr)):
            yield f"{owner.__module__}:{owner.__qualname__}.{node.attr}"


def test_all_uses_of_asv_are_checked() -> None:
    """REQUIRED_PARAMETERS has each function and attribute of asv that the runner uses, with the keywords given.

    asv_runner, which only a commit's process imports, has an exact version in the requirements.
    """
    called: dict[str, set[str]] = {}
    attributes: set[str] = set()
    for path in Path(asv_plugin.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        attributes.update(_iter_attributes(tree))
        for name, keywords in _iter_called_functions(tree):
            called.setdefault(name, set()).update(keywords)
    required = {name: {*(names or "").split()} for name, names in asv_plugin.REQUIRED_PARAMETERS.items()}
    assert required.keys() == {"asv.commands.run:Run.run", *called, *attributes}
    assert {name for name, names in asv_plugin.REQUIRED_PARAMETERS.items() if names is None} == attributes
    assert [name for name, keywords in called.items() if not keywords <= required[name]] == []


@pytest.mark.parametrize(
    ("where", "names", "problem"),
    [
        ("asv.runner:BenchmarkResult", "result samples", ""),
        ("asv.results:Results.add_result", "benchmark colour", "asv.results:Results.add_result does not take colour"),
        ("asv.results:Results.no_such", "", "there is no asv.results:Results.no_such"),
        ("asv.no_such:Results", "", "there is no asv.no_such:Results"),
        ("asv.results:Results.api_version", "", "asv.results:Results.api_version has no signature"),
        ("asv.results:Results.api_version", None, ""),
        ("asv.results:Results.no_such", None, "there is no asv.results:Results.no_such"),
    ],
)
def test_only_compatible_asv_is_changed(
    where: str, names: str | None, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warning names what asv lacks. The order of devices is set in any case."""
    warnings: list[str] = []
    run = SimpleNamespace(run=SimpleNamespace(__func__=lambda: None))
    monkeypatch.setattr(log, "warning", warnings.append)
    monkeypatch.setattr(asv_plugin, "REQUIRED_PARAMETERS", {where: names})
    monkeypatch.setattr(asv_plugin, "Run", run)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    asv_run = run.run
    asv_plugin.setup()
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID", "CUDA and NVML number devices differently"
    shown = [line.partition(": ")[2].partition(f"; {asv_plugin._FALLBACK}")[0] for line in warnings]
    assert shown == [problem] * bool(problem)
    assert (run.run is asv_run) == bool(problem)


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize(
    ("options_of_asv", "reason"),
    [
        ({}, ""),
        ({"profile": True, "durations": "all"}, "--profile and --durations"),
        ({"set_commit_hash": "c0ffee"}, "--set-commit-hash"),
        ({"attribute": {"rounds": "4"}}, ""),
        (
            {"attribute": {"rounds": "4", "repeat": 9, "cpu_affinity": [0]}},
            "--attribute repeat and --attribute cpu_affinity",
        ),
        ({"env_spec": ["existing:same"]}, "an existing environment"),
        ({"env_spec": [":same"]}, "an existing environment"),
        ({"env_spec": ["virtualenv:3"]}, ""),
        ({"env_spec": ["virtualenv:/opt/samehost/existing/bin/python3"]}, ""),
        ({"environment_type": "existing"}, "an existing environment"),
    ],
)
def test_unsupported_options_are_left_to_asv(
    options_of_asv: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message names them, and the machine is described as for the runner."""
    from kernelwatch.runner import run_machine, whole_run

    calls: list[dict[str, Any]] = []

    def runner(_: Any, options: dict[str, Any]) -> str:
        calls.append(options)
        return "measured by the runner"

    described: list[dict[str, Any]] = []
    monkeypatch.setattr(whole_run, "run_suite", runner)
    monkeypatch.setattr(run_machine, "describe_machine", described.append)
    messages: list[str] = []
    monkeypatch.setattr(log, "info", messages.append)

    def run_of_asv(  # the plugin reads the names of the options from this signature
        cls: type, conf: Any, range_spec: Any = None, profile: bool = False, durations: Any = None,
        env_spec: Any = None, set_commit_hash: Any = None, attribute: Any = None,
    ) -> str:  # fmt: skip
        assert cls is SimpleNamespace
        return "measured by asv"

    replaced = asv_plugin.wrap_run(run_of_asv)
    conf = SimpleNamespace(environment_type=options_of_asv.get("environment_type", "virtualenv"))
    options_of_asv = {name: value for name, value in options_of_asv.items() if name != "environment_type"}
    measured = replaced(SimpleNamespace, conf, "HEAD^!", **options_of_asv)
    assert measured == ("measured by asv" if reason else "measured by the runner")
    assert calls == [{"range_spec": "HEAD^!", **options_of_asv}] * (not reason)
    text = "asv runs the benchmarks itself, which is slower"
    assert messages == [f"kernelwatch's runner does not support {reason}; {text}"] * bool(reason)
    assert described == [{"range_spec": "HEAD^!", **options_of_asv}] * bool(reason)


def _lack_name(_: Any) -> None:
    Machine.no_such  # noqa: B018


@pytest.mark.parametrize(
    ("module", "name", "replacement", "problem"),
    [
        ("asv.results", "get_filename", None, "cannot import name 'get_filename' from 'asv.results'"),
        ("asv.util", "datetime_to_js_timestamp", None, "cannot import name 'datetime_to_js_timestamp' from 'asv.util'"),
        ("asv.environment", "get_environments", None, "module 'asv.environment' has no attribute 'get_environments'"),
        ("asv.environment", "get_environments", lambda: (), ""),  # TypeError: the runner gives arguments
        ("asv.environment", "get_environments", 3, ""),
        ("kernelwatch.runner.compiler", "choose_compiler", _lack_name, "type object 'Machine' has no attribute 'no_s"),
        ("kernelwatch.runner.compiler", "choose_compiler", lambda _: SimpleNamespace().x, ""),  # no object of asv's
        ("kernelwatch.runner.compiler", "choose_compiler", lambda _: [] + 3, ""),  # type: ignore[operator]
    ],
)
def test_asv_runs_itself_if_it_lacks_a_name(
    module: str, name: str, replacement: Any, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warning names it. Other errors are raised."""
    from kernelwatch.runner import compiler

    monkeypatch.setattr(compiler, "choose_compiler", lambda conf: setattr(conf, "results_dir", "stage"))
    for ours in ("whole_run", "commit_run"):  # imported anew
        monkeypatch.delitem(sys.modules, f"kernelwatch.runner.{ours}", raising=False)
        monkeypatch.delattr(f"kernelwatch.runner.{ours}", raising=False)
    if replacement is None:
        monkeypatch.delattr(f"{module}.{name}")
    else:
        monkeypatch.setattr(f"{module}.{name}", replacement)
    warnings: list[str] = []
    monkeypatch.setattr(log, "warning", warnings.append)
    run = asv_plugin.wrap_run(lambda cls, conf: conf.results_dir)
    conf = SimpleNamespace(environment_type="virtualenv", results_dir="results")
    with nullcontext() if problem else pytest.raises((AttributeError, TypeError)):
        assert run(SimpleNamespace, conf) == "results"
    assert [line.partition(": ")[2][: len(problem)] for line in warnings] == [problem] * bool(problem)


def test_kernelwatch_error_becomes_an_error_of_asv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asv_plugin, "run_git", Mock(side_effect=KernelwatchError("pyproject.toml: tool is 3")))
    with pytest.raises(UserError, match=r"^pyproject\.toml: tool is 3$"):
        asv_plugin.wrap_run(lambda cls, conf: 3)(SimpleNamespace, SimpleNamespace(environment_type="virtualenv"))


def test_project_in_a_subfolder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project in a subfolder of its repository is an error: the files of its kernels would not be found."""
    (begin(tmp_path) / "perf").mkdir()
    monkeypatch.setattr(project_root, "ROOT", tmp_path / "perf")
    with pytest.raises(UserError, match=r"^asv\.conf\.json is in the subfolder perf/, which is not supported; move"):
        asv_plugin.wrap_run(lambda cls, conf: 3)(SimpleNamespace, SimpleNamespace(environment_type="virtualenv"))


def test_folder_without_git_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both the site and a run end with git's message."""
    monkeypatch.setattr(site, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GitError, match=r"^git rev-parse .* not a git repository"):
        site.main(())
    monkeypatch.setattr(project_root, "ROOT", tmp_path)
    replaced = asv_plugin.wrap_run(lambda cls, conf: 3)
    with pytest.raises(UserError, match="not a git repository"):
        replaced(SimpleNamespace, SimpleNamespace(environment_type="virtualenv"))
