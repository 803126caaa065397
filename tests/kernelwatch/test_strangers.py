"""Repositories unrelated to this project: `init`, measurements and reviews."""

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
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from subprocess import CompletedProcess

import asv
import pytest

from kernelwatch.store import folders, record
from tests.faults.test_orphans import processes
from tests.kernelwatch.runner.test_discovery import read_identities
from tests.kernelwatch.strangers import STRANGERS, Project, Stranger, assert_search_finds, make_project
from tests.stored import documents


@dataclass
class MeasuredProject:
    """A repository with four commits, and the output of `asv run`."""

    project: Project
    commits: list[str]
    run: CompletedProcess[str]

    @cached_property
    def reviews(self) -> list[CompletedProcess[str]]:
        """Output of `asv publish`, of the review of the spoiled commit, and of the review of the commit after it."""
        spoiled, unchanged = (self.commits[place : place + 2] for place in (1, 2))
        compare = ("kernelwatch", "compare", "--all")
        return [self.project.run(*call) for call in (("asv", "publish"), (*compare, *spoiled), (*compare, *unchanged))]


#: Stranger -> package that its kernels need. The tests do not require them: their wheels have 170 and 290 MB.
NEEDS = {"kernels of Numba": "numba_cuda", "kernels of Triton": "triton"}


def _is_installed(name: str) -> bool:
    return name not in NEEDS or find_spec(NEEDS[name]) is not None


@pytest.fixture(scope="module")
def measured_projects(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, MeasuredProject]:
    """Measure the repositories of the requested tests in parallel; return them by name."""
    requested_tests = {item.name for item in request.session.items}
    names = [name for name in STRANGERS if any(f"[{name}" in test for test in requested_tests) and _is_installed(name)]
    tmp_path_factory.getbasetemp()  # made here: threads would each make it, and remove each other's
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        measurements = [*pool.map(_measure_project, names, [tmp_path_factory] * len(names))]
        if any(test.startswith("test_init_to_review") for test in requested_tests):
            list(pool.map(attrgetter("reviews"), measurements))
        return dict(zip(names, measurements, strict=True))


def _measure_project(name: str, tmp_path_factory: pytest.TempPathFactory) -> MeasuredProject:
    project, commits = make_project(STRANGERS[name], tmp_path_factory.mktemp("stranger"))
    project.copy_environments(tmp_path_factory)
    run = project.run("asv", "run", "--record-samples", f"{commits[0]}..{commits[3]}")
    return MeasuredProject(project, commits, run)


@pytest.fixture(params=[name for name in STRANGERS if name != "a PyCUDA package"])  # runner/test_run.py measures it
def stranger_project(
    request: pytest.FixtureRequest, measured_projects: Mapping[str, MeasuredProject]
) -> tuple[Stranger, MeasuredProject]:
    if not _is_installed(request.param):
        pytest.skip(f"{NEEDS[request.param]} is not installed")
    return STRANGERS[request.param], measured_projects[request.param]


def test_init_to_review_finds_the_spoiled_commit(stranger_project: tuple[Stranger, MeasuredProject]) -> None:
    stranger, measured = stranger_project
    publish, spoiled_review, unchanged_review = measured.reviews
    for command in (measured.run, publish, unchanged_review):
        assert command.returncode == 0, command.stdout + command.stderr
    assert "failed" not in measured.run.stdout + measured.run.stderr
    html = measured.project.path / "html"
    transactions = (html / "watch" / "transactions.html").read_text(encoding="utf-8")
    assert spoiled_review.returncode == 1, spoiled_review.stdout + spoiled_review.stderr
    assert spoiled_review.stdout.startswith("WORSE")
    for spoiled in stranger.spoiled:
        assert spoiled.kernel in transactions
        assert spoiled.kernel in spoiled_review.stdout
    assert_search_finds(measured.commits[2], measured.commits[1], measured.commits[3], stranger, measured.project)


@pytest.mark.parametrize("stranger_project", ["a project in C++"], indirect=True)
def test_pages_of_asv_link_to_the_site(stranger_project: tuple[Stranger, MeasuredProject]) -> None:
    project = stranger_project[1].project
    html = project.path / "html"
    assert stranger_project[1].reviews[0].returncode == 0
    index = html / "index.html"
    assert index.read_bytes() == Path(asv.__file__).parent.joinpath("www", "index.html").read_bytes()
    asv_index = json.loads((html / "index.json").read_text(encoding="utf-8"))
    assert (asv_index["project_url"], asv_index["show_commit_url"]) == ("watch/index.html", "watch/commit.html#")
    for has_link in (True, False):
        assert ('href="../index.html"' in (html / "watch" / "index.html").read_text(encoding="utf-8")) is has_link
        index.unlink(missing_ok=True)
        done = project.run("kernelwatch", "site")
        assert (done.returncode, done.stdout) == (0, "Written: html/watch/index.html\n")


