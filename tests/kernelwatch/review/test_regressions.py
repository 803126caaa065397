"""`regressions`: regressions that no later commit fixed, drifts, and the report."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwatch.cli.regressions import main
from kernelwatch.config import cache_dir
from kernelwatch.review import judge
from kernelwatch.review.commit_review import Review
from kernelwatch.review.standing_regressions import Regression
from kernelwatch.show.regressions_report import render_text
from kernelwatch.show.report import COMMENT_LIMIT
from kernelwatch.store import git
from kernelwatch.store.results import History
from kernelwatch.store.source_changes import Acknowledgement, SourceChanges
from kernelwatch.workflow import load_review, steps
from kernelwatch.workflow.steps import find_regressions, list_steps
from tests.commits import begin, commit
from tests.golden import golden
from tests.kernelwatch.review.test_compare_groups import make_time
from tests.stored import COUNT, TIME, Outcome, Suite, change_document, pair, samples, write, write_lines

COMMITS = [f"{place:02x}" * 20 for place in range(1, 25)]
A, B, C, D, E = COMMITS[:5]

#: Base, head, ratio, and whether it is a drift, for each standing regression.
Stands = list[tuple[str, str, float, bool]]


def list_standing(root: Path) -> Stands:
    regressions = find_regressions(History("gpu", root), root)
    return [
        (regression.base, regression.head, round(row.judgement.ratio, 2), regression.is_drift)
        for regression in regressions
        for row in regression.rows
    ]


def write_runs(root: Path, uuids: list[str]) -> None:
    """Write run records: each of COMMITS was measured on the GPU at the same place in `uuids`."""
    lines = ({"commits": [name], "before": {"uuid": uuid}} for name, uuid in zip(COMMITS, uuids, strict=False))
    write_lines(root / "results" / "gpu" / "runs.jsonl", *lines)


#: Values of a count and a time by commit (None: failed, "": not measured), standing regressions, and broken ones.
HISTORIES: dict[str, tuple[list[float | str | None], list[tuple[str, str, float]], list[tuple[str, str]]]] = {
    "nothing": ([10, 10, 10], [], []),
    "a regression": ([10, 12, 12], [(A, B, 1.2)], []),
    "mended": ([10, 12, 10], [], []),
    "better than before": ([10, 12, 9], [], []),
    "mended in part": ([10, 12, 11], [(A, B, 1.2)], []),  # still 10 % above the first value
    "mended in steps": ([10, 12, 11, 10], [], []),
    "twice, newest first": ([10, 12, 15], [(B, C, 1.25), (A, B, 1.2)], []),
    "the second is mended": ([10, 12, 15, 12], [(A, B, 1.2)], []),
    "both are mended": ([10, 12, 15, 10], [], []),
    "again": ([10, 12, 10, 12], [(C, D, 1.2)], []),
    "not measured in between": ([10, "", 12, "", 12], [(A, C, 1.2)], []),
    "mended two commits later": ([10, 12, "", 10], [], []),
    "a speed-up is lost in part": ([10, 5, 8], [(B, C, 8 / 5)], []),  # although 8 is better than the first value
    "broken": ([10, None], [], [(A, B)]),
    "broken for long": ([10, None, None], [], [(A, B)]),
    "repaired": ([10, None, 10], [], []),
    "repaired, and worse than before it broke": ([10, None, 12], [(A, C, 1.2)], []),
    "worse, then broken": ([10, 12, None], [(A, B, 1.2)], [(B, C)]),
    "broken twice": ([10, None, 10, None], [], [(C, D)]),
    "broken from the first": ([None, None, 10], [], []),  # no commit worked before
}


@pytest.mark.parametrize("name", HISTORIES)
def test_regressions_stand_until_fixed(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A later time within the threshold, or the old count, is a fix."""
    values, worse, broken = HISTORIES[name]
    suite: Suite = {commit: {} for commit in COMMITS[: len(values)]}
    for place, (commit_hash, value) in enumerate(zip(COMMITS, values, strict=False)):
        if not isinstance(value, str):
            time = samples(value / 1e4, seed=place) if value else None
            suite[commit_hash] = {TIME: {"one": time}, COUNT: {"one": value}}
    standing = [(*span, False) for span in worse for _ in (TIME, COUNT)]  # the time and the count are equally worse
    assert list_standing(write(tmp_path, suite)) == standing
    regressions = find_regressions(History("gpu", tmp_path), tmp_path)
    assert [(regression.base, regression.head) for regression in regressions if regression.broken] == broken
    assert main([], tmp_path) == bool(regressions)
    output = capsys.readouterr().out
    for noun in ("time", "count"):
        assert output.count(f"BROKEN: 1 {noun} failed in head alone") == len(broken)


