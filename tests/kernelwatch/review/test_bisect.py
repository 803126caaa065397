"""Bisection: METRIC, its errors, the judge, and the pattern of benchmarks to measure."""

import math
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kernelwatch.cli import bisect as commands
from kernelwatch.cli.main import main
from kernelwatch.config.project_root import ROOT
from kernelwatch.instrument import machine
from kernelwatch.store import git
from kernelwatch.store.folders import RESULTS
from kernelwatch.suite.benchmark_names import Kind, copy_ratio_name
from kernelwatch.workflow.bisect import search
from kernelwatch.workflow.bisect.metric import SuiteConfiguration, list_configurations, match_configurations
from kernelwatch.workflow.bisect.numbers import CommitNumbers, format_patterns, open_numbers
from kernelwatch.workflow.select_results import CannotCompareError
from tests.commits import begin, commit
from tests.stored import Outcome, Suite, samples, write

BENCHMARK = "time_transpose.Transpose.time_back_to_back"
CASE = "transpose_read_write_coalesced, 5003x2999, float32, -Xptxas -O3"
TIME = f"{BENCHMARK}({CASE})"
MISALIGNED = "load_sectors offset_copy offset=0 float32 -O3"
HUNGRY = "registers stride_copy float32 -O3 sm_90"


#: METRIC, number of matching configurations, and the beginning of their method's name.
WORDS = [
    (TIME, 1, "time_back_to_back"),
    ("time transpose_read_coalesced 256x256 int8 -O3", 2, "time_"),  # back to back and isolated
    ("registers transpose_read_coalesced float32 -O3 sm_90", 1, "track_registers"),
    ("load_sectors transpose_read_coalesced rows=1000 columns=700 float32 -Xptxas -O3", 1, "track_load_sectors"),
    ("load sectors per request offset_copy offset=2 float32 -O3", 1, "track_load_sectors"),
    ("track_counted.OffsetCopy.track_load_sectors(int8, 0, -Xptxas -O3)", 1, "track_load_sectors"),
    ("spill bytes -O0 sm_80", 95, "track_spill_bytes"),  # all kernels and dtypes
]


@pytest.mark.parametrize(("words", "count", "method"), WORDS)
def test_words_of_metric_match_configurations(words: str, count: int, method: str) -> None:
    matches = match_configurations(words)
    assert len(matches) == count
    assert all(f".{method}" in match.benchmark for match in matches)


def test_whole_name_matches_one_configuration() -> None:
    for name in {number.benchmark: number.name for number in list_configurations()}.values():  # one per benchmark
        assert [match.name for match in match_configurations(name)] == [name]


def test_words_without_a_kind_match_all_but_copy_ratios() -> None:
    kinds = {Kind.TIMED, Kind.COUNTED, Kind.COMPILED}
    assert {match.kind for match in match_configurations("transpose_write_coalesced -O0")} == kinds


def test_example_in_error_matches() -> None:
    with pytest.raises(CannotCompareError) as raised:
        match_configurations("")
    assert match_configurations(str(raised.value).split("'")[-2])  # the last quoted text


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


def test_interrupted_worktree_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git records and locks the worktree before Ctrl-C interrupts it."""
    commit_hash, run_git = commit(begin(tmp_path)), git.text
    worktrees = run_git(tmp_path, "worktree", "list")

    def interrupt_adding(folder: Path, *words: str, **options: Any) -> str:
        output = run_git(folder, *words, **options)
        if words[:2] == ("worktree", "add"):
            run_git(folder, "worktree", "lock", words[-2])
            raise KeyboardInterrupt
        return output

    monkeypatch.setattr(git, "text", interrupt_adding)
    with pytest.raises(KeyboardInterrupt), search._add_worktree(commit_hash, tmp_path):
        pass
    assert run_git(tmp_path, "worktree", "list") == worktrees


def test_undecided_review_ends_undecided(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Two samples are too few to judge a change of 50 %."""
    good, bad = commit(begin(tmp_path)), commit(tmp_path)
    times = {good: samples(1.0, count=2), bad: samples(1.5, count=2)}
    write(tmp_path, {name: {BENCHMARK: {CASE: time}} for name, time in times.items()})
    assert commands.bisect([TIME, good, bad, "--machine", "gpu"], tmp_path) == 125
    assert capsys.readouterr().out.startswith("UNDECIDABLE  1 of 1 numbers are undecided: ")


