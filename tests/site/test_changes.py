"""Values on Overview and on the pages of commits are those of the review and of git."""

from collections import Counter
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelwatch.config.project_root import ROOT
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Judgement, Verdict
from kernelwatch.show.site import commits, words
from kernelwatch.show.site.changes import describe_change, rank_row, select_configurations
from kernelwatch.show.site.compared import list_compared
from kernelwatch.store import git
from kernelwatch.store.results import History
from kernelwatch.suite.benchmark_names import classify_benchmark
from kernelwatch.workflow.load_review import review_selection
from kernelwatch.workflow.select_results import select_commits
from kernelwatch.workflow.steps import list_measured
from tests.commits import begin, commit

MACHINE = "nvidia-h200"
#: Pairs of neighbours among the machine's stored commits.
STEPS = [("f22cf79", "926c240"), ("98a96e0", "740a787"), ("4df5b48", "a962974")]


@pytest.mark.parametrize(
    ("origin", "paths"),
    [
        ("blur.cu", {"blur.cu"}),
        ("imaging/blur.cu", {"imaging"}),
        ("imaging.py", {"imaging.py", "imaging"}),  # imaging.py, or imaging/__init__.py
    ],
)
def test_sources_without_a_package_are_measured(origin: str, paths: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    suite = SimpleNamespace(kernels=lambda: {"blur": SimpleNamespace(origin=Path(origin))})
    monkeypatch.setattr(commits.registry, "current_suite", lambda: suite)
    monkeypatch.setattr(commits.settings, "package_name", lambda: "")
    found = commits.find_measured_paths.__wrapped__()
    assert {*found} == {f":(glob)**/{path}{below}" for path in paths for below in ("", "/**")}


@pytest.mark.history
@pytest.mark.parametrize(("base", "head"), STEPS)
def test_verdicts_are_those_of_the_review(base: str, head: str) -> None:
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
def test_picture_shows_a_change_that_decides() -> None:
    groups = [group for change in _load_changes() for group in change["groups"] if group["picture"]["rows"]]
    assert {row["verdict"] for group in groups for row in group["picture"]["rows"]} <= words.SIGNS.keys()
    worse = [group for group in groups if group["slower" if group["timed"] else "rose"]]
    hidden = [group for group in worse if not {row["verdict"] for row in group["picture"]["rows"]} & {"slower", "rose"}]
    assert worse
    assert hidden == []


#: Verdicts and sizes of a group's rows. The row that is shown comes first.
SHOWN = [
    [(Verdict.SLOWER, 1.0), (Verdict.NOTED, 9.0), (Verdict.FASTER, 9.0)],
    [(Verdict.TRADE, 2.0), (Verdict.SLOWER, 1.0), (Verdict.NOTED, 9.0)],
    [(Verdict.NOTED, 1.0), (Verdict.FASTER, 9.0)],
    [(Verdict.FASTER, 2.0), (Verdict.FASTER, 1.0)],
]


@pytest.mark.parametrize("rows", SHOWN)
def test_deciding_row_is_shown(rows: list[tuple[Verdict, float]]) -> None:
    reversed_rows = rows[::-1]  # of equal rows, `max` returns the first
    judged = ((SimpleNamespace(verdict=verdict), size) for verdict, size in reversed_rows)
    ranked: list[Any] = [SimpleNamespace(judgement=judgement, size=size) for judgement, size in judged]
    assert max(ranked, key=rank_row) is ranked[-1]


@cache
def _load_changes() -> list[dict[str, Any]]:
    history = History(MACHINE, ROOT)
    load_measured = cache(partial(list_measured, history))
    heads = (head for head in history.list_commits() if head.startswith(tuple(head for _, head in STEPS)))
    return [change for head in heads if (change := describe_change(history, head, load_measured, ROOT, ROOT))]


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
def test_changed_numbers_select_their_class(head: dict[str, float | None], selected: list[str]) -> None:
    """A time that changed by 1 % or fails selects all times. Another changed number selects all of its class."""
    names = (T, T2, C, C2, D)
    base: dict[str, float | None] = dict.fromkeys(names, 1.0)
    assert select_configurations(names, base, base | head) == set(selected)


def test_texts_of_commits_may_have_separators(tmp_path: Path) -> None:
    """Commits unknown to git are left out."""
    author, subject = "A\x1f\x1eB\u2028C", "one\x1f\x1etwo\u2028three\x0cfour"
    root = begin(tmp_path / "repository", author)
    hashes = [commit(root, {f"gpu_kernels/{number} ä": "x"}, subject) for number in range(3)]
    described = commits.describe_commits(root, [*hashes, "0" * 40])
    assert list(described) == hashes
    for number, facts in enumerate(described.values()):
        assert (facts["author"], facts["subject"]) == (author, subject)
        assert facts["files"] == [f'"gpu_kernels/{number} \\303\\244"'], "git writes UTF-8 in octal digits"


def test_ranges_and_distances_of_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All commits are counted, and those of kernels. A merge has its changes against the first parent."""
    root = begin(tmp_path / "repository")
    hashes = [commit(root, {f"gpu_kernels/{number}": "x"}, "a kernel") for number in range(3)]
    git.text(root, "checkout", "--quiet", "-b", "side", hashes[1])
    commit(root, {"side.txt": ""})
    git.text(root, "checkout", "--quiet", "main")
    git.text(root, "merge", "--quiet", "--no-ff", "side", "--message", "a merge")
    merge = git.text(root, "rev-parse", "HEAD")
    assert commits.describe_commits(root, [merge])[merge]["files"] == ["side.txt"]
    touching = [{"commit": commit_hash, "subject": "a kernel"} for commit_hash in reversed(hashes[1:])]
    described_range = {"count": 2, "touching_count": 2, "touching": touching}
    assert commits.describe_range(root, hashes[0], hashes[2]) == described_range
    monkeypatch.setattr(commits, "_MAX_LISTED", 1)
    assert commits.describe_range(root, hashes[0], hashes[2]) == {**described_range, "touching": touching[:1]}
    # The three commits include a merge and the merged commit.
    assert commits.count_distance(root, hashes[1]) == {"commits": 3, "touching": 1}
    assert commits.count_distance(root, merge) == {"commits": 0, "touching": 0}
    assert commits.count_distance(root, "0" * 40) is None
    git.text(root, "checkout", "--quiet", hashes[1])
    assert commits.count_distance(root, merge) is None, "a newer commit is not an ancestor of HEAD"


FIRST_LINE, BODY = "__global__ void k(int* p)\n", "{\n    p[threadIdx.x] = 0;\n}\n"
KERNEL = FIRST_LINE + BODY

#: Case -> changed files of a commit, and the lines on its page: number, whether added, and text.
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
        {"gpu_kernels/k.cu": f"  // ++ why\n\n{BODY}++ int n;\n*p = 1;\n{FIRST_LINE}"},
        [(6, True, "++ int n;"), (7, True, "*p = 1;")],
    ),
    "a comment alone": ({"gpu_kernels/k.cu": f"// why\n{KERNEL}"}, [(1, True, "// why")]),
    "what the kernel's file includes": ({"gpu_kernels/k.cuh": "#define N 2\n"}, [(1, True, "#define N 2")]),
    "what is not measured": ({"README.md": "more\n"}, []),
}


@pytest.mark.parametrize("name", CHANGED_LINES)
def test_changed_source_lines_are_shown(name: str, tmp_path: Path) -> None:
    """Changed lines of files that define the kernels are shown; without any, those of measured paths."""
    files, expected = CHANGED_LINES[name]
    root = begin(tmp_path / "repository")
    kernels = {"gpu_kernels/k.cu": KERNEL, "gpu_kernels/l.cu": KERNEL.replace("k(", "l(")}
    base, head = commit(root, {**kernels, "gpu_kernels/catalog.py": ""}), commit(root, files)
    lines = commits.find_changed_lines(root, base, head, ["k", "l"])
    assert [(line["number"], line["is_new"], line["text"]) for line in lines] == expected
    assert {line["file"] for line in lines} <= files.keys()


TIME, LOADED, STORED = "time_a.A.time_x", "track_counted.A.track_sectors_loaded", "track_counted.A.track_sectors_stored"


def _make_row(benchmark: str, size: str, head: float) -> Row:
    verdict = Verdict.SAME if head == 1 else Verdict.SLOWER if head > 1 else Verdict.FASTER
    kind = classify_benchmark(benchmark)
    return Row(
        f"{benchmark}({size})", kind, "", 1.0, head, Judgement(verdict, head),
        benchmark=benchmark, params={"size": size}, kernel="k",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("values", "elsewhere", "compared"),
    [
        ({(TIME, "1"): 2.0, (TIME, "2"): 1.0, (LOADED, "1"): 3.0}, False, [(TIME, "1", "slower"), (TIME, "2", "same")]),
        ({(TIME, "1"): 1.0, (LOADED, "1"): 3.0, (LOADED, "2"): 1.0, (STORED, "1"): 1.0}, False,
         [(LOADED, "1", "rose"), (LOADED, "2", "same")]),
        ({(STORED, "1"): 0.5}, False, [(STORED, "1", "fell")]),
        ({(TIME, "1"): 1.005}, False, []),
        ({(TIME, "1"): 2.0}, True, []),
    ],
)  # fmt: skip
def test_compared_numbers_of_a_kernel(
    values: dict[tuple[str, str], float], elsewhere: bool, compared: list[tuple[str, str, str]]
) -> None:
    """If a time changed by 1 %, all times are compared, else all numbers of each changed benchmark."""
    rows = [_make_row(benchmark, size, head) for (benchmark, size), head in values.items()]
    listed = list_compared(rows, [{"kernel": "k", "elsewhere": elsewhere}])
    assert [(name, params[0], verdict) for name, params, _, _, verdict in listed.get("k", [])] == compared
