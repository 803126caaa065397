"""What Overview and the pages of commits are made of, against the review and git themselves."""

from __future__ import annotations

import json
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
from kernelwatch.review.verdict import Verdict
from kernelwatch.show.site import commits, data, overview, words
from kernelwatch.show.site.changes import (
    COUNTS,
    _groups,
    _recompiled,
    changed_names,
    changes,
    counted,
    explain,
    of_arch,
)
from kernelwatch.show.site.overview import Shown
from kernelwatch.store import folders, record
from kernelwatch.store.cubins import Cubins
from kernelwatch.store.record import CUBINS_FILE
from kernelwatch.store.results import History
from tests.commits import begin
from tests.commits import commit as made
from tests.site import made_up
from tests.site.known import COMPILED_ON, MACHINE
from tests.stored import BASE, COUNT, HEAD, pair, write

pytestmark = pytest.mark.history


@pytest.fixture(scope="module")
def shown(stored: Path) -> dict[str, Shown]:
    """Two machines as the pages are made from them."""
    config = Config.load(str(ROOT / "asv.conf.json"))
    config.results_dir, config.repo = str(stored), str(ROOT)
    names, found = list(Benchmarks.load(config)), {}
    for name in (MACHINE, COMPILED_ON):
        history = History(name, config=config)
        found[name] = Shown(history, data.values(history, names), list(changes(history, get_repo(config))))
    explain(change for each in found.values() for change in each.changes)
    return found


def _change(shown: dict[str, Shown], machine: str, head: str) -> Any:
    (found,) = (change for change in shown[machine].changes if change["head"].startswith(head))
    return found


