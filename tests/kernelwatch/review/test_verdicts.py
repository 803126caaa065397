"""Which numbers decide, and the verdict on a whole comparison: docs/review.md has the rules."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gpu_kernels import nvcc
from kernelwatch.asv import suite
from kernelwatch.project import ROOT
from kernelwatch.review import deciding, occupancy
from kernelwatch.review.__main__ import main
from kernelwatch.review.commits import find
from kernelwatch.review.comparison import compare
from kernelwatch.review.conclusion import Conclusion, conclude, doubts
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict
from kernelwatch.store.results import TIMED
from tests.kernelwatch.review.test_compare_groups import compiled, count, row, time

SLOW, FAST, SAME, UNDECIDED = Verdict.SLOW, Verdict.FAST, Verdict.SAME, Verdict.UNDECIDED
TRADE, NOTED = Verdict.TRADE, Verdict.NOTED
REGRESSION, COULD_NOT_JUDGE, TRADED, NO_REGRESSION, SAME_COMMIT = (
    Conclusion.REGRESSION, Conclusion.COULD_NOT_JUDGE, Conclusion.TRADE, Conclusion.NO_REGRESSION,
    Conclusion.SAME_COMMIT,
)  # fmt: skip

TILE = (
    "transpose_read_write_coalesced"  # 1024 threads a block: two fit, or one where a thread has more than 32 registers
)


def number(metric: str, head: float, arch: str | None = None, base: float = 10.0, **others: str) -> Row:
    """A counted number, or a compiled one of an architecture."""
    others = {"kernel": TILE, "dtype": "float32", **others}
    if arch is None:
        return count(head, metric=metric, base=base, **others)
    return compiled(head, arch, metric, base=base, **others)


def timed(head: float, **others: str) -> Row:
    """A time of the same kernel."""
    return time(head, kernel=TILE, **others)


FASTER, SLOWER, STAYED = timed(9), timed(11), timed(10)
OPEN = time(11, kernel=TILE, verdict=UNDECIDED)

#: Rows, and the verdict on the last.
NUMBERS: dict[str, tuple[list[Row], Verdict]] = {
    "transactions without a time": ([number("load_sectors", 11)], SLOW),
    "cache lines without a time": ([number("store_lines", 11)], SLOW),
    "bank conflicts without a time": ([number("bank_conflicts", 11)], SLOW),
    "spills without a time": ([number("spill_bytes", 16, "sm_90", 0)], SLOW),
    "instructions without a time": ([number("instructions", 11)], NOTED),
    "a metric that nobody knows": ([number("heat", 11)], SLOW),
    "fewer": ([FASTER, number("load_sectors", 9)], FAST),
    "beside the same time": ([STAYED, number("load_sectors", 11)], NOTED),
    "beside a faster time": ([FASTER, number("load_sectors", 11)], TRADE),
    "beside a slower time": ([SLOWER, number("load_sectors", 11)], NOTED),
    "beside a faster and a slower one": ([FASTER, SLOWER, number("load_sectors", 11)], NOTED),
    "beside an undecided time": ([OPEN, number("load_sectors", 11)], SLOW),
    "instructions beside a faster time": ([FASTER, number("instructions", 11)], NOTED),
    "a time of another dtype": ([timed(9, dtype="int8"), number("load_sectors", 11)], SLOW),
    "a time of other flags": ([timed(9, flags="-Xptxas -O0"), number("load_sectors", 11)], SLOW),
    "a time of another kernel": ([time(9), number("load_sectors", 11)], SLOW),
    "spills on another GPU's architecture": ([STAYED, number("spill_bytes", 16, "sm_80", 0)], SLOW),
    "the same beside a faster time": ([FASTER, number("spill_bytes", 16, "sm_80", 0)], TRADE),
    "as many blocks": ([number("registers", 32, "sm_90", 30)], NOTED),
    "fewer blocks": ([number("registers", 33, "sm_90", 32)], SLOW),
    "fewer blocks beside the same time": ([STAYED, number("registers", 33, "sm_90", 32)], NOTED),
    "fewer blocks beside a faster time": ([FASTER, number("registers", 33, "sm_90", 32)], TRADE),
    "the padded tile": ([number("shared_bytes", 4224, "sm_90", 4096)], NOTED),
    "a tile that leaves room for one": ([number("shared_bytes", 120000, "sm_90", 4096)], SLOW),
    "where registers leave room for no more": (
        [number("registers", 64, "sm_90", 64), number("shared_bytes", 120000, "sm_90", 4096)], NOTED,
    ),
    "where registers leave room for more": (
        [number("registers", 32, "sm_90", 32), number("shared_bytes", 120000, "sm_90", 4096)], SLOW,
    ),
    "an architecture that nobody knows": ([number("registers", 12, "sm_75", 10)], SLOW),
    "a kernel that nobody knows": ([number("registers", 12, "sm_90", 10, kernel="k")], SLOW),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "expected"), NUMBERS.values(), ids=NUMBERS)
def test_which_numbers_decide(rows: list[Row], expected: Verdict) -> None:
    """Times decide where there are times; else transactions, spills, and resources only where fewer blocks fit."""
    *others, last = deciding.weigh(rows, "sm_90")
    assert last.judgement.verdict is expected
    assert bool(last.judgement.reason) or expected in (SLOW, FAST)
    assert [each.judgement.verdict for each in others] == [each.judgement.verdict for each in rows[:-1]]


def undecided(ratio: float, could_be: tuple[float, float] | None, kernel: str) -> Row:
    """An undecided time."""
    made = time(10 * ratio, kernel=kernel, verdict=UNDECIDED)
    return replace(made, judgement=replace(made.judgement, could_be=could_be))


def times(open_: int, every: int, kernel: str = "k", high: float = 1.02) -> list[Row]:
    """The times of a kernel, of which so many are undecided, by up to so much."""
    return [undecided(1.01, (0.99, high), kernel)] * open_ + [time(10, kernel=kernel)] * (every - open_)


MANY = times(0, 600, "others")

#: Rows, whether a configuration fails and whether it is one commit, and the verdict.
WHOLE: dict[str, tuple[list[Row], bool, bool, Conclusion]] = {
    "nothing in both": ([], False, False, COULD_NOT_JUDGE),
    "nothing changed": ([STAYED], False, False, NO_REGRESSION),
    "one commit": ([STAYED], False, True, SAME_COMMIT),
    "faster": ([FASTER], False, False, NO_REGRESSION),
    "slower": ([SLOWER], False, False, REGRESSION),
    "slower here, faster there": ([SLOWER, *[FASTER] * 100], False, False, REGRESSION),
    "a configuration fails": ([FASTER], True, False, REGRESSION),
    "nothing but one that fails": ([], True, False, REGRESSION),
    "noted": ([row("track_x.X.track_instructions", 11, verdict=NOTED)], False, False, NO_REGRESSION),
    "a trade": ([FASTER, count(11, verdict=TRADE)], False, False, TRADED),
    "a trade, and slower elsewhere": ([SLOWER, count(11, verdict=TRADE)], False, False, REGRESSION),
    "acknowledged": ([count(11, verdict=Verdict.ACKNOWLEDGED)], False, False, NO_REGRESSION),
    "one undecided of hundreds": ([*MANY, *times(1, 40)], False, False, NO_REGRESSION),
    "more than 1 in 100": ([*times(0, 150, "others"), *times(2, 40)], False, False, COULD_NOT_JUDGE),
    "1 in 100": ([*times(0, 160, "others"), *times(2, 40)], False, False, NO_REGRESSION),
    "more than 1 in 10 of a kernel": ([*MANY, *times(5, 49)], False, False, COULD_NOT_JUDGE),
    "1 in 10 of a kernel": ([*MANY, *times(5, 50)], False, False, NO_REGRESSION),
    "a kernel's only time": ([*MANY, *times(1, 1)], False, False, COULD_NOT_JUDGE),
    "a kernel's only time, faster at least": ([*MANY, *times(1, 1, high=0.99)], False, False, NO_REGRESSION),
    "a kernel's only time, by who knows what": ([*MANY, undecided(0.9, None, "k")], False, False, COULD_NOT_JUDGE),
    "undecided, and slower elsewhere": ([*times(1, 1), SLOWER], False, False, REGRESSION),
    "undecided, and a trade elsewhere": ([*times(1, 1), count(11, verdict=TRADE)], False, False, COULD_NOT_JUDGE),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "fails", "same", "expected"), WHOLE.values(), ids=WHOLE)
def test_the_whole(rows: list[Row], fails: bool, same: bool, expected: Conclusion) -> None:
    """A regression is never hidden by anything else; what is undecided counts only where it could turn the verdict."""
    assert conclude(rows, fails=fails, same=same) is expected
    assert any(doubts(rows)) is (expected is COULD_NOT_JUDGE and bool(rows)) or expected is REGRESSION


#: Machine, base and head among the stored commits; the verdict and the exit codes without and with --no-trade.
STORED = [
    ("nvidia-h200", "f22cf79", "926c240", NO_REGRESSION, (0, 0)),  # the padded tile
    ("no-gpu-x86_64", "f22cf79", "926c240", NO_REGRESSION, (0, 0)),
    ("nvidia-h100-80gb-hbm3", "f22cf79", "926c240", NO_REGRESSION, (0, 0)),
    ("nvidia-h200", "98a96e0", "740a787", REGRESSION, (1, 1)),  # times, 39 of which are faster
    ("no-gpu-x86_64", "98a96e0", "740a787", NO_REGRESSION, (0, 0)),  # instructions are evidence
    ("no-gpu-x86_64", "a0cc781", "ee4e49a", REGRESSION, (1, 1)),  # transactions
    ("no-gpu-x86_64", "4d2e91a", "ab7cbc0", REGRESSION, (1, 1)),  # occupancy
    ("nvidia-h200", "952ced2", "f30f4e4", COULD_NOT_JUDGE, (2, 2)),  # nothing in both
    ("nvidia-h200", "62e95db", "ee4e49a", NO_REGRESSION, (0, 0)),  # one undecided, faster in any case
    ("nvidia-h200", "740a787", "740a787", SAME_COMMIT, (0, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("machine", "base", "head", "expected", "codes"), STORED)
def test_stored_commits(
    machine: str, base: str, head: str, expected: Conclusion, codes: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    """The padded tile passes with times and without; what became slower does not."""
    for code, words in zip(codes, ([], ["--no-trade"]), strict=True):
        assert main([base, head, "--machine", machine, *words]) == code
        assert capsys.readouterr().out.startswith(f"{expected.value}  ")


def test_a_trade_of_stored_commits(capsys: pytest.CaptureFixture[str]) -> None:
    """In ab7cbc0 -> a0cc781, without the times that became slower: spills for other architectures, and faster times."""
    whole = compare(find("ab7cbc0", "a0cc781", "nvidia-h200", ROOT), ROOT)
    kept = [each for each in whole.rows if each.judgement.verdict is not SLOW]
    traded = replace(whole, rows=kept)
    assert (traded.conclusion, traded.exit_code) == (TRADED, 0)
    assert replace(traded, trade_fails=True).exit_code == 1


def test_a_trade_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """The number, how much it rose, and what the times say."""
    assert main(["ab7cbc0", "a0cc781", "--machine", "nvidia-h200"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "Trade: transpose_vectorized more spill bytes at " in said
    assert "times: 1 faster, 6 same" in said


def test_undecided_times_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """With what they could be."""
    main(["f22cf79", "926c240", "--machine", "nvidia-h200"])
    said = " ".join(capsys.readouterr().out.split())
    assert "undecided: transpose_read_coalesced at 256x256 complex128 isolated -O3: +1.0 %, could be " in said


def test_times_of_other_names_decide() -> None:
    """Numbers that are judged alone are weighed with all times of the two commits, as if all were judged."""
    sides = find("ab7cbc0", "a0cc781", "nvidia-h200", ROOT)
    whole = [each for each in compare(sides, ROOT).rows if each.kind != TIMED]
    alone = compare(sides, ROOT, names={each.name for each in whole}).rows
    assert {each.judgement.verdict for each in whole} >= {SLOW, TRADE, NOTED}
    assert [(each.name, each.judgement) for each in alone] == [(each.name, each.judgement) for each in whole]


#: As `MULTIPROCESSORS`, of which the calculator is told all but the blocks: that it knows by itself.
_PROBE = r"""
#include <climits>
#include <cstdio>
#include "cuda_occupancy.h"
int main() {
    int major, minor, warps, threads, registers; size_t shared_sm, shared;
    while (scanf("%d %d %d %zu %d %d %zu", &major, &minor, &warps, &shared_sm, &threads, &registers, &shared) == 7) {
        cudaOccDeviceProp p; cudaOccFuncAttributes a; cudaOccDeviceState s; cudaOccResult r;
        p.computeMajor = major; p.computeMinor = minor; p.maxThreadsPerBlock = 1024; p.warpSize = 32;
        p.maxThreadsPerMultiprocessor = 32 * warps; p.regsPerBlock = p.regsPerMultiprocessor = 65536;
        p.sharedMemPerBlock = 49152; p.sharedMemPerMultiprocessor = shared_sm; p.numSms = 1;
        p.sharedMemPerBlockOptin = shared_sm - 1024; p.reservedSharedMemPerBlock = 1024;
        a.maxThreadsPerBlock = INT_MAX; a.numRegs = registers; a.sharedSizeBytes = shared;
        a.maxDynamicSharedSizeBytes = 0; a.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        s.cacheConfig = CACHE_PREFER_SHARED; s.carveoutConfig = 100;
        cudaOccError e = cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &a, &s, threads, 0);
        printf("%d\n", e == CUDA_OCC_SUCCESS ? r.activeBlocksPerMultiprocessor : -1);
    }
}
"""


def test_occupancy_is_nvidias(tmp_path: Path) -> None:
    """For every architecture of the table, and block sizes, registers and shared memory around each step."""
    header = Path(nvcc.find_nvcc()).resolve().parent.parent / "include" / "cuda_occupancy.h"
    if not header.exists() or shutil.which("g++") is None:
        pytest.skip(f"no g++, or no {header}")
    (tmp_path / "probe.cpp").write_text(_PROBE)
    words = ["g++", f"-I{header.parent}", str(tmp_path / "probe.cpp"), "-o", str(tmp_path / "probe")]
    subprocess.run(words, check=True, capture_output=True)
    cases = [
        (arch, threads, registers, shared)
        for arch in occupancy.MULTIPROCESSORS
        for threads in (32, 64, 96, 160, 256, 288, 512, 768, 1024)
        for registers in (0, 16, 24, 25, 32, 33, 40, 41, 64, 65, 96, 128, 168, 255)
        for shared in (0, 1, 2048, 4096, 4224, 8320, 16896, 33792, 49152)
    ]
    asked = []
    for arch, threads, registers, shared in cases:
        holds = occupancy.MULTIPROCESSORS[arch]
        major, minor = divmod(int(arch.removeprefix("sm_")), 10)
        asked.append(f"{major} {minor} {holds.warps} {holds.shared} {threads} {registers} {shared}")
    done = subprocess.run([tmp_path / "probe"], input="\n".join(asked), capture_output=True, text=True, check=True)
    expected = [int(line) for line in done.stdout.split()]
    assert [occupancy.blocks(*case) for case in cases] == expected
    assert len({*expected}) > 15


def test_every_architecture_of_the_suite_is_known() -> None:
    """What the suite compiles for is in the table."""
    assert {*suite.ARCHS} <= {*occupancy.MULTIPROCESSORS}


def test_launches_are_known_to_occupancy() -> None:
    """Threads and dynamic shared memory of a block; nothing of a kernel or a dtype that nobody knows."""
    assert occupancy.launched(TILE, "float32") == (1024, 0)
    assert occupancy.launched("k", "float32") is None
    assert occupancy.launched(TILE, "float3") is None
