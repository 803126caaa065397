"""Repositories that have nothing of this project: their kernels are begun to be watched, measured, and reviewed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from subprocess import CompletedProcess
from typing import NamedTuple

import pytest

from tests.kernelwatch.strangers import STRANGERS, made


class Seen(NamedTuple):
    """What the commands of a repository say, and a page of its site."""

    commits: list[str]
    run: CompletedProcess[str]
    publish: CompletedProcess[str]
    same: CompletedProcess[str]
    worse: CompletedProcess[str]
    found: CompletedProcess[str]
    page: str


def _is_there(name: str) -> bool:
    return "Numba" not in name or find_spec("numba_cuda") is not None


@pytest.fixture(scope="module")
def watched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Seen]:
    """What is seen in each repository that is asked for: side by side, in copies of one environment of asv's."""
    first, _ = made(STRANGERS["a PyCUDA package with .cu files"], tmp_path_factory.mktemp("stranger"))
    setup = first.run("asv", "setup")
    assert "Creating environments" in setup.stdout, setup.stdout + setup.stderr  # asv's exit code is 1 all the same
    asked = {item.name for item in request.session.items}
    names = [name for name in STRANGERS if any(f"[{name}]" in each for each in asked) and _is_there(name)]
    folders = [tmp_path_factory.mktemp("stranger") for _ in names]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        every = pool.map(_seen, names, folders, [first.path / ".asv" / "env"] * len(names))
        return dict(zip(names, every, strict=True))


def _seen(name: str, folder: Path, environments: Path) -> Seen:
    project, commits = made(STRANGERS[name], folder)
    shutil.copytree(environments, project.path / ".asv" / "env", symlinks=True)
    run, publish = project.run("asv", "run", "--record-samples", "ALL"), project.run("asv", "publish")
    same, worse = (project.run("kernelwatch", "compare", *commits[each : each + 2]) for each in (0, 1))
    found = project.run("kernelwatch", "bisect", "store_sectors", commits[0], commits[3])
    page = project.path / "html" / "transactions.html"
    return Seen(commits, run, publish, same, worse, found, page.read_text(encoding="utf-8") if page.exists() else "")


@pytest.mark.parametrize("name", STRANGERS)
def test_from_nothing_to_the_review(name: str, watched: Mapping[str, Seen]) -> None:
    """Four commits, of which the third reads and writes across rows: the review fails, and names it and its line."""
    if not _is_there(name):
        pytest.skip("numba-cuda is not installed: with its libraries it is 170 MB of wheels")
    stranger, seen = STRANGERS[name], watched[name]
    for command in (seen.run, seen.publish, seen.same, seen.found):
        assert command.returncode == 0, command.stdout + command.stderr
    assert "failed" not in seen.run.stdout + seen.run.stderr
    assert stranger.kernel in seen.page
    assert seen.worse.returncode == 1, seen.worse.stdout + seen.worse.stderr
    assert seen.worse.stdout.startswith("SLOWER")
    assert f"FOUND  {seen.commits[2]}" in seen.found.stdout
    assert "subject  across rows" in seen.found.stdout
    assert f"+{stranger.line:>5}  {stranger.at_fault}" in seen.found.stdout
