"""Other projects' repositories on a GPU: asv times their kernels, and `compare` finds the slower commit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kernelwatch.strangers import STRANGERS, Project, make_project, texts

pytestmark = pytest.mark.gpu

#: Arguments of the suite that make timed sizes larger than counted sizes.
LARGER = 'archs=["sm_90"], timed={key: [FACTOR * value for value in values] for key, values in SIZES.items()}'
SIZES = '{"h": [64], "w": [128]}'
OF_EACH = LARGER.replace("FACTOR", '(64 if key in "hw" else 2000)').replace("SIZES", "sizes")
CHANGES = (
    (f'{SIZES}, archs=["sm_90"]', f"SIZES := {SIZES}, {LARGER.replace('FACTOR', '64')}"),
    ('sizes, archs=["sm_90"]', f"sizes, {OF_EACH}"),
    ('grid=("4",)', 'grid=("264",)'),
)


#: Stranger -> script that compiles its kernel with a package. The package or its libraries may be missing.
PROBES = {"kernels of Numba": texts.NUMBA, "kernels of Triton": texts.TRITON}


def _make_project(name: str, folder: Path) -> tuple[Project, list[str]]:
    stranger = STRANGERS[name]
    text = stranger.benchmarks
    for old, new in CHANGES:
        text = text.replace(old, new)
    assert text != stranger.benchmarks or not text
    project, commits = make_project(stranger._replace(benchmarks=text), folder)
    if not text:  # the size that init guesses is too small for timing
        written = (project.path / "benchmarks" / "kernels.py").read_text(encoding="utf-8")
        assert "[248], [248]" in written
        project.write("benchmarks/kernels.py", written.replace("[248]", "[4096]"))
    if "ASV_PYTHONPATH" in os.environ:  # for a machine without network, with packages in a folder
        project.environment["ASV_PYTHONPATH"] = os.environ["ASV_PYTHONPATH"]
    return project, commits


def _times(project: Project) -> Iterator[tuple[str, str, float]]:
    """Yield commit, benchmark, and the mean of the benchmark's stored medians, in seconds."""
    for path in sorted(project.path.glob("results*/*/????????-*.json")):
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for name, row in document["results"].items():
            if name.startswith("time_kernel"):
                yield (
                    document["commit_hash"],
                    name,
                    float(np.mean([median for median in row[0] if median is not None])),
                )


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project, _ = _make_project("a PyCUDA package", tmp_path_factory.mktemp("stranger"))
    environments = project.environments()
    if "ASV_PYTHONPATH" in os.environ:  # without network the packages are those of this Python
        for folder in environments.glob("*/lib/python*/site-packages"):
            paths = [
                search_path for search_path in sys.path if search_path and search_path != os.environ["ASV_PYTHONPATH"]
            ]
            (folder / "host.pth").write_text("".join(f"{search_path}\n" for search_path in paths), encoding="utf-8")
            for package in Path(os.environ["ASV_PYTHONPATH"]).iterdir():  # asv removes that folder
                if not (folder / package.name).exists():
                    (folder / package.name).symlink_to(package)
    return environments


@pytest.mark.parametrize("name", STRANGERS)
def test_review_finds_the_slower_commit(name: str, environments: Path, tmp_path: Path) -> None:
    if name in PROBES:
        (tmp_path / "probe.py").write_text(f"{PROBES[name]}\nptx('sm_90')", encoding="utf-8")
        probe = [sys.executable, str(tmp_path / "probe.py")]
        done = subprocess.run(probe, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no {name} are compiled here: {done.stderr.strip().rpartition(chr(10))[2]}")
    project, commits = _make_project(name, tmp_path)
    shutil.copytree(environments, project.path / ".asv" / "env", symlinks=True)
    run = project.run("asv", "run", "--record-samples", "--bench", "time_kernel", f"{commits[0]}..{commits[2]}")
    assert run.returncode == 0, run.stdout + run.stderr
    worse = project.run("kernelwatch", "compare", commits[1], commits[2])
    times = {(commit, benchmark): seconds for commit, benchmark, seconds in _times(project)}
    for benchmark in sorted({benchmark for _, benchmark in times}):
        coalesced, spoiled = (times[commit, benchmark] * 1e6 for commit in commits[1:3])
        print(f"ASV {name:34} {benchmark:46} {coalesced:9.2f} us -> {spoiled:9.2f} us")
    print(f"ASV {name:34} compare: {worse.stdout.splitlines()[0] if worse.stdout else worse.stderr}")
    assert times
    assert worse.returncode == 1, worse.stdout + worse.stderr
    assert worse.stdout.startswith("SLOWER")
