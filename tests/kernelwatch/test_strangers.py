"""Repositories that have nothing of this project: their kernels are begun to be watched, measured, and reviewed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from kernelwatch.kernel import sources
from kernelwatch.kernel.sources import Source

#: One thread an element of a matrix, along its rows, and what makes it go along its columns.
ALONG = "y * w + x"
ACROSS = "x * h + y"

CUDA = """\
extern "C" __global__ void brighten(float* out, const float* image, int w, int h)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) {
        out[y * w + x] = image[y * w + x] * 4;
    }
}
"""
HEADER = """\
#pragma once
#include "load.h"

namespace imaging {
template <typename T, int N>
__global__ void brighten(T* out, const T* image, int w, int h)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) {
        out[y * w + x] = load(image + y * w + x) * T(N);
    }
}
}
"""
LOAD = "#pragma once\ntemplate <typename T>\n__device__ T load(const T* p) { return *p; }\n"

PYPROJECT = """\
[build-system]
requires = ["setuptools>=64"]
build-backend = "setuptools.build_meta"
[project]
name = "imaging"
version = "1"
[tool.setuptools]
packages = ["imaging"]
package-data = { imaging = ["*.cu"] }
"""

BENCHMARKS = """\
from kernelwatch import Kernel, inputs, outputs, watch

brighten = Kernel(
    "brighten",
    [outputs("out", "h w"), inputs("image", "h w"), "w", "h"],
    block=(32, 8),
    over=("w", "h"),
    reference=lambda image: image * 4,
    {source},
)
globals().update(watch(brighten, {{"h": [64], "w": [128]}}, archs=["sm_90"]))
"""


def _ptx(text: str) -> str:
    return sources.module(Source(text), "brighten", (), "sm_90", lines=True).ptx


class Stranger(NamedTuple):
    """A project: what its benchmarks say of the source, the file that holds the kernel, its text, and other files."""

    source: str
    file: str
    text: str
    others: dict[str, str]
    #: Whether the PTX is made of the text, as a package does that compiles Python.
    is_ptx: bool = False

    def content(self, text: str) -> str:
        """Return what the file holds for a text."""
        return f'PTX = """{_ptx(text)}"""\n\n\ndef brighten():\n    return PTX\n' if self.is_ptx else text


STRANGERS = {
    "a PyCUDA package with .cu files": Stranger(
        'file="imaging/brighten.cu"',
        "imaging/brighten.cu",
        CUDA,
        {"imaging/__init__.py": "", "pyproject.toml": PYPROJECT},
    ),
    "CUDA as a text in Python": Stranger(
        'text="imaging.kernels:SOURCE"',
        "imaging/kernels.py",
        f'SOURCE = """{CUDA}"""\n',
        {"imaging/__init__.py": "", "pyproject.toml": PYPROJECT},
    ),
    "a header-only template in C++": Stranger(
        'file="include/imaging/brighten.cuh", entry="imaging::brighten<{T}, 4>"',
        "include/imaging/brighten.cuh",
        HEADER,
        {"include/imaging/load.h": LOAD},
    ),
    "PTX that a package makes": Stranger(
        'ptx="imaging.kernels:brighten"',
        "imaging/kernels.py",
        CUDA,
        {"imaging/__init__.py": "", "pyproject.toml": PYPROJECT},
        is_ptx=True,
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
        self._environment = {**kept, **whose, "HOME": str(folder / "home"), "XDG_CACHE_HOME": cache, "PATH": path}
        self.run("git", "init", "--quiet", "--initial-branch=main")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        return subprocess.run(words, cwd=self.path, env=self._environment, capture_output=True, text=True)

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


@pytest.mark.parametrize("name", STRANGERS)
def test_from_nothing_to_the_review(name: str, tmp_path: Path) -> None:
    """Four commits, of which the third reads and writes across rows: the review fails, and names it and its line."""
    stranger, project = STRANGERS[name], Project(tmp_path)
    for file, text in stranger.others.items():
        project.write(file, text)
    project.write(stranger.file, stranger.content(stranger.text))
    project.write("benchmarks/kernels.py", BENCHMARKS.format(source=stranger.source))
    begun = project.run("kernelwatch", "init")
    assert begun.returncode == 0, begun.stderr
    assert "benchmarks/kernels.py is there: not changed" in begun.stdout
    project.write(".gitignore", ".asv\nhtml\nresults\n")
    commits = [project.commit("as it is")]
    project.write("README", "text\n")
    commits.append(project.commit("a text"))
    project.write(stranger.file, stranger.content(stranger.text.replace(ALONG, ACROSS)))
    commits.append(project.commit("across rows"))
    project.write("README", "another text\n")
    commits.append(project.commit("another text"))

    run = project.run("asv", "run", "--record-samples", "ALL")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "failed" not in run.stdout + run.stderr
    publish = project.run("asv", "publish")
    assert publish.returncode == 0, publish.stdout + publish.stderr
    assert "brighten" in (project.path / "html" / "transactions.html").read_text(encoding="utf-8")

    same = project.run("kernelwatch", "compare", commits[0], commits[1])
    assert same.returncode == 0, same.stdout + same.stderr
    worse = project.run("kernelwatch", "compare", commits[1], commits[2])
    assert worse.returncode == 1, worse.stdout + worse.stderr
    assert worse.stdout.startswith("REGRESSION")
    found = project.run("kernelwatch", "bisect", "store_sectors", commits[0], commits[3])
    assert found.returncode == 0, found.stdout + found.stderr
    assert f"FOUND  {commits[2]}" in found.stdout
    assert "subject  across rows" in found.stdout
    if not stranger.is_ptx:
        assert "+    5  out[x * h + y] =" in found.stdout or "+   10  out[x * h + y] =" in found.stdout
