"""Repositories that have nothing of this project: their kernels are begun to be watched, measured, and reviewed."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.kernelwatch.strangers import STRANGERS, made


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where asv has made an environment, which nothing is installed into yet."""
    project, _ = made(STRANGERS["a PyCUDA package with .cu files"], tmp_path_factory.mktemp("stranger"))
    setup = project.run("asv", "setup")
    assert "Creating environments" in setup.stdout, setup.stdout + setup.stderr  # asv's exit code is 1 all the same
    return project.path / ".asv" / "env"


@pytest.mark.parametrize("name", STRANGERS)
def test_from_nothing_to_the_review(name: str, tmp_path: Path, environments: Path) -> None:
    """Four commits, of which the third reads and writes across rows: the review fails, and names it and its line."""
    if "Numba" in name and find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda is not installed: with its libraries it is 130 MB of wheels")
    stranger = STRANGERS[name]
    project, commits = made(stranger, tmp_path)
    shutil.copytree(environments, project.path / ".asv" / "env", symlinks=True)
    run = project.run("asv", "run", "--record-samples", "ALL")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "failed" not in run.stdout + run.stderr
    publish = project.run("asv", "publish")
    assert publish.returncode == 0, publish.stdout + publish.stderr
    page = (project.path / "html" / "transactions.html").read_text(encoding="utf-8")
    assert "brighten" in page or "split" in page

    same = project.run("kernelwatch", "compare", commits[0], commits[1])
    assert same.returncode == 0, same.stdout + same.stderr
    worse = project.run("kernelwatch", "compare", commits[1], commits[2])
    assert worse.returncode == 1, worse.stdout + worse.stderr
    assert worse.stdout.startswith("REGRESSION")
    found = project.run("kernelwatch", "bisect", "store_sectors", commits[0], commits[3])
    assert found.returncode == 0, found.stdout + found.stderr
    assert f"FOUND  {commits[2]}" in found.stdout
    assert "subject  across rows" in found.stdout
    assert f"+{stranger.line:>5}  {stranger.at_fault}" in found.stdout
