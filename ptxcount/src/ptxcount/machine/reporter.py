"""The outcome of a fault: an error, a finding, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..lanes.warps import LANES, spread
from ..util.errors import (
    GlobalRaceError,
    SharedRaceError,
    Source,
    StaleReadError,
    UninitializedReadError,
    UninitializedTensorReadError,
)
from .special_registers import split_index

if TYPE_CHECKING:  # otherwise the import is circular
    from .chunk import Chunk

#: Faults that can be findings: the code of the finding, and the attribute of `Context` with the policy.
_RECOVERABLE: dict[Any, tuple[str, str]] = {
    SharedRaceError: ("shared-race", "races"),
    GlobalRaceError: ("global-race", "races"),
    StaleReadError: ("stale-read", "races"),
    UninitializedReadError: ("unwritten-read", "unwritten"),
    UninitializedTensorReadError: ("unwritten-read", "unwritten"),
}


class Reporter:
    """Turns a fault into an error, a finding, or nothing, according to the launch options.

    ``is_weak``: the instruction is a weak load or store, which does not synchronize.
    """

    def __init__(self, chunk: Chunk, source: Source, is_weak: bool) -> None:
        self.chunk, self.source, self.is_weak = chunk, source, is_weak

    def __call__(
        self, error: Any, position: tuple[int, int], text: str, address: int, other_source: Source | None = None,
        other_thread: int | None = None,
    ) -> None:  # fmt: skip
        """Report a fault of the thread at ``position``, (block, thread) in the chunk: raise it, or add a finding.

        If that thread is not active, the first active thread stands for it. For a race, ``other_source`` is the source
        of the other access, and ``other_thread`` the index of the other thread in the block.
        """
        context = self.chunk.context
        if not spread(self.chunk.active, self.chunk.shape)[position]:
            position = self.chunk.find_first_active()
        if text.endswith("of shared memory"):
            text += context.dynamic_note
        if other_thread is not None:
            text += f" races with thread {split_index(other_thread, context.block)}"
        if other_source is not None:
            text += f", at {other_source}"
        if other_thread is not None and other_source != self.source:
            is_same_warp = other_thread // LANES == position[1] // LANES
            text += f": no {'__syncwarp' if is_same_warp else '__syncthreads'}() between them"
        fault = self.chunk.make_fault(error, text, position=position, address=address, source=self.source)
        if error not in _RECOVERABLE:
            raise fault
        code, option = _RECOVERABLE[error]
        policy = getattr(context, option)
        if policy == "error":
            raise fault
        if policy != "off":
            context.add_finding(code, self.source, fault.what, 1, other_source)
