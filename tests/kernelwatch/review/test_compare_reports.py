"""How the review is written down: what comes first, how wide, and safe whatever results hold."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwatch import suite
from kernelwatch.review.commits import find
from kernelwatch.review.comparison import Comparison, compare
from kernelwatch.review.conclusion import weigh
from kernelwatch.review.verdict import Reason, Verdict, Why
from kernelwatch.show import report, terminal, text
from kernelwatch.show.commands import FORMATS
from kernelwatch.show.commands import compare as main
from tests.kernelwatch.review.test_compare_groups import count, time
from tests.stored import BASE, COUNT, HEAD, RUN, TIME, Outcome, Suite, pair, samples, write

#: Names that do something if they are taken for markup, or for a terminal's commands.
HOSTILE = [
    "<script>alert(1)</script>",
    "</code></details>",
    "a|b\\|c",
    "`code` ``",
    "[link](https://example.org)",
    "![image](https://example.org/x.png)",
    "www.example.org https://example.org",
    "@someone #1 e@example.org",
    "*bold* _em_ ~~gone~~ __init__",
    "-->\n\n# heading\r\n| a | b |",
    "&lt;b&gt; &amp;",
    "\x1b[31mred\x1b[0m\x07",
    "\u202eright to left",
    "x" * 5000,
    "\ud800",
]


def compared(root: Path) -> Comparison:
    """The comparison of the two stored commits."""
    (sides,) = find(BASE, HEAD, None, root)
    return compare(sides, root)


def slower(root: Path, names: list[str], failing: int = 0, lone: int = 0) -> Comparison:
    """Configurations of these names that became worse, others that fail, and benchmarks that one commit lacks."""
    base: dict[str, Outcome] = dict.fromkeys(names, 1.0)
    head: dict[str, Outcome] = dict.fromkeys(names, 2.0)
    broken = [f"{index}{'<' * 300}" for index in range(failing)]
    extra: dict[str, dict[str, Outcome]] = {f"track_counted.{'|' * 300}{index}": {"one": 1.0} for index in range(lone)}
    suite: Suite = {
        BASE: {COUNT: {**base, **dict.fromkeys(broken, 1.0)}, **extra},
        HEAD: {COUNT: {**head, **dict.fromkeys(broken, None)}, TIME: {"one": 1.0}},
    }
    return compared(write(root, suite))


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names(name: str, tmp_path: Path) -> None:
    """A name makes no new line, sends no escape sequence, and does not end the fence."""
    comparison = slower(tmp_path, [name, "other"], failing=1, lone=1)
    written = FORMATS["terminal"]([comparison], 0.0, True)
    assert all(character.isprintable() for character in written.replace("\n", ""))
    assert sum(line.startswith("ROSE") for line in written.splitlines()) == 2
    assert max(map(len, written.splitlines())) <= 100
    fence, *lines, last = FORMATS["markdown"]([comparison], 0.0, True).splitlines()
    assert "\n".join([*lines, ""]) == written
    assert fence == last
    assert re.fullmatch("```+", fence)
    assert fence not in written


@pytest.mark.parametrize(("limit", "left_out"), [(10_000, 0), (220, 0), (200, 2), (150, 7), (100, 12)])
def test_markdown_limit(limit: int, left_out: int) -> None:
    """A comment has whole lines, the first ones, and says how many it has no room for."""
    lines = [f"{number:9}" for number in range(14)]
    fence, *kept, last = report.fenced("".join(f"{line}\n" for line in lines), limit).splitlines()
    assert fence == last == "```"
    assert kept == [*lines[: 14 - left_out], *[report._LEFT_OUT.format(left_out).strip()] * bool(left_out)]
    assert sum(len(line) + 1 for line in (fence, *kept, last)) <= limit


#: What a run kept of failures, each with its commit and benchmark, and the reason that is told.
KEPT: list[tuple[list[dict[str, str]], str]] = [
    ([{"reason": "RuntimeError: wrong"}], "wrong"),
    ([{"reason": "RuntimeError: CompileError: k.cu(6): error: x"}], "k.cu(6): error: x"),
    ([{"reason": f"other: wrong: {TIME}"}, {"reason": f"{TIME}: right: no"}], "right: no"),
    ([{"reason": "late"}, {"reason": "so " * 50 + "on"}], "late; " + "so " * 50 + "on"),
    ([{"reason": "another's", "benchmark": COUNT}], f"not kept; asv run --show-stderr --bench {TIME} cccccccc^!"),
    ([{"reason": "before", "commit": BASE}], "not kept; asv run"),
    ([], "not kept; asv run"),
]


@pytest.mark.parametrize(("kept", "told"), KEPT)
def test_why_it_fails_is_told(kept: list[dict[str, str]], told: str, tmp_path: Path) -> None:
    """First of all, with what the newest run kept of it, or where to look; one line for all metrics of a kernel."""
    root = write(tmp_path, pair([1.0] * 40, None))
    failed = [{"commit": HEAD, "benchmark": TIME, "configurations": 1, **each} for each in kept]
    older = [{"commit": HEAD, "benchmark": TIME, "configurations": 1, "reason": "older"}] * (not told.startswith("not"))
    lines = [json.dumps({**RUN, "failed": each}) for each in (older, failed)]
    (root / "results" / "gpu" / "runs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    _, *lines = report.render(compared(root)).splitlines()
    shown = " ".join(" ".join(lines).split())
    assert shown.startswith(f"BROKEN: 1 time failed in head alone: {TIME}: {told}")


def test_json_is_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Infinite ratios are null, and a name that UTF-8 cannot hold is escaped."""
    base: dict[str, Outcome] = {"zero": 0.0, "huge": 1e-300, "\ud800": 1.0}
    head: dict[str, Outcome] = {"zero": 1.0, "huge": 1e300, "\ud800": 1.0}
    write(tmp_path, {BASE: {COUNT: base}, HEAD: {COUNT: head}})
    assert main([BASE, HEAD, "--format", "json"], tmp_path) == 1
    written = capsys.readouterr().out
    rows = json.loads(written.encode(), parse_constant=pytest.fail)["rows"]
    assert [row["ratio"] for row in rows] == [None, None, 1.0]


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (7.831e-4, "seconds", "783.1 µs"),
        (2.449e-3, "seconds", "2.449 ms"),
        (1.5, "seconds", "1.5 s"),
        (5e-9, "seconds", "5 ns"),
        (0.0, "seconds", "0 ns"),
        (32.0, "registers/thread", "32"),
        (15.2693, "conflicts/request", "15.27"),
    ],
)
def test_quantities(value: float, unit: str, shown: str) -> None:
    """Times have the unit that suits them; other numbers are named by their benchmarks."""
    assert text.quantity(value, unit) == shown


