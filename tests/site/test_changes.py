"""Values of Overview and of pages of commits, against the review and git."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asv.config import Config
from asv.plugins.git import Git
from asv.repo import get_repo

from kernelwatch.config.project_root import ROOT
from kernelwatch.review.verdict import Verdict
from kernelwatch.show.site import commits, words
from kernelwatch.show.site.changes import COUNTS, load_changes, rank_row, select_configurations, summarize_counts
from kernelwatch.store import git
from kernelwatch.store.graph import MERGED, NO_BRANCH, UNKNOWN
from kernelwatch.store.results import History
from kernelwatch.workflow.load_review import review_selection
from kernelwatch.workflow.select_results import select_commits
from tests.commits import begin, commit
from tests.stored import COUNT

MACHINE = "nvidia-h200"


@pytest.mark.history
@pytest.mark.parametrize(("base", "head"), [("f22cf79", "926c240"), ("98a96e0", "740a787"), ("4df5b48", "a962974")])
def test_verdicts_are_those_of_the_review(base: str, head: str) -> None:
    """Each kernel has as many slower and faster times as in the full review."""
    (selection,) = select_commits(base, head, MACHINE, ROOT)
    (change,) = (change for change in _load_changes() if change["head"].startswith(head))
    assert change["base"].startswith(base)
    timed = [row for row in review_selection(selection, ROOT).rows if row.kind == "timed"]
    for verdict in (Verdict.SLOWER, Verdict.FASTER):
        expected = Counter(row.kernel for row in timed if row.judgement.verdict is verdict)
        for kernel in {group["kernel"] for group in change["groups"]}:
            counts = [group[verdict.value.lower()] for group in change["groups"] if group["kernel"] == kernel]
            assert sum(counts) == expected[kernel]


@pytest.mark.history
def test_pictures_show_the_worst() -> None:
    """A group with a change to the worse that decides has a picture of it, not of a larger one that decides nothing."""
    groups = [group for change in _load_changes() for group in change["groups"] if group["picture"]["rows"]]
    assert {row["verdict"] for group in groups for row in group["picture"]["rows"]} <= words.SIGNS.keys()
    worse = [group for group in groups if group["slower" if group["timed"] else "rose"]]
    hidden = [group for group in worse if not {row["verdict"] for row in group["picture"]["rows"]} & {"slower", "rose"}]
    assert worse
    assert hidden == []


#: Verdicts and sizes of a group's rows, the shown one first.
SHOWN = [
    [(Verdict.SLOWER, 1.0), (Verdict.NOTED, 9.0), (Verdict.FASTER, 9.0)],
    [(Verdict.TRADE, 2.0), (Verdict.SLOWER, 1.0), (Verdict.NOTED, 9.0)],
    [(Verdict.NOTED, 1.0), (Verdict.FASTER, 9.0)],
    [(Verdict.FASTER, 2.0), (Verdict.FASTER, 1.0)],
]


@pytest.mark.parametrize("rows", SHOWN)
def test_shown_row(rows: list[tuple[Verdict, float]]) -> None:
    """A row that decides outranks larger ones that do not."""
    ranked: list[Any] = [
        SimpleNamespace(judgement=SimpleNamespace(verdict=verdict), size=size) for verdict, size in rows[::-1]
    ]
    assert max(ranked, key=rank_row) is ranked[-1]


@cache
def _load_changes() -> list[dict[str, Any]]:
    config = Config.load(str(ROOT / "asv.conf.json"))
    config.repo = str(ROOT)
    return list(load_changes(History(MACHINE, ROOT), get_repo(config), ROOT))


T, T2 = "time_a.A.time_x(1)", "time_a.A.time_x(2)"
C, C2, D = (f"track_counted.{name}(1)" for name in ("A.track_s", "A.track_t", "B.track_s"))


@pytest.mark.parametrize(
    ("head", "selected"),
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
def test_selected_configurations(head: dict[str, float | None], selected: list[str]) -> None:
    """A time that moved by 1 % or fails selects all times; a changed number selects its class."""
    base: dict[str, float | None] = dict.fromkeys((T, T2, C, C2, D), 1.0)
    assert select_configurations(base, base, base | head) == set(selected)


def _group(**facts: Any) -> dict[str, Any]:
    """Return a group of changes with defaults for other fields."""
    timed = not facts.keys().isdisjoint(("slower", "faster"))
    group = {
        **dict.fromkeys(COUNTS, 0), "kernel": "k", "flags": "-O3", "base": "b", "elsewhere": False, "timed": timed,
        "evidence": ["registers +3.0 %"], "mean": "", "size": 1.0, "times": 4, "configurations": "2 rose",
        "of": {"benchmark": COUNT}, "machine": "gpu", "at": "64x64 -O3", "ratio": 1.044, "kernel_times": 4,
        "most": "registers 32 → 33", **facts,
    }  # fmt: skip
    return {**group, "verdict": summarize_counts(group)["verdict"]}


SLOWER = {"slower": 4, "mean": "+4.4 %"}
SENTENCES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "nothing": ([], "Nothing changed."),
    "all times": ([SLOWER], "k is 4.4 % slower in the mean of 4 times; no other kernel changed."),
    "some times": (
        [{**SLOWER, "slower": 3}],
        "k is slower in 3 of 4 times, at most +4.4 % at 64x64 -O3; no other kernel changed.",
    ),
    "both ways": (
        [{"slower": 1, "faster": 2, "mean": "-2 %"}],
        "k is slower in 1, faster in 2 of 4 times, at most +4.4 % at 64x64 -O3; no other kernel changed.",
    ),
    "several sets of flags": (
        [
            {**SLOWER, "flags": "-O0", "kernel_times": 12},
            {"faster": 2, "ratio": 0.73, "mean": "-9 %", "kernel_times": 12},
            {"slower": 1, "ratio": 1.27, "at": "int8 -G", "flags": "-G", "mean": "+2 %", "kernel_times": 12},
        ],
        "k is slower in 5, faster in 2 of 12 times, at most +27 % at int8 -G; no other kernel changed.",
    ),
    "a set of flags of an unchanged kernel": (
        [{"slower": 0, "faster": 4, "ratio": 0.96, "at": "64x64 -O0", "mean": "-3.9 %", "kernel_times": 119}],
        "k is faster in 4 of 119 times, at most -4.0 % at 64x64 -O0; no other kernel changed.",
    ),
    "a number": (
        [{"rose": 2, "evidence": ["machine code changed", "registers +3.0 %"]}],
        "k: registers +3.0 % with -O3, at most registers 32 → 33 at 64x64 -O3; no other kernel changed.",
    ),
    "what fails comes first": (
        [SLOWER, {"kernel": "l", "broken": 1}],
        "l fails; k is 4.4 % slower in the mean of 4 times; no other kernel changed.",
    ),
    "the larger first": (
        [SLOWER, {**SLOWER, "kernel": "l", "mean": "+9 %", "size": 2.0}, {"kernel": "m", "fell": 1}],
        "l is 9 % slower in the mean of 4 times; k is 4.4 % slower in the mean of 4 times; 1 more kernel changed.",
    ),
    "times, which its own numbers explain": (
        [{"rose": 2, "size": 2.0}, {**SLOWER, "slower": 0, "faster": 4}, {"kernel": "l", "rose": 1}],
        "l: registers +3.0 % with -O3; k is 4.4 % faster in the mean of 4 times; no other kernel changed.",
    ),
    "counted numbers before compiled ones": (
        [
            {"rose": 1, "fell": 1, "of": {"benchmark": "track_compiled.C.track_spill_bytes"}},
            {"rose": 1, "evidence": ["sectors +9 %"]},
        ],
        "k: sectors +9 % with -O3; no other kernel changed.",
    ),
    "what is compiled for others": ([{"rose": 2, "elsewhere": True}], "Nothing changed."),
    "the worst of a kernel": (
        [
            {**SLOWER, "kernel": "l", "size": 3.0, "kernel_times": 8},
            {**SLOWER, "size": 2.0},
            {"kernel": "l", "faster": 1, "ratio": 0.9, "kernel_times": 8},
        ],
        "l is slower in 4, faster in 1 of 8 times, at most +4.4 % at 64x64 -O3; "
        "k is 4.4 % slower in the mean of 4 times; no other kernel changed.",
    ),
    "what decides nothing": ([{"noted": 3}, {"undecided": 1}, {"acknowledged": 1}], "Nothing changed."),
    "works again": ([{"repaired": 1}], "k works again; no other kernel changed."),
}  # fmt: skip


@pytest.mark.parametrize(("groups", "sentence"), SENTENCES.values(), ids=SENTENCES)
def test_a_commit_in_a_sentence(groups: list[dict[str, Any]], sentence: str) -> None:
    """The sentence names the two worst kernels and counts the others."""
    assert words.summarize_changes([{"base": "b", "groups": [_group(**facts) for facts in groups]}]) == sentence


#: Verdict of a group -> verdicts of its configurations.
COUNTED = {
    "slower": ["slower rose", "slower"],
    "faster": ["faster undecided"],
    "mixed": ["slower faster", "rose fell"],
    "rose": ["rose undecided"],
    "fell": ["fell acknowledged", "fell noted"],
    "undecided": ["undecided acknowledged"],
    "acknowledged": ["acknowledged noted"],
    "noted": ["noted"],
    "broken": ["broken slower"],
    "failed": ["failed faster"],
    "repaired": ["repaired noted"],
    "same": [""],
}


@pytest.mark.parametrize("word", COUNTED)
def test_one_word(word: str) -> None:
    """Changes rank above undecided configurations, which rank above acknowledged ones."""
    assert [summarize_counts(Counter(words.split()))["verdict"] for words in COUNTED[word]] == [word] * len(
        COUNTED[word]
    )


def test_commits_whose_texts_hold_separators(tmp_path: Path) -> None:
    """Names and subjects may hold separators; a commit unknown to git is omitted."""
    author, subject = "A\x1f\x1eB\u2028C", "one\x1f\x1etwo\u2028three\x0cfour"
    root = begin(tmp_path / "repository", author)
    hashes = [commit(root, {f"gpu_kernels/{number} ä": "x"}, subject) for number in range(3)]
    repo = Git(str(root), str(tmp_path / "mirror"))
    git.text(root, "checkout", "--quiet", "-b", "side", hashes[1])
    commit(root, {"side.txt": ""})
    git.text(root, "checkout", "--quiet", "main")
    git.text(root, "merge", "--quiet", "--no-ff", "side", "--message", "a merge")
    merge = git.text(root, "rev-parse", "HEAD")
    assert commits.describe_commits(repo, [merge])[merge]["files"] == ["side.txt"]  # changes against the first parent
    described = commits.describe_commits(repo, [*hashes, "0" * 40])
    assert list(described) == hashes
    for number, facts in enumerate(described.values()):
        assert (facts["author"], facts["subject"]) == (author, subject)
        assert facts["files"] == [f'"gpu_kernels/{number} \\303\\244"']
    touching = [{"commit": commit_hash, "subject": subject} for commit_hash in reversed(hashes[1:])]
    assert commits.describe_range(repo, hashes[0], hashes[2]) == {
        "count": 2, "touching_count": 2, "touching": touching,
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commits, "_MAX_LISTED", 1)
        shown = commits.describe_range(repo, hashes[0], hashes[2])
    assert (shown["touching_count"], shown["touching"]) == (2, touching[:1])
    assert commits.count_distance(repo, hashes[1]) == {
        "commits": 3,
        "touching": 1,
    }  # three commits include a merge and its side
    assert commits.count_distance(repo, "0" * 40) is None


BEHIND = {"commits": 458, "touching": 4}

#: Filter of the templates, input, output.
FILTERS: list[tuple[Callable[[Any], object], object, object]] = [
    (words.describe_branch, "side", "on side"),
    (words.describe_branch, NO_BRANCH, "on no branch"),
    (words.describe_branch, UNKNOWN, "unknown to git"),
    (words.describe_branch, MERGED, "merged"),
    (
        words.describe_age,
        {"day": "2026-11-21", "distance": BEHIND},
        "measured on 2026-11-21, 458 commits ago, 4 of which touch kernels",
    ),
    (
        words.describe_age,
        {"day": "", "distance": {"commits": 1, "touching": 1}},
        "measured, 1 commit ago, 1 of which touches kernels",
    ),
    (words.describe_age, {"day": "", "distance": {"commits": 0, "touching": 0}}, "measured, at HEAD"),
    (words.describe_age, {"day": "", "distance": None}, "measured, not an ancestor that git knows"),
    (words.break_name, "<a_b>", "&lt;a_<wbr>b&gt;"),
    (words.shorten_machines, ["nvidia-h100-80gb-hbm3", "nvidia-geforce-rtx-4090"], ["H100", "RTX 4090"]),
    (words.shorten_machines, ["nvidia-a100-40gb", "nvidia-a100-80gb"], ["nvidia-a100-40gb", "nvidia-a100-80gb"]),
]


@pytest.mark.parametrize(("convert", "value", "expected"), FILTERS)
def test_filters(convert: Callable[[Any], Any], value: Any, expected: Any) -> None:
    """Names are escaped; machines that differ only in memory keep their full names."""
    converted = convert(value)
    assert (list(converted.values()) if isinstance(converted, dict) else str(converted)) == expected


KERNEL = "__global__ void k(int* p)\n{\n    p[threadIdx.x] = 0;\n}\n"

#: Changed files of a commit, and lines of its page: number, whether added, text.
CHANGED_LINES: dict[str, tuple[dict[str, str], list[tuple[int, bool, str]]]] = {
    "a line of the kernel's file": (
        {"gpu_kernels/k.cu": KERNEL.replace("= 0", "= 1")},
        [(3, False, "    p[threadIdx.x] = 0;"), (3, True, "    p[threadIdx.x] = 1;")],
    ),
    "a line of the kernel's file, and one of another": (
        {"gpu_kernels/k.cu": f"{KERNEL}int n;\n", "gpu_kernels/k.cuh": "#define N 2\n"},
        [(5, True, "int n;")],
    ),
    "a line beside a comment, and one that only moved": (
        {"gpu_kernels/k.cu": f"  // ++ why\n\n{KERNEL[26:]}++ int n;\n*p = 1;\n{KERNEL[:26]}"},
        [(6, True, "++ int n;"), (7, True, "*p = 1;")],
    ),
    "a comment alone": ({"gpu_kernels/k.cu": f"// why\n{KERNEL}"}, [(1, True, "// why")]),
    "what the kernel's file includes": ({"gpu_kernels/k.cuh": "#define N 2\n"}, [(1, True, "#define N 2")]),
    "what is not measured": ({"README.md": "more\n"}, []),
}


@pytest.mark.parametrize(("files", "expected"), CHANGED_LINES.values(), ids=CHANGED_LINES)
def test_source_lines_that_changed(
    files: dict[str, str], expected: list[tuple[int, bool, str]], tmp_path: Path
) -> None:
    """Lines of files that define the kernels come first, otherwise those of measured paths."""
    root = begin(tmp_path / "repository")
    base_files = {
        "gpu_kernels/k.cu": KERNEL,
        "gpu_kernels/l.cu": KERNEL.replace("k(", "l("),
        "gpu_kernels/catalog.py": "",
    }
    base, head = commit(root, base_files), commit(root, files)
    lines = commits.find_changed_lines(Git(str(root), str(tmp_path / "mirror")), base, head, ["k", "l"])
    assert [(line["number"], line["is_new"], line["text"]) for line in lines] == expected
    assert {line["file"] for line in lines} <= files.keys()
