"""The configurations of a commit's heat maps."""

from __future__ import annotations

import pytest

from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Judgement, Verdict
from kernelwatch.show.site.changes import list_compared
from kernelwatch.suite.benchmark_names import classify_benchmark

TIME, LOADED, STORED = "time_a.A.time_x", "track_counted.A.track_sectors_loaded", "track_counted.A.track_sectors_stored"


def _make_row(benchmark: str, size: str, head: float) -> Row:
    verdict = Verdict.SAME if head == 1 else Verdict.SLOWER if head > 1 else Verdict.FASTER
    kind = classify_benchmark(benchmark)
    return Row(
        f"{benchmark}({size})", kind, "", 1.0, head, Judgement(verdict, head),
        benchmark=benchmark, params={"size": size}, kernel="k",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("values", "elsewhere", "compared"),
    [
        ({(TIME, "1"): 2.0, (TIME, "2"): 1.0, (LOADED, "1"): 3.0}, False, [(TIME, "1", "slower"), (TIME, "2", "same")]),
        ({(TIME, "1"): 1.0, (LOADED, "1"): 3.0, (LOADED, "2"): 1.0, (STORED, "1"): 1.0}, False,
         [(LOADED, "1", "rose"), (LOADED, "2", "same")]),
        ({(STORED, "1"): 0.5}, False, [(STORED, "1", "fell")]),
        ({(TIME, "1"): 1.005}, False, []),
        ({(TIME, "1"): 2.0}, True, []),
    ],
)  # fmt: skip
def test_compared_configurations(
    values: dict[tuple[str, str], float], elsewhere: bool, compared: list[tuple[str, str, str]]
) -> None:
    """All times if one changed by 1 %, else all numbers of the benchmarks that changed; none of other architectures."""
    rows = [_make_row(benchmark, size, head) for (benchmark, size), head in values.items()]
    listed = list_compared(rows, [{"kernel": "k", "elsewhere": elsewhere}])
    assert [(name, params[0], verdict) for name, params, _, _, verdict in listed.get("k", [])] == compared