def test_worse_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The largest change to the worse is told before the largest to the better, however much larger that is.

    The one that lost or won most time stands before the steepest of the same kernel.
    """
    times = {"one": (1.0, 1.1), "two": (1.0, 1.3), "three": (1.0, 0.2), "four": (0.1, 0.15)}
    suite: Suite = {
        commit: {TIME: {name: samples(1e-3 * each[n]) for name, each in times.items()}}
        for n, commit in enumerate((BASE, HEAD))
    }
    write(tmp_path, suite)
    main([BASE, HEAD], tmp_path)
    told = re.findall(r"(Largest|\d+ % \w+ at case \w+)", " ".join(capsys.readouterr().out.split()))
    slower, faster = ["30 % slower at case two", "50 % slower at case four"], ["80 % faster at case three"]
    assert told == ["Largest", *slower, "Largest", *faster]


@pytest.mark.parametrize(
    ("cell", "width", "shown"),
    [
        ("a, b", 9, "a, b"),
        ("one more, two fewer", 12, "one more, +1"),
        ("far too long to fit, short", 9, "far too long to fit, +1"),
        ("four, more", 9, "four, +1"),
        ("no, far too long to fit, short, other", 14, "no, short, +2"),
        ("moves 4 times, not verified", 14, "moves 4 times, +1"),
        ("far too long", 4, "far too long"),
    ],
)
def test_evidence_in_one_line(cell: str, width: int, shown: str) -> None:
    """The first, which decides, however long; of the others what fits, and how many do not."""
    assert terminal._first(cell, width) == shown


@pytest.mark.parametrize(
    ("words", "listed", "code"),
    [
        ([], "1 changed by less than 1 % (--at-least)", 1),
        (["--at-least", "0.5%"], "sectors +0.6 %", 1),
        (["--all"], "ROSE     track_counted.X.track_sectors(one)", 1),
    ],
)
def test_materiality(
    words: list[str], listed: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Small changes are counted, not listed unless somebody asks, and still a regression."""
    write(tmp_path, pair(1.0, 1.006, COUNT))
    assert main([BASE, HEAD, *words], tmp_path) == code
    assert listed in capsys.readouterr().out