PLACES = np.arange(24)
#: A rise of 3 % in 23 steps of 0.13 %. The review finds single steps of more than 1 %.
DRIFT = 0.03 * PLACES / 23
HALVES = ["GPU-a"] * 12 + ["GPU-b"] * 12

#: Logarithms of relative times by commit, GPUs by commit, and the ends of the drift (indices in COMMITS) or None.
DRIFTS: dict[str, tuple[Any, list[str] | None, tuple[int, int] | None]] = {
    "nothing": (0 * DRIFT, None, None),
    "a drift": (DRIFT, None, (0, 23)),
    "in two steps": (0.008 * (PLACES >= 8) + 0.008 * (PLACES >= 16), None, (0, 23)),
    "less than the threshold": (0.3 * DRIFT, None, None),  # 0.9 % from the first to the last commit
    "a speed-up": (-DRIFT, None, None),
    "by one GPU": (DRIFT, ["GPU-a"] * 24, (0, 23)),
    "by another GPU each time": (DRIFT, ["GPU-a", "GPU-b"] * 12, None),
    "a slower GPU from the middle on": (0.005 * PLACES / 23 + 0.03 * (PLACES > 11), HALVES, None),
    "on the second GPU alone": (0.03 * (PLACES - 12) / 11 * (PLACES > 11), HALVES, (12, 23)),
    "after a step that the review finds": (np.where(PLACES < 12, -0.2, DRIFT), None, (12, 23)),
    "before a step that undoes it": (np.where(PLACES < 18, 0.03 * PLACES / 17, -0.2), None, None),
    "undone by a fall of many steps": (DRIFT * (PLACES < 12) + 0.03 * (23 - PLACES) / 23 * (PLACES >= 12), None, None),
    "three commits": (np.array([0, 0.008, 0.016]), None, (0, 2)),
    "two commits": (np.array([0, 0.008]), None, None),  # a single step
}


def write_times(root: Path, changes: Any) -> Path:
    """Write a time per commit, from logarithms as in DRIFTS and a noise of 0.02 %."""
    noise = np.random.default_rng(5).normal(0, 2e-4, len(changes))
    changes_of_commits = zip(COMMITS, changes, noise, strict=False)
    times = {
        commit: samples(1e-3 * float(np.exp(change + error)), seed=seed)
        for seed, (commit, change, error) in enumerate(changes_of_commits)
    }
    return write(root, {commit: {TIME: {"one": time}} for commit, time in times.items()})


@pytest.mark.parametrize(("changes", "uuids", "ends"), DRIFTS.values(), ids=DRIFTS)
def test_drifts_are_found(changes: Any, uuids: list[str] | None, ends: tuple[int, int] | None, tmp_path: Path) -> None:
    """A drift is a slow rise over several commits on one GPU, without a step that the review finds."""
    write_times(tmp_path, changes)
    write_runs(tmp_path, uuids or [])
    drifts = [(base, head, ratio) for base, head, ratio, is_drift in list_standing(tmp_path) if is_drift]
    assert [(base, head) for base, head, _ in drifts] == ([(COMMITS[ends[0]], COMMITS[ends[1]])] if ends else [])
    assert all(1.01 <= ratio < 1.035 for _, _, ratio in drifts)


