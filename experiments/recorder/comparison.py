"""Counts of recorded launches beside Nsight Compute's."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

import ptxcount
from experiments.recorder import profiler
from experiments.recorder.recording import Bytes, Library, RecordedLaunch, read_recording

#: Seconds after which a count ends with an error.
TIME_LIMIT = 60


class Outcome(NamedTuple):
    """The counts of a launch, or the reason why there are none, and the arrays whose bytes differ from the GPU's."""

    counts: dict[str, int]
    problem: str
    different: list[int]


def count_launch(launch: RecordedLaunch, ptx: Path) -> Outcome:
    """Count a launch, and compare the arrays after it with the GPU's."""
    try:
        counters = ptxcount.count(
            ptx.read_text(), launch.entry, launch.grid, launch.block, launch.make_arguments(),
            arch="sm_90", dynamic_shared=launch.dynamic_shared, cluster=launch.cluster, time_limit=TIME_LIMIT,
        )  # fmt: skip
    except Exception as error:  # noqa: BLE001 -- the table says so
        return Outcome({}, f"{type(error).__name__}: {str(error).splitlines()[0]}", [])
    totals = counters.totals()
    for kind, (_, wavefronts) in counters.merged.items():
        totals[f"shared_{kind}_wavefronts"] = wavefronts
    pairs = zip(launch.contents, launch.arrays, strict=True)
    different = [place for place, (mine, array) in enumerate(pairs) if not are_close(mine, array.read_after())]
    return Outcome({name: totals.get(name, 0) for name in profiler.METRICS}, "", different)


def are_close(first: Bytes, second: Bytes) -> bool:
    """Tell if two arrays have equal bytes, or differ as floats of some type by little of the value or the largest."""
    if np.array_equal(first, second):
        return True
    for dtype in (np.float32, np.float64, np.float16):
        length = len(first) // np.dtype(dtype).itemsize * np.dtype(dtype).itemsize
        mine, other = (array[:length].view(dtype).astype(np.float64) for array in (first, second))
        largest = np.max(np.abs(other[np.isfinite(other)]), initial=0.0)
        if np.allclose(mine, other, rtol=2e-3, atol=1e-6 * largest, equal_nan=True):
            return True
    return False


def compare_recording(folder: Path) -> str:
    """Count the launches of a recording; return a text with those that differ, and totals.

    A kernel's launches are paired with those that Nsight Compute profiled, in their order.
    """
    launches, library = read_recording(folder), Library(folder)
    profile = profiler.read_profile(folder / "nsight.csv")
    queues: defaultdict[str, deque[dict[str, float]]] = defaultdict(deque)
    for name, reading in profile:
        queues[name].append(reading)
    profiled = [(launch, queues[launch.entry].popleft()) for launch in launches if queues[launch.entry]]
    chosen = [
        (launch, ptx, reading)
        for launch, reading in profiled
        if launch.is_complete and (ptx := library.find_ptx(launch))
    ]
    with ProcessPoolExecutor() as pool:
        outcomes = list(pool.map(count_launch, *list(zip(*chosen, strict=True))[:2]))
    tally: Counter[str] = Counter()
    lines = []
    for (launch, _, reading), outcome in zip(chosen, outcomes, strict=True):
        differences = list(_describe_differences(outcome, reading, tally))
        if differences:
            shape = "x".join(map(str, launch.grid)), "x".join(map(str, launch.block))
            lines.append(f"{launch.index} {launch.entry[:80]} <<<{', '.join(shape)}>>>: {'; '.join(differences)}")
    lines.append(f"{len(launches)} launches, {len(profiled)} profiled; {len(chosen)} of these with PTX and arrays")
    lines += [f"  {what}: {number}" for what, number in sorted(tally.items())]
    return "\n".join(lines)


def _describe_differences(outcome: Outcome, chip: dict[str, float], tally: Counter[str]) -> Iterator[str]:
    if outcome.problem:
        tally["not counted"] += 1
        yield outcome.problem
        return
    tally["counted"] += 1
    if outcome.different:
        tally["other output"] += 1
        yield f"arrays {outcome.different} differ"
    for name, counted in outcome.counts.items():
        if counted or chip[name]:
            tally[f"{name}: launches"] += 1
            if counted == chip[name]:
                tally[f"{name}: equal"] += 1
            else:
                yield f"{name} {counted}, the chip {chip[name]:g}"
