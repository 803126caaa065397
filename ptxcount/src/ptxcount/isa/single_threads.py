"""Instructions that one thread executes for its block: operands, and faults."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..lanes.symbolic_values import dense
from ..lanes.warps import spread
from ..machine.address_map import Report
from ..machine.chunk import Chunk
from .operands import Reader


def make_row_reporter(chunk: Chunk) -> Report:
    """Return a reporter that reports each fault for the first active thread of its block."""
    report, active = chunk.make_reporter(), spread(chunk.active, chunk.shape)

    def report_for_row(error: Any, position: tuple[int, int], text: str, place: int, *others: Any) -> None:
        report(error, (position[0], int(active[position[0]].argmax())), text, place, *others)

    return report_for_row


def iter_threads(chunk: Chunk, readers: Sequence[Reader]) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """Go through active threads: the first of each block, then the second, and so on.

    Yield their operand values, with the blocks that have the same.
    """
    rows, threads = np.nonzero(spread(chunk.active, chunk.shape))
    columns = [spread(dense(read(chunk)), chunk.shape)[rows, threads].tolist() for read in readers]
    groups: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    turns: dict[int, int] = {}
    for place, row in enumerate(rows.tolist()):
        turns[row] = turns.get(row, -1) + 1
        groups.setdefault((turns[row], tuple(int(column[place]) for column in columns)), []).append(row)
    for (_, numbers), group in sorted(groups.items(), key=lambda item: item[0][0]):
        yield numbers, group
