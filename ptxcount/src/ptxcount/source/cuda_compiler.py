"""nvcc: its location, and compilation of CUDA C++ to PTX."""

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
from pathlib import Path
from typing import NamedTuple

from ..util.errors import CompileError, NvccNotFoundError
from .compile_advice import RELEASE, advise

#: The default architecture.
ARCH = "sm_90"
#: Default time limit of nvcc in seconds; the variable NVCC_TIME_LIMIT overrides it.
TIME_LIMIT = 300
#: NVIDIA's package on PyPI with nvcc and its headers, which the extra ``nvcc`` installs.
WHEEL = f"cuda-toolkit[nvcc,cudart,crt,nvvm,cccl]=={RELEASE}"
#: Name in the PTX of a source passed as text.
TEXT_NAME = "source.cu"
#: Characters replaced in a file name that nvcc passes to a shell.
_UNSAFE = re.compile(r"[^\w.]", re.ASCII)
#: Text that nvcc's shell would execute: a backquote, ``\$``, or ``$(`` in a word that is no option. nvcc itself escapes
#: quotes, and dollars in options.
_EXECUTED = re.compile(r"`|\\\$|^[^-].*\$\(", re.DOTALL)
#: A name in a make rule, with escaped spaces.
_NAME = re.compile(r"(?:\\.|\S)+")
#: End of the target in a make rule, as nvcc and as gcc write it.
_TARGET = re.compile(r" : |\.o: ")


def find_nvcc() -> Path:
    """Find nvcc: by the variable NVCC alone if it is set, else in the newest installed CUDA wheel, else on PATH.

    Raises `NvccNotFoundError` if there is no nvcc.
    """
    install, configured = f"run: pip install '{WHEEL}'", os.environ.get("NVCC")
    path = shutil.which(configured) if configured else _find_wheel_nvcc() or shutil.which("nvcc")
    if path is None and configured:
        raise NvccNotFoundError(f"NVCC={configured} is not an executable; set it to the path of nvcc, or unset it")
    if path is None:
        problem = "NVCC is not set, and neither this Python environment nor PATH has nvcc"
        raise NvccNotFoundError(f"{problem}; {install}, or set the variable NVCC to the path of nvcc")
    return Path(path)


def _find_wheel_nvcc() -> Path | None:
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations if spec else None
    paths = [path for folder in folders or () for path in Path(folder).glob("cu*/bin/nvcc")]
    return max(paths, key=lambda path: int("0" + re.sub(r"\D", "", path.parts[-3])), default=None)


class Compilation(NamedTuple):
    """PTX, and the files that nvcc read for it, the source first; no files if the source was a text."""

    ptx: str
    files: list[Path]


def compile_source(source: Path | str, flags: str = "", arch: str = ARCH, instances: Sequence[str] = ()) -> Compilation:
    """Compile a file, or a text, to PTX with source lines.

    ``instances`` are instances of templates that the source may lack, such as ``blur<float>``. Raises
    `NvccNotFoundError`; raises `CompileError` if nvcc fails or writes no PTX, and as `run_nvcc` and `split_flags`.
    """
    _refuse_release()
    # Taking the address of a template instantiates it.
    instantiations = "".join(f"\nstatic auto ptxcount_instance_{n} = &{name};" for n, name in enumerate(instances))
    with tempfile.TemporaryDirectory(prefix="ptxcount-") as folder:
        target, rule = Path(folder, "made-ptx"), Path(folder, "made-rule")  # names that no source has
        if isinstance(source, str):
            path, shown_name, text = Path(folder, TEXT_NAME), TEXT_NAME, source.encode("utf-8", "replace")
        else:  # nvcc passes the name of the compiled file to a shell, but not the names of included files
            path, shown_name, text = Path(folder, _UNSAFE.sub("_", source.name)), str(source), _make_inclusion(source)
        path.write_bytes(text + instantiations.encode())
        command = [str(find_nvcc()), "--ptx", "-x", "cu", "-lineinfo", "-arch", arch, *split_flags(flags)]
        # nvcc's own -MD would preprocess a second time, which takes a sixth of the compilation.
        quoted_rule = shlex.quote(str(rule)).replace(",", r"\,")
        process = run_nvcc([*command, str(path), "-o", str(target), "-Xcompiler", f"-MD,-MF,{quoted_rule}"])
        shown_command = shlex.join([*command, shown_name])
        if process.returncode != 0:
            messages = _name_source_lines((process.stdout + process.stderr).decode("utf-8", "replace"), target)
            messages = messages.replace(f"In file included from {path}:1:\n", "")
            for name in (path, Path.cwd() / shown_name):
                messages = messages.replace(str(name), shown_name)
            advice = advise(messages, None if isinstance(source, str) else source)
            raise CompileError("\n".join(filter(None, [f"nvcc failed: {shown_command}", messages.strip(), advice])))
        if not target.is_file():
            raise CompileError(f"nvcc wrote no PTX: {shown_command}; remove flags that select another output")
        ptx = target.read_text(encoding="utf-8", errors="replace")
        if isinstance(source, str):
            return Compilation(ptx.replace(str(path), TEXT_NAME), [])
        return Compilation(ptx, [source, *(file for file in read_rule(rule) if file != path)])


