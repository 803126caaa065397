"""A commit's package in a temporary folder, and Python processes that import it with the checkout's library."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelwatch.config import project_root, settings
from kernelwatch.config.project_root import ROOT
from kernelwatch.store import git


@contextmanager
def unpack_commit(commit: str, root: Path) -> Iterator[Path]:
    """Yield a temporary folder with a commit's package, or with all its files if the settings name no package.

    The worktree stays as it is.

    Parameters
    ----------
    commit : str
        Any git revision.
    root : Path
        The repository.

    Raises
    ------
    GitError
        Git does not know the commit, or the commit does not have the package.
    """
    with tempfile.TemporaryDirectory() as folder:
        archive = git.run(root, "archive", commit, *filter(None, [settings.package_name()]))
        subprocess.run(["tar", "--extract", f"--directory={folder}"], input=archive, check=True)
        yield Path(folder)


def run_python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m WORDS` with the package in a folder; return the completed process."""
    command, variables = [sys.executable, "-m", *words], make_environment(folder)
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)


def make_environment(folder: Path) -> dict[str, str]:
    """Return environment variables with which Python imports the package in a folder, then this checkout's modules."""
    # `python -m` searches the working folder first, so the commit's package comes before the checkout's.
    path = os.pathsep.join([str(folder / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": path, project_root.VARIABLE: str(ROOT), project_root.CHECKOUT: str(folder)}
