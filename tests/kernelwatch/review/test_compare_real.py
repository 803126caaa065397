"""The review of this repository's own results: it agrees with asv, tells the stories that are known, and knows GB/s."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from asv import _stats
from asv.commands.compare import Compare
from asv.config import Config

from kernelwatch import suite
from kernelwatch.project import ROOT
from kernelwatch.review import commits
from kernelwatch.review.commits import find
from kernelwatch.review.comparison import Comparison, compare
from kernelwatch.review.conclusion import ALL, NONE
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict
from kernelwatch.show import as_json, report
from kernelwatch.store import reading
from kernelwatch.store.folders import machines
from kernelwatch.store.results import TIMED, History
from kernelwatch.toolchain import releases as compilers

SLOW, FAST, SAME, UNDECIDED = Verdict.SLOWER, Verdict.FASTER, Verdict.SAME, Verdict.UNDECIDED
GPU, NO_GPU = "nvidia-h200", "no-gpu-x86_64"


@pytest.fixture(autouse=True, scope="module")
def _read_once() -> Iterator[None]:
    """Dozens of reviews share the stored results."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commits, "histories", functools.cache(commits.histories))
        yield


@functools.cache
def review(machine: str, base: str, head: str) -> Comparison:
    """The review of two stored commits: several tests ask for the same."""
    (sides,) = find(base, head, machine, ROOT)
    return compare(sides, ROOT)


def said(machine: str, base: str, head: str) -> str:
    """What a terminal shows of it, in one line."""
    return " ".join(report.render(review(machine, base, head), 0.01).split())


def times(comparison: Comparison) -> dict[str, Verdict]:
    """The verdicts on its times, by configuration."""
    return {row.name: row.judgement.verdict for row in comparison.rows if row.kind == TIMED}


def row_of(comparison: Comparison, configuration: str) -> Row:
    """One of its rows."""
    (found,) = (row for row in comparison.rows if row.name == configuration)
    return found


#: Machine, base and head among the stored commits; the verdict.
STORED = [
    (GPU, "f22cf79", "926c240", FAST),  # the padded tile
    (NO_GPU, "f22cf79", "926c240", FAST),  # takes shared memory, but as many blocks fit
    ("nvidia-h100-80gb-hbm3", "f22cf79", "926c240", FAST),
    (GPU, "98a96e0", "740a787", Verdict.TRADE),  # times, 39 of which are faster
    (NO_GPU, "98a96e0", "740a787", SAME),  # instructions are evidence
    (NO_GPU, "a0cc781", "ee4e49a", Verdict.TRADE),  # transactions of some sizes, not of others
    (GPU, "4df5b48", "a962974", Verdict.TRADE),  # two of its times are faster by less than 1 %
    (NO_GPU, "4d2e91a", "ab7cbc0", Verdict.TRADE),  # occupancy, and fewer wavefronts
    (NO_GPU, "f30f4e4", "4df5b48", Verdict.TRADE),  # spills, and occupancy
    (NO_GPU, "4df5b48", "f30f4e4", Verdict.TRADE),
    (GPU, "952ced2", "f30f4e4", UNDECIDED),  # nothing in both
    (GPU, "62e95db", "ee4e49a", FAST),  # one undecided, faster in any case
    (GPU, "740a787", "740a787", SAME),
]

#: Verdicts whose exit code is not 0.
CODES = {SLOW: 1, Verdict.TRADE: 1, UNDECIDED: 2}


@pytest.mark.parametrize(("machine", "base", "head"), [row[:3] for row in STORED])
def test_columns(machine: str, base: str, head: str) -> None:
    """No line is wider than 100 columns; the table begins within the first twelve, and names each kernel in full."""
    for every in (False, True):
        lines = report.render(review(machine, base, head), 0.0 if every else 0.01, every=every).splitlines()
        assert max(map(len, lines)) <= 100
        assert all(line == line.rstrip() for line in lines)
        assert [number for number, line in enumerate(lines) if "why (compiled, counted)" in line] < [12]


@pytest.mark.parametrize(("machine", "base", "head", "expected"), STORED)
def test_stored_commits(machine: str, base: str, head: str, expected: Verdict) -> None:
    """The padded tile passes with times and without; what became slower does not."""
    found = review(machine, base, head)
    assert (found.conclusion, found.exit_code) == (expected, CODES.get(expected, 0))
    assert replace(found, trade=ALL).exit_code == found.exit_code * (expected is not Verdict.TRADE)
    assert said(machine, base, head).startswith(f"{expected.value} {base} -> {head}")


