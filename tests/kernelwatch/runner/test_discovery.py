"""What asv finds in `benchmarks/`, with asv's own discovery."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from asv_runner.discovery import disc_benchmarks

from kernelwatch.config import project_root
from kernelwatch.config.project_root import ROOT
from kernelwatch.instrument import prebuild
from kernelwatch.instrument.stopping_rule import FEWEST
from kernelwatch.store import commit_checkout
from kernelwatch.suite import registry
from kernelwatch.toolchain import nvcc_call

#: What names begin with -> the version of their histories.
VERSIONS = {"time_copy.DeviceCopy": "4", "time_": "3", "track_control": "3", "track_": "1"}


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Benchmarks by name, as asv's runner finds them."""
    return {benchmark.name: benchmark for benchmark in disc_benchmarks(str(ROOT / "benchmarks"))}


def test_all_and_no_others(found: dict[str, Any]) -> None:
    """Asv finds each benchmark of the suite with its axes, and nothing else."""
    axes = {name: dict(zip(one.param_names, one.params, strict=True)) for name, one in found.items()}
    assert axes == {
        name: {axis: list(map(repr, values)) for axis, values in sweep.axes.items()}
        for name, (_, sweep) in registry.current().benchmarks.items()
    }


def test_each_says_what_it_is(found: dict[str, Any]) -> None:
    """Each has its history's version, a name that a person can read, named axes, a unit, and long enough to compile.

    What is timed takes one replay a sample, in two processes, and in each as many samples as the reports assume.
    """
    for name, benchmark in found.items():
        version = next(version for begins, version in VERSIONS.items() if name.startswith(begins))
        assert benchmark.version == version, f"{name}: a new history begins; if it is to, change VERSIONS"
        assert ":" in benchmark.pretty_name, name
        assert len(benchmark.param_names) == len(benchmark.params)
        assert not any(param.startswith("param") for param in benchmark.param_names)
        assert benchmark.unit != "unit", name
        assert benchmark.setup_cache_timeout == prebuild.TIMEOUT
        if benchmark.type == "time":
            assert (benchmark.number, benchmark.rounds, benchmark.repeat) == (1, 2, FEWEST), name
    assert len({benchmark.pretty_name for benchmark in found.values()}) == len(found)


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").rglob("*.py")), ids=lambda path: path.name)
def test_old_commits_can_be_imported(path: Path) -> None:
    """No module asks for anything of the commit's package as asv imports it: an old one may lack it."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    asked = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    asked |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    assert not [name for name in asked if name.partition(".")[0] == "gpu_kernels"]


#: Says what a process does that an import must not: start another, or load CUDA.
_WATCHED = """
import sys
def watch(event, args):
    starts = event in ("subprocess.Popen", "os.system", "os.fork", "os.posix_spawn", "os.exec")
    if starts and args[0] != "uname":  # Python's own platform module, which asv asks as it is imported
        print(event, args[:1], file=sys.stderr); raise SystemExit(9)
sys.addaudithook(watch)
import {module}
assert not [name for name in sys.modules if name.startswith(("pycuda", "cuda.bindings"))] or {driver}
"""


@pytest.mark.parametrize(
    "module",
    [
        "ptxcount",
        "gpu_kernels",
        "kernelwatch.benchmarks",
        "benchmarks.track_compiled",
        "benchmarks.track_counted",
        "kernelwatch.store.results",
        "kernelwatch.cli.compare",
        "kernelwatch.show.site.publisher",
        "kernelwatch.runner.asv_plugin",
        "experiments.bias",
    ],
)
def test_importing_starts_nothing(module: str) -> None:
    """No process, no compiler, and no CUDA where there is no driver."""
    code = _WATCHED.format(module=module, driver=nvcc_call.pycuda_importable())
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


KERNELS = """import kernelwatch as kw

print("what a suite prints is no message")

class Copy(kw.Watched):
    \"\"\"copy.\"\"\"

    kernel = kw.Kernel("copy", [kw.outputs("out", "n"), kw.inputs("x", "n"), "n"], 32, over=("n",), text="any")
    param_names = ("n",)
    params = ([{size}],)
"""


def test_the_suite_is_the_checkouts(tmp_path: Path) -> None:
    """Rows are today's for all commits: one that has a suite of its own in its tree, with other sizes, is not asked."""
    for folder, size in (("checkout", 512), ("commit", 256)):
        (tmp_path / folder / "benchmarks").mkdir(parents=True)
        (tmp_path / folder / "asv.conf.json").write_text("{}")
        (tmp_path / folder / "benchmarks" / "__init__.py").touch()
        (tmp_path / folder / "benchmarks" / "kernels.py").write_text(KERNELS.format(size=size))
    words = [sys.executable, "-m", "kernelwatch.runner.commit_worker", str(tmp_path / "checkout" / "benchmarks")]
    environment = commit_checkout.make_environment(tmp_path / "commit") | {
        project_root.VARIABLE: str(tmp_path / "checkout")
    }
    done = subprocess.run(
        words, cwd=tmp_path / "commit", env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True
    )
    found = msgspec.json.decode(done.stdout.splitlines()[0])["benchmarks"]
    sizes = {tuple(each["params"][0]) for each in found if each["name"].startswith("track_counted.Copy")}
    assert sizes == {("512",)}
