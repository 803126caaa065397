"""The rows of a review by kernel and flags: what is one row, what stands beside it, and in which order."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from kernelwatch.review.comparison import Comparison
from kernelwatch.review.conclusion import weigh
from kernelwatch.review.groups import Group, groups
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Judgement, Verdict, exact, percent, ratio
from kernelwatch.store.results import kind

SLOW, FAST, SAME, UNDECIDED = Verdict.SLOWER, Verdict.FASTER, Verdict.SAME, Verdict.UNDECIDED

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


def grouped(rows: list[Row], at_least: float = 0.0, arch: str | None = "sm_90") -> list[Group]:
    """The groups of a comparison of these rows."""
    return groups(cast(Comparison, SimpleNamespace(rows=rows, arch=arch)), at_least)


LOADED = replace(count(40, metric="sectors_loaded"), useful_bytes=320)
PER_REQUEST = ["50 more load sectors a request", "5 fewer store sectors a request"]

#: Rows, and of each group kernel, flags, the mean change of its times, and its evidence.
CASES: dict[str, tuple[list[Row], list[tuple[str, str, str, list[str]]]]] = {
    "nothing changed": ([time(10), count(10)], []),
    "a mean over sizes and dtypes": (
        [time(20), time(10, "int8"), time(5, "float64"), time(20, "float16")], [("k", O3, "+19 %", [])]
    ),
    "flags apart": ([time(11), time(12, flags=O0)], [("k", O0, "+20 %", []), ("k", O3, "+10 %", [])]),
    "with its evidence": (
        [time(9), count(15), count(5, metric="bank_conflicts"), compiled(8), compiled(9, "sm_80")],
        [
            ("k", O3, "-10 %", ["5 fewer bank conflicts", "5 more instructions", "2 fewer registers"]),
            ("k", O3, "", ["1 fewer register on sm_80"]),
        ],
    ),
    "counted for all flags once": (
        [count(15), count(15, flags=O0), time(10), time(10, flags=O0)],
        [("k", "any", "+0.0 %", ["5 more instructions"])],
    ),
    "counted beside a time of other flags": (
        [time(9), count(15), count(15, flags=O0)], [("k", O3, "-10 %", ["5 more instructions"])]
    ),
    "counted beside it, and one number more": (
        [time(9), count(15), count(15, flags=O0), count(12, metric="load_sectors", flags=O0)],
        [
            ("k", O3, "-10 %", ["5 more instructions"]),
            ("k", O0, "", ["5 more instructions", "2 more load sectors a request"]),
        ],
    ),
    "counted by flags": (
        [count(15), count(14, flags=O0)],
        [("k", O0, "", ["4 more instructions"]), ("k", O3, "", ["5 more instructions"])],
    ),
    "compiled beside a time of other flags": (
        [time(9), compiled(12), compiled(12, flags=O0)],
        [("k", O3, "-10 %", ["2 more registers"]), ("k", O0, "", ["2 more registers"])],
    ),
    "kernels apart": (
        [count(15), count(15, kernel="l")],
        [("k", O3, "", ["5 more instructions"]), ("l", O3, "", ["5 more instructions"])],
    ),
    "slower before faster": (
        [time(5, kernel="faster"), time(10.5, kernel="slower"), time(14, kernel="open", verdict=UNDECIDED)],
        [("slower", O3, "+5.0 %", []), ("open", O3, "+40 %", []), ("faster", O3, "-50 %", [])],
    ),
    "what decides before what explains": (
        [*weigh([LOADED, count(60, metric="load_sectors"), count(5, metric="store_sectors")], None)],
        [("k", O3, "", ["moves 4 times what it needs (1 before)", "30 more sectors loaded", *PER_REQUEST])],
    ),
    "declared to read what it does not": (
        [replace(LOADED, useful_bytes=321)], [("k", O3, "", ["30 more sectors loaded"])]
    ),
    "other architectures last": (
        [compiled(20, "sm_80"), count(11, kernel="l")],
        [("l", O3, "", ["1 more instruction"]), ("k", O3, "", ["10 more registers on sm_80"])],
    ),
    "some dtypes": ([count(15), count(10, "int8")], [("k", O3, "", ["5 more instructions (1 of 2)"])]),
    "steps that differ": ([count(11), count(12.1, "int8", base=11)], [("k", O3, "", ["instructions +10 %"])]),
    "both directions": ([count(11), count(9, "int8")], [("k", O3, "", ["instructions -10 % to +10 %"])]),
    "from nothing": ([count(1.5, base=0.0)], [("k", O3, "", ["instructions 0 -> 1.5"])]),
    "to nothing": ([count(0, base=1.5), count(0, "int8")], [("k", O3, "", ["instructions 5.75 -> 0"])]),
    "machine code changed": ([time(9, same_code=False)], [("k", O3, "-10 %", ["machine code changed"])]),
    "machine code unchanged": ([time(9, same_code=True)], [("k", O3, "-10 %", ["machine code unchanged"])]),
    "machine code of some": (
        [time(9, same_code=True), time(9, "int8", same_code=False)],
        [("k", O3, "-10 %", ["machine code changed (1 of 2)"])],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "expected"), CASES.values(), ids=CASES)
def test_groups(rows: list[Row], expected: list[tuple[str, str, str, list[str]]]) -> None:
    """Kernel and flags make a row; counted numbers that flags do not change are told once."""
    found = grouped(rows)
    shown = [
        (each.kernel, each.flags, percent(each.ratio) if each.ratio else "", [*map(str, each.evidence)])
        for each in found
    ]
    assert shown == expected


def test_counts_and_verdict() -> None:
    """The worst verdict on times is the group's; where none changed, the one on numbers."""
    mixed, faster, fewer = grouped(
        [
            *(time(10 + step, f"d{step}") for step in (1, -1, -2, 0)),
            time(9, kernel="l"),
            count(20, kernel="l"),
            count(8, kernel="m"),
            time(10, kernel="m"),
        ]
    )
    shown = [({name: n for name, n in each.counts.items() if n}, each.verdict) for each in (mixed, faster, fewer)]
    assert shown == [
        ({"slower": 1, "faster": 2, "same": 1}, SLOW),
        ({"faster": 1, "rose": 1}, FAST),
        ({"same": 1, "fell": 1}, FAST),
    ]


