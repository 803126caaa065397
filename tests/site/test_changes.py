"""What Overview, the page of a commit and Regressions are made of, against the review and git themselves."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest
from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.plugins.git import Git
from asv.repo import get_repo

from kernelwatch.project import ROOT
from kernelwatch.review.commits import find
from kernelwatch.review.comparison import compare
from kernelwatch.review.consecutive import consecutive
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Judgement, Verdict
from kernelwatch.show.site import commits, pages, publisher, words
from kernelwatch.show.site.changes import COUNTS, _cost, _counted, _cubins, _folded
from kernelwatch.show.site.overview import _explain, _of_arch, overview
from kernelwatch.show.site.tiles import sparkline, tiles
from kernelwatch.store import folders, record
from kernelwatch.store.cubins import Cubins
from kernelwatch.store.record import CUBINS_FILE
from kernelwatch.store.results import History
from tests.commits import begin
from tests.commits import commit as made
from tests.site import made_up
from tests.site.known import MACHINE, git
from tests.stored import BASE, COUNT, HEAD, pair, write

pytestmark = pytest.mark.history


@pytest.fixture(scope="module")
def shown(site: Path, stored: Path) -> Any:
    """What the pages tell: what the site was made from is kept."""
    config = Config.load(str(ROOT / "asv.conf.json"))
    config.results_dir, config.repo = str(stored), str(ROOT)
    known, told, _ = publisher.tell(config, get_repo(config), Benchmarks.load(config))
    return overview(told, known)


def _change(shown: Any, machine: str, head: str) -> Any:
    (found,) = (
        change for change in shown["changes"] if change["machine"] == machine and change["head"].startswith(head)
    )
    return found


@pytest.mark.parametrize(("base", "head"), [("f22cf79", "926c240"), ("98a96e0", "740a787"), ("4df5b48", "a962974")])
def test_verdicts_are_those_of_the_review(
    shown: Any, stored: Path, base: str, head: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kernel has as many slower and faster times as the review of the same two commits."""
    monkeypatch.setenv(folders.RESULTS, str(stored))
    (sides,) = find(base, head, MACHINE, ROOT)
    review = compare(sides, ROOT)
    change = _change(shown, MACHINE, head)
    for verdict, name in ((Verdict.SLOWER, "slower"), (Verdict.FASTER, "faster")):
        timed = [row for row in review.rows if row.kind == "timed" and row.judgement.verdict is verdict]
        for kernel in {group["kernel"] for group in change["groups"]}:
            expected = sum(row.kernel == kernel for row in timed)
            assert sum(group[name] for group in change["groups"] if group["kernel"] == kernel) == expected
            assert change["kernels"][kernel][name] == expected


def test_each_configuration_is_compared_with_the_last_commit_that_measured_it(shown: Any) -> None:
    """Runs between measured other kernels only: those of the newest commit are compared with an older one."""
    newest = _change(shown, MACHINE, "ab7cbc0")
    assert newest["previous"].startswith("4d2e91a")
    assert newest["base"].startswith("952ced2")
    assert newest["kernels"]["transpose_vectorized"]["times"] > 0
    assert newest["kernels"]["stride_copy"]["times"] > 0
    assert _change(shown, MACHINE, "f30f4e4")["base"] is None  # the first to measure its kernel, and nothing else


def test_fewer_conflicts_are_no_regression(shown: Any) -> None:
    """Lower is better for counts: what removed bank conflicts is faster, with its reason beside it."""
    change = _change(shown, MACHINE, "926c240")
    assert change["kernels"]["transpose_read_write_coalesced"]["verdict"] == "faster"
    (group,) = (group for group in change["groups"] if group["flags"] == "-Xptxas -O3")
    assert [said.partition(" ")[0] for said, _ in group["evidence"]][:2] == ["machine", "bank"]


def test_what_another_machine_counted_stands_beside_times(shown: Any) -> None:
    """The GPU's run counted nothing: the counts of the same commits are the reason, and are told once."""
    group = _change(shown, MACHINE, "4df5b48")["groups"][0]
    assert (group["flags"], group["counted_on"]) == ("-Xptxas -O0", "no-gpu-x86_64")
    assert ["136 more spill bytes (1 of 5)", []] in group["evidence"]
    assert all(each["told"] for each in _change(shown, "no-gpu-x86_64", "4df5b48")["groups"])
    assert not any(each["told"] for each in _change(shown, "no-gpu-x86_64", "ab7cbc0")["groups"])