@pytest.mark.parametrize(("base", "head"), [("f22cf79", "926c240"), ("98a96e0", "740a787"), ("4df5b48", "a962974")])
def test_verdicts_are_those_of_the_review(
    shown: dict[str, Shown], stored: Path, base: str, head: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kernel has as many slower and faster times as the review of all of the same two commits."""
    monkeypatch.setenv(folders.RESULTS, str(stored))
    (sides,) = find(base, head, MACHINE, ROOT)
    review = compare(sides, ROOT)
    change = _change(shown, MACHINE, head)
    assert change["base"].startswith(base)
    for verdict, name in ((Verdict.SLOWER, "slower"), (Verdict.FASTER, "faster")):
        timed = [row for row in review.rows if row.kind == "timed" and row.judgement.verdict is verdict]
        for kernel in {group["kernel"] for group in change["groups"]}:
            expected = sum(row.kernel == kernel for row in timed)
            assert sum(group[name] for group in change["groups"] if group["kernel"] == kernel) == expected


T, T2 = "time_a.A.time_x(1)", "time_a.A.time_x(2)"
C, C2, D = (f"track_counted.{name}(1)" for name in ("A.track_s", "A.track_t", "B.track_s"))


@pytest.mark.parametrize(
    ("head", "asked"),
    [
        ({}, []),
        ({T: 1.0099}, []),
        ({T: 1.01}, [T, T2]),
        ({T: 0.99}, [T, T2]),
        ({T: None}, [T, T2]),
        ({C: 1.001}, [C, C2]),
        ({D: 0.0}, [D]),
        ({T2: 2.0, D: None}, [T, T2, D]),
    ],
)
def test_what_a_review_looks_at(head: dict[str, float | None], asked: list[str]) -> None:
    """All times if one moved by 1 %, or fails; of numbers all of a class in which one is another; else nothing."""
    base: dict[str, float | None] = dict.fromkeys((T, T2, C, C2, D), 1.0)
    assert changed_names(base, base, base | head) == set(asked)


def test_each_configuration_is_compared_with_the_last_commit_that_measured_it(shown: dict[str, Shown]) -> None:
    """Runs between measured other kernels only: those of the newest commit are compared with an older one."""
    newest = _change(shown, MACHINE, "ab7cbc0")
    assert newest["previous"].startswith("4d2e91a")
    assert newest["base"].startswith("952ced2")
    assert newest["timed"] > 500
    assert _change(shown, MACHINE, "f30f4e4")["base"] is None  # the first to measure its kernel, and nothing else


def test_what_another_machine_counted_stands_beside_times(shown: dict[str, Shown]) -> None:
    """The GPU's run counted nothing: the counts of the same commits are the reason, and are told once."""
    group = _change(shown, MACHINE, "4df5b48")["groups"][0]
    assert (group["flags"], group["counted_on"]) == ("-Xptxas -O0", COMPILED_ON)
    assert ["136 more spill bytes (1 of 5)", []] in group["evidence"]
    assert all(each["told"] for each in _change(shown, COMPILED_ON, "4df5b48")["groups"])
    assert not any(each["told"] for each in _change(shown, COMPILED_ON, "ab7cbc0")["groups"])


def test_what_is_acknowledged_is_shown_with_its_reason(shown: dict[str, Shown]) -> None:
    """It is no regression any more, and it is still there."""
    change = _change(shown, COMPILED_ON, "ab7cbc0")
    accepted = [group for group in change["groups"] if group["accepted"]]
    assert {(group["kernel"], group["verdict"]) for group in accepted} == {("matmul_tiled", "acknowledged")}
    assert all(group["accepted"] == [made_up.ACCEPTED] for group in accepted)


@pytest.mark.parametrize(
    ("archs", "arch", "holds"),
    [(["sm_80", "sm_90"], "sm_90", True), (["sm_80"], "sm_90", False), (["sm_80"], None, True), ([], "sm_90", True)],
)
def test_evidence_is_of_the_machines_architecture(archs: list[str], arch: str | None, holds: bool) -> None:
    """What holds on others is left out."""
    assert list(of_arch([("registers +3.0 %", archs)], arch)) == [["registers +3.0 %", []]] * holds


def _group(machine: str, *, elsewhere: bool = False, **facts: Any) -> dict[str, Any]:
    """A change of one group, on one machine."""
    group = {
        **dict.fromkeys(COUNTS, 0), "kernel": "k", "flags": "-O3", "base": "b", "elsewhere": elsewhere, "told": False,
        "timed": "slower" in facts, "evidence": [["registers +3.0 %", []]], "means": [], "size": 1.0, "times": 4,
        "configurations": "2 rose", "of": {"benchmark": COUNT}, **facts,
    }  # fmt: skip
    group["verdict"] = counted(group)["verdict"]
    return {"head": "h", "machine": machine, "arch": "sm_90", "base": "b", "groups": [group]}


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_was_compiled_for_other_gpus_explains_no_time(elsewhere: bool) -> None:
    """Only what another machine counted for the same one stands beside times."""
    timed, numbers = _group("gpu", slower=1), _group("cpu", more=1, elsewhere=elsewhere)
    explain([timed, numbers])
    assert timed["groups"][0]["counted_on"] == (None if elsewhere else "cpu")
    assert numbers["groups"][0]["told"] is not elsewhere
    assert words.changed([timed, numbers]) == timed["groups"]


SLOWER = {"slower": 4, "means": ["+4.4 %"]}
SENTENCES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "nothing": ([], "Nothing changed."),
    "all times": ([SLOWER], "k is 4.4 % slower; nothing else changed."),
    "some times": ([{**SLOWER, "slower": 3}], "k is 4.4 % slower in 3 of 4 times; nothing else changed."),
    "both ways": (
        [{"slower": 1, "faster": 2, "means": ["+4 %", "-9 %"]}],
        "k is 4 % slower in 1 time, 9 % faster in 2; nothing else changed.",
    ),
    "a number": ([{"rose": 2}], "k: registers +3.0 %; nothing else changed."),
    "what fails comes first": (
        [SLOWER, {"kernel": "l", "broken": 1}],
        "l fails; k is 4.4 % slower; nothing else changed.",
    ),
    "the larger first": (
        [SLOWER, {**SLOWER, "kernel": "l", "means": ["+9 %"], "size": 2.0}, {"kernel": "m", "fell": 1}],
        "l is 9 % slower; k is 4.4 % slower; 1 more kernel changed.",
    ),
    "what decides nothing": ([{"noted": 3}, {"undecided": 1}, {"acknowledged": 1}], "Nothing changed."),
    "works again": ([{"repaired": 1}], "k works again; nothing else changed."),
}  # fmt: skip


@pytest.mark.parametrize(("groups", "said"), SENTENCES.values(), ids=SENTENCES)
def test_a_commit_in_a_sentence(groups: list[dict[str, Any]], said: str) -> None:
    """The worst two kernels, and how many more."""
    change = {**_group("gpu"), "groups": [_group("gpu", **each)["groups"][0] for each in groups]}
    assert words.sentence([change]) == said


