"""The rows of a review by kernel and flags: what is one row, what stands beside it, and in which order."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from kernelwatch.review.conclusion import weigh
from kernelwatch.review.groups import group_rows
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Judgement, Verdict, exact, percent, ratio
from kernelwatch.show.report import configurations
from kernelwatch.store.points import kind
from tests.golden import golden

UNDECIDED = Verdict.UNDECIDED

TIME = "time_transpose.Transpose.time_back_to_back"
COUNTED = "track_counted.Transpose.track_{}"
COMPILED = "track_compiled.Compiled.track_{}"
O3, O0 = "-Xptxas -O3", "-Xptxas -O0"


def row(
    benchmark: str,
    head: float,
    *,
    base: float = 10.0,
    kernel: str = "k",
    flags: str = O3,
    verdict: Verdict | None = None,
    same_code: bool | None = None,
    **params: str,
) -> Row:
    """A configuration; a time is SLOW or FAST if it changed at all."""
    judged = exact(base, head)
    judged = Judgement(verdict or judged.verdict, ratio(base, head))
    params = {"flags": flags, **params}
    name = f"{benchmark}({kernel}, {', '.join(params.values())})"
    return Row(name, kind(benchmark), "", base, head, judged, None, None, benchmark, params, kernel, same_code)


def time(head: float, dtype: str = "float32", **others: object) -> Row:
    """A time of one dtype."""
    return row(TIME, head, dtype=dtype, **others)  # type: ignore[arg-type]


def count(head: float, dtype: str = "float32", metric: str = "instructions", **others: object) -> Row:
    """A counted number of one dtype."""
    return row(COUNTED.format(metric), head, dtype=dtype, **others)  # type: ignore[arg-type]


def compiled(head: float, arch: str = "sm_90", metric: str = "registers", **others: object) -> Row:
    """A compiled number of one architecture."""
    return row(COMPILED.format(metric), head, arch=arch, **others)  # type: ignore[arg-type]


LOADED = replace(count(40, metric="sectors_loaded"), useful_bytes=320)

#: What is grouped.
CASES: dict[str, list[Row]] = {
    "nothing changed": [time(10), count(10)],
    "a mean over sizes and dtypes": [time(20), time(10, "int8"), time(5, "float64"), time(20, "float16")],
    "no mean of what cannot be right": [time(11), time(0.0, "int8", verdict=UNDECIDED)],
    "nor of this": [time(11), time(math.inf, "int8", verdict=UNDECIDED)],
    "flags apart": [time(11), time(12, flags=O0)],
    "with its evidence": [
        time(9), count(15), count(5, metric="bank_conflicts"), compiled(8), compiled(9, "sm_80"),
    ],
    "counted for all flags once": [count(15), count(15, flags=O0), time(10), time(10, flags=O0)],
    "counted beside a time of other flags": [time(9), count(15), count(15, flags=O0)],
    "counted beside it, and one number more": [
        time(9), count(15), count(15, flags=O0), count(12, metric="load_sectors", flags=O0),
    ],
    "counted by flags": [count(15), count(14, flags=O0)],
    "compiled beside a time of other flags": [time(9), compiled(12), compiled(12, flags=O0)],
    "kernels apart": [count(15), count(15, kernel="l")],
    "slower before faster": [
        time(5, kernel="faster"), time(10.5, kernel="slower"), time(14, kernel="open", verdict=UNDECIDED),
    ],
    "the worst of the times, or of the numbers where none changed": [
        *(time(10 + step, f"d{step}") for step in (1, -1, -2, 0)),
        time(9, kernel="l"), count(20, kernel="l"), count(8, kernel="m"), time(10, kernel="m"),
    ],
    "a trade rose": [count(11, verdict=Verdict.TRADE)],
    "accepted, of numbers where there are no times": [count(11, verdict=Verdict.ACKNOWLEDGED)],
    "what decides before what explains": [
        *weigh([LOADED, count(60, metric="load_sectors"), count(5, metric="store_sectors")], None),
    ],
    "declared to read what it does not": [replace(LOADED, useful_bytes=321)],
    "other architectures last": [compiled(20, "sm_80"), count(11, kernel="l")],
    "architectures that differ, on a machine without a GPU": [
        *(compiled(head, arch) for head, arch in ((11, "sm_80"), (12, "sm_90"), (12, "sm_100"))),
        *(compiled(14, arch, metric="shared_bytes") for arch in ("sm_80", "sm_90", "sm_100")),
    ],
    "some dtypes": [count(15), count(10, "int8")],
    "steps that differ": [count(11), count(12.1, "int8", base=11)],
    "both directions": [count(11), count(9, "int8")],
    "from nothing": [count(1.5, base=0.0)],
    "to nothing": [count(0, base=1.5), count(0, "int8")],
    "machine code changed": [time(9, same_code=False)],
    "machine code unchanged": [time(9, same_code=True)],
    "machine code of some": [time(9, same_code=True), time(9, "int8", same_code=False)],
}  # fmt: skip

#: The architecture of a machine without a GPU.
ARCHS = {"architectures that differ, on a machine without a GPU": None}


def test_groups() -> None:
    """Kernel and flags make a row; counted numbers that flags do not change are told once."""
    told = ""
    for name, rows in CASES.items():
        told += f"== {name}\n"
        for each in group_rows(rows, ARCHS.get(name, "sm_90")):
            mean = percent(each.ratio) if each.ratio else "no mean"
            told += f"{each.kernel} {each.flags}: {mean}; {', '.join(each.evidence) or 'nothing'}; "
            told += f"{configurations(each)}; {each.verdict.value}\n"
    shown, expected = golden("groups.txt", told)
    assert shown == expected


@pytest.mark.parametrize(("at_least", "kernels"), [(0.0, ["k", "l", "m"]), (0.01, ["k", "m"]), (0.03, ["m"])])
def test_materiality(at_least: float, kernels: list[str]) -> None:
    """What changed by less is left out, whatever the verdict on it; what was 0 never is."""
    rows = [time(10.2), time(10.05, kernel="l"), count(1e-9, base=0.0, kernel="m")]
    assert [each.kernel for each in group_rows(rows, "sm_90", at_least)] == kernels
