"""Facts about nvcc, and a test that it works. ptxcount finds and calls nvcc."""

import os
import re
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path
from subprocess import CompletedProcess

from kernelwatch.errors import CompileError
from ptxcount.source.cuda_compiler import WHEEL, find_nvcc, find_time_limit, run_nvcc

__all__ = [
    "WHEEL",
    "compile_probe",
    "environment_options",
    "find_nvcc",
    "find_release",
    "find_time_limit",
    "run_nvcc",
    "version_text",
]

#: Maximum number of characters of nvcc's output in an error message.
_MAX_SHOWN = 300

#: Share of nvcc's time limit for the probe, whose kernel is minimal.
_PROBE_SHARE = 0.2


def environment_options() -> list[str]:
    """Return the environment variables with options for nvcc, as "NAME=value" (nvcc's manual, 3.1)."""
    names = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
    return [f"{name}={os.environ[name]}" for name in names if os.environ.get(name)]


@lru_cache
def version_text(nvcc: Path) -> str:
    """Return the output of `nvcc --version`, which identifies the compiler. Raises CompileError if nvcc fails."""
    done = run_nvcc([str(nvcc), "--version"], share=_PROBE_SHARE)
    if done.returncode != 0:
        raise CompileError(f"{nvcc} --version failed: {_format_outcome(done)}; set NVCC to a working nvcc")
    return done.stdout.decode("utf-8", "replace")


def find_release(nvcc: Path) -> tuple[int, int]:
    """Return nvcc's CUDA release, as (major, minor). Raises CompileError if nvcc's version shows none."""
    text = version_text(nvcc)
    match = re.search(r"release (\d+)\.(\d+)", text)
    if match is None:
        raise CompileError(f"{nvcc} --version shows no release: {text[:_MAX_SHOWN]!r}; set NVCC to an NVIDIA nvcc")
    return int(match[1]), int(match[2])


def list_program_facts(nvcc: Path) -> list[str]:
    """Return facts that change with the compiler: its version, the options in the environment, and its programs.

    The facts of a program are its path, size and modification time.
    """
    host, compiler = Path(shutil.which("g++") or "g++"), nvcc.resolve()
    paths = (compiler, compiler.with_name("ptxas"), compiler.parents[1] / "nvvm" / "bin" / "cicc", host.resolve())
    facts = ((path, path.stat()) for path in paths if path.exists())
    files = [f"{path} {status.st_size} {status.st_mtime_ns}" for path, status in facts]
    return [version_text(nvcc), *environment_options(), *files]


@lru_cache
def compile_probe(nvcc: Path) -> bytes:
    """Return the machine code of a minimal kernel, to detect a broken compiler before any measurement.

    Raises CompileError with one line if the compiler hangs, fails, writes nothing, or is not nvcc.
    """
    find_release(nvcc)
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder, "probe.cu"), Path(folder, "probe.cubin")
        source.write_text('extern "C" __global__ void probe() {}\n', encoding="utf-8")
        done = run_nvcc([str(nvcc), "--cubin", source.name], folder, share=_PROBE_SHARE)
        if done.returncode != 0:
            raise CompileError(
                f"{nvcc} cannot compile a kernel: {_format_outcome(done)}; it needs g++; set NVCC to a working nvcc"
            )
        machine_code = cubin.read_bytes() if cubin.is_file() else b""
        if not machine_code.startswith(b"\x7fELF"):
            raise CompileError(f"{nvcc} writes no machine code; set NVCC to an NVIDIA nvcc")
    return machine_code


def _format_outcome(done: CompletedProcess[bytes]) -> str:
    text = " ".join((done.stderr + done.stdout).decode("utf-8", "replace").split())
    return f"exit code {done.returncode}: {text[:_MAX_SHOWN]}" if text else f"exit code {done.returncode}"