def test_what_is_acknowledged_is_shown_with_its_reason(shown: Any) -> None:
    """It is no regression any more, and it is still there."""
    change = _change(shown, "no-gpu-x86_64", "ab7cbc0")
    accepted = [group for group in change["groups"] if group["accepted"]]
    assert {(group["kernel"], group["verdict"]) for group in accepted} == {("matmul_tiled", "acknowledged")}
    assert all(group["accepted"] == [made_up.ACCEPTED] for group in accepted)
    registers = [group for group in accepted if any("registers" in said for said, _ in group["evidence"])]
    assert sum(group["acknowledged"] for group in registers) == change["kernels"]["matmul_tiled"]["acknowledged"] > 0
    assert not any(group["more"] + group["cost"] for group in registers)


@pytest.mark.parametrize(
    ("archs", "arch", "holds"),
    [(["sm_80", "sm_90"], "sm_90", True), (["sm_80"], "sm_90", False), (["sm_80"], None, True), ([], "sm_90", True)],
)
def test_evidence_is_of_the_machines_architecture(archs: list[str], arch: str | None, holds: bool) -> None:
    """What holds on others is left out."""
    assert list(_of_arch([("registers +3.0 %", archs)], arch)) == [["registers +3.0 %", []]] * holds


def _group(machine: str, *, elsewhere: bool = False, **counts: int) -> dict[str, Any]:
    """A change of one group, on one machine."""
    group = {
        **dict.fromkeys(COUNTS, 0), "kernel": "k", "flags": "-O3", "base": "b", "elsewhere": elsewhere,
        "timed": "slower" in counts, "evidence": [["registers +3.0 %", []]], **counts,
    }  # fmt: skip
    return {"head": "h", "machine": machine, "arch": "sm_90", "groups": [group]}


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_was_compiled_for_other_gpus_explains_no_time(elsewhere: bool) -> None:
    """Only what another machine counted for the same one stands beside times."""
    timed, counted = _group("gpu", slower=1), _group("cpu", more=1, elsewhere=elsewhere)
    _explain([timed, counted])
    assert timed["groups"][0]["counted_on"] == (None if elsewhere else "cpu")
    assert counted["groups"][0]["told"] is not elsewhere
    assert [group for _, each in pages._heads([timed, counted]) for _, group in each] == timed["groups"]


@pytest.mark.parametrize(
    ("counts", "shown"),
    [
        ({"slower": 1, "fewer": 1}, ["slower, or more", "slower"]),
        ({"faster": 1, "more": 1}, ["faster, or fewer"]),
        ({"more": 1}, ["slower, or more"]),
        ({"fewer": 1}, ["faster, or fewer"]),
        ({"acknowledged": 1}, ["acknowledged"]),
        ({"undecided": 1}, []),
        ({"broken": 1}, ["slower, or more"]),
        ({"failed": 1}, ["slower, or more"]),
        ({"repaired": 1}, ["faster, or fewer"]),
    ],
)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_regressions_can_show(counts: dict[str, int], shown: list[str], elsewhere: bool) -> None:
    """Numbers beside times are these times' matter; those of other architectures are shown with every change alone."""
    (group,) = _group("gpu", elsewhere=elsewhere, **counts)["groups"]
    kept = [name for name in shown if not (elsewhere and ", or " in name)]
    assert [name for name, belongs in pages.SHOWN.items() if belongs(group)] == [*kept, "every change"]


@pytest.mark.parametrize(
    ("counts", "word"),
    [
        ({"slower": 1, "more": 1}, "slower"),
        ({"faster": 2, "undecided": 1}, "faster"),
        ({"slower": 1, "faster": 1}, "mixed"),
        ({"more": 1}, "more"),
        ({"fewer": 1, "acknowledged": 1}, "fewer"),
        ({"undecided": 1, "acknowledged": 1}, "undecided"),
        ({"acknowledged": 1, "noted": 1}, "acknowledged"),
        ({"fewer": 1, "noted": 9}, "fewer"),
        ({"noted": 1}, "noted"),
        ({"broken": 1, "slower": 1}, "broken"),
        ({"failed": 1, "faster": 1}, "failed"),
        ({"repaired": 1, "noted": 1}, "repaired"),
        ({}, "same"),
    ],
)
def test_one_word(counts: dict[str, int], word: str) -> None:
    """What changed counts more than what is in doubt, and that more than what is accepted."""
    assert _counted(dict.fromkeys(COUNTS, 0) | counts)["verdict"] == word