@pytest.mark.parametrize("stranger_project", ["a project in C++"], indirect=True)
def test_plain_asv_stores_the_same_numbers(stranger_project: tuple[Stranger, MeasuredProject], tmp_path: Path) -> None:
    """Without the plugin, asv's own commands work, and store equal numbers."""
    measured, project = stranger_project[1], Project(tmp_path)
    base, head = measured.commits[1:3]
    bench = "Brighten.*(back_to_back|copy_ratio|store_sectors)|track_registers"
    shutil.copytree(measured.project.path, project.path, symlinks=True, dirs_exist_ok=True)
    results, results_with_plugin = project.path / "results", project.path / "results-with-plugin"
    results.rename(results_with_plugin)
    configuration = project.path / "asv.conf.json"
    lines = configuration.read_text(encoding="utf-8").splitlines(keepends=True)
    configuration.write_text("".join(line for line in lines if "plugins" not in line), encoding="utf-8")
    project.run("asv", "machine", "--yes")
    for words, code, message in (
        (("check", "--python=same"), 0, ""),
        (("run", "--python=same", "--quick", "--bench", "Brighten.track_load_sectors"), 0, "track_load_sectors"),
        (("continuous", "--show-stderr", "--bench", "Brighten.*store_sectors", base, head), 1, "PERFORMANCE DECREASED"),
        (("run", "--skip-existing", f"{head}^!", "--bench", bench), 0, "track_registers"),
        (("compare", base, head), 0, "track_counted.Brighten.track_store_sectors"),
        (("show", head), 0, "track_compiled.Compiled.track_registers"),
        (("publish",), 0, "Writing index"),
    ):
        done = project.run("asv", *words)
        assert done.returncode == code, done.stdout + done.stderr
        assert message in done.stdout
        assert "failed" not in done.stdout
    assert read_identities(results) == read_identities(results_with_plugin)
    values = _read_values(results_with_plugin, head)
    assert _read_values(results, head) == {name: value for name, value in values.items() if re.search(bench, name)}
    review = project.run("kernelwatch", "compare", base, head)
    assert review.returncode == 1, review.stderr
    assert review.stdout.startswith("WORSE")


def _read_values(results: Path, commit: str) -> dict[str, str]:
    """Return a commit's numbers as text, by benchmark. In texts, NaN equals NaN."""
    (path,) = results.glob(f"*/{commit[:8]}-*.json")
    document = json.loads(path.read_text())
    return {name: str([*map(float, row[0])]) for name, row in document["results"].items()}


@pytest.mark.parametrize("stranger_project", ["a project in C++"], indirect=True)
def test_continuous_and_measure_take_two_commits(stranger_project: tuple[Stranger, MeasuredProject]) -> None:
    _, measured = stranger_project
    base, head = measured.commits[1:3]
    worse = measured.project.run("asv", "continuous", "--bench", "Brighten.track_store", base, head)
    assert worse.returncode == 1, worse.stdout + worse.stderr
    # The extents, 248 x 248, are guesses of `init`.
    assert "track_counted.Brighten.track_store_sectors(248, 248" in worse.stdout.split("Change")[-1]
    assert "PERFORMANCE DECREASED" in worse.stdout
    measure = measured.project.run("kernelwatch", "measure", base, head, "--bench", "time_kernel.Brighten")
    assert measure.returncode == 0, measure.stdout + measure.stderr
    assert re.findall(r"project ([0-9a-f]{8}) .*: 1 benchmark\n", measure.stdout) == [base[:8], head[:8]]


@pytest.mark.fleet
@pytest.mark.parametrize("number_of_workers", [1, 2])  # one worker measures a commit again in the same clone
@pytest.mark.parametrize("stranger_project", ["a project in C++"], indirect=True)
def test_fleet_survives_a_killed_worker(
    stranger_project: tuple[Stranger, MeasuredProject], number_of_workers: int, tmp_path: Path
) -> None:
    import psutil

    _, measured = stranger_project
    project, commits = measured.project, measured.commits[1:3]
    plain, stored = project.path / "results", tmp_path / "results"
    for number in range(number_of_workers):  # workers find finished environments
        clone = tmp_path / f"{os.uname().nodename}-{number}" / "clone"
        shutil.copytree(project.path / ".asv" / "env", clone / ".asv" / "env", symlinks=True)
    options = ["--without-gpu", str(number_of_workers), "--work", str(tmp_path)]
    command = ["kernelwatch", "fleet", *options, f"{commits[0]}^..{commits[1]}"]
    mark = str(uuid.uuid4())
    environment = project.environment | {"MARK": mark, folders.RESULTS: str(stored)}
    with subprocess.Popen(
        command, cwd=project.path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as driver:
        assert driver.stdout is not None
        workers: dict[Path, int] = {}
        recorded: list[Path] = []
        while not recorded and driver.poll() is None:
            time.sleep(0.02)
            for process_id, line in processes(mark).items():
                if " asv run " in line:
                    with suppress(psutil.NoSuchProcess):
                        run = psutil.Process(process_id)
                        workers[Path(run.cwd())] = run.ppid()
            recorded = [clone for clone in workers if [*clone.glob("results/*/*.runs.jsonl")]]
        for clone in recorded[:1]:
            os.kill(workers[clone], signal.SIGKILL)
        output = driver.stdout.read()
    assert (driver.returncode, bool(recorded), "; 0 left" in output) == (0, True, True), output
    expected = {name: document for name, document in documents(plain).items() if document["commit_hash"] in commits}
    assert documents(stored) == expected
    (machine,) = (path.name for path in stored.iterdir() if path.is_dir())
    assert _list_measured_commits(stored, machine) == sorted(commits)
    subprocess.run([*command, "--bench", "Brighten.track_load"], cwd=project.path, env=environment, check=True)
    assert _list_measured_commits(stored, machine) == sorted([*commits, *commits])


def _list_measured_commits(results: Path, machine: str) -> list[str]:
    return sorted(commit for run in record.read_records(results, machine) for commit in run["commits"])
