"""Functions that run git. No other module of the library runs it."""

import subprocess
from pathlib import Path

from kernelwatch.errors import KernelwatchError
from ptxcount.util import git_environment


class GitError(KernelwatchError, RuntimeError):
    """Git failed or is missing. If git ran, the message contains that of git."""


def run(folder: Path, *words: str, input: str = "") -> bytes:
    """Run git in a folder; return its output.

    Parameters
    ----------
    folder : Path
        The working folder. Git uses this folder's repository, even inside a hook of another repository.
    *words : str
        Arguments of git. Put user input after `--end-of-options`, so that it cannot be an option.
    input : str, optional
        Standard input.

    Raises
    ------
    GitError
        Git fails or is missing. Git never asks for a password.
    """
    environment = {**git_environment.make_environment(), "GIT_TERMINAL_PROMPT": "0"}
    try:
        process = subprocess.run(
            ["git", *words], cwd=folder, env=environment, input=input.encode(), capture_output=True, check=False
        )
    except (OSError, ValueError) as error:
        raise GitError(f"git cannot be run in {folder}: {error}") from None
    if process.returncode:
        message = process.stderr.decode(errors="replace").strip()
        raise GitError(f"git {words[0]} in {folder} ended with {process.returncode}: {message}")
    return process.stdout


def read_objects(folder: Path, *names: str) -> list[bytes | None]:
    """Return the contents of git objects, with one process; None for objects that git does not know.

    Parameters
    ----------
    folder : Path
        A folder of the repository.
    *names : str
        Names of objects, such as "HEAD^{commit}" or "COMMIT:FILE", without line breaks.

    Raises
    ------
    GitError
        Git rejects the folder. If git fails otherwise, as without a repository, all objects are None.
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


def text(folder: Path, *words: str, input: str = "") -> str:
    """Run git in a folder; return its output as text, stripped."""
    return run(folder, *words, input=input).decode(errors="replace").strip()


def is_shallow(folder: Path) -> bool:
    """Return whether a folder's repository is a shallow clone, which lacks older commits."""
    return try_text(folder, "rev-parse", "--is-shallow-repository") == "true"


def find_commit(folder: Path, revision: str) -> str | None:
    """Return the hash of a revision, even if it looks like an option or a file; None if git does not know it.

    Raises GitError if git rejects the folder.
    """
    return try_text(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")


def find_commits(folder: Path, *revisions: str) -> list[str | None]:
    """Return the hash of each revision, None for an unknown one, with one process. Raises GitError if git fails."""
    names = "".join(f"{revision}^{{commit}}\n" for revision in revisions)
    lines = text(folder, "cat-file", "--batch-check=%(objectname)", input=names).splitlines()
    return [line if line.isalnum() else None for line in lines]  # the line of an unknown revision has spaces


def try_text(folder: Path, *words: str) -> str | None:
    """Run git as `text` does; return None if git fails. Raises GitError if git rejects the folder."""
    try:
        return text(folder, *words)
    except GitError as error:
        if "safe.directory" in str(error):  # another user owns the folder; git's message has the remedy
            raise
        return None
