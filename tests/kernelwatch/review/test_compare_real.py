"""Reviews of this repository's stored commits."""

import functools
import json
from collections.abc import Iterator

import pytest

from kernelwatch.config.project_root import ROOT
from kernelwatch.review.commit_review import Review
from kernelwatch.review.verdict import Verdict
from kernelwatch.show import as_json, report
from kernelwatch.suite.benchmark_names import TIMED
from kernelwatch.workflow import select_results
from kernelwatch.workflow.load_review import review_selection
from kernelwatch.workflow.select_results import select_commits
from tests.golden import golden

GPU, NO_GPU = "nvidia-h200", "no-gpu-x86_64"


@pytest.fixture(autouse=True, scope="module")
def _read_once() -> Iterator[None]:
    """Cache stored results, which dozens of reviews share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select_results, "load_histories", functools.cache(select_results.load_histories))
        yield


@functools.cache
def review(machine: str, base: str, head: str) -> Review:
    (selection,) = select_commits(base, head, machine, ROOT)
    return review_selection(selection, ROOT)


#: Machine, base and head, and whether every configuration is listed.
STORED = [
    (GPU, "f22cf79", "926c240", False),  # the padded tile
    (NO_GPU, "f22cf79", "926c240", False),  # shared memory without fewer blocks
    (GPU, "f22cf79", "952ced2", False),  # on one GPU, a change of 0.6 % of a copy is judged
    (NO_GPU, "a0cc781", "ee4e49a", False),  # transactions of some sizes only
    (GPU, "c754aba", "bc98465", True),
    (GPU, "ab7cbc0", "a0cc781", False),  # another architecture's spills beside faster times
    (NO_GPU, "f30f4e4", "4df5b48", False),  # spills, and occupancy
    (GPU, "952ced2", "f30f4e4", False),  # no common values
    (GPU, "62e95db", "ee4e49a", False),  # one undecided, faster in any case
    (GPU, "740a787", "740a787", False),
    ("nvidia-h100-80gb-hbm3", "952ced2", "51ec07a", True),  # two GPUs
]


@pytest.mark.history
def test_reports_of_stored_commits() -> None:
    text = ""
    for machine, base, head, list_all in STORED:
        stored_review = review(machine, base, head)
        shown = report.render_review(stored_review, 0.0 if list_all else 0.01, list_all=list_all)
        text += f"== {stored_review.exit_code}\n{shown}"
    assert max(map(len, text.splitlines())) <= 100
    shown, expected = golden("reviews.txt", text)
    assert shown == expected


def test_selected_counts_are_weighed_with_all_times() -> None:
    counts = [row for row in review(GPU, "2995c02", "63ca89b").rows if row.kind != TIMED]
    (selection,) = select_commits("2995c02", "63ca89b", GPU, ROOT)
    alone = review_selection(selection, ROOT, {row.name for row in counts}).rows
    assert {row.judgement.verdict for row in counts} >= {Verdict.SLOWER, Verdict.TRADE, Verdict.NOTED}
    assert [(row.name, row.judgement) for row in alone] == [(row.name, row.judgement) for row in counts]


def test_json_has_rates_and_shares_of_the_peak() -> None:
    document = json.loads(as_json.render_json(review(GPU, "f22cf79", "740a787")))
    assert document["peak_bytes_per_second"] == pytest.approx(4814e9, rel=0.001)
    assert sum(group["faster"] for group in document["groups"]) == document["totals"]["timed"]["FASTER"] > 0
    name = "transpose_read_write_coalesced, 12800x12800, float32, -Xptxas -O3"
    time = f"time_transpose.Transpose.time_back_to_back({name})"
    (row,) = (candidate for candidate in document["rows"] if candidate["configuration"] == time)
    rates = [2 * 4 * 12800**2 / row[side] for side in ("base", "head")]  # each element is read and written
    assert row["bytes_per_second"] == pytest.approx(rates)
    assert row["share_of_peak"] == pytest.approx([rate / document["peak_bytes_per_second"] for rate in rates])
