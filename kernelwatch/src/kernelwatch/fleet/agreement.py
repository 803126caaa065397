"""Do two backfills of the same commits agree? `kernelwatch agreement RESULTS OTHERS --machine NAME`.

For example one GPU against four of the same host. Series that the same GPU measured both times tell whether neighbours
disturb; those of two GPUs tell how much the GPUs differ.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tabulate import tabulate

from kernelwatch.fleet.merge import values
from kernelwatch.fleet.stored import Stored
from kernelwatch.store.noise import LONG


class Pair(NamedTuple):
    """One configuration of one commit in both: its seconds, and whether one GPU took both."""

    first: float
    second: float
    is_same_gpu: bool


def pairs(first: Path, second: Path, machine: str) -> Iterator[Pair]:
    """Yield what both have times of."""
    gpus = [Stored(folder, machine).last() for folder in (first, second)]
    for path in sorted(first.glob(f"{machine}/????????-*.json")):
        other = second / machine / path.name
        if not other.exists():
            continue
        documents = [json.loads(each.read_bytes()) for each in (path, other)]
        for benchmark in (name for name in documents[0]["results"] if name.startswith("time")):
            mine, theirs = (values(document, benchmark) for document in documents)
            for text in mine.keys() & theirs.keys():
                by = [known.get((benchmark, text)) for known in gpus]
                is_same = None not in by and len({each.uuid for each in by if each}) == 1
                yield Pair(mine[text], theirs[text], is_same)


def table(found: Sequence[Pair]) -> str:
    """Return how far they differ, by length and by GPU, in per cent."""
    groups = defaultdict(list)
    for pair in found:
        length = f"{'from' if pair.first >= LONG else 'below'} {LONG * 1e6:g} µs"
        groups[length, "the same" if pair.is_same_gpu else "another"].append(abs(math.log(pair.second / pair.first)))
    rows = [
        [length, gpu, len(each), *(100 * value for value in (statistics.median(each), _percentile(each), max(each)))]
        for (length, gpu), each in sorted(groups.items())
    ]
    return str(tabulate(rows, ["times", "GPU", "count", "median, %", "95 of 100, %", "most, %"], floatfmt=".2f"))


def _percentile(each: Sequence[float]) -> float:
    return sorted(each)[math.ceil(0.95 * len(each)) - 1]


def main(words: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Compare two backfills.")
    parser.add_argument("results", type=Path, help="folder of the one's results")
    parser.add_argument("others", type=Path, help="folder of the other's")
    parser.add_argument("--machine", required=True, help="name of the machine")
    options = parser.parse_args(words)
    print(table(list(pairs(options.results, options.others, options.machine))))