@pytest.mark.parametrize("share", ["-1", "x", "nan", "inf", ""])
def test_shares(share: str, tmp_path: Path) -> None:
    """What is no share of anything is refused."""
    with pytest.raises(SystemExit, match="2"):
        main([BASE, HEAD, f"--at-least={share}"], tmp_path)


@pytest.mark.parametrize("is_verified", [True, False])
def test_what_is_not_verified(is_verified: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a kernel without a reference, each number of its runs says so wherever it stands."""
    monkeypatch.setattr(suite, "verified", lambda *_: is_verified)
    found = compared(write(tmp_path, pair(samples(1e-3), samples(1.2e-3))))
    shown = {name: FORMATS[name]([found], 0.0, True) for name in FORMATS}
    # Beside the largest change, in the row of the kernel and that of the configuration, and in a note that says why.
    assert [shown[name].count("not verified") for name in ("terminal", "markdown")] == [0 if is_verified else 4] * 2
    why = f"Note: not verified, since no reference= says what they write: {TIME}\n"
    assert (why in shown["terminal"]) is not is_verified
    assert json.loads(shown["json"])["rows"][0]["verified"] is is_verified


def test_trades_and_undecided_times(tmp_path: Path) -> None:
    """Of a kernel's trades the largest, and how many more; of undecided times those that could be slowest, in order."""
    could_be = {"a": (0.9, 1.1), "b": (1.0, 1.3), "c": None, "d": (0.9, 1.05)}
    rows = [count(head, dtype, base=10, verdict=Verdict.TRADE) for dtype, head in (("int8", 11), ("float32", 15))]
    for name, between in could_be.items():
        row = time(10.5, kernel=name, verdict=Verdict.UNDECIDED)
        reasons = (Reason(Why.SEVERAL_GPUS),)
        rows.append(replace(row, judgement=replace(row.judgement, could_be=between, reasons=reasons)))
    fell = weigh([time(11, kernel="f"), count(4, kernel="f", metric="sectors_loaded")], None)
    stored = compared(write(tmp_path, pair(1.0, 1.0, COUNT)))
    told = " ".join(report.render(replace(stored, rows=[*rows, *fell])).split())
    assert "f fewer sectors loaded at float32 -O3 (10 -> 4); times: 1 slower" in told
    told = " ".join(report.render(replace(stored, rows=rows)).split())
    assert "Trade: k more instructions at float32 -O3 (10 -> 15), and 1 more; " in told
    assert re.findall(r"undecided: (\w+) at", told) == ["c", "b", "a"]
    assert "c at float32 -O3: +5.0 %, could be anything: not measured on one GPU" in told
    assert "b at float32 -O3: +5.0 %, could be +0.0 % to +30 %: not measured on one GPU" in told
    assert "undecided: 1 more times; --all says why" in told
    doubt = "no verdict: 4 of 4 times of all are undecided and could be slower"
    assert doubt in told
    assert doubt.partition(":")[0] not in report.render(replace(stored, rows=[*rows, time(20)]))
    assert "more times" not in report.render(replace(stored, rows=rows[:-1]))
