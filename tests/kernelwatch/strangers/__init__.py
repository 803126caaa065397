"""Repositories unrelated to this project: four commits, of which the third spoils coalescing."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.kernelwatch.strangers import texts


class Spoiled(NamedTuple):
    """A kernel that the third commit spoils, and the source line that the review shows."""

    kernel: str
    file: str
    old_text: str
    new_text: str
    line: str
    line_number: int


class Stranger(NamedTuple):
    """Content of a repository. If `benchmarks` is empty, `kernelwatch init` writes benchmarks/kernels.py."""

    benchmarks: str
    files: Mapping[str, str]
    spoiled: tuple[Spoiled, ...]


def _across(kernel: str, file: str, line_number: int) -> Spoiled:
    return Spoiled(kernel, file, texts.ALONG, texts.ACROSS, "out[x * h + y] =", line_number)


_PACKAGE = {"imaging/__init__.py": "", "pyproject.toml": texts.PYPROJECT}

STRANGERS = {
    "a PyCUDA package": Stranger(
        texts.benchmarks(brighten='file="imaging/brighten.cu"', darken='text="imaging.kernels:SOURCE"'),
        {
            **_PACKAGE,
            "imaging/brighten.cu": texts.CUDA,
            "imaging/kernels.py": f'SOURCE = """{texts.CUDA.replace("brighten", "darken")}"""\n',
        },
        (_across("brighten", "imaging/brighten.cu", 5), _across("darken", "imaging/kernels.py", 5)),
    ),
    "a project in C++": Stranger(
        "",
        {
            "include/imaging/brighten.cuh": texts.HEADER,
            "include/imaging/load.h": texts.LOAD,
            "src/filters.cpp": texts.HOST,
            "src/flip.cu": texts.FLIP,
        },
        (
            Spoiled("flip", "src/flip.cu", "y * w + w - x - 1", "x * h + y", "out[x * h + y] =", 8),
            _across("brighten", "include/imaging/brighten.cuh", 10),
        ),
    ),
    "kernels of Numba": Stranger(
        texts.benchmarks(brighten='ptx="imaging.kernels:ptx"', numba=True),
        {**_PACKAGE, "imaging/kernels.py": texts.NUMBA},
        (_across("brighten", "imaging/kernels.py", 7),),
    ),
    "kernels of Triton": Stranger(
        texts.TRITON_BENCHMARKS,
        {**_PACKAGE, "imaging/kernels.py": texts.TRITON},
        (Spoiled("brighten", "imaging/kernels.py", texts.ALONG, texts.ACROSS, "tl.store(out + x * h + y", 11),),
    ),
}


class Project:
    """A repository in `path`, with a home folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "project"
        (folder / "home").mkdir(parents=True)
        self.path.mkdir()
        git_identity = {
            f"GIT_{role}_{field}": "test@example.org" for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")
        }
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        library_prefixes = ("KERNELWATCH_", "ASV_")
        outer_variables = {name: value for name, value in os.environ.items() if not name.startswith(library_prefixes)}
        cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
        own = {"HOME": str(folder / "home"), "XDG_CACHE_HOME": cache, "PATH": path}
        self.environment = {**outer_variables, **git_identity, **own}
        # A run starts dozens of processes; asv has installed the build requirements.
        self.environment |= {"PYTHONDONTWRITEBYTECODE": "", "PIP_NO_COMPILE": "1", "PIP_NO_BUILD_ISOLATION": "0"}
        self.environment["VIRTUALENV_NO_PERIODIC_UPDATE"] = "1"  # each test's home is new, so each would be updated
        self.run("git", "init", "--quiet", "--initial-branch=main")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.ask("", *words)

    def ask(self, stdin: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command with a text as standard input; return the process with its output."""
        return subprocess.run(words, cwd=self.path, env=self.environment, input=stdin, capture_output=True, text=True)

    def environments(self) -> Path:
        """Make asv's environments, without the project's package; return their folder."""
        setup = self.run("asv", "setup")
        assert "Creating environments" in setup.stdout, setup.stdout + setup.stderr  # asv's exit code is 1 all the same
        return self.path / ".asv" / "env"

    def copy_environments(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        """Copy asv's environments, which the first of the test processes makes, to this project."""
        shared = tmp_path_factory.getbasetemp()
        shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
        with (shared / "environments.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (shared / "environments").exists():
                self.environments().rename(shared / "environments")
        shutil.copytree(shared / "environments", self.path / ".asv" / "env", symlinks=True)

    def write(self, file: str, text: str) -> None:
        path = self.path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def commit(self, subject: str) -> str:
        self.run("git", "add", "--all")
        self.run("git", "commit", "--quiet", "--message", subject)
        return self.run("git", "rev-parse", "HEAD").stdout.strip()


def make_project(stranger: Stranger, folder: Path) -> tuple[Project, list[str]]:
    """Make a repository, run `kernelwatch init`, and commit four times; return the hashes, oldest first."""
    project = Project(folder)
    benchmark_files = {"benchmarks/kernels.py": stranger.benchmarks} if stranger.benchmarks else {}
    for file, text in {**stranger.files, **benchmark_files}.items():
        project.write(file, text)
    init = project.run("kernelwatch", "init")
    assert init.returncode == 0, init.stderr
    assert f"benchmarks/kernels.py {'exists: not changed' if benchmark_files else 'written'}" in init.stdout
    commits = [project.commit("as it is")]
    project.write("README", "text\n")
    commits.append(project.commit("a text"))
    for spoiled in stranger.spoiled:
        text = stranger.files[spoiled.file]
        assert spoiled.old_text in text
        project.write(spoiled.file, text.replace(spoiled.old_text, spoiled.new_text))
    commits.append(project.commit("across rows"))
    project.write("README", "another text\n")
    commits.append(project.commit("another text"))
    return project, commits


def assert_search_finds(spoiled: str, good: str, bad: str, stranger: Stranger, project: Project) -> None:
    """Assert that `kernelwatch bisect` finds the spoiled commit and its source line, and measures nothing."""
    expected = stranger.spoiled[-1]
    bisect = project.run("kernelwatch", "bisect", f"store_sectors {expected.kernel}", good, bad)
    assert bisect.returncode == 0, bisect.stdout + bisect.stderr
    assert f"FOUND  {spoiled}" in bisect.stdout
    assert "measured" not in bisect.stderr, "bisect measured although all numbers are stored"
    assert "subject  across rows" in bisect.stdout
    assert f"+{expected.line_number:>5}  {expected.line}" in bisect.stdout
