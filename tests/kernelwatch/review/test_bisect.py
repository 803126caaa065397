"""Bisection: METRIC, the judge, and searches in one made-up repository."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwatch.cli import bisect as commands
from kernelwatch.instrument import machine
from kernelwatch.store import git
from kernelwatch.store.folders import RESULTS
from kernelwatch.suite.benchmark_names import Kind, copy_ratio_name
from kernelwatch.workflow.bisect.metric import SuiteConfiguration, list_configurations, match_configurations
from kernelwatch.workflow.bisect.numbers import CommitNumbers, format_patterns, open_numbers
from kernelwatch.workflow.select_results import CannotCompareError
from tests.commits import begin, commit
from tests.golden import golden
from tests.repository import Repository
from tests.stored import Outcome, Suite, samples, write

BENCHMARK = "time_transpose.Transpose.time_back_to_back"
CASE = "transpose_read_write_coalesced, 5003x2999, float32, -Xptxas -O3"
TIME = f"{BENCHMARK}({CASE})"
MISALIGNED = "load_sectors offset_copy offset=0 float32 -O3"
HUNGRY = "registers stride_copy float32 -O3 sm_90"


WORDS = [
    (TIME, 1, "time_back_to_back"),
    ("time transpose_read_coalesced 256x256 int8 -O3", 2, "time_"),
    ("registers transpose_read_coalesced float32 -O3 sm_90", 1, "track_registers"),
    ("load_sectors transpose_read_coalesced rows=1000 columns=700 float32 -Xptxas -O3", 1, "track_load_sectors"),
    ("load sectors per request offset_copy offset=2 float32 -O3", 1, "track_load_sectors"),
    ("track_counted.OffsetCopy.track_load_sectors(int8, 0, -Xptxas -O3)", 1, "track_load_sectors"),
    ("spill bytes -O0 sm_80", 95, "track_spill_bytes"),
]


@pytest.mark.parametrize(("words", "count", "number"), WORDS)
def test_words_of_metric_match_configurations(words: str, count: int, number: str) -> None:
    matches = match_configurations(words)
    assert len(matches) == count
    assert all(f".{number}" in match.benchmark for match in matches)


def test_whole_name_matches_one_configuration() -> None:
    """Words without a kind match all kinds except copy ratios."""
    for name in {number.benchmark: number.name for number in list_configurations()}.values():
        assert [match.name for match in match_configurations(name)] == [name]
    kinds = {Kind.TIMED, Kind.COUNTED, Kind.COMPILED}
    assert {match.kind for match in match_configurations("transpose_write_coalesced -O0")} == kinds


def test_example_in_error_matches() -> None:
    with pytest.raises(CannotCompareError) as raised:
        match_configurations("")
    assert match_configurations(str(raised.value).split("'")[-2])


REFUSED = [
    ("load_sector transpose_read_coalesced", "no configuration has 'load_sector'; did you mean load_sectors or "),
    (
        "registers transpose_red_coalesced",
        "no configuration has 'transpose_red_coalesced'; did you mean transpose_read_coalesced",
    ),
    ("qqqq", "no configuration has 'qqqq'; use words of a configuration in the review, such as"),
    ("", "no configuration has all words of METRIC, ''; use words of a configuration in the review"),
    ("registers transpose_serial int8 rows=40", "no configuration has all words"),
    ("transpose_write_coalesced -O0", "METRIC matches times and other numbers"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_wrong_metric_is_refused(words: str, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ends = [commit(begin(tmp_path)), commit(tmp_path)]
    assert commands.bisect([words, *ends], tmp_path) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("cannot search: ")
    assert message in errors


def test_equal_ends_are_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    commit_hash = commit(begin(tmp_path))
    assert commands.bisect([MISALIGNED, "HEAD"], tmp_path) == 2
    message = f"cannot search: GOOD and BAD are the same commit, {commit_hash[:8]}; give an earlier GOOD\n"
    assert capsys.readouterr().err == message


def test_end_without_a_number_is_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    good, bad = commit(begin(tmp_path)), commit(tmp_path)
    write(tmp_path, {good: {BENCHMARK: {CASE: samples(1.0)}}, bad: {BENCHMARK: {CASE: math.nan}}})
    assert commands.bisect([TIME, good, bad, "--machine", "gpu"], tmp_path) == 2
    assert capsys.readouterr().err == (
        f"cannot search: {good[:8]} and {bad[:8]} have no common number of {TIME}: missing at {bad[:8]}: without "
        f"a value in head; run: asv run --record-samples --bench {BENCHMARK} {bad[:8]}^!\n"
    )


@pytest.mark.parametrize(
    ("good", "value", "bad", "code"),
    [
        (4, 4, 8, 0), (4, 8, 8, 1), (4, 2, 8, 0), (4, 9, 8, 1), (0, 0, 5, 0), (0, 5, 5, 1),
        (4, 5, 8, 0), (4, 7, 8, 1), (4, 6, 8, 0),  # a value in the middle is good
        (8, 4, 4, 1), (8, 8, 4, 0),  # improvements are searched like regressions
        (4, None, 8, 125), (4, math.nan, 8, 125),
    ],
)  # fmt: skip
def test_judge_compares_with_both_ends(
    good: float, value: Outcome, bad: float, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit is bad (1) if its value is nearer to the bad end's, else good (0); without a value, skipped (125)."""
    commits = [commit(begin(tmp_path)), commit(tmp_path), commit(tmp_path)]
    write(tmp_path, {commits[1]: {BENCHMARK: {CASE: value}}})
    git.text(tmp_path, "bisect", "start", "--no-checkout", commits[2], commits[0])
    monkeypatch.chdir(tmp_path)
    assert commands.judge([TIME, "--machine", "gpu", "--between", str(good), str(bad)], tmp_path) == code


