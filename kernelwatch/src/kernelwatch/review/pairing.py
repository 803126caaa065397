"""The configurations of two commits in pairs, and those that only one commit has a value of."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kernelwatch.error_text import blank_numbers
from kernelwatch.review.occupancy import LaunchedBlocks
from kernelwatch.review.rows import Row, UnpairedConfiguration
from kernelwatch.store.measurements import CommitMeasurements
from kernelwatch.store.points import Point

#: Groups of configurations without two values: of FAILING, or of one commit alone.
UNPAIRED = BROKEN, FAILED, REPAIRED, ONLY_BASE, ONLY_HEAD = "broken", "failed", "repaired", "only_base", "only_head"


class ConfigurationFacts(NamedTuple):
    """The facts of the suite on a configuration.

    The kernel that it launches, the name of its machine code, whether its output is compared with a reference, the
    bytes that a launch must move, words on how it is timed, and its block today: threads, and bytes of dynamic shared
    memory. Of another suite's benchmark, the kernel is the benchmark.
    """

    kernel: str
    code_name: str | None = None
    verified: bool = True
    useful_bytes: int | None = None
    conditions: tuple[str, ...] = ()
    block: tuple[int, int] | None = None


#: A function that tells the suite's facts on a benchmark and a configuration's parameters.
Describe = Callable[[str, Mapping[str, str]], ConfigurationFacts]


class Pair(NamedTuple):
    """A configuration of a benchmark at base and at head."""

    benchmark: str
    base: Point
    head: Point

    @property
    def name(self) -> str:
        """The configuration as reports print it."""
        return self.base.format_name(self.benchmark)

    @property
    def gpus(self) -> frozenset[str | None]:
        """The UUIDs of the GPUs that timed it; None stands for a run that said none."""
        return self.base.gpus | self.head.gpus


class Pairing(NamedTuple):
    """The pairs of two commits, and by UNPAIRED the configurations that are none."""

    pairs: list[Pair]
    unpaired: dict[str, list[UnpairedConfiguration]]


_MEASURED, _FAILED = "measured", "failed"

#: Reason of a configuration of base that a run of a part of head left out; label of one that a whole run skipped.
WITHOUT_VALUE, SKIPPED = "without a value in head", "skipped in head"

#: Names of classes that Python and this library put before an error's text.
_CLASSES = re.compile(r"(?:[\w.]+: )*?[\w.]*(?:Error|Exception): ")


def pair_configurations(base: CommitMeasurements, head: CommitMeasurements, describe: Describe) -> Pairing:
    """Match the configurations of two commits by their parameters' names and values."""
    pairing = Pairing([], {outcome: [] for outcome in UNPAIRED})
    for benchmark in head.benchmarks:
        for old, new in match_points(base, head, benchmark):
            states = [_find_state(*side) for side in ((old, base, benchmark), (new, head, benchmark))]
            if old and new and states == [_MEASURED, _MEASURED]:
                pairing.pairs.append(Pair(benchmark, old, new))
                continue
            point, outcome = old or new, _choose_group(*states)
            if point and outcome:
                kernel = describe(benchmark, point.params).kernel
                absence = {ONLY_BASE: f"{states[1]} in head", ONLY_HEAD: f"{states[0]} in base"}.get(outcome)
                reason = absence or _find_cause(base if outcome == REPAIRED else head, benchmark, kernel)
                if (skips := head.benchmarks[benchmark].skips) and reason == WITHOUT_VALUE:
                    reason = f"{SKIPPED}: {_join_reasons(skips, kernel)}"
                pairing.unpaired[outcome].append(
                    UnpairedConfiguration(point.format_name(benchmark), benchmark, reason, kernel, point.params)
                )
    return pairing