def test_a_trade() -> None:
    """In ab7cbc0 -> a0cc781 are spills beside faster times: a trade, but for the times that became slower."""
    whole = review(GPU, "ab7cbc0", "a0cc781")
    traded = replace(whole, rows=[row for row in whole.rows if row.judgement.verdict is not SLOW])
    assert (traded.conclusion, traded.exit_code) == (Verdict.TRADE, 0)
    assert replace(traded, trade=NONE).exit_code == 1
    told = said(GPU, "ab7cbc0", "a0cc781")
    assert "Trade: transpose_vectorized more spill bytes at " in told
    assert "times: 1 faster, 6 same" in told


def test_times_of_other_names_decide() -> None:
    """Numbers that are judged alone are weighed with all times of the two commits, as if all were judged."""
    whole = [row for row in review(GPU, "ab7cbc0", "a0cc781").rows if row.kind != TIMED]
    (sides,) = find("ab7cbc0", "a0cc781", GPU, ROOT)
    alone = compare(sides, ROOT, names={row.name for row in whole}).rows
    assert {row.judgement.verdict for row in whole} >= {SLOW, Verdict.TRADE, Verdict.NOTED}
    assert [(row.name, row.judgement) for row in alone] == [(row.name, row.judgement) for row in whole]


@pytest.fixture(scope="module")
def counts() -> Iterator[None]:
    """The orderings that asv's test of significance counts, counted once: asv does not get to clear the table."""
    kept = type("Kept", (dict,), {"clear": lambda _: None})()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_stats, "_mann_whitney_u_memo", kept)
        yield


