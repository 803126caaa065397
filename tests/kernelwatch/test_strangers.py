"""Repositories that have nothing of this project: their kernels are begun to be watched, measured, and reviewed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from subprocess import CompletedProcess
from typing import NamedTuple

import asv
import pytest

from kernelwatch.store import folders, record
from tests.faults.test_orphans import processes
from tests.kernelwatch.strangers import STRANGERS, Project, Stranger, made
from tests.stored import documents


class Seen(NamedTuple):
    """A repository, and what its commands say."""

    project: Project
    commits: list[str]
    run: CompletedProcess[str]
    publish: CompletedProcess[str]
    worse: CompletedProcess[str]
    same: CompletedProcess[str]


def _is_there(name: str) -> bool:
    return "Numba" not in name or find_spec("numba_cuda") is not None


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an environment of asv's, to be copied."""
    return made(STRANGERS["a PyCUDA package"], tmp_path_factory.mktemp("stranger"))[0].environments()


@pytest.fixture(scope="module")
def watched(
    request: pytest.FixtureRequest, environments: Path, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Seen]:
    """Return the results in each requested repository, measured in parallel in copies of one environment of asv's."""
    asked = {item.name for item in request.session.items}
    names = [name for name in STRANGERS if any(f"[{name}]" in each for each in asked) and _is_there(name)]
    places = [tmp_path_factory.mktemp("stranger") for _ in names]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        every = pool.map(_seen, names, places, [environments] * len(names))
        return dict(zip(names, every, strict=True))


def _seen(name: str, folder: Path, environments: Path) -> Seen:
    project, commits = made(STRANGERS[name], folder)
    shutil.copytree(environments, project.path / ".asv" / "env", symlinks=True)
    run = project.run("asv", "run", "--record-samples", f"{commits[0]}..{commits[3]}")
    project.run("kernelwatch", "keep")
    publish = project.run("asv", "publish")
    worse, same = (project.run("kernelwatch", "compare", *commits[each : each + 2], "--all") for each in (1, 2))
    return Seen(project, commits, run, publish, worse, same)


@pytest.fixture(params=STRANGERS)
def one(request: pytest.FixtureRequest, watched: Mapping[str, Seen]) -> tuple[Stranger, Seen]:
    """Return a stranger's repository, and what is seen in it."""
    if not _is_there(request.param):
        pytest.skip("numba-cuda is not installed: with its libraries it is 170 MB of wheels")
    return STRANGERS[request.param], watched[request.param]


def test_from_nothing_to_the_review(one: tuple[Stranger, Seen]) -> None:
    """The third of four commits reads and writes across rows: the review fails, and names it and its lines."""
    stranger, seen = one
    for command in (seen.run, seen.publish, seen.same):
        assert command.returncode == 0, command.stdout + command.stderr
    assert "failed" not in seen.run.stdout + seen.run.stderr
    html = seen.project.path / "html"
    transactions = (html / "watch" / "transactions.html").read_text(encoding="utf-8")
    assert seen.worse.returncode == 1, seen.worse.stdout + seen.worse.stderr
    assert seen.worse.stdout.startswith("WORSE")
    for spoiled, *_ in stranger.spoiled:
        assert spoiled in transactions
        assert spoiled in seen.worse.stdout
    kernel, _, _, _, at_fault, line = stranger.spoiled[-1]
    found = seen.project.run("kernelwatch", "bisect", f"store_sectors {kernel}", seen.commits[1], seen.commits[3])
    assert found.returncode == 0, found.stdout + found.stderr
    assert f"FOUND  {seen.commits[2]}" in found.stdout
    assert "subject  across rows" in found.stdout
    assert f"+{line:>5}  {at_fault}" in found.stdout