def match_points(
    base: CommitMeasurements, head: CommitMeasurements, benchmark: str
) -> Iterator[tuple[Point | None, Point | None]]:
    """Yield the two results of each configuration of a benchmark that either commit has."""
    old, new = (side.benchmarks[benchmark].points for side in (base, head))
    return ((old.get(key), new.get(key)) for key in dict.fromkeys([*old, *new]))


def _find_state(point: Point | None, side: CommitMeasurements, benchmark: str) -> str:
    if point is None:
        return side.benchmarks[benchmark].absence or "no configuration"
    return _MEASURED if point.value is not None else _FAILED if point.failed else "without a value"


def _choose_group(base: str, head: str) -> str | None:
    rules = {
        BROKEN: head == _FAILED != base,
        FAILED: head == _FAILED,
        REPAIRED: base == _FAILED and head == _MEASURED,
        ONLY_BASE: base == _MEASURED,
        ONLY_HEAD: head == _MEASURED,
    }
    return next((outcome for outcome, holds in rules.items() if holds), None)


def _find_cause(side: CommitMeasurements, benchmark: str, kernel: str) -> str:
    """Return why a kernel's configurations fail in a commit, as a run recorded it, or where to look."""
    if reasons := side.benchmarks[benchmark].failures:
        return _join_reasons(reasons, kernel)
    return f"not kept; asv run --show-stderr --bench {benchmark} {side.commit[:8]}^! prints it"


def _join_reasons(reasons: Sequence[str], kernel: str) -> str:
    """Return the reasons that begin with a kernel's name, or else name it, or else all, each once but for numbers."""
    beginning = [reason for reason in reasons if f"{kernel}: " in reason]
    own_reasons = (
        beginning or [reason for reason in reasons if re.search(rf"\b{re.escape(kernel)}\b", reason)] or reasons
    )
    first_reasons: dict[str, str] = {}
    for reason in own_reasons:
        first_reasons.setdefault(blank_numbers(reason), _CLASSES.sub("", reason).removeprefix(f"{kernel}: "))
    return "; ".join(first_reasons.values())


def find_recorded_blocks(base: CommitMeasurements, head: CommitMeasurements, row: Row) -> LaunchedBlocks:
    """Return the blocks of a compiled kernel as the runs of both commits recorded them; None where none did."""
    code = (row.kernel, row.params.get("dtype", ""))
    old, new = (side.cubins.find_block(side.commit, row.arch or "", *code) for side in (base, head))
    return old, new


def find_blocks(base: CommitMeasurements, head: CommitMeasurements, describe: Describe, row: Row) -> LaunchedBlocks:
    """Return the recorded blocks of a compiled kernel; today's where no run of a commit recorded one."""
    today = describe(row.benchmark, row.params).block
    old, new = (block or today for block in find_recorded_blocks(base, head, row))
    return old, new


def is_one_measurement(base: CommitMeasurements, head: CommitMeasurements, pair: Pair) -> bool:
    """Return whether two commits have the numbers of one measurement, since all that they depend on is the same."""
    return base.commit != head.commit and (pair.base.origin or base.commit) == (pair.head.origin or head.commit)


def is_code_unchanged(
    base: CommitMeasurements, head: CommitMeasurements, benchmark: str, params: Mapping[str, str], name: str | None
) -> bool | None:
    """Return whether both commits launch the same machine code of a name; None where no run of one recorded it."""
    if name is None:
        return None
    compiled = next(iter((*base.cubins.archs, *head.cubins.archs)), "")  # for a machine without a GPU
    keys = [(side.commit, side.name_architecture(benchmark, params) or compiled, name) for side in (base, head)]
    hashes = [(base.cubins.find_code_hash(*keys[0]), head.cubins.find_code_hash(*keys[1]))]
    if base.compiler == head.compiler:  # whole cubins name their compiler: those of two always differ
        hashes.append((base.cubins.find_cubin_hash(*keys[0]), head.cubins.find_cubin_hash(*keys[1])))
    return next((old == new for old, new in hashes if None not in (old, new)), None)
