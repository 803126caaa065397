"""Numbers that decide, and the verdict on two commits. docs/review.md has the rules."""

import math
from pathlib import Path

import pytest
from msgspec.structs import replace

from kernelwatch.cli.compare import compare as main
from kernelwatch.cli.regressions import main as regressions
from kernelwatch.config import settings
from kernelwatch.review import conclusion, launchable
from kernelwatch.review.conclusion import conclude, weigh_against_times
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Reason, ReasonKind, Verdict, judge_exact
from kernelwatch.suite.benchmark_names import TIMED
from tests.kernelwatch.review.test_compare_groups import make_compiled, make_count, make_time, make_undecided, row
from tests.stored import BASE, HEAD, pair, write

SLOW, FAST, SAME, UNDECIDED = Verdict.SLOWER, Verdict.FASTER, Verdict.SAME, Verdict.UNDECIDED
TRADE, NOTED, BROKEN, ACCEPTED = Verdict.TRADE, Verdict.NOTED, Verdict.BROKEN, Verdict.ACKNOWLEDGED

TILE = "transpose_read_write_coalesced"  # 1024 threads per block: two blocks fit, or one above 32 registers


def find_blocks(row: Row) -> launchable.LaunchedBlocks:
    """Return threads and dynamic shared bytes of the block of TILE, in base and head; None for other kernels."""
    return ((1024, 0),) * 2 if row.kernel == TILE else (None, None)


def make_number(metric: str, head: float, arch: str | None = None, base: float = 10.0, **parameters: str) -> Row:
    """Return a counted number of TILE, or with `arch` a compiled one."""
    parameters = {"kernel": TILE, "dtype": "float32", **parameters}
    if arch is None:
        return make_count(head, metric=metric, base=base, **parameters)
    return make_compiled(head, arch, metric, base=base, **parameters)


def make_timed(head: float, **parameters: str) -> Row:
    return make_time(head, kernel=TILE, **parameters)


FASTER, SLOWER, STAYED = make_timed(9), make_timed(11), make_timed(10)
OPEN = make_time(11, kernel=TILE, verdict=UNDECIDED)
SCATTERED = make_number("constant_addresses", 640, base=0)
READS, FEW_READS = (make_number("constant_requests", count, base=count) for count in (640, 32))
#: Wavefronts of a kernel that begins to use shared memory, and loads that save as many sectors, or only one.
FIRST, FEWER = make_number("wavefronts", 8704, base=0), make_number("sectors_loaded", 10, base=10 + 8704)
LOADED = make_number("sectors_loaded", 9)
LARGE = make_number("shared_bytes", 120000, "sm_90", 4096)  # one block fits instead of two

#: Metric -> ratio to base that a project allows without times.
LIMITS = {"instructions": 1.25, "registers": 1.25}