@pytest.mark.parametrize(
    ("base", "head", "word"), [(1.0, None, "broken"), (None, None, "failed"), (None, 1.0, "repaired")]
)
def test_what_fails_is_a_row(base: float | None, head: float | None, word: str, tmp_path: Path) -> None:
    """A kernel that fails everywhere has a state and a row, with the reason; a commit without values is compared."""
    write(tmp_path, pair(base, head, COUNT))
    failed = [{"commit": one, "benchmark": COUNT, "reason": "wrong", "configurations": 1} for one in (BASE, HEAD)]
    line = {"commits": [BASE, HEAD], "failed": failed, "before": {}}
    (tmp_path / "results" / "gpu" / record.FILE).write_text(json.dumps(line) + "\n")
    history = History("gpu", tmp_path)
    (step,) = consecutive(history)
    results = history.commit(HEAD)
    assert results is not None
    assert history.values(results, COUNT) == [head]  # a file has null where all failed
    folded = _folded(step.comparisons)
    (group,) = folded["groups"]
    assert (folded["base"], folded["kernels"][COUNT]["verdict"]) == (BASE, word)
    assert (group["kernel"], group["verdict"], group["evidence"]) == (COUNT, word, [["wrong", []]])
    assert words.cell(folded["kernels"][COUNT]) == f"{words.SIGNS[word]} 1"


def _row(ratio: float, verdict: Verdict) -> Row:
    return Row("n", "timed", "seconds", 1.0, ratio, Judgement(verdict, ratio))


def test_cost() -> None:
    """What became slower, over all that was measured; however much, ten times at most. What decides nothing is free."""
    same = [_row(1.0, Verdict.SAME)] * 3
    assert _cost([_row(1.1, Verdict.SLOWER), *same, _row(2.0, Verdict.NOTED)]) == pytest.approx(math.log(1.1) / 5)
    assert _cost([_row(1.1, Verdict.SLOWER), *same]) == pytest.approx(math.log(1.1) / 4)
    assert _cost([_row(1e9, Verdict.SLOWER), _row(0.5, Verdict.FASTER)]) == pytest.approx(math.log(10) / 2)
    assert _cost([]) == 0


def test_cubins_that_differ(tmp_path: Path) -> None:
    """Of those that both commits have; of each kernel and architecture."""
    before = {"a float32 -Xptxas -O3": "1", "a float64 -Xptxas -O3": "2", "b float32 -Xptxas -O3": "3"}
    after = {**before, "a float64 -Xptxas -O3": "4", "c float32 -Xptxas -O3": "5"}
    lines = [{"commit": commit, "arch": "sm_90", "cubins": each} for commit, each in (("x", before), ("y", after))]
    (folder := tmp_path / "m").mkdir()
    (folder / CUBINS_FILE).write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    assert [(each["kernel"], each["changed"], each["of"]) for each in _cubins(Cubins(folder), "x", "y")] == [
        ("a", 1, 2),
        ("b", 0, 1),
    ]


def test_commits_are_those_of_git(shown: Any) -> None:
    """Every measured commit, with subject, author and files; a machine's are oldest first."""
    assert shown["machines"][MACHINE]["newest"] == History(MACHINE).commits()[-1]
    every = {commit for name in folders.machines(ROOT / "results") for commit in History(name).commits()}
    assert set(shown["commits"]) == every
    for commit in list(shown["commits"])[::5]:
        facts = shown["commits"][commit]
        assert (facts["subject"], facts["author"]) == (git("%s", commit), git("%an", commit))
        assert set(facts["files"]) == set(git("", commit, "--name-only").split("\n"))


def test_commits_whose_texts_hold_separators(tmp_path: Path) -> None:
    """Whatever git lets a name and a subject hold; a commit that it does not know is left out."""
    author, subject = "A\x1f\x1eB\u2028C", "one\x1f\x1etwo\u2028three\x0cfour"
    root = begin(tmp_path / "repository", author)
    hashes = [made(root, {f"gpu_kernels/{number} ä": "x"}, subject) for number in range(3)]
    repo = Git(str(root), str(tmp_path / "mirror"))
    found = commits.described(repo, [*hashes, "0" * 40])
    assert list(found) == hashes
    for number, facts in enumerate(found.values()):
        assert (facts["author"], facts["subject"]) == (author, subject)
        assert facts["files"] == [f'"gpu_kernels/{number} \\303\\244"']
    touching = [{"commit": each, "subject": subject} for each in reversed(hashes[1:])]
    assert commits.between(repo, hashes[0], hashes[2]) == {"count": 2, "touching": touching}


