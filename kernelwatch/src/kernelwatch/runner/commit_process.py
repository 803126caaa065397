"""The process of a commit, as the run sees it: where its package comes from, what it says, and its end."""

from __future__ import annotations

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
from kernelwatch.error_text import one_line
from kernelwatch.runner.protocol import Discovery, Message, Refusal, Task
from kernelwatch.store import commit_checkout
from kernelwatch.store.git import GitError

#: Lines of what a process printed that are shown if it breaks off.
_SHOWN = 5

#: Environments in which packages are installed, by their names: the first could not be imported as it is.
_needed: set[str] = set()

_decoder = msgspec.json.Decoder(Message)


class PackageError(Exception):
    """A commit's package cannot be had or imported; the message says why."""


class _MissingError(PackageError):
    """Something is not there that can be imported once the package is installed."""


class CommitProcess:
    """A process, whose standard error goes to a file, that has said which benchmarks there are.

    Raises
    ------
    PackageError
        It cannot import the package or the suite.
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process, self._log = process, log
        first = next(self.messages(), None)
        if isinstance(first, Refusal):
            raise (_MissingError if first.is_missing else PackageError)(first.text)
        if not isinstance(first, Discovery):
            raise PackageError("\n".join(self._printed()[-_SHOWN:]) or "its process broke off")
        self.discovery = first

    def ask(self, task: Task) -> None:
        """Say what is wanted."""
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(task) + b"\n")
        self._process.stdin.close()

    def messages(self) -> Iterator[Message]:
        """Yield what it says, as it comes."""
        assert self._process.stdout is not None
        return map(_decoder.decode, self._process.stdout)

    def describe(self, place: int) -> None:
        """Have it write its jobs for the measuring process: those of the commit of this place among several, in turns.

        Raises
        ------
        PackageError
            It broke off.
        """
        self.ask(Task(turn=place))
        if problem := self.problem:
            raise PackageError(problem)

    @property
    def problem(self) -> str:
        """Why it ended before it was done, by the last line that it printed; empty if it did not."""
        code = self._process.wait()
        return f"the commit's process ended with {code}: {(self._printed() or [''])[-1]}" if code else ""

    def _printed(self) -> list[str]:
        return self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()


@contextmanager
def begun(conf: Any, environment: Any, repo: Any, commit: str, scratch: Path) -> Iterator[CommitProcess]:
    """Begin the process of a commit, which ends with the block.

    The package is taken from git as it is. If it cannot be imported so, or the environment has requirements of its
    own, asv installs it into its environment.

    Raises
    ------
    PackageError
        The package cannot be had, installed or imported.
    """
    if environment.name not in _needed and not set(environment.requirements) - {"pip+asv_runner"}:
        try:
            with commit_checkout.unpack_commit(commit, ROOT) as folder:
                variables = commit_checkout.make_environment(folder) | environment.env_vars
                with _process(sys.executable, folder, variables, conf, scratch) as process:
                    yield process
                    return
        except GitError as error:
            raise PackageError(one_line(error)) from None
        except _MissingError:
            if not any((ROOT / name).is_file() for name in ("pyproject.toml", "setup.py")):
                raise
            _needed.add(environment.name)
    try:
        environment.create()
        environment.install_project(conf, repo, commit)
        python = environment.find_executable("python")
    except (ProcessError, OSError) as error:
        said = getattr(error, "stderr", "") or getattr(error, "stdout", "") or str(error)
        raise PackageError(f"it cannot be installed: {one_line(said.strip().rpartition(chr(10))[2])}") from None
    told = {project_root.VARIABLE: str(ROOT), project_root.LIBRARIES: os.pathsep.join(project_root.libraries())}
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | told
    with _process(python, scratch, variables | environment.env_vars, conf, scratch) as process:
        yield process


@contextmanager
def _process(
    python: str, folder: Path, variables: Mapping[str, str], conf: Any, scratch: Path
) -> Iterator[CommitProcess]:
    log = scratch / "commit.log"
    words = [python, "-m", "kernelwatch.runner.commit_worker", str(Path(conf.benchmark_dir).resolve())]
    options: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
    with log.open("wb") as errors, subprocess.Popen(words, cwd=folder, env=variables, stderr=errors, **options) as one:
        try:
            yield CommitProcess(one, log)
        finally:
            one.kill()  # what it has forked ends with it