@pytest.mark.parametrize(
    ("counts", "word"),
    [
        ({"slower": 1, "rose": 1}, "slower"),
        ({"faster": 2, "undecided": 1}, "faster"),
        ({"slower": 1, "faster": 1}, "mixed"),
        ({"rose": 1}, "rose"),
        ({"fell": 1, "acknowledged": 1}, "fell"),
        ({"undecided": 1, "acknowledged": 1}, "undecided"),
        ({"acknowledged": 1, "noted": 1}, "acknowledged"),
        ({"fell": 1, "noted": 9}, "fell"),
        ({"noted": 1}, "noted"),
        ({"broken": 1, "slower": 1}, "broken"),
        ({"failed": 1, "faster": 1}, "failed"),
        ({"repaired": 1, "noted": 1}, "repaired"),
        ({}, "same"),
    ],
)
def test_one_word(counts: dict[str, int], word: str) -> None:
    """What changed counts more than what is in doubt, and that more than what is accepted."""
    assert counted(counts)["verdict"] == word


@pytest.mark.parametrize(
    ("base", "head", "word"), [(1.0, None, "broken"), (None, None, "failed"), (None, 1.0, "repaired")]
)
def test_what_fails_is_a_row(base: float | None, head: float | None, word: str, tmp_path: Path) -> None:
    """A kernel that fails everywhere has a row, with the reason; a commit without values is compared."""
    write(tmp_path, pair(base, head, COUNT))
    failed = [{"commit": one, "benchmark": COUNT, "reason": "wrong", "configurations": 1} for one in (BASE, HEAD)]
    line = {"commits": [BASE, HEAD], "failed": failed, "before": {}}
    (tmp_path / "results" / "gpu" / record.FILE).write_text(json.dumps(line) + "\n")
    history = History("gpu", tmp_path)
    (step,) = consecutive(history)
    (group,) = _groups(step.comparisons)
    assert (group["kernel"], group["base"], group["verdict"], group["evidence"]) == (COUNT, BASE, word, [["wrong", []]])


def test_a_picture_is_before_and_after_by_size(shown: dict[str, Shown]) -> None:
    """Of one dtype and one set of flags, the sizes ascending, as rates of the stored times."""
    change = _change(shown, MACHINE, "740a787")
    group = next(each for each in change["groups"] if each["kernel"] == "transpose_write_coalesced")
    picture = group["picture"]
    assert (picture["axis"], picture["unit"]) == ("rows x columns", "GB/s")
    places = [row["place"] for row in picture["rows"]]
    assert places == ["256x256", "1024x1024", "2048x2048", "5003x2999", "4096x4096", "8192x8192", "12800x12800"]
    history, params = shown[MACHINE].history, dict(zip(("dtype", "flags"), picture["fixed"].split(", "), strict=True))
    params |= {"kernel": group["kernel"], "rows x columns": "4096x4096"}
    for side, commit in (("before", change["base"]), ("after", change["head"])):
        results = history.commit(commit)
        assert results is not None
        seconds = history.value(results, "time_transpose.Transpose.time_back_to_back", params)
        size = {"int8": 1, "float16": 2, "float32": 4, "float64": 8, "complex128": 16}[params["dtype"]]
        assert picture["rows"][4][side] == pytest.approx(2 * 4096**2 * size / (seconds or 0) / 1e9)


def test_overview_is_the_newest_numbers(shown: dict[str, Shown]) -> None:
    """Times in copies, where there are times; a share of a copy of what memory limits; marks where code changed."""
    rows = {row["kernel"]: row["cells"] for row in overview.rows(shown)}
    assert "" not in rows
    cell, history = rows["transpose_vectorized"][MACHINE], shown[MACHINE].history
    newest = history.commit(cell["newest"])
    assert newest is not None
    copies = history.value(newest, "track_control.Transpose.track_copy_ratio", cell["of"]["params"])
    assert copies is not None
    assert (cell["unit"], cell["series"][-1], cell["share"]) == ("copies", (cell["newest"], copies), 1 / copies)
    assert rows["matmul_tiled"][MACHINE]["share"] is None
    assert [cell["newest"], cell["verdict"]] == [history.graph.line[-1], "mixed"]
    assert rows["stride_copy"][MACHINE]["verdict"] == "same"
    assert rows["offset_copy"][COMPILED_ON]["unit"] == "sectors"
    changed = rows[made_up.CHANGED][MACHINE]
    codes = [commit for commit, said in changed["marks"].items() if "machine code changed" in said]
    assert codes == [changed["series"][1][0]]


