"""Texts of the review: order, width, and names with markup or escapes."""

import dataclasses
import json
import math
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from kernelwatch.cli.compare import FORMATS
from kernelwatch.cli.compare import compare as main
from kernelwatch.review.commit_review import Review
from kernelwatch.review.conclusion import weigh_against_times
from kernelwatch.review.rows import Row
from kernelwatch.review.standing_regressions import Regression
from kernelwatch.review.verdict import Reason, ReasonKind, Verdict
from kernelwatch.show import report
from kernelwatch.show.regressions_report import render_text
from kernelwatch.show.text import SHORTENED_FLAGS
from kernelwatch.suite import launch_facts
from tests.golden import golden
from tests.kernelwatch.review.test_compare_groups import make_compiled, make_count, make_time, make_undecided
from tests.stored import BASE, COUNT, HEAD, RUN, TIME, Outcome, Suite, pair, review_stored, samples, write, write_lines

#: Names of configurations with markup or terminal escapes.
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


def make_review(root: Path, names: list[str], failing: int = 0, unpaired: int = 0) -> Review:
    """Return a review with regressions of these names, failures, and benchmarks that one commit lacks."""
    base: dict[str, Outcome] = dict.fromkeys(names, 1.0)
    head: dict[str, Outcome] = dict.fromkeys(names, 2.0)
    broken = [f"{i}{'<' * 300}" for i in range(failing)]
    extra: dict[str, dict[str, Outcome]] = {f"track_counted.{'|' * 300}{i}": {"one": 1.0} for i in range(unpaired)}
    suite: Suite = {
        BASE: {COUNT: {**base, **dict.fromkeys(broken, 1.0)}, **extra},
        HEAD: {COUNT: {**head, **dict.fromkeys(broken, None)}, TIME: {"one": 1.0}},
    }
    return review_stored(write(root, suite))


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_break_no_report(name: str, tmp_path: Path) -> None:
    """The Markdown is the terminal's text between two fences that the text does not contain."""
    names = [name, "other"]
    review = make_review(tmp_path, names, failing=1, unpaired=1)
    terminal = FORMATS["terminal"]([review], 0.0, True)
    assert all(character.isprintable() for character in terminal.replace("\n", ""))
    assert sum(line.startswith("ROSE") for line in terminal.splitlines()) == len(names)
    assert max(map(len, terminal.splitlines())) <= 100
    fence, *lines, last = FORMATS["markdown"]([review], 0.0, True).splitlines()
    assert "\n".join([*lines, ""]) == terminal
    assert fence == last
    assert re.fullmatch("```+", fence)
    assert fence not in terminal


@pytest.mark.parametrize(("limit", "left_out"), [(10_000, 0), (220, 0), (200, 2), (150, 7), (100, 12)])
def test_markdown_is_cut_at_whole_lines(limit: int, left_out: int) -> None:
    """Room for the fences and for the line on omitted lines is kept free: together 74 characters."""
    lines = [f"{number:9}" for number in range(14)]  # ten characters each, with the line break
    fence, *kept, last = report.fence_text("".join(f"{line}\n" for line in lines), limit).splitlines()
    assert fence == last == "```"
    assert kept == [*lines[: 14 - left_out], *[report._LEFT_OUT.format(left_out).strip()] * bool(left_out)]
    assert sum(len(line) + 1 for line in (fence, *kept, last)) <= limit


#: Recorded failures, and the printed reason. Missing fields are those of the failure in head.
KEPT: list[tuple[list[dict[str, str]], str]] = [
    ([{"reason": "RuntimeError: wrong"}], "wrong"),  # without Python's classes
    ([{"reason": "RuntimeError: CompileError: k.cu(6): error: x"}], "k.cu(6): error: x"),
    # Of several reasons, the one that begins with the benchmark's name.
    ([{"reason": f"other: wrong: {TIME}"}, {"reason": f"{TIME}: right: no"}], "right: no"),
    ([{"reason": "late"}, {"reason": "so " * 50 + "on"}], "late; " + "so " * 50 + "on"),
    # Reasons that differ only in numbers are one.
    ([{"reason": text} for text in ("byte 256 of 256", "byte 0x40 of 64", "trap")], "byte 256 of 256; trap"),
    (
        [{"reason": "another's", "benchmark": COUNT}],
        f"no reason was recorded; to see it, run: asv run --show-stderr --bench {TIME} cccccccc^!",
    ),
    ([{"reason": "before", "commit": BASE}], "no reason was recorded; to see it, run: asv run"),
    ([], "no reason was recorded; to see it, run: asv run"),
]