#: Case -> rows (10 at base, if it is not given), and the verdict on the last row.
NUMBERS: dict[str, tuple[list[Row], Verdict]] = {
    "transactions without a time": ([make_number("load_sectors", 11)], SLOW),
    "cache lines without a time": ([make_number("store_lines", 11)], SLOW),
    "bank conflicts without a time": ([make_number("bank_conflicts", 11)], SLOW),
    "spills without a time": ([make_number("spill_bytes", 16, "sm_90", 0)], SLOW),
    "instructions without a time": ([make_number("instructions", 11)], NOTED),
    "a metric that nobody knows": ([make_number("heat", 11)], SLOW),
    "a ratio beside its total": ([LOADED, make_number("load_sectors", 40)], NOTED),
    "a ratio that fell beside its total": ([LOADED, make_number("load_sectors", 9)], FAST),
    "a total": ([make_number("load_sectors", 9), make_number("sectors_loaded", 40)], SLOW),
    "another launch's total": ([make_number("sectors_loaded", 9, dtype="int8"), make_number("load_sectors", 11)], SLOW),
    "sectors of atomics": ([make_number("sectors_of_atomics", 11)], SLOW),
    "wavefronts": ([make_number("bank_conflicts", 9), make_number("wavefronts", 11)], SLOW),
    "the first shared memory, for as many sectors fewer": ([FEWER, FIRST], NOTED),
    "the first shared memory, for one sector fewer": ([LOADED, FIRST], SLOW),
    "the first shared memory, for as many": ([FIRST], SLOW),
    "the first shared memory, for other sectors": ([FEWER, make_number("sectors_stored", 11), FIRST], SLOW),
    "wavefronts that ptxas merges": ([make_number("merged_wavefronts", 10), make_number("wavefronts", 11)], NOTED),
    "fewer wavefronts than ptxas makes": ([make_number("merged_wavefronts", 10), make_number("wavefronts", 9)], FAST),
    "wavefronts as ptxas makes them": ([make_number("wavefronts", 9), make_number("merged_wavefronts", 11)], SLOW),
    "the first merged wavefronts, for fewer sectors": ([FEWER, make_number("merged_wavefronts", 8704, base=0)], NOTED),
    "sectors of a cluster's shared memory": ([LOADED, make_number("cluster_sectors", 32, base=4)], SLOW),
    "the first cluster sectors, for one sector fewer": ([LOADED, make_number("cluster_sectors", 1, base=0)], NOTED),
    "requests beside their sectors": ([make_number("cluster_sectors", 4), make_number("cluster_requests", 11)], NOTED),
    "addresses of constant memory": ([FEWER, FEW_READS, SCATTERED], SLOW),
    "the first uniform constants, for fewer sectors": ([FEWER, READS, SCATTERED], NOTED),
    "the first uniform constants, for one sector fewer": ([LOADED, READS, SCATTERED], SLOW),
    "the first uniform constants, for as many": ([READS, SCATTERED], SLOW),
    "requests and addresses": ([make_number("constant_addresses", 10), make_number("constant_requests", 11)], NOTED),
    "requests for as many sectors": (
        [make_number("sectors_loaded", 10), make_number("load_sectors", 3), make_number("requests", 40)], SLOW,
    ),
    "requests times 4, sectors divided by 4": (
        [make_number("sectors_loaded", 10 / 4), make_number("requests", 4 * 10)], NOTED,
    ),
    "requests for hardly fewer sectors": ([LOADED, make_number("requests", 40)], SLOW),
    "requests for more sectors": ([make_number("sectors_loaded", 11), make_number("requests", 40)], NOTED),
    "requests for other sectors": ([LOADED, make_number("sectors_stored", 11), make_number("requests", 40)], SLOW),
    "a stack frame": ([make_number("stack_bytes", 32, "sm_90", 0)], SLOW),
    "local memory": ([make_number("stack_bytes", 32, "sm_90", 32), make_number("local_sectors", 11)], SLOW),
    "local memory that became registers": (
        [make_number("stack_bytes", 0, "sm_90", 0), make_number("local_sectors", 11)], NOTED,
    ),
    "fewer transactions": ([FASTER, make_number("load_sectors", 9)], FAST),
    "more transactions beside the same time": ([STAYED, make_number("load_sectors", 11)], NOTED),
    "more transactions beside a faster time": ([FASTER, make_number("load_sectors", 11)], TRADE),
    "more transactions beside a slower time": ([SLOWER, make_number("load_sectors", 11)], NOTED),
    "more transactions beside faster and slower times": ([FASTER, SLOWER, make_number("load_sectors", 11)], NOTED),
    "more transactions beside an undecided time": ([OPEN, make_number("load_sectors", 11)], SLOW),
    "instructions beside a faster time": ([FASTER, make_number("instructions", 11)], NOTED),
    "a time of another dtype": ([make_timed(9, dtype="int8"), make_number("load_sectors", 11)], SLOW),
    "a time of other flags": ([make_timed(9, flags="-Xptxas -O0"), make_number("load_sectors", 11)], SLOW),
    "a time of another kernel": ([make_time(9), make_number("load_sectors", 11)], SLOW),
    "spills on another GPU's architecture": ([STAYED, make_number("spill_bytes", 16, "sm_80", 0)], SLOW),
    "these spills beside a faster time": ([FASTER, make_number("spill_bytes", 16, "sm_80", 0)], SLOW),
    "registers for as many threads": ([make_number("registers", 32, "sm_90", 30)], NOTED),
    "registers for fewer threads": ([make_number("registers", 33, "sm_90", 32)], SLOW),
    "fewer threads beside the same time": ([STAYED, make_number("registers", 33, "sm_90", 32)], NOTED),
    "fewer threads beside a faster time": ([FASTER, make_number("registers", 33, "sm_90", 32)], TRADE),
    "the padded tile": ([make_number("shared_bytes", 4224, "sm_90", 4096)], NOTED),
    "shared bytes for one block instead of two": ([LARGE], SLOW),
    "these, if registers fit for one block": ([make_number("registers", 64, "sm_90", 64), LARGE], NOTED),
    "these, if registers fit for two blocks": ([make_number("registers", 32, "sm_90", 32), LARGE], SLOW),
    "registers beside these shared bytes": ([LARGE, make_number("registers", 11, "sm_90")], NOTED),
    "an architecture that nobody knows": ([make_number("registers", 12, "sm_70", 10)], SLOW),
    "a kernel that nobody knows": ([make_number("registers", 12, "sm_90", 10, kernel="k")], SLOW),
    "instructions up to their limit": ([make_number("instructions", 12.5)], NOTED),
    "beyond the limit of instructions": ([make_number("instructions", 13)], SLOW),
    "registers up to their limit": ([make_number("registers", 12, "sm_90")], NOTED),
    "beyond the limit of registers": ([make_number("registers", 13, "sm_90")], SLOW),
    "beyond a limit beside the same time": ([STAYED, make_number("instructions", 13)], NOTED),
    "shared bytes, which have no limit": ([make_number("shared_bytes", 20, "sm_90")], NOTED),
}  # fmt: skip


