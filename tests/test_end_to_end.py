"""A temporary repository of three commits, the last of which worsens a register count, through asv's own commands."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

#: What is copied into the temporary repository.
PARTS = [
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
SMALL_AXES = {
    "KERNELS": ["offset_copy", "stride_copy"],
    "TRANSPOSES": ["transpose_read_coalesced"],
    "MATRICES": ["256x256"],
    "DTYPES": ["float32"],
    "FLAG_SETS": ["-Xptxas -O3"],
    "ARCHS": ["sm_90"],
    "OFFSETS": [0],
    "STRIDES": [1],
}

RIGHT = "output[index + offset] = input[index + offset];"

#: Many values alive at once: more registers a thread.
HUNGRY = """ELEMENT values[16];
        #pragma unroll
        for (int i = 0; i < 16; ++i) values[i] = input[index + offset + i * size];
        #pragma unroll
        for (int i = 0; i < 16; ++i) output[index + offset + (15 - i) * size] = values[i];"""


class Repository:
    """A small copy of this project under git, with a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "project"
        home = folder / "home"
        home.mkdir()
        real_cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
        real_config = os.environ.get("XDG_CONFIG_HOME", str(Path.home() / ".config"))
        self._environment = {
            **os.environ,
            "HOME": str(home),  # asv keeps its machine file there
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
        axes = self.path / "benchmarks" / "axes.py"
        small = "".join(f"{name} = {values!r}\n" for name, values in SMALL_AXES.items())
        axes.write_text(axes.read_text(encoding="utf-8") + small, encoding="utf-8")
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        """Run git."""
        command = ["git", *arguments]
        done = subprocess.run(command, cwd=self.path, env=self._environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, message: str) -> str:
        """Commit everything; the commit's hash."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD")

    def asv(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run asv."""
        command = [sys.executable, "-m", "asv", *arguments]
        return subprocess.run(command, cwd=self.path, env=self._environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Three commits: as it is, with another README, with a hungry kernel."""
    repository = Repository(tmp_path_factory.mktemp("end_to_end"))
    repository.commit("as it is")
    (repository.path / "README.md").write_text("another text\n", encoding="utf-8")
    repository.commit("another text")
    kernel = repository.path / "gpu_kernels" / "kernels" / "offset_copy.cu"
    source = kernel.read_text(encoding="utf-8")
    assert RIGHT in source
    kernel.write_text(source.replace(RIGHT, HUNGRY), encoding="utf-8")
    repository.commit("a hungry kernel")
    return repository


def test_run_continuous_publish(repository: Repository) -> None:
    """Asv runs all commits, calls the last one a regression of just that kernel, and publishes it."""
    commits = repository.git("rev-list", "--reverse", "HEAD").split()

    run = repository.asv("run", "--bench", "track_registers|DeviceCopy", "ALL")
    assert run.returncode == 0, run.stdout + run.stderr
    (machine,) = [path for path in (repository.path / "results").iterdir() if path.is_dir()]
    stored = [json.loads(path.read_text()) for path in sorted(machine.glob("*-*.json"))]
    registers = {entry["commit_hash"]: entry["results"]["track_compiled.Compiled.track_registers"] for entry in stored}
    assert set(registers) == set(commits)
    values = [registers[commit][0] for commit in commits]
    assert values[0] == values[1]
    assert values[2][0] > values[0][0] + 8, "the hungry kernel takes more registers"
    assert values[2][1] == values[0][1], "the other kernel is as it was"

    lines = (machine / "runs.jsonl").read_text().splitlines()
    assert len(lines) == 1
    record = json.loads(lines[0])
    assert record["commits"] == sorted(commits)
    if record["gpu"] is None:
        assert {entry["benchmark"] for entry in record["skipped"]} == {"time_copy.DeviceCopy.time_back_to_back"}
        assert "No GPU here: the time_* benchmarks are skipped" in run.stdout + run.stderr

    worse = repository.asv("continuous", "--bench", "track_registers", "HEAD~1", "HEAD")
    assert worse.returncode == 1, worse.stdout + worse.stderr
    assert "track_compiled.Compiled.track_registers('offset_copy'" in worse.stdout
    assert "stride_copy" not in worse.stdout.split("Change")[-1]
    assert "PERFORMANCE DECREASED" in worse.stdout

    same = repository.asv("continuous", "--bench", "track_registers", "HEAD~2", "HEAD~1")
    assert same.returncode == 0, same.stdout + same.stderr

    publish = repository.asv("publish")
    assert publish.returncode == 0, publish.stdout + publish.stderr
    regressions = json.loads((repository.path / "html" / "regressions.json").read_text())["regressions"]
    # Times of short launches may differ between runs by more than the threshold, where there is a GPU.
    assert [entry[0] for entry in regressions if entry[0].startswith("track_")] == [
        "track_compiled.Compiled.track_registers('offset_copy', 'float32', '-Xptxas -O3', 'sm_90')"
    ]
    assert (repository.path / "html" / "index.html").exists()
