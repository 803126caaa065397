"""What nvcc says of itself, and whether it works. The counter, which needs it too, finds and calls it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path
from subprocess import CompletedProcess

from kernelwatch.errors import CompileError
from ptxcount.source.nvcc import WHEEL, find_nvcc, find_time_limit, run_nvcc

__all__ = ["WHEEL", "find_nvcc", "find_time_limit", "options_of_environment", "probe", "release", "run_nvcc", "version"]

#: What is shown of a text that is not as it should be.
_SHOWN = 300

#: The share of nvcc's time limit that the probe may take: its kernel is the least there is.
_PROBE = 0.2


def options_of_environment() -> list[str]:
    """The variables by which nvcc takes options from the environment, with their values (nvcc's manual, 3.1)."""
    names = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
    return [f"{name}={os.environ[name]}" for name in names if os.environ.get(name)]


@lru_cache
def version(nvcc: Path) -> str:
    """What `nvcc --version` prints: another text is another compiler. Raises CompileError where nvcc does not run."""
    done = run_nvcc([str(nvcc), "--version"], share=_PROBE)
    if done.returncode != 0:
        raise CompileError(f"{nvcc} --version failed: {_outcome(done)}; set NVCC to a working nvcc")
    return done.stdout.decode("utf-8", "replace")


def release(nvcc: Path) -> tuple[int, int]:
    """The CUDA release that nvcc belongs to, as (major, minor). Raises CompileError where its version names none."""
    text = version(nvcc)
    match = re.search(r"release (\d+)\.(\d+)", text)
    if match is None:
        raise CompileError(f"{nvcc} --version names no release: {text[:_SHOWN]!r}; set NVCC to an NVIDIA nvcc")
    return int(match[1]), int(match[2])


def programs(nvcc: Path) -> list[str]:
    """Return what tells whether another compiler is there: its version, its options, and the files that compile."""
    host, found = Path(shutil.which("g++") or "g++"), nvcc.resolve()
    paths = (found, found.with_name("ptxas"), found.parents[1] / "nvvm" / "bin" / "cicc", host.resolve())
    facts = ((path, path.stat()) for path in paths if path.exists())
    files = [f"{path} {each.st_size} {each.st_mtime_ns}" for path, each in facts]
    return [version(nvcc), *options_of_environment(), *files]


@lru_cache
def probe(nvcc: Path) -> bytes:
    """Return the machine code of a minimal kernel: a broken compiler is found before anything is measured.

    Raises CompileError, of one line, where the compiler hangs, fails, writes nothing, or is not nvcc.
    """
    release(nvcc)
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder, "probe.cu"), Path(folder, "probe.cubin")
        source.write_text('extern "C" __global__ void probe() {}\n', encoding="utf-8")
        done = run_nvcc([str(nvcc), "--cubin", source.name], folder, share=_PROBE)
        if done.returncode != 0:
            raise CompileError(f"{nvcc} compiles no kernel: {_outcome(done)}; it needs g++; set NVCC to a working nvcc")
        made = cubin.read_bytes() if cubin.is_file() else b""
        if not made.startswith(b"\x7fELF"):
            raise CompileError(f"{nvcc} writes no machine code; set NVCC to an NVIDIA nvcc")
    return made


def _outcome(done: CompletedProcess[bytes]) -> str:
    """How it ended and what it said, in one line."""
    text = " ".join((done.stderr + done.stdout).decode("utf-8", "replace").split())
    return f"exit code {done.returncode}{': ' * bool(text)}{text[:_SHOWN]}"