def test_change_without_touching_commits_has_no_culprit(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Both commits have the same files."""
    good, bad = commit(begin(tmp_path)), commit(tmp_path)
    write(tmp_path, {name: {BENCHMARK: {CASE: samples(time)}} for name, time in ((good, 1.0), (bad, 1.5))})
    assert commands.bisect([TIME, good, bad, "--machine", "gpu"], tmp_path) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith(f"NO CULPRIT {good[:8]} and {bad[:8]}: no commit from GOOD to BAD touches gpu_kernels; ")
    assert "SLOWER: 1 s -> 1.5 s" in text


def test_change_after_all_touching_commits_has_no_culprit(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The last commit changes the time, but no file of the package: git repeats the commit before."""
    good, *touching = (commit(begin(tmp_path)), *(commit(tmp_path, {"gpu_kernels/a.cu": text}) for text in "12"))
    bad = commit(tmp_path)
    times = {**dict.fromkeys((good, *touching), 1.0), bad: 1.5}
    write(tmp_path, {name: {BENCHMARK: {CASE: samples(time)}} for name, time in times.items()})
    assert commands.bisect([TIME, good, bad, "--machine", "gpu"], tmp_path) == 125
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("UNDECIDABLE all commits that touch gpu_kernels are good; for other causes, run: ")
    assert "2 commits touch gpu_kernels; 2 judged" in text


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


def test_stopped_git_bisect_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`git bisect` fails here. Without an error, the search would judge the same commit for ever."""
    begin(tmp_path)
    good, _, _, bad = commits = [commit(tmp_path, {"kernel.cu": f"// {number}"}) for number in range(4)]
    outcome = search.SearchOutcome(MISALIGNED, good, bad, 1, commits[1:])
    change, numbers = SimpleNamespace(base=4.0, head=5.0), SimpleNamespace(root=tmp_path, find_value=lambda *_: 4.0)
    run_git = git.try_text
    monkeypatch.setattr(git, "try_text", lambda *words: None if words[1] == "bisect" else run_git(*words))
    with pytest.raises(CannotCompareError, match="git bisect stopped without a result"):
        search._bisect(outcome, cast(Any, change), cast(Any, None), cast(Any, numbers), ".")


BETWEEN = ("--between", "4", "5")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("registers", *BETWEEN), "METRIC matches"),
        ((MISALIGNED,), "usage: "),  # --between is missing
        *(
            ((MISALIGNED, "--between", *ends), f"--between {' '.join(ends)}: no value is nearer to one end; give two")
            for ends in (("4", "4"), ("4", "inf"), ("nan", "4"))
        ),
        ((MISALIGNED, *BETWEEN), "git bisect start"),  # no bisection has begun
    ],
)
def test_wrong_call_of_the_judge_stops_git(
    words: Sequence[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`git bisect run` stops at the exit code 128. It takes 0 to 127 for verdicts."""
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.chdir(ROOT)
    assert main(["judge", *words]) == 128
    assert message in capsys.readouterr().err


def test_judge_shows_only_the_advice_of_git(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git rejects a folder of another user. To begin a bisection would not help."""
    monkeypatch.chdir(begin(tmp_path))
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert commands.judge([MISALIGNED, *BETWEEN], tmp_path) == 2
    assert capsys.readouterr().err.endswith(f"git config --global --add safe.directory {tmp_path}\n")


def test_judge_needs_one_of_several_machines(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = [commit(begin(tmp_path)), commit(tmp_path), commit(tmp_path)]
    for name in ("one", "another"):
        write(tmp_path, {commits[1]: {BENCHMARK: {CASE: 4.0}}}, name)
    git.text(tmp_path, "bisect", "start", "--no-checkout", commits[2], commits[0])
    monkeypatch.chdir(tmp_path)
    assert commands.judge([TIME, *BETWEEN], tmp_path) == 2
    assert "several machines have results" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("machine_name", "value", "compiler", "is_stored"),
    [
        ("", 4.0, "", True), ("", 0.0, "", True), ("another", 4.0, "", False), ("", 4.0, "13.5.0", False),
        ("", None, "", False), ("", math.nan, "", False),
    ],
)  # fmt: skip
def test_only_missing_numbers_are_measured(
    machine_name: str, value: Outcome, compiler: str, is_stored: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored numbers of this machine and compiler are used. Other and missing numbers are measured anew, here as 5."""
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