@pytest.mark.usefixtures("counts")
@pytest.mark.parametrize("machine", [GPU, NO_GPU])
@pytest.mark.parametrize(("base", "head"), [("f22cf79", "926c240"), ("926c240", "740a787")])
def test_agrees_with_asv(machine: str, base: str, head: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever `asv compare` marks as changed in the stored results changed in the same direction here."""
    found = review(machine, base, head)
    ours = {row.name: row.judgement.verdict.value.replace("NOTED", "SLOWER") for row in found.rows}
    config = Config.load(str(ROOT / "asv.conf.json"))
    config.results_dir = str(ROOT / "results")
    pair = (found.base.commit, found.head.commit)
    Compare.print_table(config, *pair, factor=1.1, split=False, machine=machine, commit_names={})
    marked: dict[str, str] = {}
    for line in capsys.readouterr().out.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        ratio = "track_control." in line  # stands beside the time here
        if len(cells) == 5 and cells[0] in ("+", "-") and not ratio:
            marked[cells[4].replace("'", "")] = {"+": "SLOWER", "-": "FASTER"}[cells[0]]
    assert len(marked) > 10
    assert {name: ours[name] for name in marked} == marked


def test_padding_was_an_improvement() -> None:
    """The tile kernel is faster in f22cf79 -> 740a787; f22cf79 -> 926c240 took its bank conflicts."""
    found = review(GPU, "f22cf79", "740a787")
    name = "transpose_read_write_coalesced, 12800x12800, float32, -Xptxas -O3"
    row = row_of(found, f"time_transpose.Transpose.time_back_to_back({name})")
    assert row.judgement.verdict is FAST
    assert row.judgement.ratio == pytest.approx(0.725, abs=0.001)
    assert row.rates == pytest.approx((1234e9, 1703e9), rel=0.001)
    document = json.loads(as_json.render(found))
    assert document["peak_bytes_per_second"] == pytest.approx(4814e9, rel=0.001)
    (written,) = (each for each in document["rows"] if each["configuration"] == row.name)
    assert written["share_of_peak"] == pytest.approx([0.256, 0.354], abs=0.001)
    assert ["% of peak 35.4" in report._known(row, peak) for peak in (found.peak, None)] == [True, False]
    conflicts = "track_counted.Transpose.track_bank_conflicts(transpose_read_write_coalesced,"
    rows = review(NO_GPU, "f22cf79", "926c240").rows
    assert {row.judgement.verdict for row in rows if row.name.startswith(conflicts)} == {FAST}
    told = said(GPU, "f22cf79", "740a787")
    assert "551 times: 52 faster, 499 same; 1530 counted and compiled numbers: 102 rose (none decides)," in told
    assert "transpose_read_write_coalesced 28 % faster at 12800x12800 float32" in told
    assert "bank conflicts 10.9 -> 0.118" in told


def test_nothing_but_what_changed() -> None:
    """f22cf79 -> 926c240, on one GPU: every change of a time is of the one kernel that was padded."""
    found = review(GPU, "f22cf79", "926c240")
    assert not any(note.startswith("not one GPU") for note in found.notes)
    verdicts = times(found)
    assert Counter(verdicts.values()) == {SAME: 461, FAST: 90}
    faster = [name for name, verdict in verdicts.items() if verdict is FAST]
    assert all("(transpose_read_write_coalesced," in name for name in faster)


def test_less_than_one_percent_is_seen() -> None:
    """f22cf79 -> 952ced2, on one GPU: by its noise, a copy's 0.6 % counts; what no commit changes is left alone.

    Of the copies that changed at all, only those did whose flag chooses another load since then.
    """
    found = review(GPU, "f22cf79", "952ced2")
    row = row_of(found, "time_copy.OffsetCopy.time_back_to_back(0, 67108864, float16, -Xptxas -dlcm=cg)")
    low, high = row.judgement.interval or (0.0, 0.0)
    assert row.judgement.verdict is SLOW
    assert 1.006 < low < row.judgement.ratio < high < 1.007
    copies = {name: verdict for name, verdict in times(found).items() if name.startswith("time_copy.")}
    assert Counter(verdict for name, verdict in copies.items() if "DeviceCopy." in name) == {SAME: 35}
    changed = [name for name, verdict in copies.items() if verdict is not SAME]
    assert (len(changed), found.exit_code) == (12, 1)
    assert all(name.endswith("-Xptxas -dlcm=cg)") for name in changed)


#: Benchmark, parameters, the bytes that it must move, and its machine code.
CONFIGURATIONS = [
    ("Transpose", {"kernel": "transpose_read_coalesced", "rows x columns": "3x5"}, 120, "transpose_read_coalesced"),
    ("OffsetCopy", {"offset": "3", "size": "10"}, 80, "offset_copy"),
    ("OffsetCopy", {"offset": "-1", "size": "10"}, None, "offset_copy"),
    ("StrideCopy", {"stride": "3"}, None, "stride_copy"),
    ("MatrixSizedCopy", {"copy": "stride_copy stride=2"}, 8 * 12800 * 12800, "stride_copy"),
    ("MatrixSizedCopy", {"copy": "unheard"}, None, "unheard"),
    ("DeviceCopy", {"rows x columns": "3x5"}, 120, None),
    ("DeviceCopy", {"rows x columns": "3"}, None, None),
    # Of another suite.
    ("Other", {"kernel": "unknown", "rows x columns": "3x5"}, None, "unknown"),
    ("Other", {"kernel": "transpose_read_coalesced", "arch": "sm_90"}, None, "transpose_read_coalesced"),
    ("Other", {}, None, None),
]


@pytest.mark.parametrize(("title", "params", "expected", "code"), CONFIGURATIONS)
def test_launches(title: str, params: dict[str, str], expected: int | None, code: str | None) -> None:
    """Every element once in and once out; None for what the catalog does not know."""
    benchmark = next((name for name in suite.current().benchmarks if f"time_copy.{title}." in name), "")
    benchmark = benchmark or f"time_transpose.{title}.time_back_to_back"
    given = {**params, "dtype": "float32", "flags": "-O"}
    assert suite.useful_bytes(benchmark, given) == expected
    assert suite.code_name(benchmark, given) == (code and f"{code} float32 -O")


@pytest.mark.parametrize("machine", machines(ROOT / "results"))
def test_stored_values_are_found(machine: str) -> None:
    """Each value that any file under `results/` holds is found by asv's own reading of it, for today's axes.

    What is compared are the files themselves with what asv and the pages' reader make of them. Times of the protocol
    before the measuring process are another version's: asv leaves them alone.
    """
    found = 0
    versions = json.loads((ROOT / "results" / "benchmarks.json").read_text(encoding="utf-8"))
    history = functools.cache(lambda compiler: History(machine, compiler=compiler))
    for path in reading.listed(history(None).folder, "*-*.json"):
        stored = json.loads(path.read_text(encoding="utf-8"))
        known = history(compilers.of_results(stored["env_vars"]))
        results = known.commit(stored["commit_hash"])
        assert results is not None
        for benchmark, row in stored["results"].items():
            columns = dict(zip(stored["result_columns"], row, strict=False))
            assert columns["version"] == versions[benchmark]["version"]
            every = list(itertools.product(*([text.strip("'") for text in axis] for axis in columns["params"])))
            numbers = zip(every, columns["result"] or [None] * len(every), strict=True)
            kept = {params: value for params, value in numbers if value is not None and not math.isnan(value)}
            axes = itertools.product(*known.axes(benchmark).values())
            seen = dict(zip(axes, known.values(results, benchmark), strict=True))
            points = {tuple(point.params.values()): point.value for point in known.points(results, benchmark)}
            for read in (seen, points):
                assert {params: read[params] for params in kept} == kept, f"{path.name}: {benchmark}"
            found += len(kept)
    assert found > 1000
