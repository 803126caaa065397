"""A temporary repository made of this project's own tree, with a home of its own, on which asv's own commands run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: What is copied into the temporary repository.
PARTS = [
    "Makefile",
    "asv.conf.json",
    "pyproject.toml",
    "README.md",
    "benchmarks",
    "gpu_kernels",
    "requirements",
    "runner",
    "report",
]

#: The whole suite in small: literal axes of fewer values.
SMALL_AXES: dict[str, Sequence[str | int]] = {
    "KERNELS": ["offset_copy", "stride_copy"],
    "TRANSPOSES": ["transpose_read_coalesced"],
    "MATRICES": ["256x256"],
    "DTYPES": ["float32"],
    "FLAG_SETS": ["-Xptxas -O3"],
    "ARCHS": ["sm_90"],
    "OFFSETS": [0],
    "STRIDES": [1],
}


class Repository:
    """A small copy of this project under git.

    Parameters
    ----------
    folder : an empty folder; the repository is `project` in it.
    axes : those of `benchmarks/axes.py` that are replaced.
    """

    def __init__(self, folder: Path, axes: Mapping[str, Sequence[str | int]] = SMALL_AXES) -> None:
        self.path = folder / "project"
        home = folder / "home"
        home.mkdir()
        real_cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
        real_config = os.environ.get("XDG_CONFIG_HOME", str(Path.home() / ".config"))
        self._environment = {
            **os.environ,
            "HOME": str(home),  # asv keeps its machine file there
            # asv looks for the Python of its environments there, however this one was started.
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "XDG_CACHE_HOME": real_cache,
            "XDG_CONFIG_HOME": real_config,
            **{
                f"GIT_{who}_{what}": "test@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
            },
        }
        for part in PARTS:
            source, target = ROOT / part, self.path / part
            target.parent.mkdir(exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        with (self.path / "benchmarks" / "axes.py").open("a", encoding="utf-8") as file:
            file.writelines(f"{name} = {values!r}\n" for name, values in axes.items())
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        """Run git."""
        command = ["git", *arguments]
        done = subprocess.run(command, cwd=self.path, env=self._environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def replace(self, file: str, old: str, new: str) -> None:
        """Change a text that the file holds once."""
        path = self.path / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{file} holds {old!r} {text.count(old)} times"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def commit(self, message: str) -> str:
        """Commit everything; the commit's hash."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        return subprocess.run(command, cwd=self.path, env=self._environment, capture_output=True, text=True)

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `python -m` on modules of the repository itself."""
        return self.run(sys.executable, "-m", *arguments)

    def make(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run make with the tools of this environment, installing none."""
        return self.run("make", "--old-file=.venv/installed", f"BIN={Path(sys.executable).parent}", *arguments)

    def asv(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run asv."""
        return self.python("asv", *arguments)