@pytest.mark.parametrize(("kept", "message"), KEPT)
def test_failure_is_printed_with_its_reason(kept: list[dict[str, str]], message: str, tmp_path: Path) -> None:
    """The reason is the one that the newest run recorded, or else the command that shows one."""
    root = write(tmp_path, pair([1.0] * 40, None))
    failed = [{"commit": HEAD, "benchmark": TIME, "configurations": 1, **failure} for failure in kept]
    older = {"commit": HEAD, "benchmark": TIME, "configurations": 1, "reason": "older"}
    has_older = not message.startswith("no reason")  # an older run gave a reason, which must not be shown
    runs = [{**RUN, "failed": failures} for failures in ([older] * has_older, failed)]
    write_lines(root / "results" / "gpu" / "runs.jsonl", *runs)
    _, *lines = report.render_review(review_stored(root)).splitlines()
    shown = " ".join(" ".join(lines).split())
    assert shown.startswith(f"BROKEN: 1 time failed in head alone: {TIME}: {message}")


#: Configurations that the run of head selected, and the line on the configuration without a value.
SKIPPED = {
    "a whole run": ([], "1 configuration is skipped in head: {0} (1); this commit does not have it: no {0} Note:"),
    "a run in part": (["'one'"], "not measured in head, because its run was partial: {0} (1); --all says why"),
}


@pytest.mark.parametrize(("selected", "message"), SKIPPED.values(), ids=SKIPPED)
def test_skip_is_printed_with_its_reason(selected: list[str], message: str, tmp_path: Path) -> None:
    """After a partial run, the report says instead that the run was partial."""
    suite: Suite = {BASE: {COUNT: {"one": 2.0, "two": 2.0}}, HEAD: {COUNT: {"one": 2.0, "two": math.nan}}}
    root = write(tmp_path, suite)
    reasons = [f"this commit does not have it: no {COUNT}", "no GPU here"]
    skipped = [{"commit": HEAD, "benchmark": COUNT, "configurations": 1, "reason": reason} for reason in reasons]
    run = {**RUN, "skipped": skipped, "selected": {COUNT: selected}}
    (root / "results" / "gpu" / "runs.jsonl").write_text(json.dumps(run), encoding="utf-8")
    shown = " ".join(report.render_review(review_stored(root)).split())
    assert message.format(COUNT) in shown


PARTIAL = {
    "a configuration that a run left out": (
        {COUNT: {"one": 2.0, "two": math.nan}},
        "1 configuration is not measured in head, because its run was partial",
    ),
    "a benchmark that a run left out": (
        {TIME: {"one": 2.0}}, "2 configurations are not measured in head, because its run was partial",
    ),
    "a value that its axis lost": ({COUNT: {"one": 2.0}}, "1 configuration is gone from head"),
}  # fmt: skip


