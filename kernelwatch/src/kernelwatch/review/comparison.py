"""Two commits side by side: a row a configuration, what only one of them has, and what follows for an exit code."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from kernelwatch.config import settings
from kernelwatch.review import timed
from kernelwatch.review.acknowledged import Acknowledged
from kernelwatch.review.commits import CannotCompareError, Side, Sides
from kernelwatch.review.conclusion import NUMBERS, conclude, exit_code, weigh
from kernelwatch.review.evidence import Evidence
from kernelwatch.review.launchable import find_unlaunchable
from kernelwatch.review.noise import Noise, noise
from kernelwatch.review.notes import notes
from kernelwatch.review.rows import Failure, Lone, Row, failures, kernel
from kernelwatch.review.verdict import FAILING, NOT_AGAIN, Verdict, exact
from kernelwatch.store.noise import ANOTHER_GPU
from kernelwatch.store.results import TIMED, Point, kind
from kernelwatch.suite import registry

#: What a configuration is that one commit has no value of: of FAILING, or there for another reason.
LONE = BROKEN, FAILED, REPAIRED, ONLY_BASE, ONLY_HEAD = "broken", "failed", "repaired", "only_base", "only_head"

#: A benchmark, and what a configuration of it has in base and head.
Pair = tuple[str, Point, Point]


@dataclass(frozen=True, kw_only=True)
class Comparison(Sides):
    """Two commits that were judged: all that the reports show.

    `rows` are the worst first. `lone` has, by LONE, what fails in head alone, in both, in base alone, and what has no
    value in the other for another reason. `peak` is the machine's theoretical bytes a second, if a run recorded it;
    `arch` the architecture of its GPU, if it has one. `noise` says up to which change times are the same, `notes` what
    differs between the two runs besides the commit, `acknowledged` what is accepted, `trade`, one of TRADES, what may
    become worse in a TRADE that passes.
    """

    rows: list[Row]
    lone: Mapping[str, list[Lone]]
    peak: float | None
    noise: str
    notes: list[str]
    acknowledged: Acknowledged
    arch: str | None = None
    trade: str = NUMBERS

    @property
    def machine(self) -> str:
        """Where both commits were measured."""
        return self.history.machine

    @cached_property
    def conclusion(self) -> Verdict:
        """The verdict on all of it."""
        return conclude(self.rows, {each.verdict for each in self.failures})

    @cached_property
    def failures(self) -> list[Failure]:
        """What fails, worst first, one a kernel and reason."""
        lones = zip(FAILING, (self.lone[each] for each in (BROKEN, FAILED, REPAIRED)), strict=True)
        return [failure for verdict, each in lones for failure in failures(verdict, each)]

    @property
    def exit_code(self) -> int:
        """0: nothing became worse, or in a trade that passes; 1: something did; 2: it could not be judged."""
        return exit_code(self.conclusion, self.rows, self.trade)

    def badness(self) -> tuple[int, int]:
        """Sort key, worst first: by exit code, then by verdict."""
        return (1, 2, 0).index(self.exit_code), list(Verdict).index(self.conclusion)


def compare(sides: Sides, root: Path, names: Set[str] | None = None) -> Comparison:
    """Judge every configuration of two commits, or of those that are named, as `Row.name` has them.

    What else both commits have still tells which numbers decide. `root` is the folder that holds the file of
    acknowledged regressions. Raises CannotCompareError where the machine's file of hashes or a limit is not readable.
    """
    history = sides.history
    try:
        evidence, limits = Evidence(sides), settings.evidence_limits()
    except ValueError as error:
        raise CannotCompareError(str(error)) from None
    acknowledged = Acknowledged(root, sides.base.commit, sides.head.commit)
    lone: dict[str, list[Lone]] = {place: [] for place in LONE}
    controls = {
        registry.control_benchmark(benchmark) for benchmark in history.benchmarks("time")
    }  # no rows of their own
    every = (each for type_ in ("time", "track") for each in history.benchmarks(type_) if each not in controls)
    pairs = [pair for benchmark in every for pair in _paired(sides, benchmark, lone)]
    times = [pair for pair in pairs if kind(pair[0]) == TIMED]
    of_machine = noise(history, sides.head.commit) if times else Noise()
    asked, others = pairs, list[Pair]()
    if names is not None:
        lone = {place: [each for each in found if each.name in names] for place, found in lone.items()}
        asked = [pair for pair in pairs if pair[1].name(pair[0]) in names]
        others = [pair for pair in pairs if pair[1].name(pair[0]) not in names]
    judged = list(_rows(sides, asked, of_machine, evidence))
    if any(row.kind != TIMED and row.judgement.is_change for row in judged):
        # The others, apart: numbers that changed are weighed by them, but Holm corrects for what is asked.
        judged += _rows(sides, others, of_machine, evidence)
    runs = [history.timed_run_of(side.results) for side in (sides.head, sides.base)]
    arch = next((str(run["arch"]) for run in runs if run.get("arch")), None)
    weighed = list(weigh(judged, arch, limits, evidence.launched))[: len(asked)]
    for verdict, configuration in find_unlaunchable(weighed, evidence.recorded_blocks):
        lone[BROKEN if verdict is Verdict.BROKEN else REPAIRED].append(configuration)
    peaks = (run.get("peak_bytes_per_second") for run in runs)
    return Comparison(
        **vars(sides),
        rows=sorted(map(acknowledged.row, weighed), key=Row.badness),
        lone=lone,
        peak=next((float(each) for each in peaks if isinstance(each, (int, float)) and 0 < each < math.inf), None),
        noise=str(of_machine),
        notes=[*notes(sides, times, evidence), *acknowledged.problems],
        acknowledged=acknowledged,
        arch=arch,
    )


def _paired(sides: Sides, benchmark: str, lone: dict[str, list[Lone]]) -> Iterator[Pair]:
    """The configurations of a benchmark that both commits have a value of, matched by parameters' names and values.

    What one of them has goes into its list, and what fails into another; what neither has into none.
    """
    ran = [sides.history.why_not_run(side.results, benchmark) or "not run" for side in sides.both]
    for base, head in sides.points(benchmark):
        in_base, in_head = (_state(point, why) for point, why in zip((base, head), ran, strict=True))
        if base and head and in_base == in_head == _MEASURED:
            yield benchmark, base, head
            continue
        places = {
            BROKEN: in_head == _FAILED != in_base,
            FAILED: in_head == _FAILED,
            REPAIRED: in_base == _FAILED and in_head == _MEASURED,
            ONLY_BASE: in_base == _MEASURED,
            ONLY_HEAD: in_head == _MEASURED,
        }
        point, place = base or head, next((place for place, holds in places.items() if holds), None)
        if point and place:
            launched = kernel(benchmark, point.params)
            reason = {ONLY_BASE: f"{in_head} in head", ONLY_HEAD: f"{in_base} in base"}.get(place)
            reason = reason or _cause(sides, sides.base if place == REPAIRED else sides.head, benchmark, launched)
            lone[place].append(Lone(point.name(benchmark), benchmark, reason, launched, point.params))


_MEASURED, _FAILED = "measured", "failed"

#: What Python and this library put before an error's text.
_CLASSES = re.compile(r"(?:[\w.]+: )*?[\w.]*(?:Error|Exception): ")


def _state(point: Point | None, why: str) -> str:
    if point is None:
        return why
    return _MEASURED if point.value is not None else _FAILED if point.failed else "without a value"


def _cause(sides: Sides, side: Side, benchmark: str, kernel: str) -> str:
    """Why a kernel's configurations fail in a commit: what the newest run that saw it kept, or where to look."""
    where = (side.commit, benchmark)
    for run in reversed(sides.history.runs_of(side.results)):
        kept = [each["reason"] for each in run.get("failed", ()) if (each["commit"], each["benchmark"]) == where]
        if kept:
            own = [each for each in kept if f"{kernel}: " in each] or kept
            return "; ".join(dict.fromkeys(_CLASSES.sub("", each).removeprefix(f"{kernel}: ") for each in own))
    return f"not kept; asv run --show-stderr --bench {benchmark} {side.commit[:8]}^! prints it"