def test_a_machine_without_a_gpu_names_architectures_that_differ() -> None:
    """None of them is the machine's: they stand together, named where they differ."""
    registers = [compiled(11, "sm_80"), compiled(12, "sm_90"), compiled(12, "sm_100")]
    shared = [compiled(14, arch, metric="shared_bytes") for arch in ("sm_80", "sm_90", "sm_100")]
    (found,) = grouped([*registers, *shared], arch=None)
    assert tuple(map(str, found.evidence)) == (
        "4 more shared bytes",
        "2 more registers on sm_100 and sm_90",
        "1 more register on sm_80",
    )


@pytest.mark.parametrize(("at_least", "kernels"), [(0.0, ["k", "l", "m"]), (0.01, ["k", "m"]), (0.03, ["m"])])
def test_materiality(at_least: float, kernels: list[str]) -> None:
    """What changed by less is left out, whatever the verdict on it; what was 0 never is."""
    rows = [time(10.2), time(10.05, kernel="l"), count(1e-9, base=0.0, kernel="m")]
    assert [each.kernel for each in grouped(rows, at_least)] == kernels


@pytest.mark.parametrize("head", [0.0, math.inf])
def test_no_mean(head: float) -> None:
    """A time that cannot be right has no mean."""
    (found,) = grouped([time(11), time(head, "int8", verdict=UNDECIDED)])
    assert found.ratio is None


@pytest.mark.parametrize(("verdict", "counted"), [(Verdict.TRADE, "rose"), (Verdict.ACKNOWLEDGED, "acknowledged")])
def test_numbers_without_times_are_counted(verdict: Verdict, counted: str) -> None:
    """A trade rose, and what was accepted counts among numbers where there are no times."""
    (found,) = grouped([count(11, verdict=verdict)])
    assert {name for name, n in found.counts.items() if n} == {counted}