def test_lines_are_where_the_kernel_is_defined(shown: Any) -> None:
    """At the commit that changed it, not where it stands today."""
    found = [(change["head"], *item) for change in shown["changes"] for item in change["lines"].items()]
    assert len(found) > 5
    for commit, kernel, place in found[::3]:
        words = ["git", "show", f"{commit}:{place['file']}"]
        source = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
        assert f"{kernel}(" in source[place["line"] - 1]


def test_commits_that_may_have_made_a_change(shown: Any) -> None:
    """Of every row those since the last commit that measured the same, and of them those that touch the kernels."""
    rows = {(group["base"], change["head"]): change for change in shown["changes"] for group in change["groups"]}
    assert {change["between"][base]["count"] > 1 for (base, _), change in rows.items()} == {True, False}
    for (base, head), change in list(rows.items())[::4]:
        words = ["git", "log", "--format=%H", f"{base}..{head}"]
        every, touching = (
            subprocess.run([*words, *more], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
            for more in ([], ["--", "gpu_kernels"])
        )
        found = change["between"][base]
        assert (found["count"], [one["commit"] for one in found["touching"]]) == (len(every), touching[:50])


def test_tiles_are_the_newest_times(shown: Any) -> None:
    """The rate of the newest commit, and its share of a copy, from the stored values."""
    history = History(MACHINE)
    tiles = {tile["kernel"]: tile for tile in shown["machines"][MACHINE]["tiles"]}
    tile = tiles["transpose_vectorized"]
    newest = history.commit(tile["newest"])
    assert newest is not None
    copies = history.value(newest, "track_control.Transpose.track_copy_ratio", tile["params"])
    assert copies is not None
    assert tile["copy"] == pytest.approx(100 / copies)
    peaks = {run.get("peak_bytes_per_second") for run in record.read(ROOT / "results", MACHINE)} - {None}
    assert tile["peak"] == pytest.approx(1e11 * tile["rates"][-1][1] / peaks.pop())
    assert not peaks
    # A sum of vectors computes less than an operation a byte: memory limits it.
    assert (tiles["matmul_tiled"]["unit"], tiles["add_coalesced"]["unit"]) == ("GFLOP/s", "GB/s")
    assert not shown["machines"]["no-gpu-x86_64"]["tiles"]


def test_a_higher_rate_stands_higher() -> None:
    """From 0, which is the lower edge, to the highest; one commit alone stands in the middle."""
    (left, low), (middle, high), (right, half) = sparkline([("a", 0.0), ("b", 4.0), ("c", 2.0)])
    assert left < middle < right
    assert low > half > high
    assert low + high == 2 * half
    assert sparkline([("a", 3.0)]) == [(100, high)]


def test_a_tile_has_the_peak_of_the_gpu_that_took_its_newest_time(tmp_path: Path) -> None:
    """Another GPU of the machine, before, may have had another one."""
    folder, config = made_up.bare(tmp_path), Config.load(str(ROOT / "asv.conf.json"))
    config.results_dir = str(folder)

    def tile() -> Any:
        return next(one for one in tiles(History(MACHINE, config=config)) if one["kernel"] == "transpose_vectorized")

    before, runs = tile(), record.read(folder, MACHINE)
    for run in runs:
        if before["newest"] in run["commits"]:
            run["peak_bytes_per_second"] *= 2
    (folder / MACHINE / record.FILE).write_text("".join(f"{json.dumps(run)}\n" for run in runs), encoding="utf-8")
    assert tile()["peak"] == pytest.approx(before["peak"] / 2)


def test_what_overview_leads_with() -> None:
    """Of the newest commit with a slower time the costliest, mixed ones last; the same of faster ones, if there are."""
    change = _group("gpu", slower=1, faster=1, cost=9)
    for kernel, cost in (("cheap", 1), ("dear", 2)):
        (group,) = _group("gpu", slower=1, cost=cost)["groups"]
        change["groups"].append({**group, "kernel": kernel})
    slower, faster = pages._leads([_group("gpu", more=1), change, _group("gpu", slower=1, cost=20)])
    assert [group["kernel"] for group in slower["groups"]] == ["dear", "cheap", "k"]
    assert [group["kernel"] for group in faster["groups"]] == ["k"]
    assert slower["change"] is faster["change"] is change


def test_rows_are_the_costliest_first(shown: Any) -> None:
    """What became slower, most of all first: a configuration by how much, over all that were measured."""
    rows = [group for change, group in pages._rows(shown["changes"]) if group["slower"]]
    costs = [group["cost"] for group in rows]
    assert costs == sorted(costs, reverse=True)
    assert min(costs) > 0