#: Prefixes of cases in NUMBERS that are not tested with base and head exchanged.
ONE_WAY = ("the first", "beyond")


@pytest.mark.parametrize("name", NUMBERS)
def test_times_decide_before_other_numbers(name: str) -> None:
    """Without times, transactions, spills, fewer resident threads and values beyond LIMITS decide.

    With base and head exchanged, a number that decided still decides.
    """
    rows, expected = NUMBERS[name]
    *weighed, last = weigh_against_times(rows, "sm_90", LIMITS, find_blocks)
    assert last.judgement.verdict is expected
    assert bool(last.judgement.reason) or expected in (SLOW, FAST)
    assert [row.judgement.verdict for row in weighed] == [row.judgement.verdict for row in rows[:-1]]
    if expected is not FAST and not any(row.kind == TIMED for row in rows) and not name.startswith(ONE_WAY):
        mirror = [replace(row, base=row.head, head=row.base, judgement=judge_exact(row.head, row.base)) for row in rows]
        *_, last = weigh_against_times(mirror, "sm_90", LIMITS, find_blocks)
        assert (last.judgement.verdict, last.decides) == (FAST, expected is SLOW)
        assert conclude([last]) is (FAST if expected is SLOW else SAME)


def times(undecided: int, total: int, kernel: str = "k", high: float = 1.02) -> list[Row]:
    """Return `total` times of a kernel. The first `undecided` could have a ratio from 0.99 to `high`."""
    decided = total - undecided
    return [make_undecided(1.01, (0.99, high), kernel)] * undecided + [make_time(10, kernel=kernel)] * decided


MANY = times(0, 600, "others")