def test_drift_can_be_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit in the middle of the drift adds the entry."""
    entry = Acknowledgement(TIME, "time", "accepted")

    def changes(_: Path, base: str, head: str) -> SourceChanges:
        return SourceChanges((entry,) * (base < COMMITS[12] <= head))  # hashes in COMMITS rise with their dates

    monkeypatch.setattr(load_review, "load_changes", changes)
    assert main([], write_times(tmp_path, DRIFT)) == 0


def test_reused_times_do_not_end_a_drift(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B reuses the time of A, and E that of D, so that the drift is from B to D."""
    monkeypatch.setattr(judge, "is_one_measurement", lambda _, __, pair: pair.base.samples == pair.head.samples)
    times = [samples(1e-3 * (1 + 0.008 * place)) for place in (0, 0, 1, 2, 2)]
    write(tmp_path, {commit: {TIME: {"one": time}} for commit, time in zip(COMMITS, times, strict=False)})
    assert list_standing(tmp_path) == [(B, D, 1.02, True)]


def test_unmerged_branch_is_no_predecessor(tmp_path: Path) -> None:
    """After the faster commit of the branch, the last commit would be a regression."""
    commits = [commit(begin(tmp_path)), commit(tmp_path)]
    git.text(tmp_path, "checkout", "--quiet", "-b", "feature")
    faster = commit(tmp_path)
    git.text(tmp_path, "checkout", "--quiet", "main")
    docs = commit(tmp_path, message="docs only")
    order = [*commits, faster, docs]
    values = (8.0, 8.0, 1.0, 8.0)
    write(tmp_path, {commit_hash: {COUNT: {"one": value}} for commit_hash, value in zip(order, values, strict=True)})
    history = History("gpu", tmp_path)
    listed = list_steps(history, history.graph.line)
    assert [(step.previous, step.head) for step in listed] == [(commits[0], commits[1]), (commits[1], docs)]
    assert list_standing(tmp_path) == []


#: First, the history of A to D is reviewed. Then a commit gets a new count (None: its results are removed), and the
#: steps to these heads are reviewed again: the cache has the regressions up to C and up to D, not earlier ones.
LATER: dict[str, tuple[str, float | None, list[str]]] = {
    "nothing": (E, None, []),  # E had no results before, either
    "one more": (E, 13.0, [E]),
    "the newest again": (D, 9.0, [D]),
    "the newest is gone": (D, None, []),
    "an earlier one": (B, 10.0, [B, C, D]),
    "an earlier one is gone": (B, None, [C, D]),
}


