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
    """Return a reporter that reports each fault for the first active thread of the fault's block."""
    report, active = chunk.make_reporter(), spread(chunk.active, chunk.shape)

    def report_for_row(error: Any, position: tuple[int, int], text: str, place: int, *others: Any) -> None:
        report(error, (position[0], int(active[position[0]].argmax())), text, place, *others)

    return report_for_row


def iter_threads(chunk: Chunk, readers: Sequence[Reader]) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """Yield the operand values of active threads, one per reader, and the blocks whose threads have these values.

    The first active threads of all blocks come first, then the second ones. So two blocks, each with one active thread
    and the operand 5, give ``(5,), [0, 1]``.
    """
    rows, threads = np.nonzero(spread(chunk.active, chunk.shape))
    columns = [spread(dense(read(chunk)), chunk.shape)[rows, threads].tolist() for read in readers]
    blocks: dict[tuple[int, tuple[int, ...]], list[int]] = {}  # by turn and values
    turns: dict[int, int] = {}
    for place, row in enumerate(rows.tolist()):
        turns[row] = turns.get(row, -1) + 1
        blocks.setdefault((turns[row], tuple(int(column[place]) for column in columns)), []).append(row)
    for (_, values), blocks_with_values in sorted(blocks.items(), key=lambda item: item[0][0]):
        yield values, blocks_with_values
