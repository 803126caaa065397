"""Groups of a review's rows by kernel and flags: their evidence and order."""

import math

import pytest
from msgspec.structs import replace

from kernelwatch.review.conclusion import weigh_against_times
from kernelwatch.review.groups import group_rows
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Judgement, Reason, ReasonKind, Verdict, format_percent, judge_exact
from kernelwatch.show.report import format_counts
from kernelwatch.suite.benchmark_names import classify_benchmark
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
    """Return a row of a review. Without `verdict`, any change is slower or faster."""
    judged = judge_exact(base, head)
    judged = Judgement(verdict or judged.verdict, judged.ratio)
    params = {"flags": flags, **params}
    name = f"{benchmark}({kernel}, {', '.join(params.values())})"
    return Row(
        name, classify_benchmark(benchmark), "", base, head, judged, None, None, benchmark, params, kernel, same_code
    )


def make_time(head: float, dtype: str = "float32", **parameters: object) -> Row:
    return row(TIME, head, dtype=dtype, **parameters)  # type: ignore[arg-type]


def make_count(head: float, dtype: str = "float32", metric: str = "instructions", **parameters: object) -> Row:
    return row(COUNTED.format(metric), head, dtype=dtype, **parameters)  # type: ignore[arg-type]


def make_compiled(head: float, arch: str = "sm_90", metric: str = "registers", **parameters: object) -> Row:
    return row(COMPILED.format(metric), head, arch=arch, **parameters)  # type: ignore[arg-type]


def make_undecided(ratio: float, could_be: tuple[float, float] | None, kernel: str) -> Row:
    undecided = make_time(10 * ratio, kernel=kernel, verdict=UNDECIDED)
    reasons = (Reason(ReasonKind.SEVERAL_GPUS),)
    return replace(undecided, judgement=replace(undecided.judgement, could_be=could_be, reasons=reasons))


LOADED = replace(make_count(40, metric="sectors_loaded"), useful_bytes=320)

CASES: dict[str, list[Row]] = {
    "nothing changed": [make_time(10), make_count(10)],
    "a mean over sizes and dtypes": [
        make_time(20), make_time(10, "int8"), make_time(5, "float64"), make_time(20, "float16"),
    ],
    "no mean of what cannot be right": [make_time(11), make_time(0.0, "int8", verdict=UNDECIDED)],
    "nor of this": [make_time(11), make_time(math.inf, "int8", verdict=UNDECIDED)],
    "flags apart": [make_time(11), make_time(12, flags=O0)],
    "with its evidence": [
        make_time(9), make_count(15), make_count(5, metric="bank_conflicts"),
        make_compiled(8), make_compiled(9, "sm_80"),
    ],
    "counted for all flags once": [make_count(15), make_count(15, flags=O0), make_time(10), make_time(10, flags=O0)],
    "counted beside a time of other flags": [make_time(9), make_count(15), make_count(15, flags=O0)],
    "counted beside it, and one number more": [
        make_time(9), make_count(15), make_count(15, flags=O0), make_count(12, metric="load_sectors", flags=O0),
    ],
    "counted by flags": [make_count(15), make_count(14, flags=O0)],
    "compiled beside a time of other flags": [make_time(9), make_compiled(12), make_compiled(12, flags=O0)],
    "kernels apart": [make_count(15), make_count(15, kernel="l")],
    "slower before faster": [
        make_time(5, kernel="faster"), make_time(10.5, kernel="slower"),
        make_time(14, kernel="open", verdict=UNDECIDED),
    ],
    "the worst of the times, or of the numbers where none changed": [
        *(make_time(10 + step, f"d{step}") for step in (1, -1, -2, 0)),
        make_time(9, kernel="l"), make_count(20, kernel="l"), make_count(8, kernel="m"), make_time(10, kernel="m"),
    ],
    "a trade rose": [make_count(11, verdict=Verdict.TRADE)],
    "accepted, of numbers where there are no times": [make_count(11, verdict=Verdict.ACKNOWLEDGED)],
    "what decides before what explains": [
        *weigh_against_times(
            [LOADED, make_count(60, metric="load_sectors"), make_count(5, metric="store_sectors")], None
        ),
    ],
    "declared to read what it does not": [replace(LOADED, useful_bytes=321)],
    "other architectures last": [make_compiled(20, "sm_80"), make_count(11, kernel="l")],
    "architectures that differ, on a machine without a GPU": [
        *(make_compiled(head, arch) for head, arch in ((11, "sm_80"), (12, "sm_90"), (12, "sm_100"))),
        *(make_compiled(14, arch, metric="shared_bytes") for arch in ("sm_80", "sm_90", "sm_100")),
    ],
    "some dtypes": [make_count(15), make_count(10, "int8")],
    "steps that differ": [make_count(11), make_count(12.1, "int8", base=11)],
    "both directions": [make_count(11), make_count(9, "int8")],
    "from nothing": [make_count(1.5, base=0.0)],
    "to nothing": [make_count(0, base=1.5), make_count(0, "int8")],
    "machine code changed": [make_time(9, same_code=False)],
    "machine code unchanged": [make_time(9, same_code=True)],
    "machine code of some": [make_time(9, same_code=True), make_time(9, "int8", same_code=False)],
}  # fmt: skip

