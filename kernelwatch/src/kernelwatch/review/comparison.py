"""Two commits side by side: a row a configuration, what only one of them has, and what follows for an exit code."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeGuard

from kernelwatch.asv import suite
from kernelwatch.review import deciding, timed
from kernelwatch.review.acknowledged import Acknowledged
from kernelwatch.review.commits import CannotCompareError, Side, Sides
from kernelwatch.review.conclusion import EXIT_CODES, Conclusion, conclude
from kernelwatch.review.evidence import NOT_AGAIN, Evidence
from kernelwatch.review.gpus import Likeness, likeness
from kernelwatch.review.notes import notes
from kernelwatch.review.rows import Lone, Row, kernel
from kernelwatch.review.verdict import Verdict, exact
from kernelwatch.store.noise import Noise
from kernelwatch.store.results import KINDS, TIMED, History, Point, kind


@dataclass(frozen=True)
class Comparison:
    """All that the reports show.

    Parameters
    ----------
    machine : str
        Where both commits were measured.
    base, head : Side
        The commits.
    rows : list of Row
        Worst first.
    broken : list of Lone
        Configurations that fail in head and did not in base.
    only_base, only_head : list of Lone
        Configurations without a value in the other, for other reasons.
    peak : float or None
        The machine's theoretical bytes a second; None if no run recorded it.
    noise : str
        Where the thresholds come from.
    notes : list of str
        What differs between the two runs besides the commit.
    arch : str or None
        The architecture of the machine's GPU; None without one.
    distance : str
        How far head lies from base: "3 commits"; empty where git does not say.
    choice : str
        Why this machine, and which others there are; empty where somebody named it, or there is but one.
    trade_fails : bool
        Whether a TRADE has the exit code of a regression.
    """

    machine: str
    base: Side
    head: Side
    rows: list[Row]
    broken: list[Lone]
    only_base: list[Lone]
    only_head: list[Lone]
    peak: float | None
    noise: str
    notes: list[str]
    arch: str | None = None
    distance: str = ""
    choice: str = ""
    trade_fails: bool = False
    _counts: Counter[tuple[str, Verdict]] = field(init=False, repr=False, default_factory=Counter)

    def __post_init__(self) -> None:
        self._counts.update((row.kind, row.judgement.verdict) for row in self.rows)

    def count(self, verdict: Verdict, kind: str | None = None) -> int:
        """How many rows have a verdict."""
        return sum(self._counts[each, verdict] for each in (KINDS if kind is None else (kind,)))

    @property
    def changed(self) -> list[Row]:
        """The rows that are not SAME."""
        return [row for row in self.rows if row.judgement.verdict is not Verdict.SAME]

    @property
    def is_of_compilers(self) -> bool:
        """Whether two compilers are compared, not two commits."""
        return self.base.compiler != self.head.compiler

    @cached_property
    def conclusion(self) -> Conclusion:
        """The verdict on all of it."""
        same = self.base.commit == self.head.commit and not self.is_of_compilers
        return conclude(self.rows, fails=bool(self.broken), same=same)

    @property
    def exit_code(self) -> int:
        """0: no regression, or a trade that may be; 1: a regression; 2: it could not be judged."""
        found = self.conclusion
        return EXIT_CODES.get(Conclusion.REGRESSION if self.trade_fails and found is Conclusion.TRADE else found, 0)


def compare(sides: Sides, root: Path, at_least: float = 0.0, names: Set[str] | None = None) -> Comparison:
    """Judge every configuration of two commits, or some.

    Parameters
    ----------
    sides : Sides
        The two commits.
    root : Path
        The folder that holds the file of acknowledged regressions.
    at_least : float
        The relative change from which on one counts: 0 unless somebody asked for more.
    names : set of str, optional
        The configurations that are judged, as `Row.name` has them; without it all. What else both commits have still
        tells which of their numbers decide.

    Raises
    ------
    CannotCompareError
        The machine's noise file, its file of hashes, or the file of acknowledged regressions is not readable.
    """
    history = sides.history
    try:
        noise, evidence = Noise(history.folder), Evidence(sides, history.folder)
        acknowledged = Acknowledged(root, sides.base.commit, sides.head.commit)
    except ValueError as error:
        raise CannotCompareError(str(error)) from None
    pairs: list[Pair] = []
    lone: dict[str, list[Lone]] = {"broken": [], "only_base": [], "only_head": []}
    controls = {suite.control(benchmark) for benchmark in history.benchmarks("time")}
    for benchmark in history.benchmarks("time") + history.benchmarks("track"):
        if benchmark in controls:
            continue  # evidence beside the times, not a row of its own
        for base, head in _matched(sides, benchmark):
            if _has_value(base) and _has_value(head):
                pairs.append((benchmark, base, head))
            else:
                _sort_lone(benchmark, base, head, lone, sides)
    gpus = likeness(evidence, filter(_is_timed, pairs))
    asked = [pair for pair in pairs if names is None or pair[1].name(pair[0]) in names]
    judged = list(_rows(history, asked, noise, evidence, gpus, at_least))
    if names is not None and any(row.kind != TIMED and row.judgement.verdict is Verdict.SLOW for row in judged):
        # The others, apart: by their times, numbers that rose are weighed, but Holm corrects for what is asked.
        others = [pair for pair in pairs if pair[1].name(pair[0]) not in names]
        judged += _rows(history, others, noise, evidence, gpus, at_least)
    arch = _arch(sides)
    weighed = list(deciding.weigh(judged, arch))[: len(asked)]
    rows = [acknowledged.row(row) for row in weighed]
    return Comparison(
        machine=history.machine,
        base=sides.base,
        head=sides.head,
        rows=sorted(rows, key=Row.badness),
        peak=_peak(sides),
        noise=noise.source(),
        notes=[*notes(sides, noise, gpus), *_reused(pairs, evidence), *noise.notes(), *acknowledged.problems],
        arch=arch,
        distance=sides.distance,
        choice=sides.choice,
        broken=lone["broken"],
        only_base=lone["only_base"],
        only_head=lone["only_head"],
    )


#: A benchmark, and what a configuration of it has in base and head.
Pair = tuple[str, Point, Point]

#: A point, or why there is none.
Found = Point | str


def _matched(sides: Sides, benchmark: str) -> Iterator[tuple[Found, Found]]:
    """Every configuration of either commit, matched by its parameters' names and values."""
    base, head = (_points(sides.history, side, benchmark) for side in (sides.base, sides.head))
    without = [sides.history.ran(side.results, benchmark) or "not run" for side in (sides.base, sides.head)]
    for key in dict.fromkeys([*base, *head]):
        yield base.get(key, without[0]), head.get(key, without[1])


