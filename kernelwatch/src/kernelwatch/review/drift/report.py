"""Drifts as text for a terminal, and as JSON for programs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import geometric_mean
from typing import Any

import msgspec
from tabulate import tabulate

from kernelwatch.review.drift.drifts import FEWEST, Drift, Found, State
from kernelwatch.review.verdict import percent
from kernelwatch.show.text import plain, short_flags

#: Bumped when a key changes its meaning or goes.
FORMAT = 1

CONCLUSIONS = {0: "NO DRIFT", 1: "DRIFT", 2: "UNDECIDED"}

_HEADERS = ["drift", "kernel", "flags", "time", "configurations", "from", "to", "why"]


def exit_code(found: Sequence[Found]) -> int:
    """0: no drift; 1: a confirmed one; 2: one is suspected only, or a machine has no long enough row of commits."""
    states = {drift.state for each in found for drift in each.drifts}
    if State.CONFIRMED in states:
        return 1
    return 2 if State.SUSPECTED in states or not all(each.judged for each in found) else 0


def as_json(found: Sequence[Found]) -> str:
    """Every drift, the refuted ones too, with the commands that would confirm it."""
    machines: list[dict[str, Any]] = [msgspec.to_builtins(each) for each in found]
    for machine, each in zip(machines, found, strict=True):
        for told, drift in zip(machine["drifts"], each.drifts, strict=True):
            told["confirm"] = commands([drift])
    document = {"format": FORMAT, "exit_code": exit_code(found), "machines": machines}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def text(found: Sequence[Found]) -> str:
    """Of each machine the verdict, what drifts by kernel and flags, and what to do."""
    return "\n".join(line for each in found for line in _lines(each)) + "\n"


def commands(drifts: Sequence[Drift]) -> list[str]:
    """What measures two commits again in turns, and what tells the answer. All drifts are from and to the same."""
    one = drifts[0]
    first, last = one.first[:8], one.last[:8]
    benches = " ".join(f"--bench {name}" for name in sorted({drift.benchmark for drift in drifts}))
    return [
        f'make measure BASE={first} HEAD={last} ARGS="--attribute rounds=4 {benches}"',
        f"make drift MACHINE={one.machine}",
    ]


def _lines(found: Found) -> Iterator[str]:
    yield f"{CONCLUSIONS[exit_code([found])]}  {plain(found.machine)}"
    yield f"{found.judged} times have {FEWEST} commits or more in a row; the longest row has {found.longest}"
    groups: dict[tuple[str, ...], list[Drift]] = defaultdict(list)
    again: dict[tuple[str, str], list[Drift]] = defaultdict(list)
    for each in found.drifts:
        why = each.reason or _machine_code(each)
        groups[each.state.value, each.kernel, each.flags, each.first, each.last, why].append(each)
        if each.state is State.SUSPECTED:
            again[each.first, each.last].append(each)
    if groups:
        body = [
            [state, plain(kernel), short_flags(flags), percent(geometric_mean(each.ratio for each in drifts)),
             len(drifts), first[:8], last[:8], plain(why)]
            for (state, kernel, flags, first, last, why), drifts in groups.items()
        ]  # fmt: skip
        yield str(tabulate(body, _HEADERS, tablefmt="plain", disable_numparse=True))
    for drifts in again.values():
        yield "To confirm, on the machine:"
        yield from (f"  {command}" for command in commands(drifts))
    if not found.judged:
        yield "A row ends where the review sees a change, or another GPU measured that may differ by as much."


def _machine_code(drift: Drift) -> str:
    if not drift.changed:
        return "no run noted another machine code"
    return f"machine code changed at {', '.join(commit[:8] for commit in drift.changed)}"
