"""Warps and single threads that execute ``tcgen05`` instructions, and their operands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

import numpy as np

from ...lanes.warps import LANES, Array, lanes_by_warp, spread
from ...machine.chunk import Chunk
from ...ptx.program import Instruction
from ...util.errors import TensorMemoryError
from ..operands import choose_modifier, unsupported
from ..warp_collectives import reshape_to_lanes

#: Number of blocks of a CTA group, by qualifier.
GROUP_SIZES = {"cta_group::1": 1, "cta_group::2": 2}


def read_group_size(instruction: Instruction) -> int:
    """Return the number of blocks of an instruction's ``.cta_group``."""
    return GROUP_SIZES[choose_modifier(instruction, GROUP_SIZES)]


def find_cta_group(chunk: Chunk, block: int, size: int) -> list[int]:
    """Return the blocks of a CTA group of ``size`` blocks: ``block``, or the pair of ranks 2n and 2n + 1 that has it.

    Raises `TensorMemoryError` for a block without a pair.
    """
    if size == 1:
        return [block]
    first = chunk.shared.find_first_block(block)
    even = first + (block - first) // 2 * 2
    if even + 1 >= chunk.shape[0] or chunk.shared.find_first_block(even + 1) != first:
        text = f".cta_group::2 needs an even number of blocks in a cluster, not {prod(chunk.context.cluster)}"
        raise chunk.make_fault(TensorMemoryError, text)
    return [even, even + 1]


@contextmanager
def report_descriptors(chunk: Chunk) -> Iterator[None]:
    """Turn ``ValueError`` into `TensorMemoryError`, ``NotImplementedError`` into `UnsupportedInstructionError`."""
    try:
        yield
    except NotImplementedError as error:
        raise unsupported(chunk.instruction, str(error)) from None
    except ValueError as error:
        raise chunk.make_fault(TensorMemoryError, str(error)) from None


def note_uncounted(chunk: Chunk, times: int) -> None:
    """Add a finding for ``times`` instructions whose reads of shared memory are not counted."""
    name = f"tcgen05.{chunk.instruction.modifiers[0]}"
    text = f"{name} reads shared memory, which is not counted: its wavefronts are unknown"
    chunk.add_finding("uncounted-read", text, times)


def find_whole_warps(chunk: Chunk) -> tuple[Array, Array]:
    """Return the block of each active warp, and the warp's index in the block.

    Raises `TensorMemoryError` for a warp with inactive lanes.
    """
    lanes = lanes_by_warp(spread(chunk.active, chunk.shape), chunk.shape[1])
    partly = lanes.any(axis=2) & ~lanes.all(axis=2)
    if partly.any():
        row, warp = (int(indices[0]) for indices in np.nonzero(partly))
        count = lanes[row, warp].sum()
        text = f"warp {warp} executes {chunk.instruction.name} with {count} of {LANES} lanes active; all must be active"
        raise chunk.make_fault(TensorMemoryError, text, position=(row, warp * LANES + int(lanes[row, warp].argmax())))
    rows, warps = np.nonzero(lanes.any(axis=2))
    return rows, warps


def read_per_warp(chunk: Chunk, values: Array, rows: Array, warps: Array) -> Array:
    """Return the value of the first lane of each warp from `find_whole_warps`, as int64."""
    by_lane = reshape_to_lanes(chunk, spread(values, chunk.shape))
    return np.asarray(by_lane[rows, warps, 0].astype(np.int64))