@pytest.mark.parametrize(
    ("machine_name", "value", "compiler", "is_stored"),
    [
        ("", 4.0, "", True), ("", 0.0, "", True), ("another", 4.0, "", False), ("", 4.0, "13.5.0", False),
        ("", None, "", False), ("", math.nan, "", False),
    ],
)  # fmt: skip
def test_exact_numbers_are_measured_once(
    machine_name: str, value: Outcome, compiler: str, is_stored: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored numbers of this machine and compiler are used. Other and missing numbers are measured."""
    own_name, commit_hash = machine.default_name(None), commit(begin(tmp_path))
    (configuration,) = match_configurations(MISALIGNED)
    benchmark, case = configuration.benchmark, ", ".join(configuration.params.values())
    suite: Suite = {commit_hash: {benchmark: {case: value}}}
    write(tmp_path, suite, machine_name or own_name, compiler=compiler)

    def measure(self: CommitNumbers, commits: Sequence[str], configurations: Sequence[SuiteConfiguration]) -> None:
        write(Path(os.environ[RESULTS]).parent, {commits[0]: {benchmark: {case: 5.0}}}, own_name)

    (tmp_path / "measured").mkdir()
    monkeypatch.setenv(RESULTS, str(tmp_path / "measured" / "results"))
    monkeypatch.setattr(CommitNumbers, "_measure", measure)
    with open_numbers([configuration], None, tmp_path) as numbers:
        assert numbers.find_value(commit_hash, configuration) == (value if is_stored else 5.0)


def test_time_is_measured_with_its_copy_ratio() -> None:
    """The pattern selects no other configuration, and escapes what regular expressions treat specially."""
    numbers_wanted = match_configurations(TIME.replace(CASE, "transpose_read_coalesced, 256x256, int8, -Xptxas -O3"))
    names = set()
    for number in list_configurations():
        quoted = ", ".join(value if value.isdigit() else repr(value) for value in number.params.values())
        names |= {f"{benchmark}({quoted})" for benchmark in (number.benchmark, copy_ratio_name(number.benchmark))}
    wanted = "|".join(format_patterns(numbers_wanted))
    params = "('transpose_read_coalesced', '256x256', 'int8', '-Xptxas -O3')"
    benchmarks = (BENCHMARK, "track_control.Transpose.track_copy_ratio")
    assert {name for name in names if re.search(wanted, name)} == {f"{name}{params}" for name in benchmarks}
    pattern, _ = format_patterns([replace(numbers_wanted[0], params={"flags": "-std=c++17 -DN=(2)"})])
    assert re.search(pattern, f"{BENCHMARK}('-std=c++17 -DN=(2)')")


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


def _list_held(repository: Repository) -> list[str]:
    return [repository.git(*words) for words in (["for-each-ref"], ["status", "--porcelain"], ["worktree", "list"])]


SEARCHES: dict[str, tuple[str, str, str, str, int]] = {
    "counted": (MISALIGNED, GOOD, "misaligned", "", 0),
    "where nothing builds": (HUNGRY, "a name", BAD, "", 125),
    "steady": (TIME, "builds again", BAD, "two steps", 1),
    "two steps": (TIME, GOOD, BAD, "two steps", 0),
    "not all stored": (TIME, GOOD, BAD, "not all stored", 125),
    "small steps": (TIME, "beside", BAD, "", 125),  # the only machine with times of both
    "an end without a number": (HUNGRY, "does not build", "builds again", "", 2),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_search_reports_culprit_and_restores_git(name: str, repository: tuple[Repository, dict[str, str]]) -> None:
    (project, commits), (metric, good, bad, machine_name, code) = repository, SEARCHES[name]
    held_before = _list_held(project)
    words = ["bisect", metric, commits[good], commits[bad], *(["--machine", machine_name] if machine_name else [])]
    done = project.run(sys.executable, "-m", "kernelwatch", *words)
    assert _list_held(project) == held_before
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


def test_json_has_outcome_and_review(repository: tuple[Repository, dict[str, str]]) -> None:
    project, commits = repository
    words = [TIME, commits["does not build"], commits["hungry"], "--machine", "two steps", "--json"]
    done = project.run(sys.executable, "-m", "kernelwatch", "bisect", *words)
    outcome = json.loads(done.stdout, parse_constant=pytest.fail)
    assert (outcome["exit_code"], outcome["culprit"], outcome["log"]) == (0, commits["hungry"], [])
    assert (outcome["review"]["conclusion"], outcome["change"]["base"]) == ("FASTER", pytest.approx(1.6e-3, rel=1e-3))


def test_git_bisect_run_uses_the_judge(repository: tuple[Repository, dict[str, str]]) -> None:
    """Wrong calls of the judge give exit code 128, which stops the search."""
    project, commits = repository
    judge = (sys.executable, "-m", "kernelwatch", "judge")
    values, ends = ("--between", "4", "5"), (commits["a name"], commits["beside"])
    project.git("bisect", "start", "--no-checkout", "--first-parent", *ends, "--", "gpu_kernels")
    try:
        outcome = project.run("git", "bisect", "run", *judge, MISALIGNED, *values)
        refused = [project.run(*judge, *words) for words in ((TIME, *values), ("registers", *values), (MISALIGNED,))]
    finally:
        project.git("bisect", "reset")
    assert f"{commits['misaligned']} is the first bad commit" in outcome.stdout, outcome.stdout + outcome.stderr
    assert re.findall(r"^(good|bad): \d+$", outcome.stdout, re.MULTILINE) == ["bad", "good"]
    refused.append(project.run(*judge, MISALIGNED, *values))
    assert [process.returncode for process in refused] == [128] * 4
    for process, message in zip(refused, ("several", "METRIC matches", "usage: ", "git bisect start"), strict=True):
        assert message in process.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_search_restores_git(
    number: signal.Signals, repository: tuple[Repository, dict[str, str]], tmp_path: Path
) -> None:
    """No process and no temporary folder stays."""
    project, commits = repository
    held_before, environment = _list_held(project), project.environment | {"TMPDIR": str(tmp_path)}
    words = [sys.executable, "-m", "kernelwatch", "bisect", MISALIGNED, commits[GOOD]]
    with subprocess.Popen(words, cwd=project.path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any(line.startswith("running ") for line in process.stderr)
        process.send_signal(number)
        process.stderr.read()  # waits until all processes that write to it have ended
    assert process.returncode == 128 + number
    assert _list_held(project) == held_before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("bisect-")]
