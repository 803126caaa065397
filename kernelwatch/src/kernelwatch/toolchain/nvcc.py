"""Finds nvcc, reads its version, and probes whether it works. Every call has a time limit."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from kernelwatch.errors import CompileError, NvccNotFoundError

#: The PyPI requirement that brings nvcc; pinned because another compiler is another measurement.
REQUIREMENT = "cuda-toolkit[nvcc,cudart,crt,nvvm,cccl]==13.0.2"

#: What is shown of a text that is not as it should be.
_SHOWN = 300

#: Seconds that a call of nvcc may take, and the variable that says otherwise.
TIME_LIMIT = 300.0
TIME_LIMIT_VARIABLE = "NVCC_TIME_LIMIT"

#: The share of that which the probe may take: its kernel is the least there is.
_PROBE = 0.2


def _from_wheel() -> Path | None:
    """The nvcc of the newest CUDA wheel in this Python environment (`nvidia/cu13/bin/nvcc` in site-packages)."""
    spec = importlib.util.find_spec("nvidia")
    if spec is None or spec.submodule_search_locations is None:
        return None
    found = [path for folder in spec.submodule_search_locations for path in Path(folder).glob("cu*/bin/nvcc")]
    return max(found, key=lambda path: path.parts[-3], default=None)


def find_nvcc() -> Path:
    """Return the path of nvcc: the variable NVCC, else this environment's PyPI wheel, else PATH.

    Raises
    ------
    NvccNotFoundError
        No nvcc was found, or NVCC is not the path of an executable.
    """
    named = os.environ.get("NVCC")
    if named:
        path = shutil.which(named)
        if path is None:
            raise NvccNotFoundError(
                f"NVCC={named} is not an executable; set it to the path of nvcc, or unset it and "
                f"run: pip install '{REQUIREMENT}'"
            )
        return Path(path)
    wheel = _from_wheel()
    if wheel is not None:
        return wheel
    path = shutil.which("nvcc")
    if path is None:
        raise NvccNotFoundError(
            f"no nvcc in NVCC, in this environment's wheels or on PATH; run: pip install '{REQUIREMENT}'"
        )
    return Path(path)


def options_of_environment() -> list[str]:
    """The variables by which nvcc takes options from the environment, with their values (nvcc's manual, 3.1)."""
    names = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
    return [f"{name}={os.environ[name]}" for name in names if os.environ.get(name)]


@lru_cache
def version(nvcc: Path) -> str:
    """What `nvcc --version` prints, as it is: another text is another compiler.

    Raises
    ------
    CompileError
        nvcc does not run.
    """
    done = call([str(nvcc), "--version"], share=_PROBE)
    if done.returncode != 0:
        raise CompileError(f"{nvcc} --version failed: {_outcome(done)}; set NVCC to a working nvcc")
    return done.stdout.decode("utf-8", "replace")


def release(nvcc: Path) -> tuple[int, int]:
    """The CUDA release that nvcc belongs to, as (major, minor).

    Raises
    ------
    CompileError
        The version text names no release.
    """
    text = version(nvcc)
    match = re.search(r"release (\d+)\.(\d+)", text)
    if match is None:
        raise CompileError(f"{nvcc} --version names no release: {text[:_SHOWN]!r}; set NVCC to an NVIDIA nvcc")
    return int(match[1]), int(match[2])


@lru_cache
def probe(nvcc: Path) -> None:
    """Compile a minimal kernel, so that a broken compiler is found before anything is measured.

    Raises
    ------
    CompileError
        The compiler hangs, fails, writes nothing, or is not nvcc. The message is one line.
    """
    release(nvcc)
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder, "probe.cu"), Path(folder, "probe.cubin")
        source.write_text('extern "C" __global__ void probe() {}\n', encoding="utf-8")
        done = call([str(nvcc), "--cubin", source.name], folder, share=_PROBE)
        if done.returncode != 0:
            raise CompileError(f"{nvcc} compiles no kernel: {_outcome(done)}; it needs g++; set NVCC to a working nvcc")
        if not cubin.is_file() or not cubin.read_bytes().startswith(b"\x7fELF"):
            raise CompileError(f"{nvcc} writes no machine code; set NVCC to an NVIDIA nvcc")


def call(command: Sequence[str], folder: str | None = None, share: float = 1) -> subprocess.CompletedProcess[bytes]:
    """Call nvcc. When its time is over, or this process is killed, end it and all processes that it started.

    Parameters
    ----------
    command : sequence of str
        nvcc and its arguments.
    folder : str, optional
        Where it runs.
    share : float
        The part of the time limit that it has.

    Raises
    ------
    CompileError
        The command does not run, or takes longer than the limit.
    """
    limit = share * time_limit()
    try:
        process = subprocess.Popen(
            [*_ending_with_parent(), *command],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise CompileError(f"{command[0]} does not run: {error}; set NVCC to a working nvcc") from None
    with process:
        try:
            output, messages = process.communicate(timeout=limit)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise CompileError(
                    f"nvcc took longer than {limit:g} s: {shlex.join(command)}; set NVCC to a working nvcc, "
                    f"or {TIME_LIMIT_VARIABLE} to more seconds"
                ) from None
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, messages)


def _ending_with_parent() -> list[str]:
    """What is put before a command so that it ends with the thread that started it; nothing where a tool is missing.

    The system sends SIGTERM to `timeout` (its limit is off), which passes it on to the whole group, and then SIGKILL.
    """
    tools = [shutil.which(name) for name in ("setpriv", "timeout")]
    words = [tools[0], "--pdeathsig=TERM", tools[1], "--kill-after=1", "0"]
    return [word for word in words if word] if all(tools) else []


def time_limit() -> float:
    """Seconds that a call of nvcc may take: the variable NVCC_TIME_LIMIT, else 300.

    Raises
    ------
    CompileError
        The variable holds no such number.
    """
    given = os.environ.get(TIME_LIMIT_VARIABLE)
    if not given:
        return TIME_LIMIT
    if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", given, re.ASCII) or not float(given):
        raise CompileError(f"{TIME_LIMIT_VARIABLE}={given[:_SHOWN]!r} is not a number of seconds, such as 300")
    return float(given)


def _outcome(done: subprocess.CompletedProcess[bytes]) -> str:
    """How it ended and what it said, in one line."""
    text = " ".join((done.stderr + done.stdout).decode("utf-8", "replace").split())
    return f"exit code {done.returncode}{': ' * bool(text)}{text[:_SHOWN]}"
