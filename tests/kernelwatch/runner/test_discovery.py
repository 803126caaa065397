"""Discovery of `benchmarks/` by asv."""

import ast
import json
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
from kernelwatch.instrument.stopping_rule import MIN_SAMPLES
from kernelwatch.runner import commit_worker
from kernelwatch.store import commit_checkout
from kernelwatch.suite import registry
from kernelwatch.toolchain import nvcc_call

#: Prefix of a benchmark's name -> the benchmark's version. Longer prefixes come first.
VERSIONS = {"time_copy.DeviceCopy": "4", "time_": "3", "track_control": "3", "track_": "1"}


@pytest.fixture(scope="module")
def benchmarks() -> dict[str, Any]:
    return {benchmark.name: benchmark for benchmark in disc_benchmarks(str(ROOT / "benchmarks"))}


def test_benchmarks_equal_the_suite(benchmarks: dict[str, Any]) -> None:
    assert benchmarks.keys() == registry.current_suite().benchmarks.keys()
    for name, (_, sweep) in registry.current_suite().benchmarks.items():
        axes = dict(zip(benchmarks[name].param_names, benchmarks[name].params, strict=True))
        assert axes == {axis: list(map(repr, values)) for axis, values in sweep.axes.items()}, name


def test_faster_discovery_finds_the_same(benchmarks: dict[str, Any]) -> None:
    with commit_worker._faster_discovery():
        codes = {benchmark.name: benchmark.code for benchmark in disc_benchmarks(str(ROOT / "benchmarks"))}
    assert codes == {name: benchmark.code for name, benchmark in benchmarks.items()}


IDENTITY = ("params", "param_names", "version", "unit", "type")


def read_identities(results: Path) -> dict[str, dict[str, Any]]:
    document = json.loads((results / "benchmarks.json").read_text())
    benchmarks = {name: benchmark for name, benchmark in document.items() if isinstance(benchmark, dict)}
    return {name: {field: benchmark[field] for field in IDENTITY} for name, benchmark in benchmarks.items()}


def test_stored_names_stay(benchmarks: dict[str, Any]) -> None:
    """The facts that identify stored results stay, too. New benchmarks may be added."""
    stored = read_identities(ROOT / "results")
    identities = {name: [getattr(benchmarks.get(name), field, None) for field in IDENTITY] for name in stored}
    assert identities == {name: list(identity.values()) for name, identity in stored.items()}


def test_benchmarks_have_their_attributes(benchmarks: dict[str, Any]) -> None:
    """A version, a title of its own, named axes, a unit, a timeout to compile; for times, rounds and samples."""
    for name, benchmark in benchmarks.items():
        version = next(version for begins, version in VERSIONS.items() if name.startswith(begins))
        assert benchmark.version == version, (
            f"{name}: its version changed, so stored results no longer match; if this is meant, change VERSIONS"
        )
        assert ":" in benchmark.pretty_name, name
        assert len(benchmark.param_names) == len(benchmark.params)
        assert not any(param.startswith("param") for param in benchmark.param_names)
        assert benchmark.unit != "unit", name
        assert benchmark.setup_cache_timeout == prebuild.TIMEOUT
        if benchmark.type == "time":
            assert (benchmark.number, benchmark.rounds, benchmark.repeat) == (1, 2, MIN_SAMPLES), name
    assert len({benchmark.pretty_name for benchmark in benchmarks.values()}) == len(benchmarks)


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").rglob("*.py")), ids=lambda path: path.name)
def test_benchmarks_import_no_package(path: Path) -> None:
    """No module of benchmarks/ imports gpu_kernels: at old commits, the package may lack names."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    imported = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    assert not [name for name in imported if name.partition(".")[0] == "gpu_kernels"]


#: A program that fails if an import starts a process, or loads CUDA or ml_dtypes, whose import is slow, without need.
#: It also fails if benchmark classes import asv: asv 0.6.1 has a module that hides Python's `statistics`.
_WATCHED = """
import sys
def watch(event, args):
    starts = event in ("subprocess.Popen", "os.system", "os.fork", "os.posix_spawn", "os.exec")
    if starts and args[0] != "uname":  # Python's own platform module, which asv asks as it is imported
        raise RuntimeError(event, args[:1])
sys.addaudithook(watch)
import benchmarks.suite, kernelwatch.runner.commit_worker
assert not [name for name in sys.modules if name.partition(".")[0] == "asv"]
import {modules}
assert not [name for name in sys.modules if name.startswith(("pycuda", "cuda.bindings"))] or {driver}
from kernelwatch.kernel.arguments import to_dtype
assert "ml_dtypes" not in sys.modules
assert [to_dtype(name).itemsize for name in ("bfloat16", "float8_e5m2")] == [2, 1]
"""


def test_imports_start_nothing() -> None:
    modules = (
        "ptxcount, gpu_kernels, kernelwatch.benchmarks, benchmarks.track_compiled, benchmarks.track_counted, "
        "kernelwatch.store.results, kernelwatch.cli.compare, kernelwatch.show.site.publisher, "
        "kernelwatch.runner.asv_plugin, experiments.bias"
    )
    code = _WATCHED.format(modules=modules, driver=nvcc_call.can_import_pycuda())
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


def test_checkout_provides_the_suite(tmp_path: Path) -> None:
    for folder, size in (("checkout", 512), ("commit", 256)):
        (tmp_path / folder / "benchmarks").mkdir(parents=True)
        (tmp_path / folder / "asv.conf.json").write_text("{}")
        (tmp_path / folder / "benchmarks" / "__init__.py").touch()
        (tmp_path / folder / "benchmarks" / "kernels.py").write_text(KERNELS.format(size=size))
    words = [sys.executable, "-m", "kernelwatch.runner.commit_worker", str(tmp_path / "checkout" / "benchmarks")]
    environment = commit_checkout.make_environment(tmp_path / "commit")
    environment |= {project_root.VARIABLE: str(tmp_path / "checkout")}
    done = subprocess.run(words, cwd=tmp_path / "commit", env=environment, input=b"", capture_output=True, check=True)
    discovered = msgspec.json.decode(done.stdout.splitlines()[0])["benchmarks"]
    counted = [benchmark for benchmark in discovered if benchmark["name"].startswith("track_counted.Copy")]
    assert {tuple(benchmark["params"][0]) for benchmark in counted} == {("512",)}, "not the commit's 256"