@pytest.mark.parametrize("one", ["a project in C++"], indirect=True)
def test_asvs_pages_and_ours(one: tuple[Stranger, Seen]) -> None:
    """Asv's are as it makes them, and name ours; ours link back, and are made anew without it."""
    project = one[1].project
    html = project.path / "html"
    index = html / "index.html"
    assert index.read_bytes() == Path(asv.__file__).parent.joinpath("www", "index.html").read_bytes()
    named = json.loads((html / "index.json").read_text(encoding="utf-8"))
    assert (named["project_url"], named["show_commit_url"]) == ("watch/index.html", "watch/commit.html#")
    for is_there in (True, False):
        assert ('href="../index.html"' in (html / "watch" / "index.html").read_text(encoding="utf-8")) is is_there
        index.unlink(missing_ok=True)
        done = project.run("kernelwatch", "site")
        assert (done.returncode, done.stdout) == (0, "Written: html/watch/index.html\n")


def test_without_the_plugin(environments: Path, tmp_path: Path) -> None:
    """Each of asv's own commands works; what became worse is found."""
    project, commits = made(STRANGERS["a project in C++"], tmp_path)
    shutil.copytree(environments, project.path / ".asv" / "env", symlinks=True)
    configuration = project.path / "asv.conf.json"
    lines = configuration.read_text(encoding="utf-8").splitlines(keepends=True)
    configuration.write_text("".join(line for line in lines if "plugins" not in line), encoding="utf-8")
    project.run("asv", "machine", "--yes")
    before, after = commits[1:3]
    chosen = ("--bench", "Brighten", "--bench", "track_registers")
    worse = project.run("asv", "continuous", "--show-stderr", *chosen, before, after)
    assert worse.returncode == 1, worse.stdout + worse.stderr
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
    assert review.stdout.startswith("WORSE")


@pytest.mark.parametrize("one", ["a project in C++"], indirect=True)
def test_two_commits(one: tuple[Stranger, Seen]) -> None:
    """Asv's `continuous` fails as the review does; `kernelwatch measure` takes two commits."""
    _, seen = one
    before, after = seen.commits[1:3]
    worse = seen.project.run("asv", "continuous", "--bench", "Brighten.track_store", before, after)
    assert worse.returncode == 1, worse.stdout + worse.stderr
    assert "track_counted.Brighten.track_store_sectors(256, 256" in worse.stdout.split("Change")[-1]
    assert "PERFORMANCE DECREASED" in worse.stdout
    measure = seen.project.run("kernelwatch", "measure", before, after, "--bench", "time_kernel.Brighten")
    assert measure.returncode == 0, measure.stdout + measure.stderr
    assert re.findall(r"project ([0-9a-f]{8}) .*: 1 benchmarks", measure.stdout) == [before[:8], after[:8]]


@pytest.mark.fleet
@pytest.mark.parametrize("one", ["a project in C++"], indirect=True)
def test_killed_worker_of_a_fleet(one: tuple[Stranger, Seen]) -> None:
    """On two workers without a GPU, one of which is killed: what it had begun, another does; the results are asv's."""
    import psutil

    _, seen = one
    project, commits = seen.project, seen.commits[1:3]
    plain, stored = project.path / "results", project.path / "of-fleet"
    for number in range(2):  # workers find asv's environments made
        clone = project.path / ".asv" / "fleet" / f"{os.uname().nodename}-{number}" / "clone"
        shutil.copytree(project.path / ".asv" / "env", clone / ".asv" / "env", symlinks=True)
    command = ["kernelwatch", "fleet", "--without-gpu", "2", f"{commits[0]}^..{commits[1]}"]
    mark = str(uuid.uuid4())
    environment = project.environment | {"MARK": mark, folders.RESULTS: str(stored)}
    with subprocess.Popen(
        command, cwd=project.path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as driver:
        assert driver.stdout is not None
        runs: list[int] = []
        while not runs and driver.poll() is None:
            time.sleep(0.02)
            runs = sorted(each for each, line in processes(mark).items() if " asv run " in line)
        for run in runs[:1]:
            os.kill(psutil.Process(run).ppid(), signal.SIGKILL)
        said = driver.stdout.read()
    assert (driver.returncode, bool(runs), "; 0 left" in said) == (0, True, True), said
    expected = {name: each for name, each in documents(plain).items() if each["commit_hash"] in commits}
    assert documents(stored) == expected
    (machine,) = (path.name for path in stored.iterdir() if path.is_dir())
    assert sorted(run["commits"] for run in record.read_records(stored, machine)) == sorted([each] for each in commits)
