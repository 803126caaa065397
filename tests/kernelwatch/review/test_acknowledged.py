"""Regressions accepted by acknowledged.toml: scope and lifetime of an entry, its display, and errors."""

from pathlib import Path

import pytest

from kernelwatch.cli.compare import compare as main
from kernelwatch.config.project_root import ROOT
from kernelwatch.review.acknowledged import accept_row, list_unmatched
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict
from kernelwatch.store import git
from kernelwatch.store.source_changes import ACKNOWLEDGED_FILE, Acknowledgement, load_changes, parse_acknowledgements
from tests.commits import begin, commit
from tests.kernelwatch.review.test_compare_groups import make_compiled, make_time
from tests.stored import TIME, Suite, samples, write

REASON = "any height needs a check"
ENTRY = f'[[regression]]\nkernel = "{TIME}"\nnumber = "time"\nreason = "{REASON}"\n'


@pytest.fixture
def base(tmp_path: Path) -> str:
    return commit(begin(tmp_path))


def _commit(root: Path, text: str | None) -> str:
    return commit(root, {} if text is None else {ACKNOWLEDGED_FILE: text})


def test_accepted_regressions_are_shown(base: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The reason is shown, too. Other regressions still give exit code 1."""
    root, head, other_benchmark = tmp_path, _commit(tmp_path, ENTRY), "time_y.Y.time_back_to_back"
    for slower, code in ((1e-3, 0), (1.02e-3, 1)):
        times: Suite = {base: {TIME: {"one": samples(1e-3)}, other_benchmark: {"one": samples(1e-3)}}}
        write(root, {**times, head: {TIME: {"one": samples(1.05e-3)}, other_benchmark: {"one": samples(slower)}}})
        assert main([base, head], root) == code
        output = capsys.readouterr().out
        for part in ("1 acknowledged", f"1 configuration: {REASON}", "1 of 1 acknowledged"):
            assert part in output
        assert output.startswith("SLOWER" if code else "ACKNOWLEDGED")


WORSE = make_time(12, kernel=TIME)

ROWS = [
    (WORSE, True),
    (make_time(12, kernel=TIME, verdict=Verdict.TRADE), True),
    (make_time(8, kernel=TIME), False),  # faster
    (make_time(12, kernel=TIME, verdict=Verdict.UNDECIDED), False),
    (make_compiled(12, metric="spill_bytes", kernel=TIME), False),
    (make_time(12, kernel="another"), False),
]


def _accepts(root: Path, base: str, head: str, row: Row = WORSE) -> bool:
    judgement = accept_row(row, load_changes(root, base, head).acknowledgements).judgement
    assert (judgement.reason == REASON) is (judgement.verdict is Verdict.ACKNOWLEDGED)
    return judgement.verdict is Verdict.ACKNOWLEDGED


@pytest.mark.parametrize(("row", "accepted"), ROWS)
def test_entry_accepts_only_its_kernel_and_number(row: Row, accepted: bool, base: str, tmp_path: Path) -> None:
    assert _accepts(tmp_path, base, _commit(tmp_path, ENTRY), row) is accepted


def test_entry_without_a_row_is_noted() -> None:
    """Entries on times get a note only beside other times."""
    registers = make_compiled(12, metric="registers", kernel=TIME)
    names = [(TIME, "time"), (TIME, "registers"), (TIME, "sectors_loaded"), ("Blur", "time")]
    entries = [Acknowledgement(kernel, number, REASON) for kernel, number in names]
    texts = ["'sectors_loaded' of 'time_x.X.time_back_to_back', but", "'time' of 'Blur', but"]
    # Without times, an entry on times may be for another machine.
    for rows, count in (([WORSE, registers], 2), ([registers], 1)):
        for note, text in zip(list_unmatched(rows, entries), texts[:count], strict=True):
            assert note.startswith(f"acknowledged.toml accepts {text} the commits have no such number")


def test_entry_counts_for_the_commit_that_adds_it(base: str, tmp_path: Path) -> None:
    """A squashed commit adds its entries. An uncommitted entry counts for the commit that is checked out."""
    root, a = tmp_path, base
    # b adds the entry, c leaves it, d adds another one, and e removes both.
    b, c, d = _commit(root, ENTRY), _commit(root, None), _commit(root, ENTRY + ENTRY)
    e = _commit(root, "")
    git.text(root, "checkout", "--quiet", "-b", "squashed", a)
    squashed = commit(root, {ACKNOWLEDGED_FILE: ENTRY}, "squashed")  # another hash, also within one second
    checked_out = _commit(root, None)
    new = {(a, b), (a, c), (c, d), (a, squashed)}
    old = {(b, c), (d, e), (c, e), (a, e), (b, a), (squashed, checked_out), ("f" * 40, b), (b, "f" * 40)}
    assert {ends for ends in new | old if _accepts(root, *ends)} == new
    (root / ACKNOWLEDGED_FILE).write_text(ENTRY + ENTRY, encoding="utf-8")
    assert _accepts(root, squashed, checked_out)
    assert not _accepts(root, b, c)


BAD: dict[str, tuple[str, str]] = {
    "no TOML": ("[[regression", "Expected"),
    "not UTF-8": ("\udcff", ""),
    "unknown table": (ENTRY.replace("regression]]", "regressions]]"), "unknown field `regressions`"),
    "unknown key": (ENTRY + "up_to = 1.1\n", "unknown field `up_to`"),
    "no kernel": (ENTRY.replace(TIME, ""), "regression[0].kernel"),
    "no reason": (ENTRY.replace(REASON, ""), "regression[0].reason"),
    "two lines": (ENTRY.replace("height", "height\\n"), "regression[0].reason"),
    "large": (ENTRY + "# " + "µ" * 32768, "bytes; at most 65536 are allowed"),
    "deep": ("a = " + "[" * 9999, ""),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_faulty_file_accepts_nothing(text: str, message: str, base: str, tmp_path: Path) -> None:
    """The problem is one line that says where the file is: working tree, base or head."""
    root, a = tmp_path, base
    content = text.encode(errors="surrogateescape")
    (root / ACKNOWLEDGED_FILE).write_bytes(content)
    git.text(root, "add", ACKNOWLEDGED_FILE)
    b, c = commit(root), _commit(root, ENTRY)
    git.text(root, "checkout", "--quiet", "--detach", a)
    (root / ACKNOWLEDGED_FILE).write_bytes(content)
    for changes, where in (
        (load_changes(root, a, a), str(root / ACKNOWLEDGED_FILE)),
        (load_changes(root, a, b), f"{b[:8]}:{ACKNOWLEDGED_FILE}"),
        (load_changes(root, b, c), f"{b[:8]}:{ACKNOWLEDGED_FILE}"),
    ):
        assert changes.acknowledgements == ()
        (problem,) = changes.problems
        assert problem.startswith(f"{where}: ")
        assert problem.endswith("; all of its entries are ignored")
        assert message in problem
        assert "\n" not in problem


LAUNCHES = {
    "block": ("scale<<<n / 256, 256>>>(x);", "scale<<<n / 128, 128>>>(x);", True),
    "several lines": ("scale<<<\n  n, 256>>>(x);", "scale\n<<<\n  n, 256>>>(x);", True),
    "new launch": ("", "scale<<<n, 256>>>(x);", True),
    "another line": ("scale<<<n, 256>>>(x);\nn = 1;", "scale<<<n, 256>>>(x);\nn = 2;", False),
    "mark of a conflict": ("", "<<<<<<< HEAD", False),
}


@pytest.mark.parametrize(("old", "new", "is_named"), LAUNCHES.values(), ids=LAUNCHES)
def test_changed_host_launches_are_listed(old: str, new: str, is_named: bool, base: str, tmp_path: Path) -> None:
    root = tmp_path
    names = ("src/main.cu", "include/launch.cuh", "docs/launch.md")
    commits = [commit(root, dict.fromkeys(names, text)) for text in (old, new)]
    (folder := root / "bench").mkdir()
    assert load_changes(folder, *commits).launch_files == ("include/launch.cuh", "src/main.cu") * is_named


def test_acknowledged_file_of_this_project_is_valid() -> None:
    path = ROOT / ACKNOWLEDGED_FILE
    parse_acknowledgements(path.read_bytes(), str(path))