def _name_source_lines(messages: str, target: Path) -> str:
    """Replace PTX lines in ptxas's messages by source lines, from the ``.loc`` directives of the PTX in ``target``."""
    if str(target) not in messages or not target.is_file():
        return messages
    ptx = target.read_text(encoding="utf-8", errors="replace")
    files, lines = dict(re.findall(r'^\s*\.file\s+(\d+)\s+"(.*?)"', ptx, re.M)), ptx.splitlines(keepends=True)

    def name_line(match: re.Match[str]) -> str:
        places = re.findall(r"^\s*\.loc\s+(\d+)\s+([1-9]\d*)", "".join(lines[: int(match[1])]), re.M)
        file, line = places[-1] if places else ("", match[1])
        return f"{files.get(file, 'PTX')}:{line}: ptxas "

    return re.sub(rf"ptxas {re.escape(str(target))}, line (\d+); ", name_line, messages)


def _refuse_release() -> None:
    if (release := os.environ.get("CUDA_TOOLKIT")) and not os.environ.get("NVCC"):
        problem = f"CUDA_TOOLKIT is {release}; kernelwatch installs that release, but ptxcount does not"
        raise NvccNotFoundError(f"{problem}; set NVCC to the path of that nvcc, or unset CUDA_TOOLKIT")


def _make_inclusion(source: Path) -> bytes:
    """Return an ``#include`` of an absolute path; raise `CompileError` if C++ cannot express the name."""
    path = os.fsencode(Path.cwd() / source)
    if b'"' in path or b"\n" in path:
        raise CompileError(f"the path {source} has a quote or a line break, so C++ cannot include the file; rename it")
    return b'#include "%s"\n' % path


def read_rule(rule: Path) -> list[Path]:
    """Return the prerequisites in a file with a make rule; none if the file is missing."""
    text = rule.read_text(encoding="utf-8", errors="surrogateescape") if rule.is_file() else ""
    names = _NAME.findall(_TARGET.split(text, 1)[-1].replace("\\\n", ""))
    return [Path(re.sub(r"\\(.)", r"\1", name).replace("$$", "$")) for name in names]


def split_flags(flags: str) -> list[str]:
    """Split options as a shell does: "-O3 -DX='a b'" -> ["-O3", "-DX=a b"]. Raise `CompileError` for an open quote."""
    try:
        return shlex.split(flags)
    except ValueError as error:
        raise CompileError(f"flags {flags!r} cannot be split into words: {error}; write them as for a shell") from None


def find_time_limit() -> float:
    """Return the time limit of nvcc in seconds: the variable NVCC_TIME_LIMIT, else `TIME_LIMIT`.

    Raises `CompileError` if the variable is no number above 0 and below 1000000.
    """
    limit_text = os.environ.get("NVCC_TIME_LIMIT") or str(TIME_LIMIT)
    if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", limit_text, re.ASCII) or not float(limit_text):
        limits = "it must be above 0 and below 1000000 seconds, such as 300"
        raise CompileError(f"NVCC_TIME_LIMIT is {limit_text[:60]!r}; {limits}")
    return float(limit_text)


def run_nvcc(
    command: Sequence[str], folder: str | None = None, *, share: float = 1
) -> subprocess.CompletedProcess[bytes]:
    """Run nvcc, and return its exit code and output as bytes.

    nvcc and its child processes are killed at the time limit, ``share`` times `find_time_limit`. With the tools of
    `_parent_death_prefix`, they also end if this process is killed. Raises `CompileError` if nvcc does not start,
    exceeds the limit, or has an argument that nvcc's shell would execute, and as `find_time_limit`.
    """
    limit = share * find_time_limit()
    if risky := next(filter(_EXECUTED.search, map(str, command[1:])), None):
        advice = "remove it from --flags, or rename the file or folder"
        raise CompileError(f"nvcc passes {risky!r} to a shell, which would execute a part of it; {advice}")
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            [*_parent_death_prefix(), *command], cwd=folder, stdout=pipe, stderr=pipe, start_new_session=True
        )
    except (OSError, ValueError) as error:
        raise CompileError(f"{command[0]} does not run: {error}; set NVCC to a working nvcc") from None
    with process:
        _running.add(process.pid)
        try:
            output, messages = process.communicate(timeout=limit)
        except BaseException as error:
            _kill(process.pid)
            if isinstance(error, subprocess.TimeoutExpired):
                remedy = "set NVCC to a working nvcc, or NVCC_TIME_LIMIT to more seconds"
                raise CompileError(f"nvcc took longer than {limit:g} s: {shlex.join(command)}; {remedy}") from None
            raise
        finally:
            _running.discard(process.pid)
    return subprocess.CompletedProcess(command, process.returncode, output, messages)


#: Process groups of the nvcc commands that threads of this process wait for.
_running: set[int] = set()


def stop_all() -> None:
    """Kill all nvcc commands that threads of this process wait for, and their child processes."""
    for group in [*_running]:
        _kill(group)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _parent_death_prefix() -> list[str]:
    """Return a command prefix that ends the command when the thread that starts it ends; empty if a tool is missing.

    `setpriv` makes the system send SIGTERM to `timeout`, which has no time limit here. `timeout` forwards SIGTERM to
    the process group, and sends SIGKILL a second later. The shell starts nothing if this process has ended already.
    """
    tools = [shutil.which(name) for name in ("setpriv", "sh", "timeout")]
    if not all(tools):
        return []
    setpriv, shell, timeout = map(str, tools)
    alive = ["-c", 'test "$PPID" = "$0" && exec "$@"', str(os.getpid())]
    return [setpriv, "--pdeathsig=TERM", shell, *alive, timeout, "--kill-after=1", "0"]
