"""The configurations of two commits in pairs, and those with a value in only one commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kernelwatch.review.occupancy import LaunchedBlocks
from kernelwatch.review.rows import Row, UnpairedConfiguration
from kernelwatch.store.measurements import CommitMeasurements
from kernelwatch.store.points import Point

#: Categories of configurations without two values: failing ones, and those of only one commit.
UNPAIRED = BROKEN, FAILED, REPAIRED, ONLY_BASE, ONLY_HEAD = "broken", "failed", "repaired", "only_base", "only_head"


class ConfigurationFacts(NamedTuple):
    """The facts of the suite on a configuration.

    `kernel` is the launched kernel, or the benchmark if another suite defines it. `code_name` names the machine code.
    `verified` is true if its output is compared with a reference. `useful_bytes` are the bytes that a launch must move.
    `conditions` describe how it is timed. `block` is its current block: threads, and bytes of dynamic shared memory.
    """

    kernel: str
    code_name: str | None = None
    verified: bool = True
    useful_bytes: int | None = None
    conditions: tuple[str, ...] = ()
    block: tuple[int, int] | None = None


#: A function of a benchmark and a configuration's parameters that returns the suite's facts.
Describe = Callable[[str, Mapping[str, str]], ConfigurationFacts]


class Pair(NamedTuple):
    """A configuration of a benchmark at base and at head."""

    benchmark: str
    base: Point
    head: Point

    @property
    def name(self) -> str:
        """The name of the configuration in reports."""
        return self.base.format_name(self.benchmark)

    @property
    def gpus(self) -> frozenset[str | None]:
        """The UUIDs of the GPUs that timed it; None for a run that recorded no UUID."""
        return self.base.gpus | self.head.gpus


class Pairing(NamedTuple):
    """The pairs of two commits, and the unpaired configurations by category (UNPAIRED)."""

    pairs: list[Pair]
    unpaired: dict[str, list[UnpairedConfiguration]]


_MEASURED, _FAILED = "measured", "failed"

#: Reason if a partial run of head did not select a configuration; label if a complete run skipped it.
WITHOUT_VALUE, SKIPPED = "without a value in head", "skipped in head"

#: Class names of errors, which Python and this library put before the text.
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
    """Yield the two results of each configuration of a benchmark; None for a commit without it."""
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
    """Return the recorded reason why a kernel's configurations fail in a commit, or the command that shows it."""
    if reasons := side.benchmarks[benchmark].failures:
        return _join_reasons(reasons, kernel)
    return f"no reason was recorded; asv run --show-stderr --bench {benchmark} {side.commit[:8]}^! prints it"


def _join_reasons(reasons: Sequence[str], kernel: str) -> str:
    """Return as one text the reasons that begin with a kernel's name; else those that contain it; else all."""
    beginning = [reason for reason in reasons if f"{kernel}: " in reason]
    own_reasons = (
        beginning or [reason for reason in reasons if re.search(rf"\b{re.escape(kernel)}\b", reason)] or reasons
    )
    return "; ".join(dict.fromkeys(_CLASSES.sub("", reason).removeprefix(f"{kernel}: ") for reason in own_reasons))


def find_recorded_blocks(base: CommitMeasurements, head: CommitMeasurements, row: Row) -> LaunchedBlocks:
    """Return the blocks of a compiled kernel that the runs of both commits recorded; None without a record."""
    code = (row.kernel, row.params.get("dtype", ""))
    old, new = (side.cubins.find_block(side.commit, row.arch or "", *code) for side in (base, head))
    return old, new


def find_blocks(base: CommitMeasurements, head: CommitMeasurements, describe: Describe, row: Row) -> LaunchedBlocks:
    """Return the recorded blocks of a compiled kernel; without a record, the block of the checkout."""
    today = describe(row.benchmark, row.params).block
    old, new = (block or today for block in find_recorded_blocks(base, head, row))
    return old, new


def is_one_measurement(base: CommitMeasurements, head: CommitMeasurements, pair: Pair) -> bool:
    """Return whether both commits use one measurement, because nothing that it depends on changed."""
    return base.commit != head.commit and (pair.base.origin or base.commit) == (pair.head.origin or head.commit)


def is_code_unchanged(
    base: CommitMeasurements, head: CommitMeasurements, benchmark: str, params: Mapping[str, str], name: str | None
) -> bool | None:
    """Return whether the named machine code is the same in both commits; None if either has no record."""
    if name is None:
        return None
    compiled = next(iter((*base.cubins.archs, *head.cubins.archs)), "")  # for a machine without a GPU
    keys = [(side.commit, side.name_architecture(benchmark, params) or compiled, name) for side in (base, head)]
    hashes = [(base.cubins.find_code_hash(*keys[0]), head.cubins.find_code_hash(*keys[1]))]
    if base.compiler == head.compiler:  # a cubin contains its compiler's name, so those of two compilers always differ
        hashes.append((base.cubins.find_cubin_hash(*keys[0]), head.cubins.find_cubin_hash(*keys[1])))
    return next((old == new for old, new in hashes if None not in (old, new)), None)
