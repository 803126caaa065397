"""Bisections in one made-up repository."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwatch.cli import bisect
from tests.golden import golden
from tests.kernelwatch.review.test_bisect import BENCHMARK, CASE, HUNGRY, MISALIGNED, TIME
from tests.repository import Repository
from tests.stored import Suite, samples, write

COPY, STRIDE = (f"gpu_kernels/kernels/{name}_copy.cu" for name in ("offset", "stride"))
ALIGNED = """    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < size) {
"""
#: The same copy, shifted by one element: each warp accesses one more sector.
SHIFTED = """    const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (thread < size) {
        const long long index = thread + 1 < size ? thread + 1 : 0;
"""
RIGHT = "output[index * stride] = input[index * stride];"
#: A loop with the same output and more registers per thread, because of many live values.
MANY = """ELEMENT values[16];
        #pragma unroll
        for (int i = 0; i < 16; ++i) values[i] = input[(index + i) % size * stride];
        #pragma unroll
        for (int i = 15; i >= 0; --i) output[(index + i) % size * stride] = values[i];"""
#: Commit after the first -> file, old text, new text. Without an old text, the new one is appended.
CHANGES = {
    "beside": ("README.md", "", "a remark"),
    "a comment": (STRIDE, "", "// a remark"),
    "misaligned": (COPY, ALIGNED, SHIFTED),
    "a name": ("gpu_kernels/__init__.py", "", "_REMARK = 1"),
    "does not build": (STRIDE, "", "#error"),
    "hungry": (STRIDE, RIGHT, MANY),
    "builds again": (STRIDE, "#error\n", ""),
    "beside, too": ("README.md", "", "another remark"),
}
FIRST = "as it is"
NAMES = [FIRST, *CHANGES]
GOOD, BAD = NAMES[0], NAMES[-1]

#: Machine -> its times at NAMES in ms; None for commits that were not measured.
TIMES: dict[str, list[float | None]] = {
    "two steps": [2.0, None, 1.6, 1.6, 1.6, 1.6, 1.0, 1.0, 1.0],
    "not all stored": [1.0, None, 1.0, None, None, 2.0, 2.0, 2.0, 2.0],
    "small steps": [1.0 + 0.008 * place for place in range(9)],
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> tuple[Repository, dict[str, str]]:
    """Return a repository with results of the machines of TIMES, and the repository's commits by name."""
    folder = tmp_path_factory.mktemp("searched")
    values = {("benchmarks/sweeps.py", name): ("-Xptxas -O3",) for name in ("FLAG_SETS", "COPY_FLAG_SETS")}
    project = Repository(folder, ("offset_copy", "stride_copy", "transpose_read_write_coalesced"), values)
    project.environment["CUDA_VISIBLE_DEVICES"] = ""  # this machine must not time
    commits = {FIRST: project.commit(FIRST)}
    for name, (file, old, new) in CHANGES.items():
        path = project.path / file
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(old, new) if old else f"{text}{new}\n", encoding="utf-8")
        commits[name] = project.commit(name)
    (folder / "stored").mkdir()
    for name_of_machine, times in TIMES.items():
        suite: Suite = {}
        for place, (name, seconds) in enumerate(zip(NAMES, times, strict=True)):
            if seconds is not None:
                suite[commits[name]] = {BENCHMARK: {CASE: samples(seconds / 1e3, seed=place)}}
        write(folder / "stored", suite, name_of_machine)
    shutil.copytree(folder / "stored" / "results", project.path / "results")
    return project, commits


def _read_git_state(repository: Repository) -> list[str]:
    return [repository.git(*words) for words in (["for-each-ref"], ["status", "--porcelain"], ["worktree", "list"])]


#: METRIC, GOOD, BAD, machine and exit code. The files in tests/data/bisect have the reports.
SEARCHES: dict[str, tuple[str, str, str, str, int]] = {
    "counted": (MISALIGNED, GOOD, "misaligned", "", 0),
    "where nothing builds": (HUNGRY, "a name", "builds again", "", 125),
    "steady": (TIME, "builds again", BAD, "two steps", 1),
    "two steps": (TIME, GOOD, BAD, "two steps", 0),
    "not all stored": (TIME, GOOD, BAD, "not all stored", 125),
    "small steps": (TIME, "beside", BAD, "", 125),  # the only machine with times of both
    "an end without a number": (HUNGRY, "does not build", "builds again", "", 2),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_search_reports_culprit_and_restores_git(name: str, repository: tuple[Repository, dict[str, str]]) -> None:
    (project, commits), (metric, good, bad, machine_name, code) = repository, SEARCHES[name]
    state_before = _read_git_state(project)
    words = ["bisect", metric, commits[good], commits[bad], *(["--machine", machine_name] if machine_name else [])]
    done = project.run(sys.executable, "-m", "kernelwatch", *words)
    assert _read_git_state(project) == state_before
    assert max(map(len, done.stdout.splitlines()), default=0) <= 100
    text = re.sub(r"date     \S+", "date     DATE", done.stdout or done.stderr.splitlines(True)[-1])
    text = re.sub(r"^(\w+  \w{8} -> \w{8}.*\n)(?:.+\n)+", r"\1...\n", text, flags=re.MULTILINE)
    for label, commit_hash in commits.items():
        text = text.replace(commit_hash, f"<{label}>").replace(commit_hash[:8], f"<{label}>")
    # git chooses the commits after a skip, so their order may differ.
    text = re.sub(
        r"(?:^<.+> (?:good|bad|skip) .*\n)+", lambda log: "".join(sorted(log[0].splitlines(True))), text, flags=re.M
    )
    shown, expected = golden(f"bisect/{name}.txt", text)
    assert (done.returncode, shown) == (code, expected), done.stderr


def test_json_has_outcome_and_review(
    repository: tuple[Repository, dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    project, commits = repository
    words = [TIME, commits["does not build"], commits["hungry"], "--machine", "two steps", "--json"]
    assert bisect.bisect(words, project.path) == 0
    outcome = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert (outcome["exit_code"], outcome["culprit"], outcome["log"]) == (0, commits["hungry"], [])
    assert (outcome["review"]["conclusion"], outcome["change"]["base"]) == ("FASTER", pytest.approx(1.6e-3, rel=1e-3))


def test_git_bisect_run_uses_the_judge(repository: tuple[Repository, dict[str, str]]) -> None:
    project, commits = repository
    judge = (sys.executable, "-m", "kernelwatch", "judge", TIME, "--machine", "two steps", "--between", "2e-3", "1e-3")
    ends = (commits["builds again"], commits["a name"])
    project.git("bisect", "start", "--no-checkout", "--first-parent", *ends, "--", "gpu_kernels")
    try:
        outcome = project.run("git", "bisect", "run", *judge)
    finally:
        project.git("bisect", "reset")
    assert f"{commits['hungry']} is the first bad commit" in outcome.stdout, outcome.stdout + outcome.stderr
    # The two commits between the ends are judged.
    assert sorted(re.findall(r"^(good|bad): \S+$", outcome.stdout, re.MULTILINE)) == ["bad", "good"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_search_restores_git(
    number: signal.Signals, repository: tuple[Repository, dict[str, str]], tmp_path: Path
) -> None:
    """No process and no temporary folder stays."""
    project, commits = repository
    state_before, environment = _read_git_state(project), project.environment | {"TMPDIR": str(tmp_path)}
    words = [sys.executable, "-m", "kernelwatch", "bisect", MISALIGNED, commits[GOOD]]
    with subprocess.Popen(words, cwd=project.path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any(line.startswith("judging ") for line in process.stderr)
        process.send_signal(number)
        process.stderr.read()  # waits until all processes that write to it have ended
    assert process.returncode == 128 + number
    assert _read_git_state(project) == state_before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("bisect-")]
