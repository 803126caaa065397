"""Examples that count kernels of other tools: short, linked on the page, and run if the tool is installed."""

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
#: Maximum number of an example's lines, without imports and blank lines.
LINES = 8


#: Example -> pattern of the distribution that it needs besides NumPy and ptxcount.
DISTRIBUTIONS = {
    "cupy": r"cupy(-cuda\d+x)?", "cute": "nvidia-cutlass-dsl", "cutile": "cuda-tile", "numba_cuda": "numba-cuda",
    "numba_cuda_mlir": "numba-cuda-mlir", "tilelang": "tilelang", "triton": "triton", "warp": "warp-lang",
}  # fmt: skip


def find_missing(example: Path, installed: Iterable[str]) -> str:
    """Return the pattern of the distribution that an example needs; "" if one is installed."""
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
def test_other_distributions_do_not_count(stem: str, installed: list[str], runs: bool) -> None:
    """A tool is missing if only another distribution with the same package, such as `cuda`, is installed."""
    assert bool(find_missing(Path(f"count_{stem}.py"), installed)) != runs


def test_page_links_each_example() -> None:
    """The page links each file of docs/languages, and no file that is not there."""
    links = re.findall(r"\(languages/(\w+\.py)\)", PAGE.read_text(encoding="utf-8"))
    assert sorted(links) == [example.name for example in EXAMPLES]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_examples_are_short(example: Path) -> None:
    """Each example has at most LINES lines besides imports, as the page says."""
    lines = example.read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if line and not line.startswith(("import ", "from "))]) <= LINES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_example_counts_sectors(example: Path, tmp_path: Path) -> None:
    """Each example counts 32 sectors of loads and 32 of stores: those of 256 floats."""
    if missing := find_missing(example, list_installed()):
        pytest.skip(f"{missing} not installed: before a release, in an environment of its own")
    done = subprocess.run([sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    sectors = re.findall(r"^  (?:load|store) +\d+ +(\d+)", done.stdout.partition("lines")[0], flags=re.MULTILINE)
    assert sectors == ["32", "32"]
