"""Faulty compilers: an error of one line before anything runs, and no files."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from asv.util import UserError

from gpu_kernels import KERNELS
from kernelwatch.config.project_root import ROOT
from kernelwatch.errors import CompileError, NvccNotFoundError
from kernelwatch.runner import compiler as runner_compiler
from kernelwatch.toolchain import nvcc, nvcc_call, releases
from tests import commits
from tests.faults import test_orphans as orphans

VERSION = 'case "$*" in --version) echo "Cuda compilation tools, release 13.0, V13.0.88"; exit 0;; esac; '

#: Case -> commands of a script in place of nvcc, and the begin of the error.
COMPILERS: dict[str, tuple[str, str]] = {
    "hangs": ("exec sleep 60", "nvcc took longer than 0.2 s: {nvcc} --version; set NVCC to a working nvcc"),
    "hangs later": (f"{VERSION} sleep 60", "nvcc took longer than 0.2 s: {nvcc} --cubin probe.cu; set NVCC"),
    "writes nothing": (f"{VERSION} exit 0", "{nvcc} writes no machine code; set NVCC to an NVIDIA nvcc"),
    "writes text": (f"{VERSION} echo code > probe.cubin", "{nvcc} writes no machine code"),
    "is silent": ("exit 0", "{nvcc} --version shows no release: ''"),
    "exits later": (f"{VERSION} echo a; echo b >&2; exit 3", "{nvcc} cannot compile a kernel: exit code 3: b a"),
    "is killed": ("kill -SEGV $$", "{nvcc} --version failed: exit code -11"),
    "prints garbage": ("printf '\\377\\376'", "{nvcc} --version shows no release: "),
    "prints garbage later": (f"{VERSION} printf '\\377'; exit 1", "{nvcc} cannot compile a kernel: exit code 1: "),
}


@pytest.fixture
def fake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set NVCC to a script with the given commands, and nvcc's time limit to 1 s; return the script's path.

    A fifth of the limit holds for `--version` and for the probe.
    """
    path = tmp_path / "nvcc"
    path.write_text(f"#!/bin/sh\n{request.param}\n", encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.setenv("NVCC", str(path))
    monkeypatch.setenv("NVCC_TIME_LIMIT", "1")
    return path


@pytest.mark.parametrize(("fake", "line"), COMPILERS.values(), ids=COMPILERS, indirect=["fake"])
def test_faulty_nvcc_fails_the_probe(fake: Path, line: str) -> None:
    with pytest.raises(CompileError) as raised:
        nvcc.compile_probe(fake)
    assert str(raised.value).startswith(line.format(nvcc=fake))
    assert "\n" not in str(raised.value)


#: Shell commands of an nvcc that passes the probe and then fails for a kernel, and the error.
LATER = [
    ("sleep 60 & echo $! > ${0%/*}/child; sleep 60", "nvcc took longer than 1 s: "),
    ("exit 0", "nvcc did not write its output: "),
    ("kill -9 $$", "nvcc failed: .*\nexit code -9"),
    ("printf '\\377' >&2; exit 1", "nvcc failed: .*\n\N{REPLACEMENT CHARACTER}"),
]


@pytest.mark.parametrize("through_pycuda", [False, pytest.param(True, marks=pytest.mark.pycuda)])
@pytest.mark.parametrize(("fake", "text"), [(VERSION + body, text) for body, text in LATER], indirect=["fake"])
def test_nvcc_fails_after_the_probe(
    fake: Path, text: str, through_pycuda: bool, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call has a time limit, which ends nvcc's children, too. A failed call caches nothing."""
    monkeypatch.setattr(nvcc_call, "can_import_pycuda", lambda: through_pycuda)
    with pytest.raises(CompileError, match=f"^{text}"):
        KERNELS["offset_copy"].compile_cubin("float32", arch="sm_90")
    assert not list(empty_cache.rglob("*.json"))
    child = fake.parent / "child"
    if child.exists():
        orphans.assert_processes_end(
            lambda: {n: line for n, line in orphans.processes().items() if n == int(child.read_text())}
        )


@pytest.mark.parametrize("fake", ["exec sleep 60"], indirect=True)
def test_pycuda_calls_nvcc_with_a_time_limit(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyCUDA's nvcc has a time limit. The forker of pytools is replaced only while PyCUDA compiles."""
    prefork = SimpleNamespace(forker=object())
    forker = prefork.forker

    def record(*_: object, **__: object) -> None:
        prefork.forker.call_capture_output([str(fake)], None, False)

    pycuda = SimpleNamespace(compiler=SimpleNamespace(compile=record), driver=SimpleNamespace(CompileError=OSError))
    for name, module in {"": pycuda, ".compiler": pycuda.compiler, ".driver": pycuda.driver}.items():
        monkeypatch.setitem(sys.modules, f"pycuda{name}", module)
    monkeypatch.setitem(sys.modules, "pytools", SimpleNamespace(prefork=prefork))
    with pytest.raises(CompileError, match=r"^nvcc took longer than 1 s: "):
        nvcc_call.compile_with_pycuda(fake, (), "sm_90", "")
    assert prefork.forker is forker


def test_missing_host_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = nvcc.find_nvcc()
    nvcc.compile_probe(compiler)
    nvcc.compile_probe.cache_clear()
    for name in ("sh", "env", "sed"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompileError, match=r"nvcc cannot compile a kernel: exit code 1: .*; it needs g\+\+") as raised:
        nvcc.compile_probe(compiler)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("is_named", [True, False])
def test_missing_nvcc_is_an_error_if_named(is_named: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """If NVCC does not name it, a run goes on without a compiler, with either form of asv's matrix."""
    monkeypatch.setattr(releases, "use_requested_release", lambda: None)
    monkeypatch.setattr(nvcc, "find_nvcc", mock.Mock(side_effect=NvccNotFoundError("there is no nvcc")))
    monkeypatch.setenv("NVCC", "nvcc") if is_named else monkeypatch.delenv("NVCC", raising=False)
    for matrix, expected in (({"x": ["1"]}, {"req": {"x": ["1"]}}), ({"env": {"A": ["1"]}}, {"env": {"A": ["1"]}})):
        conf = SimpleNamespace(matrix=matrix)
        with pytest.raises(UserError, match="there is no nvcc") if is_named else nullcontext():
            runner_compiler.choose_compiler(conf)
            assert conf.matrix == {**expected, "env_nobuild": {}}


@pytest.mark.parametrize("fake", [COMPILERS[name][0] for name in ("hangs", "writes nothing")], indirect=True)
def test_run_ends_with_one_line_and_no_files(fake: Path, tmp_path: Path) -> None:
    conf = json.loads("\n".join(line for line in (ROOT / "asv.conf.json").read_text().splitlines() if "//" not in line))
    conf |= {"repo": str(ROOT), "benchmark_dir": str(ROOT / "benchmarks"), "env_dir": "env", "results_dir": "results"}
    (tmp_path / "asv.conf.json").write_text(json.dumps(conf))
    commits.begin(tmp_path)
    leftovers = sorted(tmp_path.rglob("*"))
    sources = (ROOT, ROOT / "ptxcount" / "src", ROOT / "kernelwatch" / "src")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sources))}
    run = [sys.executable, "-m", "asv", "run", "HEAD^!"]
    done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    (line,) = (done.stdout + done.stderr).strip().splitlines()
    assert str(fake) in line
    assert sorted(tmp_path.rglob("*")) == leftovers
