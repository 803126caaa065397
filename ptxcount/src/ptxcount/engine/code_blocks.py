"""Basic blocks of a kernel as executable steps."""

from __future__ import annotations

from dataclasses import dataclass

from ..isa.block_barriers import Barrier
from ..isa.opcode_registry import Step
from ..ptx.flow import End
from ..ptx.program import Instruction, Register
from ..util.errors import Source


@dataclass(frozen=True)
class CodeBlock:
    """A basic block of an `Executable`."""

    #: Each instruction, the step that executes it, and the registers that are dead after it.
    steps: list[tuple[Instruction, Step, list[str]]]
    #: Indices of the basic blocks after it: the next one, if threads may go on, then the target of a branch.
    successors: list[int]
    #: Kind of its end.
    end: End
    #: Predicate of a branch or an exit.
    guard: Register | None
    #: Source of the last instruction; line 0 if there is none.
    source: Source
    #: Barrier at its end; None if it has none, or an unsupported one.
    barrier: Barrier | None = None