def test_a_sparkline() -> None:
    """Higher numbers stand higher; a fifth of the value fills the height, or the range; one stands in the middle."""
    assert words.line([("a", 3.0), ("b", 1.0), ("c", 3.0)]) == [("a", 6.0, 6.0), ("b", 64.0, 30.0), ("c", 122.0, 6.0)]
    assert words.line([("a", 3.0)]) == [("a", 64, 18.0)]
    assert [y for _, _, y in words.line([("a", 101.0), ("b", 99.0)])] == [16.8, 19.2]


def test_short_names() -> None:
    """Without maker and memory, unless two would have one name; what is neither stays as it is."""
    names = ["nvidia-h200", "nvidia-h100-80gb-hbm3", "nvidia-geforce-rtx-3090", "no-gpu-x86_64", "mine"]
    assert list(words.short_names(names).values()) == ["H200", "H100", "RTX 3090", "no GPU", "mine"]
    twice = ["nvidia-h100-80gb-hbm3", "nvidia-h100-94gb"]
    assert words.short_names(twice) == dict(zip(twice, twice, strict=True))


def test_cubins_that_differ(tmp_path: Path) -> None:
    """Of those that both commits have, by kernel."""
    before = {"a float32 -Xptxas -O3": "1", "a float64 -Xptxas -O3": "2", "b float32 -Xptxas -O3": "3"}
    after = {**before, "a float64 -Xptxas -O3": "4", "c float32 -Xptxas -O3": "5"}
    lines = [{"commit": commit, "arch": "sm_90", "cubins": each} for commit, each in (("x", before), ("y", after))]
    (folder := tmp_path / "m").mkdir()
    (folder / CUBINS_FILE).write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    assert _recompiled(Cubins(folder), "x", "y") == {"a": ["sm_90"], "b": []}


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


KERNEL = "__global__ void k(int* p)\n{\n    p[threadIdx.x] = 0;\n}\n"

#: What a commit changes -> the lines that its page shows: number, whether it is new, text.
CHANGED_LINES: dict[str, tuple[dict[str, str], list[tuple[int, bool, str]]]] = {
    "a line of the kernel's file": (
        {"gpu_kernels/k.cu": KERNEL.replace("= 0", "= 1")},
        [(3, False, "    p[threadIdx.x] = 0;"), (3, True, "    p[threadIdx.x] = 1;")],
    ),
    "a line beside a comment, and one that only moved": (
        {"gpu_kernels/k.cu": f"// ++ why\n\n{KERNEL[26:]}++ int n;\n{KERNEL[:26]}"},
        [(6, True, "++ int n;")],
    ),
    "a comment alone": ({"gpu_kernels/k.cu": f"// why\n{KERNEL}"}, [(1, True, "// why")]),
    "what the kernel's file includes": ({"gpu_kernels/k.cuh": "#define N 2\n"}, [(1, True, "#define N 2")]),
    "what is not measured": ({"README.md": "more\n"}, []),
}


@pytest.mark.parametrize(("files", "expected"), CHANGED_LINES.values(), ids=CHANGED_LINES)
def test_source_lines_that_changed(
    files: dict[str, str], expected: list[tuple[int, bool, str]], tmp_path: Path
) -> None:
    """Those of the files that define the kernels, or else of all that is measured."""
    root = begin(tmp_path / "repository")
    base, head = made(root, {"gpu_kernels/k.cu": KERNEL, "gpu_kernels/catalog.py": ""}), made(root, files)
    found = commits.changed_lines(Git(str(root), str(tmp_path / "mirror")), base, head, ["k"])
    assert [(each["number"], each["is_new"], each["text"]) for each in found] == expected
    assert {each["file"] for each in found} <= files.keys()


def test_what_git_says_of_a_change(shown: dict[str, Shown]) -> None:
    """How many commits since the base touch the kernels."""
    for change in [each for each in shown[MACHINE].changes if each["groups"]][::3]:
        for base, found in change["between"].items():
            words_ = ["git", "log", "--format=%H", f"{base}..{change['head']}"]
            every, touching = (
                subprocess.run([*words_, *more], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
                for more in ([], ["--", "gpu_kernels"])
            )
            assert (found["count"], [one["commit"] for one in found["touching"]]) == (len(every), touching[:50])