def _rows(sides: Sides, pairs: list[Pair], noise: Noise, evidence: Evidence) -> Iterator[Row]:
    """Judge some, whose times are one family."""
    varying = [pair for pair in pairs if kind(pair[0]) == TIMED]
    thresholds = [
        ANOTHER_GPU if evidence.are_several_gpus(benchmark, base) else noise.threshold(base.value or 0.0)
        for benchmark, base, _ in varying
    ]
    judged = iter(timed.judge([(base, head) for _, base, head in varying], thresholds))
    for benchmark, base, head in pairs:
        assert base.value is not None, "pairs have values"
        assert head.value is not None, "pairs have values"
        is_timed = kind(benchmark) == TIMED
        judgement = next(judged) if is_timed else exact(base.value, head.value)
        if evidence.is_one_measurement(base, head):
            judgement = replace(judgement, reasons=(NOT_AGAIN,))
        elif is_timed:
            judgement = evidence.with_doubts(judgement, benchmark, base)
        row = Row(
            name=base.name(benchmark),
            kind=kind(benchmark),
            unit=sides.history.unit(benchmark),
            base=base.value,
            head=head.value,
            judgement=judgement,
            copies=evidence.copies(benchmark, base) if is_timed else None,
            benchmark=benchmark,
            params=base.params,
            kernel=kernel(benchmark, base.params),
            code_unchanged=evidence.machine_code_unchanged(benchmark, base),
            verified=registry.is_verified(benchmark, base.params) or "arch" in base.params,
        )
        useful = registry.find_useful_bytes(benchmark, base.params) if is_timed or row.is_moved else None
        yield replace(row, useful_bytes=useful)
