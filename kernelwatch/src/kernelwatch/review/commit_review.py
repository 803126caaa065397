"""Compare two measured commits: judge each pair of configurations, and conclude. No files are read."""

import itertools
import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import MappingProxyType

from kernelwatch.review.acknowledged import accept_row, list_unmatched
from kernelwatch.review.conclusion import NUMBERS, conclude, exit_code, weigh_against_times
from kernelwatch.review.controls import find_controls
from kernelwatch.review.judge import judge_pairs
from kernelwatch.review.launchable import find_unlaunchable
from kernelwatch.review.notes import list_changed_launches, list_more_instructions, list_notes, list_source_notes
from kernelwatch.review.pairing import (
    BROKEN,
    FAILED,
    REPAIRED,
    Describe,
    Pair,
    Pairing,
    find_blocks,
    find_recorded_blocks,
)
from kernelwatch.review.rows import Failure, Row, UnpairedConfiguration, group_failures
from kernelwatch.review.sides import ReviewSides
from kernelwatch.review.thresholds import Thresholds
from kernelwatch.review.verdict import Verdict
from kernelwatch.store.measurements import CommitMeasurements
from kernelwatch.store.source_changes import SourceChanges
from kernelwatch.suite.benchmark_names import TIMED, classify_benchmark


@dataclass(frozen=True, kw_only=True)
class Review(ReviewSides):
    """The review of two commits, which the terminal, JSON, the website and bisect show.

    `rows` are sorted worst first. `unpaired` maps each category of UNPAIRED to its configurations. BROKEN and REPAIRED
    also have kernels that can be launched at only one commit. `peak` is the theoretical bandwidth of the machine's GPU
    in bytes per second, `arch` is the GPU's architecture. Each is None if unknown. `notes` are sentences about the
    measurements and the source. `trade` is one of TRADE_POLICIES.
    """

    rows: list[Row]
    unpaired: Mapping[str, list[UnpairedConfiguration]]
    peak: float | None
    thresholds: Thresholds
    notes: list[str]
    changes: SourceChanges = field(default_factory=SourceChanges)
    arch: str | None = None
    trade: str = NUMBERS

    @cached_property
    def conclusion(self) -> Verdict:
        """The verdict on the whole review."""
        return conclude(self.rows, {failure.verdict for failure in self.failures})

    @cached_property
    def failures(self) -> list[Failure]:
        """The failures, worst first, one per verdict, kernel and reason."""
        categories = {Verdict.BROKEN: BROKEN, Verdict.FAILED: FAILED, Verdict.REPAIRED: REPAIRED}
        grouped = (group_failures(verdict, self.unpaired[category]) for verdict, category in categories.items())
        return list(itertools.chain.from_iterable(grouped))

    @property
    def exit_code(self) -> int:
        """0: the review passes; 1: something became worse; 2: FAILED or UNDECIDED."""
        return exit_code(self.conclusion, self.rows, self.trade)

    def sort_key(self) -> tuple[int, int]:
        """Return the sort key, worst first: by exit code, then by verdict."""
        return (1, 2, 0).index(self.exit_code), self.conclusion.rank


def compare_commits(
    sides: ReviewSides,
    base: CommitMeasurements,
    head: CommitMeasurements,
    pairing: Pairing,
    describe: Describe,
    *,
    thresholds: Thresholds,
    changes: SourceChanges,
    limits: Mapping[str, float] = MappingProxyType({}),
    names: Set[str] | None = None,
) -> Review:
    """Return the review of two commits: of all configurations, or of those whose `Row.name` is in `names`.

    Configurations outside of `names` still affect which numbers decide. `limits` maps a metric to its largest allowed
    ratio of head to base. A number above its limit decides, even if such a number otherwise only explains; judged times
    of its kernel turn it into a TRADE or NOTED, as in `weigh_against_times`.
    """
    times = [pair for pair in pairing.pairs if classify_benchmark(pair.benchmark) == TIMED]
    thresholds = replace(thresholds, controls=find_controls(base, head, times, describe))
    judge = partial(judge_pairs, base, head, thresholds=thresholds, describe=describe)

    def is_selected(configuration: Pair | UnpairedConfiguration) -> bool:
        return names is None or configuration.name in names

    selected = list(filter(is_selected, pairing.pairs))
    rows, context = judge(selected), []
    if any(row.kind != TIMED and row.judgement.is_change for row in rows):
        # Judge the unselected configurations separately, so that Holm's correction does not count them.
        context = judge(list(itertools.filterfalse(is_selected, pairing.pairs)))
    arch = head.arch or base.arch
    weighed_rows = weigh_against_times(rows + context, arch, limits, partial(find_blocks, base, head, describe))
    weighed = list(itertools.islice(weighed_rows, len(selected)))
    unpaired = {category: list(filter(is_selected, members)) for category, members in pairing.unpaired.items()}
    for verdict, configuration in find_unlaunchable(weighed, partial(find_recorded_blocks, base, head)):
        unpaired[BROKEN if verdict is Verdict.BROKEN else REPAIRED].append(configuration)
    return Review(
        **{name: getattr(sides, name) for name in ReviewSides.__dataclass_fields__},
        rows=sorted((accept_row(row, changes.acknowledgements) for row in weighed), key=Row.sort_key),
        unpaired=unpaired,
        peak=_find_peak(head, base),
        thresholds=thresholds,
        notes=[
            *list_notes(sides, base, head, times, thresholds),
            *list_changed_launches(rows + context, sides.measure_command),
            *list_more_instructions(weighed),
            *list_source_notes(changes),
            *(list_unmatched(weighed, changes.acknowledgements) if names is None else ()),
        ],
        changes=changes,
        arch=arch,
    )


def _find_peak(*sides: CommitMeasurements) -> float | None:
    """Return the first stored bandwidth that is positive and finite; None without one."""
    peaks = (side.peak for side in sides if isinstance(side.peak, (int, float)))
    return next((float(peak) for peak in peaks if 0 < peak < math.inf), None)
