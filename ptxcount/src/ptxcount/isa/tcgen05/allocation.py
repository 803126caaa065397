"""Allocation of tensor memory: ``tcgen05.alloc``, ``dealloc``, ``relinquish_alloc_permit``; ``fence``, ``commit``."""

from __future__ import annotations

import numpy as np

from ...machine.chunk import Chunk
from ...ptx.program import TYPES, Instruction
from ..hopper.mbarriers import signal_barrier
from ..opcode_registry import Step, binds
from ..operands import expect_count, expect_modifiers, make_array_reader, make_reader
from ..single_threads import iter_threads, make_row_reporter
from ..spaces import make_shared_reader
from .issuing_warps import GROUP_SIZES, find_cta_group, find_whole_warps, read_group_size, read_per_warp

_U32 = TYPES["u32"]
_NAMES = {"sync", "aligned", "shared::cta", "b32", *GROUP_SIZES}


@binds("tcgen05", having={"alloc", "dealloc", "relinquish_alloc_permit"})
def _bind_allocation(instruction: Instruction) -> Step:
    """Bind ``tcgen05.alloc.cta_group.sync.aligned{.shared::cta}.b32 [dst], columns``, or its counterparts."""
    name, *names = instruction.modifiers
    steps = {"alloc": _bind_alloc, "dealloc": _bind_dealloc, "relinquish_alloc_permit": _bind_relinquish}
    expect_modifiers(instruction, names, _NAMES, {"sync", "aligned"})
    read_group_size(instruction)
    return steps[name](instruction)


def _bind_alloc(instruction: Instruction) -> Step:
    """Bind ``alloc [dst], columns``: each active warp allocates, and its first lane stores the address."""
    expect_count(instruction, 2)
    target, count = instruction.operands
    place = make_shared_reader(instruction, target)
    read_count = make_array_reader(instruction, count, _U32)

    def allocate(chunk: Chunk) -> None:
        rows, warps = find_whole_warps(chunk)
        report = make_row_reporter(chunk)
        counts = read_per_warp(chunk, read_count(chunk), rows, warps).tolist()
        addresses = np.zeros(chunk.shape, np.uint32)
        first_lanes = np.zeros(chunk.shape, bool)
        for row, warp, columns in zip(rows.tolist(), warps.tolist(), counts, strict=True):
            addresses[row, 32 * warp] = chunk.tensor.allocate(row, columns, instruction.source, report)
            first_lanes[row, 32 * warp] = True
        chunk.shared.store(place(chunk), 4, [addresses], first_lanes, chunk.make_reporter())
        chunk.has_written = True

    return allocate


def _bind_dealloc(instruction: Instruction) -> Step:
    """Bind ``dealloc address, columns``, executed once per active warp."""
    expect_count(instruction, 2)
    readers = [make_array_reader(instruction, operand, _U32) for operand in instruction.operands]

    def deallocate(chunk: Chunk) -> None:
        rows, warps = find_whole_warps(chunk)
        report = make_row_reporter(chunk)
        places, counts = (read_per_warp(chunk, read(chunk), rows, warps).tolist() for read in readers)
        for row, place, count in zip(rows.tolist(), places, counts, strict=True):
            chunk.tensor.deallocate(row, place, count, report)

    return deallocate


def _bind_relinquish(instruction: Instruction) -> Step:
    expect_count(instruction, 0)

    def relinquish(chunk: Chunk) -> None:
        for row in find_whole_warps(chunk)[0].tolist():
            chunk.tensor.relinquish(row)

    return relinquish


@binds("tcgen05", having={"fence::before_thread_sync", "fence::after_thread_sync"})
def _bind_fence(instruction: Instruction) -> Step:
    """Bind ``tcgen05.fence::before_thread_sync`` and ``after_thread_sync`` to no operation: all is in order here."""
    expect_count(instruction, 0)
    return lambda chunk: None


_COMMIT_NAMES = {"commit", "mbarrier::arrive::one", "shared::cluster", "multicast::cluster", "b64", *GROUP_SIZES}


@binds("tcgen05", having={"commit"})
def _bind_commit(instruction: Instruction) -> Step:
    """Bind ``tcgen05.commit.cta_group.mbarrier::arrive::one{.shared::cluster}{.multicast::cluster}.b64 [a]{, mask}``.

    An mbarrier gets an arrival when earlier products and copies are complete. ``mask`` has the ranks of the blocks
    whose mbarriers, at the address ``a``, get it.
    """
    expect_modifiers(instruction, instruction.modifiers, _COMMIT_NAMES, {"mbarrier::arrive::one"})
    group_size, is_multicast = read_group_size(instruction), "multicast::cluster" in instruction.modifiers
    expect_count(instruction, 2 if is_multicast else 1)
    readers = [make_shared_reader(instruction, instruction.operands[0])]
    readers += [make_reader(instruction, operand, TYPES["u16"]) for operand in instruction.operands[1:]]

    def commit(chunk: Chunk) -> None:
        report, shared = make_row_reporter(chunk), chunk.shared
        for (place, *mask), rows in iter_threads(chunk, readers):
            for row in rows:
                owner, offset = shared.find_owner(row, place, report)
                signalled = [owner]
                if mask:
                    signalled = shared.list_blocks(row, mask[0], report)
                issuers = find_cta_group(chunk, row, group_size)
                chunk.tensor.commit(issuers, [(block, offset) for block in signalled])
                for block in signalled:
                    signal_barrier(chunk, block, offset, report, arrivals=1)

    return commit