@pytest.mark.parametrize("case", LATER)
def test_cached_steps_are_not_reviewed_again(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit_hash, count, reviewed = LATER[case]
    monkeypatch.setenv(cache_dir.CACHE, str(tmp_path / "cache"))
    values = {A: 10.0, B: 10.05, C: 10.11, D: 12.0, E: 12.0}
    suite: Suite = {}
    for name, value in values.items():
        suite[name] = {TIME: {"one": samples(value / 1e4)}, COUNT: {"one": value}}
    write(tmp_path, suite)
    paths = {name: next((tmp_path / "results" / "gpu").glob(f"{name[:8]}-*")) for name in values}
    text = paths[commit_hash].read_text()
    paths[E].unlink()
    list_standing(tmp_path)
    paths[commit_hash].unlink(missing_ok=True)
    if count is not None:
        paths[commit_hash].write_text(text)
        change_document(paths[commit_hash], lambda document: document["results"][COUNT].__setitem__(0, [count]))
    heads, review_step = list[str](), steps.review_step

    def review_recorded(history: History, step: steps.HistoryStep, root: Path) -> tuple[list[Review], list[str]]:
        heads.append(step.head)
        return review_step(history, step, root)

    monkeypatch.setattr(steps, "review_step", review_recorded)
    first = list_standing(tmp_path)
    assert heads == reviewed
    monkeypatch.setenv(cache_dir.CACHE, str(tmp_path / "empty"))
    assert list_standing(tmp_path) == first, "the cache changes the result"


@pytest.fixture
def project(tmp_path: Path) -> tuple[Path, list[str]]:
    """Return a repository and its five commits: the first two and the last are measured, each slower than before."""
    begin(tmp_path, author="A @person")
    commits = [commit(tmp_path, message=f"change {number} ```") for number in range(5)]
    values = {commits[0]: 10.0, commits[1]: 12.0, commits[4]: 15.0}
    write(tmp_path, {commit_hash: {COUNT: {"one": value}} for commit_hash, value in values.items()})
    return tmp_path, commits


def test_entry_covers_regressions_up_to_its_commit(project: tuple[Path, list[str]]) -> None:
    """The entry accepts the rises to 12, 15 and 20, but not the later one from 20 to 25."""
    root, commits = project
    entry = f'[[regression]]\nkernel = "{COUNT}"\nnumber = "sectors"\nreason = "accepted"\n'
    accepted, later = commit(root, {"acknowledged.toml": entry}), commit(root)
    assert [head for _, head, *_ in list_standing(root)] == [commits[4], commits[1]]
    write(root, {accepted: {COUNT: {"one": 20.0}}, later: {COUNT: {"one": 25.0}}})
    assert list_standing(root) == [(accepted, later, 1.25, False)]


@pytest.mark.parametrize(
    ("last", "uuids", "stand"),
    [(samples(1e-3), ["x", "x", "y"], True), (1e-3, [], True), (samples(1.005e-3), [], False)],
    ids=["by another GPU", "without samples", "within the threshold"],
)
def test_only_a_comparable_time_fixes_a_regression(
    last: Outcome, uuids: list[str], stand: bool, tmp_path: Path
) -> None:
    """A regression ends with a later time with samples, by the same GPU, within the threshold."""
    write(tmp_path, {A: {TIME: {"one": samples(1e-3)}}, B: {TIME: {"one": samples(1.05e-3)}}, C: {TIME: {"one": last}}})
    write_runs(tmp_path, uuids)
    assert list_standing(tmp_path) == [(A, B, 1.05, False)] * stand


def test_reports_of_regressions(
    project: tuple[Path, list[str]], tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    (root, commits), folder = project, tmp_path_factory.mktemp
    quiet = write(folder("quiet"), pair(1.0, 1.0, COUNT))
    drifts, one_step = write_times(folder("drifts"), DRIFT), write(folder("steps"), pair(1.0, 2.0, COUNT))
    text = ""
    for project_root in (root, drifts, one_step, quiet):
        text += f"== {main([], project_root)}\n{capsys.readouterr().out}"
    shown, expected = golden("regressions.txt", text, {f"{place}": commit for place, commit in enumerate(commits)})
    assert shown == expected


def test_json_marks_drifts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json"], write_times(tmp_path, DRIFT)) == 1
    (regression,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["regressions"]
    assert (regression["is_drift"], regression["rows"][0]["name"]) == (True, f"{TIME}(one)")


def test_machine_without_results_is_an_error(tmp_path: Path) -> None:
    assert main(["--machine", "none"], write(tmp_path, pair(1.0, 2.0, COUNT))) == 2


def test_commands_quote_the_machine(tmp_path: Path) -> None:
    text = render_text([Regression("my gpu", A, B, (make_time(12),))], tmp_path, "")
    assert text.count("--machine 'my gpu'") == 2  # `compare` and `bisect`


def test_long_report_is_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report lists 12 of 15 regressions, and 12 of the 60 numbers of each."""
    names = [f"track_counted.X{number}{'x' * 100}.track_sectors" for number in range(60)]
    write(tmp_path, {commit: {name: {"@" * 230: 1.0 + n} for name in names} for n, commit in enumerate(COMMITS[:16])})
    assert main([], tmp_path) == 1
    text = capsys.readouterr().out
    assert len(text) <= COMMENT_LIMIT
    assert (text.count("REGRESSION"), text.count(f"\nnot listed: {60 - 12} more\n")) == (12, 12)
    assert f"\n{15 - 12} more: kernelwatch regressions --json\n" in text
