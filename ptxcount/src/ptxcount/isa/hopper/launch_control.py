"""Requests to cancel pending clusters, ``clusterlaunchcontrol`` (PTX ISA).

Every request fails, as it may on a GPU: each block runs and does its own work.
"""

from math import prod

import numpy as np

from ...lanes.warps import Array
from ...machine.chunk import Chunk
from ...ptx.program import Instruction
from ...util.errors import MisalignedError
from ..opcode_registry import Step, binds, op
from ..operands import expect_count, expect_modifiers
from ..single_threads import iter_threads, make_row_reporter
from ..spaces import make_shared_reader
from .mbarriers import signal_barrier

_RESPONSE = 16
_ALL = "multicast::cluster::all"
_FORM = {"try_cancel", "async", "shared::cta", "mbarrier::complete_tx::bytes", _ALL, "b128"}


@binds("clusterlaunchcontrol", having={"try_cancel"})
def _bind_request(instruction: Instruction) -> Step:
    """Bind ``try_cancel.async{.shared::cta}.mbarrier::complete_tx::bytes{.multicast::cluster::all}.b128 [a], [b]``."""
    expect_modifiers(instruction, instruction.modifiers, _FORM, _FORM - {"shared::cta", _ALL})
    expect_count(instruction, 2)
    readers = [make_shared_reader(instruction, operand) for operand in instruction.operands]

    def request(chunk: Chunk) -> None:
        report, shared = make_row_reporter(chunk), chunk.shared
        for places, rows in iter_threads(chunk, readers):
            for row in rows:
                (owner, response), (_, barrier) = (shared.find_owner(row, place, report) for place in places)
                if response % _RESPONSE:
                    text = f"a response at shared address {response}; it must be a multiple of {_RESPONSE}"
                    report(MisalignedError, (row, 0), text, response)
                blocks = [owner]
                if _ALL in instruction.modifiers:
                    first = shared.find_first_block(owner)
                    blocks = [*range(first, first + prod(chunk.context.cluster))]
                for block in blocks:
                    shared.view_bytes(block, response, _RESPONSE, report, is_written=True)[:] = 0
                    signal_barrier(chunk, block, barrier, report, arrived_bytes=_RESPONSE)
            text = "a request to cancel a cluster fails here, as it may on a GPU: every block runs"
            chunk.add_finding("failed-cancel", text, len(rows))

    return request


@op("clusterlaunchcontrol.query_cancel.is_canceled.pred.b128", "pred = b128")
def _is_canceled(chunk: Chunk, response: Array) -> list[Array]:
    words = np.ascontiguousarray(response)[..., None].view(np.uint64)
    return [np.asarray((words != 0).any(axis=-1))]


@op("clusterlaunchcontrol.query_cancel.get_first_ctaid(?:::[xyz])?.b32.b128", "b32 = b128")
@op("clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128", "b32|b32|b32|b32 = b128")
def _find_first_block(chunk: Chunk, response: Array) -> list[Array]:
    """Return zeros: after a failed request, the result is undefined."""
    return [np.zeros((1, 1), np.uint32)] * 4