@pytest.mark.parametrize(("suite", "message"), PARTIAL.values(), ids=PARTIAL)
def test_partial_runs_are_told_from_removed_values(
    suite: dict[str, dict[str, Outcome]], message: str, tmp_path: Path
) -> None:
    base: dict[str, dict[str, Outcome]] = {COUNT: {"one": 2.0, "two": 2.0}, TIME: {"one": 2.0}}
    write(tmp_path, {BASE: base, HEAD: {TIME: {"one": 2.0}, **suite}})
    assert message in " ".join(report.render_review(review_stored(tmp_path)).split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "1 number that changed by less than 1 % (--at-least)"),
        (["--at-least", "0.5%"], "sectors +0.6 %"),
        (["--all"], "Largest: track_counted.X.track_sectors more sectors"),
    ],
)
def test_small_changes_are_counted_or_listed(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([BASE, HEAD, *words], write(tmp_path, pair(1.0, 1.006, COUNT))) == 1
    assert message in capsys.readouterr().out


REFUSED = [
    *(([f"--at-least={share}"], f"--at-least: '{share}' is not a percentage; give")
      for share in ("-1", "x", "nan", "inf", "")),
    (["--machine", "gpu", "--machine", "b"], "--machine is given twice, as gpu and b, but machines"),
    (["--commit", HEAD], f"--commit {HEAD} needs --compilers; to compare two commits, give only BASE and HEAD"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_wrong_option_is_refused(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([BASE, HEAD, *words], write(tmp_path, pair(1.0, 1.006, COUNT)))
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def seconds(base: float, head: float, dtype: str = "float32", **parameters: object) -> Row:
    return replace(make_time(head, dtype, base=base, **parameters), unit="seconds")


TRADES = [make_count(head, dtype, verdict=Verdict.TRADE) for dtype, head in (("int8", 11), ("float32", 15))]
COULD_BE = {"a": (0.9, 1.1), "b": (1.0, 1.3), "c": None, "d": (0.9, 1.05)}
DOUBTS = [*TRADES, *(make_undecided(1.05, could_be, kernel) for kernel, could_be in COULD_BE.items())]
LONG_NAME = "words_of_a_metric_that_nobody_has_any_room_for_in_a_line"
MANY = ("instructions", "bank_conflicts", LONG_NAME, "warps", "requests")

MADE_UP: dict[str, tuple[list[Row], bool]] = {
    "units": (
        [seconds(*times) for times in ((7.831e-4, 8e-4), (2.4e-3, 3e-3), (1.5, 2.0), (5e-9, 6e-9), (0, 1))], True,
    ),
    "worse first, however much others are better; of a kernel what lost most time, and the steepest": (
        [seconds(*times) for times in ((1e-3, 1.1e-3), (1e-3, 1.3e-3, "two"), (1e-3, 2e-4, "3"),
         (1e-4, 1.5e-4, "four"))],
        False,
    ),
    "evidence in one line": (
        [make_time(9), *(make_count(12 + place, metric=metric) for place, metric in enumerate(MANY))], False,
    ),
    "room for one, or for two without the count": (
        [make_time(9), make_count(16, metric="requests_that_nobody_can_combine"),
         make_count(15, metric="warps_of_two"), make_count(14)],
        False,
    ),
    "evidence in several": (
        [make_time(9), *(make_count(12 + place, metric=metric) for place, metric in enumerate(MANY))], True,
    ),
    "fewer transactions beside a slower time": (
        [*weigh_against_times([make_time(11, kernel="f"), make_count(4, kernel="f", metric="sectors_loaded")], None)],
        False,
    ),
    "trades, and what could be slowest first": (DOUBTS, False),
    "no more undecided than are listed": (DOUBTS[:-1], False),
    "undecided, but one is slower": ([*DOUBTS, make_time(20)], False),
    "counts of a kernel without a reference": ([replace(make_count(14), verified=False)], False),
}  # fmt: skip


def review_rows(folder: Path, rows: list[Row], arch: str | None = "sm_90") -> str:
    """Return the report on these rows, with one space between words."""
    stored = review_stored(write(folder, pair(samples(1e-3), samples(1.2e-3))))
    return " ".join(report.render_review(dataclasses.replace(stored, rows=rows, arch=arch)).split())


@pytest.mark.parametrize(("flags", "is_explained"), [("-Xptxas -O0", True), ("--use_fast_math", False)])
def test_shortened_flags_are_explained(flags: str, is_explained: bool, tmp_path: Path) -> None:
    row = make_time(12, flags=flags)
    shown = review_rows(tmp_path, [row])
    assert shown.endswith(f"Lower is better. {SHORTENED_FLAGS}" if is_explained else "Lower is better.")
    assert render_text([Regression("gpu", BASE, HEAD, (row,))], tmp_path, "").count(SHORTENED_FLAGS) == is_explained


@pytest.mark.parametrize("arch", ["sm_90", None])
def test_architectures_of_compiled_numbers_are_named_once(arch: str | None, tmp_path: Path) -> None:
    """Without a GPU, they are not named."""
    rows = [make_time(12), *(make_compiled(head, f"sm_{number}") for number, head in ((100, 12), (90, 10), (80, 10)))]
    note = "Note: compiled numbers are of sm_80, sm_90, sm_100; only those of sm_90, this machine's GPU,"
    assert review_rows(tmp_path, rows, arch).count(note) == (arch is not None)


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (
            Reason(ReasonKind.CHANCE, (0.27, 669)),
            "could be -10 % to -1.0 % (without correction): p = 0.27 after correction for 669",
        ),
        (Reason(ReasonKind.SEVERAL_GPUS), "could be -10 % to -1.0 %: measured on different GPUs"),
    ],
    ids=["corrected", "not corrected"],
)
def test_uncorrected_interval_is_explained(reason: Reason, text: str, tmp_path: Path) -> None:
    row = make_time(9.5, verdict=Verdict.UNDECIDED)
    judgement = replace(row.judgement, could_be=(0.9, 0.99), reasons=(reason,))
    assert text in review_rows(tmp_path, [replace(row, judgement=judgement)])


def test_reports_of_made_up_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_facts, "is_verified", lambda *_: False)
    stored = review_stored(write(tmp_path, pair(samples(1e-3), samples(1.2e-3))))
    text = f"== not verified\n{report.render_review(stored, list_all=True)}"
    for name, (rows, list_all) in MADE_UP.items():
        text += f"== {name}\n{report.render_review(dataclasses.replace(stored, rows=rows), list_all=list_all)}"
    shown, expected = golden("reviews-made-up.txt", text)
    assert shown == expected
