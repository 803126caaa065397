"""The review in a terminal: 100 columns, the message first, and every row where somebody asks for it."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from kernelwatch.project import ROOT
from kernelwatch.review import timed
from kernelwatch.review.__main__ import main
from kernelwatch.review.commits import find
from kernelwatch.review.comparison import compare
from kernelwatch.show import terminal
from kernelwatch.store.results import History, machines
from tests.stored import BASE, COUNT, HEAD, TIME, Outcome, Suite, pair, samples, write

PAIRS = [
    (machine, *commits)
    for machine in machines(ROOT / "results")
    for commits in itertools.pairwise(History(machine).commits())
]


@pytest.mark.parametrize(("machine", "base", "head"), PAIRS)
def test_columns(machine: str, base: str, head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line of a review of stored results is wider than 100 columns; the table begins within the first twelve."""
    monkeypatch.setattr(timed, "RESAMPLES", 99)  # an interval as wide on paper
    comparison = compare(find(base, head, machine, ROOT), ROOT)
    for every in (False, True):
        lines = terminal.render(comparison, 0.0 if every else 0.01, every=every).splitlines()
        assert max(map(len, lines)) <= 100
        assert all(line == line.rstrip() for line in lines)
        table = [number for number, line in enumerate(lines) if "why (compiled, counted)" in line]
        assert table < [12]


def test_the_message(capsys: pytest.CaptureFixture[str]) -> None:
    """The first lines of a stored review tell what its 490 told: which kernel won how much, and why."""
    assert main(["f22cf79", "740a787", "--machine", "nvidia-h200"]) == 0
    verdict, counts, *_ = lines = capsys.readouterr().out.splitlines()[:12]
    assert verdict == "NO REGRESSION  f22cf79 -> 740a787 (3 commits), nvidia-h200"
    assert counts.startswith(
        "551 times: 52 faster, 499 same; 1530 counted and compiled numbers: 102 more (none decides),"
    )
    told = "\n".join(lines)
    for part in ("transpose_read_write_coalesced 28 % faster at 12800x12800 float32", "bank conflicts 10.9 -> 0.118"):
        assert part in told


def test_worse_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The largest change to the worse is told before the largest to the better, however much larger that is."""
    times = {"one": (1.0, 1.1), "two": (1.0, 1.3), "three": (1.0, 0.2)}
    suite: Suite = {
        commit: {TIME: {name: samples(1e-3 * each[n]) for name, each in times.items()}}
        for n, commit in enumerate((BASE, HEAD))
    }
    write(tmp_path, suite)
    main([BASE, HEAD], tmp_path)
    told = [line.split("(")[0].split("X.")[-1] for line in capsys.readouterr().out.splitlines() if "Largest" in line]
    assert told == ["time_back_to_back 30 % slower at case two ", "time_back_to_back 80 % faster at case three "]


@pytest.mark.parametrize(("base", "head"), [("f22cf79", "740a787"), ("98a96e0", "740a787")])
def test_first_twelve_lines(base: str, head: str, capsys: pytest.CaptureFixture[str]) -> None:
    """They hold at least four groups, and no kernel's name is folded."""
    main([base, head, "--machine", "nvidia-h200"])
    lines = capsys.readouterr().out.splitlines()
    table = next(number for number, line in enumerate(lines) if "why (compiled, counted)" in line)
    rows = [line.split("  ")[0] for line in lines[table + 1 : 12]]
    assert sum(name.endswith(("coalesced", "unpadded")) for name in rows) >= 4
    assert all(name == "" or name.endswith(("coalesced", "unpadded")) for name in rows)


@pytest.mark.parametrize(
    ("cell", "width", "shown"),
    [
        ("a, b", 9, "a, b"),
        ("one more, two fewer", 12, "one more, +1"),
        ("far too long to fit, short", 9, "short, +1"),
        ("far too long", 4, "far too long"),
    ],
)
def test_evidence_in_one_line(cell: str, width: int, shown: str) -> None:
    """What fits is shown, and how many items are not."""
    assert terminal._first(cell, width) == shown


@pytest.mark.parametrize("names", ["x" * 300, "<" * 99, "a b " * 60], ids=["long", "markup", "words"])
def test_long_names(names: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever results are called, nothing is wider."""
    base: dict[str, Outcome] = {f"{names}{end}": 1.0 for end in "ab"}
    head: dict[str, Outcome] = {f"{names}a": 2.0, f"{names}b": None}
    write(tmp_path, {BASE: {f"{COUNT}{names}": base}, HEAD: {f"{COUNT}{names}": head}})
    for words in ([], ["--all"]):
        assert main([BASE, HEAD, *words], tmp_path) == 1
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    ("words", "listed", "code"),
    [
        ([], "1 changed by less than 1 % (--at-least)", 1),
        (["--at-least", "0.5%"], "sectors +0.6 %", 1),
        (["--all"], "MORE     track_counted.X.track_sectors(one)", 1),
        (["--judge-at-least", "1"], "Not listed: 1 that are the same.", 0),
    ],
)
def test_materiality(
    words: list[str], listed: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Small changes are counted, not listed, and still a regression, unless somebody asks otherwise."""
    write(tmp_path, pair(1.0, 1.006, COUNT))
    assert main([BASE, HEAD, *words], tmp_path) == code
    assert listed in capsys.readouterr().out


@pytest.mark.parametrize("head", [30.9e-6, 29.1e-6])
def test_materiality_of_times(head: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A time is judged by the larger of the machine's threshold and the one asked for."""
    write(tmp_path, pair(samples(30e-6), samples(head, seed=9), TIME))
    main([BASE, HEAD], tmp_path)
    assert "1 same" not in capsys.readouterr().out
    assert main([BASE, HEAD, "--judge-at-least", "4%"], tmp_path) == 0
    assert "1 time: 1 same" in capsys.readouterr().out


@pytest.mark.parametrize("share", ["-1", "x", "nan", "inf", ""])
def test_shares(share: str, tmp_path: Path) -> None:
    """What is no share of anything is refused."""
    with pytest.raises(SystemExit, match="2"):
        main([BASE, HEAD, f"--at-least={share}"], tmp_path)
