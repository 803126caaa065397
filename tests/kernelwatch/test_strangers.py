"""Repositories that have nothing of this project: their kernels are begun to be watched, measured, and reviewed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from subprocess import CompletedProcess
from typing import NamedTuple

import pytest

from gpu_kernels import KERNELS
from tests.kernelwatch.strangers import STRANGERS, Stranger, made
from tests.site import browser


class Seen(NamedTuple):
    """What the commands of a repository say, and the folder of its site."""

    commits: list[str]
    run: CompletedProcess[str]
    publish: CompletedProcess[str]
    same: CompletedProcess[str]
    worse: CompletedProcess[str]
    found: CompletedProcess[str]
    site: Path


def _is_there(name: str) -> bool:
    return "Numba" not in name or find_spec("numba_cuda") is not None


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an environment of asv's, to be copied."""
    return made(STRANGERS["a PyCUDA package with .cu files"], tmp_path_factory.mktemp("stranger"))[0].environments()


@pytest.fixture(scope="module")
def watched(
    request: pytest.FixtureRequest, environments: Path, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Seen]:
    """What is seen in each repository that is asked for: side by side, in copies of one environment of asv's."""
    asked = {item.name for item in request.session.items}
    names = [name for name in STRANGERS if any(f"[{name}]" in each for each in asked) and _is_there(name)]
    folders = [tmp_path_factory.mktemp("stranger") for _ in names]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        every = pool.map(_seen, names, folders, [environments] * len(names))
        return dict(zip(names, every, strict=True))


def _seen(name: str, folder: Path, environments: Path) -> Seen:
    project, commits = made(STRANGERS[name], folder)
    shutil.copytree(environments, project.path / ".asv" / "env", symlinks=True)
    run, publish = project.run("asv", "run", "--record-samples", "ALL"), project.run("asv", "publish")
    same, worse = (project.run("kernelwatch", "compare", *commits[each : each + 2]) for each in (0, 1))
    found = project.run("kernelwatch", "bisect", "store_sectors", commits[0], commits[3])
    return Seen(commits, run, publish, same, worse, found, project.path / "html")


@pytest.fixture(params=STRANGERS)
def one(request: pytest.FixtureRequest, watched: Mapping[str, Seen]) -> tuple[Stranger, Seen]:
    """A stranger's repository, and what is seen in it."""
    if not _is_there(request.param):
        pytest.skip("numba-cuda is not installed: with its libraries it is 170 MB of wheels")
    return STRANGERS[request.param], watched[request.param]


def test_from_nothing_to_the_review(one: tuple[Stranger, Seen]) -> None:
    """Four commits, of which the third reads and writes across rows: the review fails, and names it and its line."""
    stranger, seen = one
    for command in (seen.run, seen.publish, seen.same, seen.found):
        assert command.returncode == 0, command.stdout + command.stderr
    assert "failed" not in seen.run.stdout + seen.run.stderr
    assert stranger.kernel in (seen.site / "transactions.html").read_text(encoding="utf-8")
    assert seen.worse.returncode == 1, seen.worse.stdout + seen.worse.stderr
    assert seen.worse.stdout.startswith("SLOWER")
    assert f"FOUND  {seen.commits[2]}" in seen.found.stdout
    assert "subject  across rows" in seen.found.stdout
    assert f"+{stranger.line:>5}  {stranger.at_fault}" in seen.found.stdout


@pytest.mark.browser
def test_the_site_in_a_browser(one: tuple[Stranger, Seen]) -> None:
    """Every page is drawn and says what is known of the stranger's kernel; none names one of this suite."""
    stranger, seen = one
    foreign = rf"\b({'|'.join([*KERNELS, 'gpu_kernels', 'lecture'])})\b"
    known = {
        "kernel": stranger.kernel, "commit": seen.commits[2][:8], "subject": "across rows", "foreign": foreign,
    }  # fmt: skip
    environment = {"SITE": str(seen.site), "KNOWN": json.dumps(known), "CHROMIUM": str(browser.CHROMIUM)}
    command = ["node", "--test", "strangers.js"]
    done = subprocess.run(
        command, cwd=browser.HERE, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_the_plugin(environments: Path, tmp_path: Path) -> None:
    """Each of asv's own commands works, and a run says once what is missing; what became worse is found."""
    project, commits = made(STRANGERS["CUDA as a text in Python"], tmp_path)
    shutil.copytree(environments, project.path / ".asv" / "env", symlinks=True)
    configuration = project.path / "asv.conf.json"
    lines = configuration.read_text(encoding="utf-8").splitlines(keepends=True)
    configuration.write_text("".join(line for line in lines if "plugins" not in line), encoding="utf-8")
    project.run("asv", "machine", "--yes")
    before, after = commits[1:3]
    worse = project.run("asv", "continuous", "--show-stderr", before, after)
    assert worse.returncode == 1, worse.stdout + worse.stderr
    assert (worse.stdout + worse.stderr).count('write "plugins": [') == 2, "a commit each"
    assert "failed" not in worse.stdout
    assert "PERFORMANCE DECREASED" in worse.stdout
    for words, said in (
        (("compare", before, after), "track_counted.Brighten.track_store_sectors"),
        (("show", after), "track_compiled.Compiled.track_registers"),
        (("publish",), "Writing index"),
    ):
        done = project.run("asv", *words)
        assert done.returncode == 0, done.stderr
        assert said in done.stdout
    review = project.run("kernelwatch", "compare", before, after)
    assert review.returncode == 1, review.stderr
    assert review.stdout.startswith("SLOWER")
