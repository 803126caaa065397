"""Two commits side by side: a row a configuration, what only one of them has, and what follows for an exit code."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from kernelwatch import settings, suite
from kernelwatch.review import deciding, timed
from kernelwatch.review.acknowledged import Acknowledged
from kernelwatch.review.commits import CannotCompareError, Sides
from kernelwatch.review.conclusion import NUMBERS, conclude, exit_code
from kernelwatch.review.evidence import Evidence
from kernelwatch.review.gpus import Likeness, likeness
from kernelwatch.review.notes import notes
from kernelwatch.review.reasons import NOT_AGAIN
from kernelwatch.review.rows import Lone, Row, kernel
from kernelwatch.review.verdict import Verdict, exact
from kernelwatch.store.noise import Noise
from kernelwatch.store.results import KINDS, TIMED, History, Point, kind


@dataclass(frozen=True, kw_only=True)
class Comparison(Sides):
    """Two commits that were judged: all that the reports show.

    Parameters
    ----------
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
    trade : str
        What may become worse in a TRADE that passes: one of TRADES.
    """

    rows: list[Row]
    broken: list[Lone]
    only_base: list[Lone]
    only_head: list[Lone]
    peak: float | None
    noise: str
    notes: list[str]
    arch: str | None = None
    trade: str = NUMBERS

    @property
    def machine(self) -> str:
        """Where both commits were measured."""
        return self.history.machine

    @cached_property
    def _counts(self) -> Counter[tuple[str, Verdict]]:
        return Counter((row.kind, row.judgement.verdict) for row in self.rows)

    def count(self, verdict: Verdict, kind: str | None = None) -> int:
        """How many rows have a verdict."""
        return sum(self._counts[each, verdict] for each in (KINDS if kind is None else (kind,)))

    @property
    def changed(self) -> list[Row]:
        """The rows that are not SAME."""
        return [row for row in self.rows if row.judgement.verdict is not Verdict.SAME]

    @cached_property
    def conclusion(self) -> Verdict:
        """The verdict on all of it."""
        return conclude(self.rows, fails=bool(self.broken))

    @property
    def exit_code(self) -> int:
        """0: nothing became worse, or in a trade that passes; 1: something did; 2: it could not be judged."""
        return exit_code(self.conclusion, self.rows, self.trade)


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
        The machine's noise file, its file of hashes, the file of acknowledged regressions, or a limit is not readable.
    """
    history = sides.history
    try:
        noise, evidence = Noise(history.folder), Evidence(sides, history.folder)
        acknowledged, limits = Acknowledged(root, sides.base.commit, sides.head.commit), settings.limits()
    except ValueError as error:
        raise CannotCompareError(str(error)) from None
    pairs: list[Pair] = []
    lone: dict[str, list[Lone]] = {"broken": [], "only_base": [], "only_head": []}
    controls = {suite.control(benchmark) for benchmark in history.benchmarks("time")}
    for benchmark in history.benchmarks("time") + history.benchmarks("track"):
        if benchmark not in controls:  # evidence beside the times, not rows of their own
            pairs += _paired(sides, benchmark, lone)
    gpus = likeness(evidence, filter(_is_timed, pairs))
    asked = [pair for pair in pairs if names is None or pair[1].name(pair[0]) in names]
    judged = list(_rows(history, asked, noise, evidence, gpus, at_least))
    if names is not None and any(row.kind != TIMED and row.judgement.verdict is Verdict.SLOWER for row in judged):
        # The others, apart: by their times, numbers that rose are weighed, but Holm corrects for what is asked.
        others = [pair for pair in pairs if pair[1].name(pair[0]) not in names]
        judged += _rows(history, others, noise, evidence, gpus, at_least)
    arch = next((str(run["arch"]) for run in _timed_runs(sides) if run.get("arch")), None)
    weighed = list(deciding.weigh(judged, arch, limits))[: len(asked)]
    rows = [acknowledged.row(row) for row in weighed]
    peaks = (run.get("peak_bytes_per_second") for run in _timed_runs(sides))
    return Comparison(
        **vars(sides),
        rows=sorted(rows, key=Row.badness),
        peak=next((float(each) for each in peaks if isinstance(each, (int, float)) and 0 < each < math.inf), None),
        noise=noise.source(),
        notes=[*notes(sides, noise, gpus), *_reused(pairs, evidence), *noise.notes(), *acknowledged.problems],
        arch=arch,
        broken=lone["broken"],
        only_base=lone["only_base"],
        only_head=lone["only_head"],
    )


#: A benchmark, and what a configuration of it has in base and head.
Pair = tuple[str, Point, Point]


def _paired(sides: Sides, benchmark: str, lone: dict[str, list[Lone]]) -> Iterator[Pair]:
    """The configurations of a benchmark that both commits have a value of, matched by parameters' names and values.

    What one of them has goes into its list; what neither has, or fails in both, into none.
    """
    history, both = sides.history, [side.results for side in sides.both]
    base, head = ({tuple(each.params.items()): each for each in history.points(one, benchmark)} for one in both)
    ran = [history.ran(one, benchmark) or "not run" for one in both]
    for key in dict.fromkeys([*base, *head]):
        in_base, in_head = (_state(found.get(key), why) for found, why in zip((base, head), ran, strict=True))
        if in_base == in_head == _MEASURED:
            yield benchmark, base[key], head[key]
        elif in_head == "failed" != in_base:
            reason = f"failed in head, {in_base} in base: {_cause(sides, benchmark)}"
            lone["broken"].append(_lone(head[key], benchmark, reason))
        elif in_base == _MEASURED:
            lone["only_base"].append(_lone(base[key], benchmark, f"{in_head} in head"))
        elif in_head == _MEASURED:
            lone["only_head"].append(_lone(head[key], benchmark, f"{in_base} in base"))


_MEASURED = "measured"


def _state(point: Point | None, why: str) -> str:
    if point is None:
        return why
    return _MEASURED if point.value is not None else "failed" if point.failed else "without a value"


def _cause(sides: Sides, benchmark: str) -> str:
    """Why configurations of a benchmark fail in head: what the newest run that saw it kept, or where to look."""
    where = (sides.head.commit, benchmark)
    for run in reversed(sides.history.runs_of(sides.head.results)):
        kept = [each["reason"] for each in run.get("failed", ()) if (each["commit"], each["benchmark"]) == where]
        if kept:
            return "; ".join(kept)
    return f"not kept; asv run --show-stderr --bench {benchmark} HEAD^! prints it"


def _lone(point: Point, benchmark: str, reason: str) -> Lone:
    return Lone(point.name(benchmark), benchmark, reason, kernel(benchmark, point.params))


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
    for pair in pairs:
        benchmark, base, head = pair
        assert base.value is not None, "pairs have values"
        assert head.value is not None, "pairs have values"
        is_timed = _is_timed(pair)
        if is_timed:
            judgement = evidence.weigh(next(judged), benchmark, base, gpus[benchmark].gpus)
        else:
            judgement = exact(base.value, head.value, at_least)
        if evidence.is_one_measurement(base, head):
            judgement = replace(judgement, reasons=(NOT_AGAIN,))
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
            verified=suite.verified(benchmark, base.params) or "arch" in base.params,
        )


def _timed_runs(sides: Sides) -> list[dict[str, Any]]:
    """The newest runs that timed head, and base."""
    return [sides.history.timed_run_of(side.results) for side in (sides.head, sides.base)]
