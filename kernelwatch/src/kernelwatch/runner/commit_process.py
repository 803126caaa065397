"""The process of a commit, from the run's side: how it gets the commit's package, its messages, and its end."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from asv.util import ProcessError

from kernelwatch.config import project_root
from kernelwatch.config.project_root import ROOT
from kernelwatch.error_text import format_exit, one_line
from kernelwatch.runner.protocol import Discovery, ImportFailure, Message, Task
from kernelwatch.store import commit_checkout
from kernelwatch.store.git import GitError

#: Number of lines of a failed process's log to show.
_LOG_LINES = 5

#: Names of the environments that need an installed package, because the unpacked one could not be imported.
_installed_environments: set[str] = set()

_decoder = msgspec.json.Decoder(Message)


class PackageError(Exception):
    """A commit's package cannot be obtained or imported; the message says why."""


class _MissingError(PackageError):
    """A commit's process cannot import a module; installing the commit's package may provide it."""


class CommitProcess:
    """A running process of a commit that has sent its `discovery`; `log` is the file of its standard error.

    Raises PackageError if the process cannot import the package or the suite, or ends without a message.
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process, self._log = process, log
        message = next(self.iter_messages(), None)
        if isinstance(message, ImportFailure):
            raise (_MissingError if message.is_missing else PackageError)(message.text)
        if not isinstance(message, Discovery):
            raise PackageError(
                "\n".join(self._read_log()[-_LOG_LINES:]) or "the commit's process ended without a message"
            )
        self.discovery = message

    def send_task(self, task: Task) -> None:
        """Send the process its only task."""
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(task) + b"\n")
        self._process.stdin.close()

    def iter_messages(self) -> Iterator[Message]:
        """Yield the messages of the process as they arrive."""
        assert self._process.stdout is not None
        return map(_decoder.decode, self._process.stdout)

    def write_jobs(self, index: int) -> None:
        """Let the process write its commit's jobs for an interleaved run, and wait until the process has ended.

        `index` is that of the commit in the run. Raises PackageError if the process fails.
        """
        self.send_task(Task(interleaved_index=index))
        if problem := self.wait():
            raise PackageError(problem)

    def wait(self) -> str:
        """Wait for the process's end; return the exit code and last log line if it failed, else an empty text."""
        code = self._process.wait()
        return ": ".join([f"the commit's process {format_exit(code)}", *self._read_log()[-1:]]) if code else ""

    def _read_log(self) -> list[str]:
        return self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()


@contextmanager
def start_process(conf: Any, environment: Any, repo: Any, commit: str, scratch: Path) -> Iterator[CommitProcess]:
    """Start the process of a commit, and yield it. The process ends with the `with` block.

    The package is unpacked from git. But asv installs it into the environment if the environment has requirements, or
    if a module is missing and the project can be installed. After a missing module, later commits are installed at
    once. Raises PackageError if the package cannot be obtained, installed or imported.
    """
    if environment.name not in _installed_environments and not set(environment.requirements) - {"pip+asv_runner"}:
        try:
            with commit_checkout.unpack_commit(commit, ROOT) as folder:
                variables = commit_checkout.make_environment(folder) | environment.env_vars
                with _open_process(sys.executable, folder, variables, conf, scratch) as process:
                    yield process
                    return
        except GitError as error:
            raise PackageError(one_line(error)) from None
        except _MissingError:
            if not any((ROOT / name).is_file() for name in ("pyproject.toml", "setup.py")):
                raise
            _installed_environments.add(environment.name)
    try:
        environment.create()
        environment.install_project(conf, repo, commit)
        python = environment.find_executable("python")
    except (ProcessError, OSError) as error:
        output = getattr(error, "stderr", "") or getattr(error, "stdout", "") or str(error)
        last_line = one_line(output.strip().rpartition("\n")[2])
        raise PackageError(f"the package cannot be installed: {last_line}") from None
    project_variables = {
        project_root.VARIABLE: str(ROOT),
        project_root.LIBRARIES: os.pathsep.join(project_root.list_libraries()),
    }
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | project_variables
    with _open_process(python, scratch, variables | environment.env_vars, conf, scratch) as process:
        yield process


@contextmanager
def _open_process(
    python: str, folder: Path, variables: Mapping[str, str], conf: Any, scratch: Path
) -> Iterator[CommitProcess]:
    log = scratch / "commit.log"
    command = [python, "-m", "kernelwatch.runner.commit_worker", str(Path(conf.benchmark_dir).resolve())]
    options: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, cwd=folder, env=variables, stderr=errors, **options) as process,
    ):
        try:
            yield CommitProcess(process, log)
        finally:
            process.kill()  # its children end, too
