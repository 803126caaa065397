"""The one place where git is run."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from kernelwatch.errors import KernelwatchError
from ptxcount.util import git_environment


class GitError(KernelwatchError, RuntimeError):
    """Git failed, is missing, or took too long; the message has its own words."""


def run(folder: Path, *words: str, input: str = "", timeout: float | None = None) -> bytes:
    """Return what git prints in a folder.

    Parameters
    ----------
    folder : Path
        Where it runs. It is asked of this folder's repository, also in a hook of another.
    *words : str
        Its arguments. What a person typed goes behind `--end-of-options`, so that it is no option.
    input : str, optional
        What it reads.
    timeout : float, optional
        Seconds that it may take.

    Raises
    ------
    GitError
        It fails, hangs or is missing. It never waits for a password.
    """
    environment = {**git_environment.make_environment(), "GIT_TERMINAL_PROMPT": "0"}
    try:
        process = subprocess.run(
            ["git", *words], cwd=folder, env=environment, input=input.encode(), capture_output=True, timeout=timeout,
            check=False,
        )  # fmt: skip
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise GitError(f"git does not run: {error}") from None
    if process.returncode:
        message = process.stderr.decode(errors="replace").strip()
        raise GitError(f"git {words[0]} in {folder} ended with {process.returncode}: {message}")
    return process.stdout


def read_objects(folder: Path, *names: str) -> list[bytes | None]:
    """Return the contents of git's objects, by one process; None of those that git does not know.

    Parameters
    ----------
    folder : Path
        A folder of the repository.
    *names : str
        The objects, such as "HEAD^{commit}" or "COMMIT:FILE", without line ends.

    Raises
    ------
    GitError
        Git refuses the whole folder. A folder without a repository has no object.
    """
    try:
        remaining = run(folder, "cat-file", "--batch", input="".join(f"{name}\n" for name in names))
    except GitError as error:
        if "safe.directory" in str(error):
            raise
        return [None] * len(names)
    contents: list[bytes | None] = []
    for _ in names:
        header, _, remaining = remaining.partition(b"\n")
        size = header.rpartition(b" ")[2]
        contents.append(remaining[: int(size)] if size.isdigit() else None)
        remaining = remaining[int(size) + 1 :] if size.isdigit() else remaining
    return contents


def run_visibly(folder: Path, *words: str) -> None:
    """Run git with its output on standard error, and end every process that it started."""
    process = subprocess.Popen(
        ["git", *words], cwd=folder, env=git_environment.make_environment(), stdout=2, start_new_session=True
    )
    try:
        process.wait()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)


def text(folder: Path, *words: str, input: str = "", timeout: float | None = None) -> str:
    """Return what `run` does, as text without the blanks around it."""
    return run(folder, *words, input=input, timeout=timeout).decode(errors="replace").strip()


def is_shallow(folder: Path) -> bool:
    """Return whether a folder's repository is a shallow clone, which lacks older commits."""
    return try_text(folder, "rev-parse", "--is-shallow-repository") == "true"


def find_commit(folder: Path, revision: str) -> str | None:
    """Return the hash of a revision, also of one like an option or a file; None if git knows none."""
    return try_text(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")


def try_text(folder: Path, *words: str, timeout: float | None = None) -> str | None:
    """Return what `text` does; None where git does not know. Raises GitError where it refuses the whole folder."""
    try:
        return text(folder, *words, timeout=timeout)
    except GitError as error:
        if "safe.directory" in str(error):  # the folder is somebody else's: git says what to do
            raise
        return None