#: Case -> architecture of the machine, if it is not sm_90. None: the machine has no GPU.
ARCHS = {"architectures that differ, on a machine without a GPU": None}


def test_rows_are_grouped_by_kernel_and_flags() -> None:
    """Counts that are equal for all flags are listed once."""
    text = ""
    for name, rows in CASES.items():
        text += f"== {name}\n"
        for group in group_rows(rows, ARCHS.get(name, "sm_90")):
            mean = format_percent(group.ratio) if group.ratio else "no mean"
            text += f"{group.kernel} {group.flags}: {mean}; {', '.join(group.evidence) or 'nothing'}; "
            text += f"{format_counts(group)}; {group.verdict.value}\n"
    shown, expected = golden("groups.txt", text)
    assert shown == expected


@pytest.mark.parametrize(("at_least", "kernels"), [(0.0, ["k", "l", "m"]), (0.01, ["k", "m"]), (0.03, ["m"])])
def test_small_changes_are_left_out(at_least: float, kernels: list[str]) -> None:
    """Changes from 0 are never left out."""
    rows = [make_time(10.2), make_time(10.05, kernel="l"), make_count(1e-9, base=0.0, kernel="m")]
    assert [group.kernel for group in group_rows(rows, "sm_90", at_least)] == kernels


@pytest.mark.parametrize(
    ("head", "at_least", "evidence"),
    [
        (39.96, 0.01, []),
        (39.96, 0.0, ["sectors loaded -0.1 %"]),
        (20.0, 0.01, ["moves 2 times what it needs (4 before)", "20 fewer sectors loaded"]),
    ],
)
def test_traffic_is_shown_if_its_figures_differ(head: float, at_least: float, evidence: list[str]) -> None:
    """Base loads 40 sectors, 4 times the 10 that hold the 320 useful bytes."""
    loaded = replace(make_count(head, base=40.0, metric="sectors_loaded"), useful_bytes=320)
    groups = group_rows([loaded], "sm_90", at_least)
    assert [[*group.evidence] for group in groups] == [evidence] * bool(evidence)
    assert all(group.numbers for group in groups)


@pytest.mark.parametrize(
    ("time", "evidence"),
    [
        (11, ["5 more instructions", "moves 2 times what it needs (4 before)", "20 fewer sectors loaded"]),
        (9, ["moves 2 times what it needs (4 before)", "20 fewer sectors loaded", "5 more instructions"]),
    ],
    ids=["slower", "faster"],
)
def test_changes_in_the_direction_of_times_come_first(time: float, evidence: list[str]) -> None:
    """A slower kernel shows the rises first, a faster one the falls."""
    loaded = replace(make_count(20.0, base=40.0, metric="sectors_loaded"), useful_bytes=320)
    (group,) = group_rows([make_time(time), loaded, make_count(15)], "sm_90")
    assert [*group.evidence] == evidence
