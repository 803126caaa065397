"""The compared configurations of changed kernels, for the heat maps of a commit's page."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from kernelwatch.review.groups import MIN_LISTED_CHANGE
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict, relative_change
from kernelwatch.show import text
from kernelwatch.show.site import configurations
from kernelwatch.show.site.packed import pack_numbers
from kernelwatch.store.results import History
from kernelwatch.suite.benchmark_names import TIMED

#: Verdicts on a change to the worse that decides.
WORSE = (Verdict.SLOWER, Verdict.TRADE)


def list_compared(rows: Iterable[Row], groups: Iterable[Mapping[str, Any]]) -> dict[str, list[list[Any]]]:
    """Return changed kernel -> its compared configurations: benchmark, values of its axes, base, head and verdict.

    If a time of the kernel changed, these are all of its times, else all numbers of its benchmarks with a change.
    """
    changed = {group["kernel"] for group in groups if not group["elsewhere"]}
    by_kernel: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.kernel in changed:
            by_kernel[row.kernel].append(row)
    compared: dict[str, list[list[Any]]] = {}
    for kernel, kernel_rows in by_kernel.items():
        differing = {
            row.benchmark
            for row in kernel_rows
            if row.judgement.verdict is not Verdict.SAME and relative_change(row.judgement.ratio) >= MIN_LISTED_CHANGE
        }
        is_timed = any(row.kind == TIMED and row.benchmark in differing for row in kernel_rows)
        shown = [row for row in kernel_rows if (row.kind == TIMED if is_timed else row.benchmark in differing)]
        compared[kernel] = [
            [row.benchmark, [*row.params.values()], row.base, row.head, name_count(row)] for row in shown
        ]
    return {kernel: listed for kernel, listed in compared.items() if listed}


def pack_compared(history: History, compared: Mapping[str, list[list[Any]]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return kernel -> benchmark -> verdict -> compared configurations, and the packed values of base and of head.

    A configuration is its index in `list_combinations`, or the list of its values if the current axes lack them.
    """
    rows_by_verdict = defaultdict(list)
    for kernel, rows in compared.items():
        for benchmark, *row, verdict in rows:
            rows_by_verdict[kernel, benchmark, verdict].append(row)

    def pack_rows(benchmark: str, rows: list[list[Any]]) -> list[Any]:
        combinations = configurations.list_combinations(history.find_axes(benchmark))
        places = {tuple(values.values()): place for place, values in enumerate(combinations)}
        params, base, head = zip(*rows, strict=True)
        is_time = history.get_type(benchmark) == "time"
        texts = [pack_numbers(side, is_time=is_time, digits=8 if is_time else None) for side in (base, head)]
        return [[places.get(tuple(values), values) for values in params], *texts]

    packed: dict[str, dict[str, dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
    for (kernel, benchmark, verdict), rows in rows_by_verdict.items():
        packed[kernel][benchmark][verdict] = pack_rows(benchmark, rows)
    return packed


def name_count(row: Row) -> str:
    """Return the verdict on a row as one of `changes.COUNTS`, or "same"."""
    # A number that rose while times became faster is a TRADE; its group counts it as risen.
    verdict = Verdict.SLOWER if row.judgement.verdict in WORSE else row.judgement.verdict
    return text.name_verdict(verdict, row.kind).lower()
