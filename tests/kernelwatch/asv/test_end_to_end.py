"""A temporary repository of three commits, the last of which worsens a register count, through asv's own commands."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.repository import SMALL_KERNELS, SMALL_VALUES, Repository

RIGHT = "output[index + offset] = input[index + offset];"

#: Many values alive at once: more registers a thread.
HUNGRY = """ELEMENT values[16];
        #pragma unroll
        for (int i = 0; i < 16; ++i) values[i] = input[index + offset + i * size];
        #pragma unroll
        for (int i = 0; i < 16; ++i) output[index + offset + (15 - i) * size] = values[i];"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory, environments: Path) -> Repository:
    """Three commits: as it is, with another README, with a hungry kernel; whoever asks for a device adds to `asked`."""
    matrices = {("benchmarks/sweeps.py", "MATRICES"): ("256x256", "32x32")}
    folder = tmp_path_factory.mktemp("end_to_end")
    repository = Repository(folder, SMALL_KERNELS[:2], SMALL_VALUES | matrices, environments)
    require = "        device.require()\n"
    note = f"        open({str(repository.path.parent / 'asked')!r}, 'a').write('.')\n"
    repository.replace("kernelwatch/src/kernelwatch/asv/plans/times.py", require, note + require)
    repository.commit("as it is")
    (repository.path / "README.md").write_text("another text\n", encoding="utf-8")
    repository.commit("another text")
    repository.replace("gpu_kernels/kernels/offset_copy.cu", RIGHT, HUNGRY)
    repository.commit("a hungry kernel")
    return repository


def test_run_continuous_publish(repository: Repository) -> None:
    """Asv runs all commits, calls the last one a regression of just that kernel, and publishes it."""
    commits = repository.git("rev-list", "--reverse", "HEAD").split()

    run = repository.asv("run", "--bench", "track_registers|DeviceCopy|track_counted.StrideCopy", "ALL")
    assert run.returncode == 0, run.stdout + run.stderr
    (machine,) = [path for path in repository.results.iterdir() if path.is_dir()]
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
    columns = stored[0]["result_columns"]
    began = {
        each["commit_hash"]: {name: row[columns.index("started_at")] for name, row in each["results"].items()}
        for each in stored
    }
    assert record["began"] == began
    checked = [(each["commit"], [one["ratio"] for one in each["checked"]]) for each in record["checks"]]
    assert len(checked) == len(commits) - 1, "what one commit has counted is known to the others"
    assert all(ratios == [1.0] for _, ratios in checked)
    if "gpu" not in record:
        copies = "time_copy.DeviceCopy.time_back_to_back"
        assert {(entry["benchmark"], entry["configurations"]) for entry in record["skipped"]} == {(copies, 2)}
        assert all(math.isnan(value) for entry in stored for value in entry["results"][copies][0])
        asked = (repository.path.parent / "asked").read_text()
        assert len(asked) == len(commits), "once a commit, and by no process of a configuration"
        assert "No GPU here: the time_* benchmarks are skipped" in run.stdout + run.stderr

    worse = repository.asv("continuous", "--bench", "track_registers", "HEAD~1", "HEAD")
    assert worse.returncode == 1, worse.stdout + worse.stderr
    assert "track_compiled.Compiled.track_registers('offset_copy'" in worse.stdout
    assert "stride_copy" not in worse.stdout.split("Change")[-1]
    assert "PERFORMANCE DECREASED" in worse.stdout

    unreadable = [machine.parent / "torn" / "machine.json", machine / "c0ffee00-virtualenv-py3.json"]
    for path in unreadable:
        path.parent.mkdir(exist_ok=True)
        path.write_text('{"machine": ')
    with (machine / "runs.jsonl").open("a") as file:
        file.write('{"commits": [')
    publish = repository.asv("publish")
    assert publish.returncode == 0, publish.stdout + publish.stderr
    for path in (*unreadable, machine / "runs.jsonl"):
        assert str(path.relative_to(repository.path)) in publish.stdout + publish.stderr
    regressions = json.loads((repository.path / "html" / "regressions.json").read_text())["regressions"]
    # Times of short launches may differ between runs by more than the threshold, where there is a GPU.
    assert [entry[0] for entry in regressions if entry[0].startswith("track_")] == [
        "track_compiled.Compiled.track_registers('offset_copy', 'float32', '-Xptxas -O3', 'sm_90')"
    ]
    assert (repository.path / "html" / "index.html").exists()
