"""Repositories that have nothing of this project, made in a folder: four commits, of which the third spoils coalescing.

`Project` is such a repository, `STRANGERS` says what is in each, and `made` makes one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.kernelwatch.strangers import particles, texts


class Stranger(NamedTuple):
    """What is in a repository.

    Parameters
    ----------
    benchmarks : str
        Its benchmarks/kernels.py.
    files : mapping of str to str
        Everything else at the first commit, by name.
    spoiled : tuple of str
        A file, and of it the text that the third commit replaces, and by what.
    at_fault : str
        The line that the review is to show.
    line : int
        Its number in the file.
    kernel : str
        Its kernel.
    """

    benchmarks: str
    files: Mapping[str, str]
    spoiled: tuple[str, str, str] = ("", texts.ALONG, texts.ACROSS)
    at_fault: str = "out[x * h + y] ="
    line: int = 5
    kernel: str = "brighten"


def _package(file: str, text: str) -> dict[str, str]:
    return {"imaging/__init__.py": "", "pyproject.toml": texts.PYPROJECT, file: text}


#: What a person calls a repository -> what is in it.
STRANGERS = {
    "a PyCUDA package with .cu files": Stranger(
        texts.benchmarks('file="imaging/brighten.cu"'),
        _package("imaging/brighten.cu", texts.CUDA),
        ("imaging/brighten.cu", texts.ALONG, texts.ACROSS),
    ),
    "CUDA as a text in Python": Stranger(
        texts.benchmarks('text="imaging.kernels:SOURCE"'),
        _package("imaging/kernels.py", f'SOURCE = """{texts.CUDA}"""\n'),
        ("imaging/kernels.py", texts.ALONG, texts.ACROSS),
    ),
    "a header-only template in C++": Stranger(
        texts.benchmarks('file="include/imaging/brighten.cuh", entry="imaging::brighten<{T}, 4>"'),
        {"include/imaging/brighten.cuh": texts.HEADER, "include/imaging/load.h": texts.LOAD},
        ("include/imaging/brighten.cuh", texts.ALONG, texts.ACROSS),
        line=10,
    ),
    "kernels of Numba": Stranger(
        texts.benchmarks('ptx="imaging.kernels:ptx"', numba=True),
        _package("imaging/kernels.py", texts.NUMBA),
        ("imaging/kernels.py", texts.ALONG, texts.ACROSS),
        line=7,
    ),
    "three kernels of a simulation": Stranger(
        particles.BENCHMARKS,
        particles.FILES,
        ("src/particles.cu", particles.ALONG, particles.ACROSS),
        at_fault="mass[i] =",
        line=10,
        kernel="split",
    ),
}


class Project:
    """A repository with a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "project"
        (folder / "home").mkdir(parents=True)
        self.path.mkdir()
        whose = {
            f"GIT_{who}_{what}": "test@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        of_library = ("KERNELWATCH_", "COALESCING_WATCH_", "ASV_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(of_library)}
        cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
        self.environment = {**kept, **whose, "HOME": str(folder / "home"), "XDG_CACHE_HOME": cache, "PATH": path}
        # A run starts dozens of processes, and asv has installed what builds the package.
        self.environment |= {"PYTHONDONTWRITEBYTECODE": "", "PIP_NO_COMPILE": "1", "PIP_NO_BUILD_ISOLATION": "0"}
        self.run("git", "init", "--quiet", "--initial-branch=main")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        return subprocess.run(words, cwd=self.path, env=self.environment, capture_output=True, text=True)

    def environments(self) -> Path:
        """Make asv's environment, without its package; its folder, to be copied."""
        setup = self.run("asv", "setup")
        assert "Creating environments" in setup.stdout, setup.stdout + setup.stderr  # asv's exit code is 1 all the same
        return self.path / ".asv" / "env"

    def write(self, file: str, text: str) -> None:
        """Write a file."""
        path = self.path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def commit(self, subject: str) -> str:
        """Commit everything; the commit's hash."""
        self.run("git", "add", "--all")
        self.run("git", "commit", "--quiet", "--message", subject)
        return self.run("git", "rev-parse", "HEAD").stdout.strip()


def made(stranger: Stranger, folder: Path) -> tuple[Project, list[str]]:
    """Make a repository, let `kernelwatch init` begin, and commit four times; the hashes, oldest first."""
    project = Project(folder)
    for file, text in {**stranger.files, "benchmarks/kernels.py": stranger.benchmarks}.items():
        project.write(file, text)
    begun = project.run("kernelwatch", "init")
    assert begun.returncode == 0, begun.stderr
    assert "benchmarks/kernels.py is there: not changed" in begun.stdout
    commits = [project.commit("as it is")]
    project.write("README", "text\n")
    commits.append(project.commit("a text"))
    file, old, new = stranger.spoiled
    assert old in stranger.files[file]
    project.write(file, stranger.files[file].replace(old, new))
    commits.append(project.commit("across rows"))
    project.write("README", "another text\n")
    commits.append(project.commit("another text"))
    return project, commits