def _points(history: History, side: Side, benchmark: str) -> dict[tuple[tuple[str, str], ...], Point]:
    return {tuple(point.params.items()): point for point in history.points(side.results, benchmark)}


def _has_value(found: Found) -> TypeGuard[Point]:
    return isinstance(found, Point) and found.value is not None


def _sort_lone(benchmark: str, base: Found, head: Found, lone: dict[str, list[Lone]], sides: Sides) -> None:
    """Put a configuration that one commit has into its list; drop one that neither has or that fails in both."""
    states = _state(base), _state(head)
    if states[1] == "failed" and states[0] != "failed":
        assert isinstance(head, Point), "only a point can have failed"
        lone["broken"].append(
            _lone(head, benchmark, f"failed in head, {states[0]} in base: {_cause(sides, benchmark)}")
        )
    elif _has_value(base):
        lone["only_base"].append(_lone(base, benchmark, f"{states[1]} in head"))
    elif _has_value(head):
        lone["only_head"].append(_lone(head, benchmark, f"{states[0]} in base"))


def _cause(sides: Sides, benchmark: str) -> str:
    """Why configurations of a benchmark fail in head: what the newest run that saw it kept, or where to look."""
    where = (sides.head.commit, benchmark)
    for run in reversed(sides.history.runs_of(sides.head.results)):
        kept = [each["reason"] for each in run.get("failed", ()) if (each["commit"], each["benchmark"]) == where]
        if kept:
            return "; ".join(kept)
    return f'not kept; make bench ARGS="--show-stderr --bench {benchmark}" prints it'


def _lone(point: Point, benchmark: str, reason: str) -> Lone:
    return Lone(point.name(benchmark), benchmark, reason, kernel(benchmark, point.params))


def _state(found: Found) -> str:
    if isinstance(found, str):
        return found
    return "measured" if found.value is not None else "failed" if found.failed else "without a value"


def _is_timed(pair: Pair) -> bool:
    return kind(pair[0]) == TIMED


def _reused(pairs: list[Pair], evidence: Evidence) -> Iterator[str]:
    """How many times need no judgement, for a reader who wonders why they are equal to the last digit."""
    times = list(filter(_is_timed, pairs))
    equal = sum(evidence.is_one_measurement(base, head) for _, base, head in times)
    if equal:
        yield f"{equal} of {len(times)} times: {NOT_AGAIN} (docs/reuse.md)"


def _rows(
    history: History,
    pairs: list[Pair],
    noise: Noise,
    evidence: Evidence,
    gpus: Mapping[str, Likeness],
    at_least: float,
) -> Iterator[Row]:
    varying = list(filter(_is_timed, pairs))
    thresholds = [
        max(at_least, noise.threshold(base.name(benchmark), base.value or 0.0, gpus[benchmark].gpus))
        for benchmark, base, _ in varying
    ]
    judged = iter(timed.judge([(base, head) for _, base, head in varying], thresholds))
    for benchmark, base, head in pairs:
        assert base.value is not None, "pairs have values"
        assert head.value is not None, "pairs have values"
        is_timed = kind(benchmark) == TIMED
        judgement = (
            evidence.weigh(next(judged), benchmark, base, gpus[benchmark].gpus)
            if is_timed
            else exact(base.value, head.value, at_least)
        )
        if evidence.is_one_measurement(base, head):
            judgement = replace(judgement, reason=NOT_AGAIN)
        yield Row(
            name=base.name(benchmark),
            kind=kind(benchmark),
            unit=history.unit(benchmark),
            base=base.value,
            head=head.value,
            judgement=judgement,
            useful_bytes=suite.useful_bytes(benchmark, base.params) if is_timed else None,
            copies=evidence.copies(benchmark, base) if is_timed else None,
            benchmark=benchmark,
            params=base.params,
            kernel=kernel(benchmark, base.params),
            code_unchanged=evidence.machine_code_unchanged(benchmark, base),
        )


def _peak(sides: Sides) -> float | None:
    """Of the newest run of head, or of base, that recorded it."""
    records = (sides.history.timed_run_of(side.results) for side in (sides.head, sides.base))
    peaks = (run.get("peak_bytes_per_second") for run in records)
    return next((float(peak) for peak in peaks if isinstance(peak, (int, float)) and 0 < peak < math.inf), None)


def _arch(sides: Sides) -> str | None:
    """Of the GPU that timed head, or base."""
    records = (sides.history.timed_run_of(side.results) for side in (sides.head, sides.base))
    return next((str(run["arch"]) for run in records if run.get("arch")), None)