@pytest.mark.parametrize(
    ("limit", "code"),
    [(1.25, 0), (1, 1), *((bad_limit, 2) for bad_limit in (0.9, "2", True, math.nan, math.inf))],
)
def test_project_may_limit_metrics(
    limit: object, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A rise to 1.2 times base is a regression above the limit alone. An invalid limit is an error of one line."""
    monkeypatch.setattr(settings, "_load_settings", lambda: settings.Settings(limits={"instructions": limit}))
    write(tmp_path, pair(10.0, 12.0, "track_counted.X.track_instructions"))
    for judge, words in ((main, [BASE, HEAD, "--all"]), (regressions, [])):
        assert judge(words, tmp_path) == code
    out, err = capsys.readouterr()
    assert err.count("the limit of instructions in pyproject.toml is") == (2 if code == 2 else 0)  # once per command
    assert ("above the project's limit, 1 times base" in out) is (code == 1)


def weigh(*changes: Row) -> list[Row]:
    return [*weigh_against_times(changes, "sm_90", find_launched=find_blocks)]


def test_total_explains_cluster_requests() -> None:
    *_, last = weigh(make_number("cluster_sectors", 10), make_number("cluster_requests", 11))
    assert last.judgement.reasons == (Reason(ReasonKind.TOTALS),)


(ROSE_MORE,), (FELL,) = weigh(make_number("load_sectors", 11)), weigh(make_number("load_sectors", 9))
(LESS_CODE,), (LESS_SPACE,) = weigh(make_number("instructions", 9)), weigh(make_number("registers", 9, "sm_90"))
#: A kernel with float4 (base has 10 of each number): fewer sectors, in fewer and wider requests.
WIDER = weigh(make_number("sectors_loaded", 3), make_number("requests", 2), make_number("load_sectors", 16))
#: A kernel that reads its input repeatedly: more requests, with as many sectors each.
AGAIN = weigh(make_number("sectors_loaded", 40), make_number("requests", 40), make_number("load_sectors", 10))
#: A kernel with cp.async: more sectors, in fewer and wider requests.
ASYNC = weigh(make_number("sectors_loaded", 13), make_number("requests", 5), make_number("load_sectors", 26))

#: Rows, verdicts on configurations that fail or are repaired, verdict, and exit code by each of TRADE_POLICIES (none,
#: numbers, all).
WHOLE: dict[str, tuple[list[Row], tuple[Verdict, ...], Verdict, tuple[int, int, int]]] = {
    "nothing in both": ([], (), UNDECIDED, (2, 2, 2)),
    "nothing changed": ([STAYED], (), SAME, (0, 0, 0)),
    "faster": ([FASTER], (), FAST, (0, 0, 0)),
    "slower": ([SLOWER], (), SLOW, (1, 1, 1)),
    "slower here, faster there": ([SLOWER, *[FASTER] * 100], (), TRADE, (1, 1, 0)),
    "slower, and fewer transactions": ([SLOWER, FELL], (), SLOW, (1, 1, 1)),
    "a configuration fails": ([FASTER], (BROKEN,), BROKEN, (1, 1, 1)),
    "nothing but one that fails": ([], (BROKEN,), BROKEN, (1, 1, 1)),
    "slower, and one fails": ([SLOWER, FASTER], (BROKEN,), BROKEN, (1, 1, 1)),
    "one fails in both": ([FASTER], (Verdict.FAILED,), Verdict.FAILED, (2, 2, 2)),
    "slower, and one fails in both": ([SLOWER], (Verdict.FAILED,), SLOW, (1, 1, 1)),
    "one is repaired": ([FASTER], (Verdict.REPAIRED,), Verdict.REPAIRED, (0, 0, 0)),
    "one is repaired, another fails in both": ([], (Verdict.REPAIRED, Verdict.FAILED), Verdict.FAILED, (2, 2, 2)),
    "more transactions": ([ROSE_MORE], (), SLOW, (1, 1, 1)),
    "fewer transactions": ([FELL], (), FAST, (0, 0, 0)),
    "fewer transactions, no time changed": ([STAYED, FELL], (), SAME, (0, 0, 0)),
    "fewer here, more there": ([ROSE_MORE, FELL], (), TRADE, (1, 1, 0)),
    "more transactions, fewer instructions": ([ROSE_MORE, LESS_CODE], (), SLOW, (1, 1, 1)),
    "fewer instructions": ([LESS_CODE], (), SAME, (0, 0, 0)),
    "fewer registers": ([LESS_SPACE], (), SAME, (0, 0, 0)),
    "fewer sectors by wider requests": (WIDER, (), FAST, (0, 0, 0)),
    "repeated requests": (AGAIN, (), SLOW, (1, 1, 1)),
    "more sectors by fewer requests": (ASYNC, (), TRADE, (1, 1, 0)),
    "noted": ([row("track_x.X.track_instructions", 11, verdict=NOTED)], (), SAME, (0, 0, 0)),
    "a trade": ([FASTER, make_count(11, verdict=TRADE)], (), TRADE, (1, 0, 0)),
    "a trade, and slower elsewhere": ([FASTER, SLOWER, make_count(11, verdict=TRADE)], (), TRADE, (1, 1, 0)),
    "acknowledged": ([make_count(11, verdict=ACCEPTED)], (), ACCEPTED, (0, 0, 0)),
    "acknowledged, and faster": ([FASTER, make_count(11, verdict=ACCEPTED)], (), ACCEPTED, (0, 0, 0)),
    "acknowledged, a trade": ([make_count(11, verdict=ACCEPTED), make_count(11, verdict=TRADE)], (), TRADE, (1, 0, 0)),
    "one undecided of hundreds": ([*MANY, *times(1, 40)], (), SAME, (0, 0, 0)),
    "one undecided of hundreds, and faster": ([FASTER, *MANY, *times(1, 40)], (), FAST, (0, 0, 0)),
    "more than 1 in 100": ([*times(0, 150, "others"), *times(2, 40)], (), UNDECIDED, (2, 2, 2)),
    "1 in 100": ([*times(0, 160, "others"), *times(2, 40)], (), SAME, (0, 0, 0)),
    "more than 1 in 10 of a kernel": ([*MANY, *times(5, 49)], (), UNDECIDED, (2, 2, 2)),
    "1 in 10 of a kernel": ([*MANY, *times(5, 50)], (), SAME, (0, 0, 0)),
    "a kernel's only time": ([*MANY, *times(1, 1)], (), UNDECIDED, (2, 2, 2)),
    "a kernel's only time, faster at least": ([*MANY, *times(1, 1, high=0.99)], (), SAME, (0, 0, 0)),
    "a kernel's only time, by who knows what": ([*MANY, make_undecided(0.9, None, "k")], (), UNDECIDED, (2, 2, 2)),
    "undecided, and slower elsewhere": ([*times(1, 1), SLOWER], (), SLOW, (1, 1, 1)),
    "undecided, and a trade elsewhere": ([*times(1, 1), make_count(11, verdict=TRADE)], (), UNDECIDED, (2, 2, 2)),
    "undecided, acknowledged elsewhere": ([*times(1, 1), make_count(11, verdict=ACCEPTED)], (), UNDECIDED, (2, 2, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_verdict_on_two_commits(name: str) -> None:
    rows, failing, expected, codes = WHOLE[name]
    assert conclude(rows, failing) is expected
    assert tuple(conclusion.exit_code(expected, rows, trade) for trade in conclusion.TRADE_POLICIES) == codes
    # A slower time decides although others are undecided.
    is_doubted = (expected is UNDECIDED and bool(rows)) or name == "undecided, and slower elsewhere"
    assert any(conclusion.iter_reasons_for_undecided(rows)) is is_doubted
