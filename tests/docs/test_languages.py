"""Examples for kernels of other tools: each is short, on its page, and runs where its tool is installed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

import pytest

from kernelwatch.config.project_root import ROOT

PAGE = ROOT / "docs" / "count-other-languages.md"
EXAMPLES = sorted((ROOT / "docs" / "languages").glob("*.py"))
#: Most lines of an example, besides imports.
LINES = 8


#: Example -> the distribution that it needs besides NumPy and ptxcount; packages of several share a first name.
DISTRIBUTIONS = {
    "cupy": r"cupy(-cuda\d+x)?", "cute": "nvidia-cutlass-dsl", "cutile": "cuda-tile", "numba_cuda": "numba-cuda",
    "numba_cuda_mlir": "numba-cuda-mlir", "tilelang": "tilelang", "triton": "triton", "warp": "warp-lang",
}  # fmt: skip


def find_missing(example: Path, installed: Iterable[str]) -> str:
    """Return the pattern of the distribution that an example needs, if none such is installed; else nothing."""
    pattern = DISTRIBUTIONS[example.stem.removeprefix("count_")]
    return "" if any(re.fullmatch(pattern, re.sub(r"[-_.]+", "-", name).lower()) for name in installed) else pattern


@cache
def list_installed() -> list[str]:
    """Return the names of the installed distributions."""
    return [distribution.metadata["Name"] for distribution in distributions()]


@pytest.mark.parametrize(
    ("stem", "installed", "runs"),
    [("cutile", ["cuda-bindings"], False), ("cutile", ["cuda_tile"], True), ("numba_cuda", ["numba"], False),
     ("cupy", ["cupy-cuda13x"], True)],
)  # fmt: skip
def test_missing(stem: str, installed: list[str], runs: bool) -> None:
    """Another distribution may have the first name of a package, such as `cuda`."""
    assert bool(find_missing(Path(f"count_{stem}.py"), installed)) != runs


def test_page_names_all() -> None:
    """The page links each example, and nothing else there."""
    links = re.findall(r"\(languages/(\w+\.py)\)", PAGE.read_text(encoding="utf-8"))
    assert sorted(links) == [example.name for example in EXAMPLES]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_length(example: Path) -> None:
    """Each example has at most LINES lines, as the page says."""
    lines = example.read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if line and not line.startswith(("import ", "from "))]) <= LINES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_example(example: Path, tmp_path: Path) -> None:
    """It counts 32 sectors, those of 256 floats, both ways."""
    if missing := find_missing(example, list_installed()):
        pytest.skip(f"{missing} not installed: before a release, in an environment of its own")
    done = subprocess.run([sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    sectors = re.findall(r"^  (?:load|store) +\d+ +(\d+)", done.stdout.partition("lines")[0], flags=re.MULTILINE)
    assert sectors == ["32", "32"]
