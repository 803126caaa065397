"""What else is known of a configuration whose time changed: its machine code, the copy beside it, the GPU's clocks.

A comparison of times alone blames the kernel for whatever happened to the machine.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from kernelwatch.review import occupancy
from kernelwatch.review.commits import Side, Sides
from kernelwatch.review.occupancy import Launched
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Judgement, Reason, Verdict, Why, change, ratio
from kernelwatch.store.cubins import Cubins
from kernelwatch.store.results import Point
from kernelwatch.suite import registry


class Evidence:
    """What the runs of two commits noted beside their times. Raises ValueError where hashes cannot be read."""

    def __init__(self, sides: Sides) -> None:
        self._sides, self._history = sides, sides.history
        self._cubins = [Cubins(self._history.folder, side.compiler) for side in sides.both]
        self._arch = cache(lambda side, benchmark: self._history.run_of(side.results, benchmark).get("arch"))
        self._copies = [
            {point.name(name): copy for name, point, copy in self._history.times(side.results)} for side in sides.both
        ]

    def gpus(self, benchmark: str, point: Point) -> set[str | None]:
        """The UUIDs of the GPUs that measured a configuration of both commits; None stands for a run that said none."""
        return self._history.gpus(*(side.results for side in self._sides.both), benchmark=benchmark, point=point)

    def are_several_gpus(self, benchmark: str, point: Point) -> bool:
        """Whether two GPUs measured a configuration, or one that is known and one that is not."""
        return len(self.gpus(benchmark, point)) > 1

    def copies(self, benchmark: str, point: Point) -> tuple[float, float] | None:
        """The times of both commits in copies; None where one has none."""
        base, head = (found.get(point.name(benchmark)) for found in self._copies)
        return None if base is None or head is None else (base, head)

    def is_one_measurement(self, base: Point, head: Point) -> bool:
        """Whether two commits have the numbers of one measurement, since all that they depend on is the same."""
        commits = [side.commit for side in self._sides.both]
        return commits[0] != commits[1] and (base.origin or commits[0]) == (head.origin or commits[1])

    def machine_code_unchanged(self, benchmark: str, point: Point) -> bool | None:
        """Whether both commits launch the same machine code; None where no run of one said."""
        known = registry.find_code_name(benchmark, point.params)
        if known is None:
            return None
        # Whole cubins name their compiler: those of two compilers always differ.
        for hashed in (Cubins.code,) if self._sides.is_of_compilers else (Cubins.code, Cubins.sha256):
            base, head = (
                hashed(cubins, side.commit, self._arch_of(side, cubins, benchmark, point), known)
                for side, cubins in zip(self._sides.both, self._cubins, strict=True)
            )
            if None not in (base, head):
                return base == head
        return None

    def launched(self, row: Row) -> Launched:
        """The blocks with which both commits launch what was compiled: this checkout's where no run of theirs said."""
        kernel, dtype, _ = row.code
        base, head = (block or occupancy.launched(kernel, dtype) for block in self.recorded_blocks(row))
        return base, head

    def recorded_blocks(self, row: Row) -> Launched:
        """Return the blocks with which runs of both commits launched a kernel; None where none said."""
        kernel, dtype, _ = row.code
        base, head = (
            cubins.block(side.commit, row.arch or "", kernel, dtype)
            for side, cubins in zip(self._sides.both, self._cubins, strict=True)
        )
        return base, head

    def with_doubts(self, judgement: Judgement, benchmark: str, point: Point) -> Judgement:
        """The judgement on a time, once all that is known beside it is taken into account."""
        if judgement.verdict is Verdict.SAME:
            return judgement
        unchanged = self.machine_code_unchanged(benchmark, point)
        doubt, could_be, copies = None, judgement.could_be, self.copies(benchmark, point)
        if told := self._held_back(benchmark, point):
            doubt, could_be = Reason(Why.HELD_BACK, (told,)), None
        elif unchanged and self.are_several_gpus(benchmark, point):
            doubt = Reason(Why.SEVERAL_GPUS)
        elif unchanged and copies and change(ratio(*copies)) <= judgement.threshold:
            # What is left of a change once all that slows a copy too is cancelled.
            doubt = Reason(Why.COPY, (ratio(*copies),))
        reasons = (doubt,) if doubt else judgement.reasons
        reasons += (Reason(Why.UNCHANGED),) if unchanged else ()
        verdict = Verdict.UNDECIDED if doubt else judgement.verdict
        return replace(judgement, verdict=verdict, reasons=reasons, could_be=could_be)

    def _arch_of(self, side: Side, cubins: Cubins, benchmark: str, point: Point) -> str:
        """That of the configuration, or of the GPU that ran it; where neither is known, one was compiled for."""
        return point.params.get("arch") or self._arch(side, benchmark) or next(iter(cubins.archs), "")

    def _held_back(self, benchmark: str, point: Point) -> str:
        """Why the GPU was slow in the runs that the samples are from; empty if it was not, or was alike all along.

        Some GPUs always throttle: one run that measured both commits in turns then met the same.
        """
        runs, why = [self._history.runs_of(side.results, benchmark) for side in self._sides.both], []
        for side, each in zip(self._sides.both, runs, strict=True):
            wanted = side.commit, point.name(benchmark)
            noted = (entry for run in each for entry in run.get("held_back") or ())
            found = (entry["reasons"] for entry in noted if (entry["commit"], entry["configuration"]) == wanted)
            why.append(", ".join(dict.fromkeys(str(reason) for reasons in found for reason in reasons)))
        if runs[0] == runs[1] and len(runs[0]) == 1 and why[0] == why[1]:
            return ""
        return "; ".join(f"in {name}: {each}" for name, each in zip(("base", "head"), why, strict=True) if each)
